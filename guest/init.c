/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/init.h"

static const char modules_dir[] = "/modules";

int init_mount_early(struct resoluto_err *err)
{
	static const struct {
		const char *type, *target;
		unsigned long flags;
	} mounts[] = {
		{ "proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC },
		{ "sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC },
		{ "devtmpfs", "/dev", MS_NOSUID | MS_NOEXEC },
	};

	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		/* EBUSY: a kernel that mounts devtmpfs by itself did. */
		if (mount(mounts[i].type, mounts[i].target, mounts[i].type, mounts[i].flags, NULL) <
		            0 &&
		    errno != EBUSY)
			return resoluto_fail(err, -errno, "mount %s", mounts[i].target);
	}
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

int init_list_modules(struct init_modules *ret_modules, struct resoluto_err *err)
{
	const int max = (int) (sizeof(ret_modules->names) / sizeof(ret_modules->names[0]));
	CLEANUP(dir_close) DIR *dir = opendir(modules_dir);
	struct dirent *entry;

	*ret_modules = (struct init_modules){ .count = 0 };
	if (!dir)
		return errno == ENOENT ? 0 : resoluto_fail(err, -errno, "open %s", modules_dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (ret_modules->count == max ||
		    strlen(entry->d_name) >= sizeof(ret_modules->names[0]))
			return resoluto_fail(err, -E2BIG,
			                     "%s holds more than %d modules, or %s is too long",
			                     modules_dir, max, entry->d_name);
		strcpy(ret_modules->names[ret_modules->count++], entry->d_name);
	}
	qsort(ret_modules->names, (size_t) ret_modules->count, sizeof(ret_modules->names[0]),
	      compare_names);
	return 0;
}

static int load_module(const char *name, struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = -1;
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", modules_dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return resoluto_fail(err, -errno, "open %s", path);
	if (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST)
		return resoluto_fail(err, -errno, "load the module %s", name);
	/* The file lies in memory: give it back.  (A template is the smaller for it, too.) */
	(void) unlink(path);
	return 0;
}

/* "03-virtio_console.ko" is the module virtio_console. */
static bool is_module(const char *file, const char *module)
{
	const char *name = strchr(file, '-');
	size_t len = strlen(module);

	return name && strncmp(name + 1, module, len) == 0 && strcmp(name + 1 + len, ".ko") == 0;
}

int init_load_modules(struct init_modules *modules, const char *last, struct resoluto_err *err)
{
	while (modules->next < modules->count) {
		const char *file = modules->names[modules->next++];
		int r = load_module(file, err);

		if (r < 0)
			return r;
		if (last && is_module(file, last))
			break;
	}
	return 0;
}

int init_harden_self(struct resoluto_err *err)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return resoluto_fail(err, -errno, "become undumpable");
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return resoluto_fail(err, -errno, "ignore SIGPIPE");
	return 0;
}

void init_power_off(void)
{
	(void) reboot(RB_POWER_OFF);
}
