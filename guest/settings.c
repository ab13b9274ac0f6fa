/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "guest/settings.h"

#define LOCKDOWN_LEVEL "confidentiality"

enum { LOCKDOWN_TEXT_MAX = 256 }; /* bytes of the file `lockdown` */

struct setting {
	const char *name; /* below /proc/sys */
	const char *value;
	const char *reason;
};

static const struct setting settings[] = {
	/* What the kernel tells about itself. */
	{ "kernel/dmesg_restrict", "1", "its log has addresses" },
	{ "kernel/kptr_restrict", "2", "and so have many files of /proc, for root too" },
	{ "kernel/perf_event_paranoid", "4",
	  "no perf: what Debian's kernels call 3 and Ubuntu's 4" },

	/* Code that the program would put into it. */
	{ "kernel/unprivileged_bpf_disabled", "1", "1, other than 2, is for good" },
	{ "net/core/bpf_jit_harden", "2", "numbers of a socket's or seccomp's filter are no code" },
	{ "kernel/modprobe", "\n", "no program starts as root because a name was asked for" },
	{ "kernel/modules_disabled", "1", "ours are in, for good" },
	{ "kernel/kexec_load_disabled", "1", "no other kernel, for good" },
	{ "dev/tty/ldisc_autoload", "0", "no line discipline but the usual one" },

	/* What makes its faults easier to use. */
	{ "vm/unprivileged_userfaultfd", "0", "only for faults of the program itself" },
	{ "kernel/panic_on_oops", "1", "a kernel that went wrong is not believed any more" },
	{ "kernel/sysrq", "0", "no command comes by the console" },

	/* The runner is root and looks into directories of the program. */
	{ "fs/protected_symlinks", "1", "so it follows no link laid out in /tmp" },
	{ "fs/protected_hardlinks", "1", "and meets no file that is not the program's" },
	{ "fs/protected_fifos", "2", "and waits for no fifo laid out there" },
	{ "fs/protected_regular", "2", "and writes into no file laid out there" },

	/* Not to harden it, but since nobody else is there. */
	{ "net/ipv4/ip_unprivileged_port_start", "0", "every port is the program's" },
};

_Static_assert(sizeof(settings) / sizeof(settings[0]) <= 32, "a bit each");

/* 1: set; 0: the kernel does not have it, which is no fault. */
static int apply(int dir, const struct setting *setting, struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = openat(dir, setting->name, O_WRONLY | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || write(fd, setting->value, strlen(setting->value)) < 0)
		return resoluto_fail(err, -errno, "set %s to %s (%s)", setting->name,
		                     setting->value, setting->reason);
	return 1;
}

int settings_apply(const char *dir, uint32_t *done, struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = 0;

	if (fd < 0)
		return resoluto_fail(err, -errno, "open %s", dir);
	for (size_t i = 0; r >= 0 && i < sizeof(settings) / sizeof(settings[0]); i++) {
		if (*done & 1U << i)
			continue;
		r = apply(fd, &settings[i], err);
		if (r > 0)
			*done |= 1U << i;
	}
	return r < 0 ? r : 0;
}

/* The level in force stands in brackets. */
bool settings_is_locked_down(const char *text)
{
	return strstr(text, "[" LOCKDOWN_LEVEL "]") != NULL;
}

/* Saying it twice is an error to the kernel. */
static int set_lockdown(const char *dir, struct resoluto_err *err)
{
	CLEANUP(fd_close) int parent = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(buf_done) struct buf now = BUF_INIT(0);
	const struct setting setting = { "lockdown", LOCKDOWN_LEVEL, "nobody changes the kernel" };
	int r;

	if (parent < 0)
		return resoluto_fail(err, -errno, "open %s", dir);
	if (read_file_at(parent, "lockdown", LOCKDOWN_TEXT_MAX, &now, NULL) == 0 && now.data &&
	    settings_is_locked_down(now.data))
		return 0;
	r = apply(parent, &setting, err);
	return r < 0 ? r : 0;
}

int settings_lock_down(const char *dir, struct resoluto_err *err)
{
	int r;

	if (mount("securityfs", dir, "securityfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return errno == ENOENT ? 0 : resoluto_fail(err, -errno, "mount %s", dir);
	r = set_lockdown(dir, err);
	/* Its view of the kernel's modules is nothing for the program. */
	if (umount2(dir, MNT_DETACH) < 0 && r == 0)
		r = resoluto_fail(err, -errno, "unmount %s", dir);
	return r;
}
