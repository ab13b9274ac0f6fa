/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/turn.h"
#include "shim/confine.h"
#include "shim/launcher.h"

enum {
	QEMU_FILES_MAX = 256,
	PLACES_MAX = 24,
	FDS_MAX = 32,
	FD_PARKED = FDS_MAX, /* above every number QEMU's descriptors get */
};

/* All a prefix may hold that QEMU maps or reads. */
static const struct {
	const char *beneath;
	unsigned rights;
} prefix_places[] = {
	{ "share/qemu", CONFINE_READ },
	{ "share/seabios", CONFINE_READ },
	{ "lib", CONFINE_READ | CONFINE_EXEC },
	{ "lib64", CONFINE_READ | CONFINE_EXEC },
};

static const struct confine_place system_places[] = {
	{ "/usr/lib", -1, CONFINE_READ | CONFINE_EXEC },
	{ "/usr/lib64", -1, CONFINE_READ | CONFINE_EXEC },
	{ "/lib", -1, CONFINE_READ | CONFINE_EXEC },
	{ "/lib64", -1, CONFINE_READ | CONFINE_EXEC },
	{ "/etc/ld.so.cache", -1, CONFINE_READ },
	{ "/dev/null", -1, CONFINE_READ | CONFINE_WRITE },
	{ "/dev/urandom", -1, CONFINE_READ },
};

struct child {
	const struct launcher *launcher;
	int exec_fd, ruleset;
	pid_t parent;
};

static int limit(int resource, uint64_t value)
{
	const struct rlimit limit = { .rlim_cur = value, .rlim_max = value };

	return setrlimit(resource, &limit) < 0 ? -errno : 0;
}

/* Where less is allowed already, that stays: no right is left to raise it. */
static int limit_files(void)
{
	struct rlimit now;

	if (getrlimit(RLIMIT_NOFILE, &now) < 0)
		return -errno;
	return limit(RLIMIT_NOFILE, now.rlim_max < QEMU_FILES_MAX ? now.rlim_max : QEMU_FILES_MAX);
}

static int set_limits(const struct launcher *launcher)
{
	int r = limit(RLIMIT_CORE, 0);

	if (r == 0)
		r = limit_files();
	return r < 0 ? r : limit(RLIMIT_FSIZE, launcher->file_size_max);
}

/* Runs between fork and exec, and does the exec itself: the filter knows only this one descriptor. */
static int become_qemu(void *ctx)
{
	static char *const env[] = { "PATH=/usr/bin:/bin", "LC_ALL=C", NULL };
	const struct child *child = ctx;
	int r;

	/* Of the thread that forked, and the shim has one.  Its own uid changed before: that clears this. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	if (getppid() != child->parent)
		return -ESRCH;
	/* Of its first thread, which serves the guest's devices; those of the processors compute. */
	turn_make_short();
	r = set_limits(child->launcher);
	if (r == 0)
		r = confine_enter(child->ruleset);
	if (r == 0)
		r = confine_qemu_calls(child->exec_fd);
	if (r < 0)
		return r;
	(void) syscall(SYS_execveat, child->exec_fd, "", child->launcher->argv, env, AT_EMPTY_PATH);
	return -errno;
}

/* "/opt/qemu" of "/opt/qemu/bin/qemu-system-x86_64". */
static int prefix_of(const char *program, char ret_prefix[PATH_MAX])
{
	char real[PATH_MAX];

	if (!realpath(program, real))
		return -errno;
	snprintf(ret_prefix, PATH_MAX, "%s", dirname(dirname(real)));
	return 0;
}

/* text holds the paths that places point to. */
static size_t list_places(const struct launcher *launcher, int exec_fd, const char *prefix,
                          struct confine_place places[PLACES_MAX], struct strv *text)
{
	size_t count = 0;

	for (size_t i = 0; i < sizeof(system_places) / sizeof(system_places[0]); i++)
		places[count++] = system_places[i];
	for (size_t i = 0; i < sizeof(prefix_places) / sizeof(prefix_places[0]); i++) {
		if (strv_addf(text, "%s/%s", prefix, prefix_places[i].beneath) < 0)
			return 0;
		places[count++] = (struct confine_place){ text->items[text->count - 1], -1,
			                                  prefix_places[i].rights };
	}
	places[count++] = (struct confine_place){ NULL, exec_fd, CONFINE_READ | CONFINE_EXEC };
	places[count++] = (struct confine_place){ NULL, launcher->kernel_fd, CONFINE_READ };
	places[count++] = (struct confine_place){ NULL, launcher->initrd_fd, CONFINE_READ };
	if (launcher->needs_kvm)
		places[count++] = (struct confine_place){ "/dev/kvm", -1,
			                                  CONFINE_READ | CONFINE_WRITE };
	return count;
}

/* A number that QEMU's descriptors do not get. */
static int park(int fd, struct resoluto_err *err)
{
	int parked = fcntl(fd, F_DUPFD_CLOEXEC, FD_PARKED);

	/* So fcntl says that there is no such number. */
	if (parked < 0 && errno == EINVAL)
		errno = EMFILE;
	return parked < 0 ? resoluto_fail(err, -errno, "park a descriptor (ulimit -n)") : parked;
}

static int make_ruleset(const struct launcher *launcher, int exec_fd, int *ret_ruleset,
                        struct resoluto_err *err)
{
	CLEANUP(strv_done) struct strv text = { 0 };
	CLEANUP(fd_close) int ruleset = -1;
	struct confine_place places[PLACES_MAX];
	char prefix[PATH_MAX];
	size_t count;
	int r = prefix_of(launcher->program, prefix);

	if (r < 0)
		return resoluto_fail(err, r, "find %s", launcher->program);
	count = list_places(launcher, exec_fd, prefix, places, &text);
	if (count == 0)
		return resoluto_fail(err, -ENOMEM, "list what QEMU may read");
	r = confine_ruleset(places, count, true, &ruleset, err);
	if (r < 0)
		return r;
	*ret_ruleset = park(ruleset, err);
	return *ret_ruleset < 0 ? *ret_ruleset : 0;
}

static int open_program(const char *program, struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = open(program, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? resoluto_fail(err, -errno, "open %s", program) : park(fd, err);
}

int launcher_start(const struct launcher *launcher, struct proc *ret_proc, struct resoluto_err *err)
{
	CLEANUP(fd_close) int exec_fd = -1, ruleset = -1;
	struct child child = { .launcher = launcher, .parent = getpid() };
	struct proc_fd fds[FDS_MAX];
	int r;

	if (launcher->fd_count >= FDS_MAX)
		return resoluto_fail(err, -E2BIG, "too many descriptors for QEMU");
	exec_fd = open_program(launcher->program, err);
	if (exec_fd < 0)
		return exec_fd;
	r = make_ruleset(launcher, exec_fd, &ruleset, err);
	if (r < 0)
		return r;
	memcpy(fds, launcher->fds, launcher->fd_count * sizeof(fds[0]));
	fds[launcher->fd_count] = (struct proc_fd){ launcher->stderr_fd, 2 };
	child.exec_fd = exec_fd;
	child.ruleset = ruleset;
	return proc_spawn(&(struct proc_options){ .argv = launcher->argv,
	                                          .fds = fds,
	                                          .fd_count = launcher->fd_count + 1,
	                                          .prepare = become_qemu,
	                                          .ctx = &child },
	                  ret_proc, err);
}
