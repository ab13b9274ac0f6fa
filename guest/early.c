/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "guest/cgroup.h"
#include "guest/early.h"
#include "guest/init.h"
#include "guest/mounts.h"
#include "guest/rehearsal.h"

static const char program[] = "/early", state_path[] = "/early.state";
/* The kernel makes these: when sockets and the loopback device are there, and when the disks can be opened. */
static const char go_path[] = "/early.go", disks_path[] = "/early.disks";

static const struct timespec look_again = { .tv_nsec = 1000 * 1000 };

/* --- the file between the two --- */

static int open_state(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

static void put(int fd, const struct early *early)
{
	/* A file in memory; what is not whole is as good as nothing to the reader. */
	(void) !pwrite(fd, early, sizeof(*early), 0);
}

int early_begin(const char *path)
{
	const struct early broke_off = { .err = { -ECHILD, EARLY_BROKE_OFF } };
	CLEANUP(fd_close) int fd = open_state(path);

	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	put(fd, &broke_off);
	return fd_take(&fd);
}

void early_end(int fd, const struct early *early)
{
	put(fd, early);
	(void) close(fd);
}

static int lock(int fd, int how)
{
	while (flock(fd, how) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

void early_stay(int fd)
{
	(void) lock(fd, LOCK_SH);
	/* Before the process ends, which takes long: PID 1 may come to its lock only now. */
	fd_close(&fd);
}

int early_await(const char *path, struct early *ret, int *ret_lock)
{
	CLEANUP(fd_close) int fd = open_state(path);
	ssize_t n;
	int r;

	*ret_lock = -1;
	if (fd < 0)
		return fd;
	r = lock(fd, LOCK_EX);
	if (r < 0)
		return r;
	n = pread(fd, ret, sizeof(*ret), 0);
	if (n == sizeof(*ret)) {
		*ret_lock = fd_take(&fd);
		return 1;
	}
	/* Kept with its lock for good: one that comes later finds it taken. */
	(void) fd_take(&fd);
	return n == 0 ? 0 : -EIO;
}

/* --- what is made --- */

static int build(const struct disks *disks, struct early *early, struct resoluto_err *err)
{
	int r = mount_image(disks, err);

	if (r == 0)
		r = mount_root(disks, err);
	early->has_scratch = disks->scratch[0] != '\0';
	memcpy(early->inbox, disks->inbox, sizeof(early->inbox));
	return r;
}

/* With PID 1 in user space every driver has started: what is not there then never comes. */
static bool has_init_begun(void)
{
	char target[8];

	return readlink("/proc/1/exe", target, sizeof(target)) > 0;
}

/* On a kernel that makes no such directory: until it is all there. */
static bool is_there(const char *sign)
{
	return access(sign, F_OK) == 0 || has_init_begun();
}

static void await_network(void)
{
	while (!is_there(go_path))
		(void) nanosleep(&look_again, NULL);
}

/* Under emulation some 20 ms after all else is done. */
static void await_disks(const struct cgroup *cgroup)
{
	struct rehearsal rehearsal = { .cgroup_dir = cgroup->dir };

	while (!is_there(disks_path)) {
		if (!rehearsal_step(&rehearsal))
			(void) nanosleep(&look_again, NULL);
	}
}

/* What the C library of PID 1 asks for before its first line, and PID 1 behind it: the kernel's part of these answers is translated here
 * then, beside the drivers. */
static void ask_ahead(void)
{
	char path[32];

	(void) !readlink("/proc/self/exe", path, sizeof(path));
	(void) clock_mono_ms();
	(void) poll(NULL, 0, 0);
}

/* Settings of drivers that have not started yet are passed over here: PID 1 says those. */
static int make_all(struct early *early, struct resoluto_err *err)
{
	CLEANUP(cgroup_done) struct cgroup cgroup = CGROUP_NONE;
	struct disks disks;
	int r = init_mount_early(err);

	if (r < 0)
		return r;
	ask_ahead();
	await_network();
	/* Not before: a sysfs that is mounted while there is no network yet never shows a network device. */
	r = mount_views(err);
	if (r == 0)
		r = mount_set_up_kernel(&early->kernel, err);
	if (r == 0)
		r = cgroup_create(&cgroup, err);
	if (r < 0)
		return r;
	await_disks(&cgroup);
	disks_find(&disks);
	return build(&disks, early, err);
}

/* What PID 1 reads next: it is in memory then. */
static void look_ahead(void)
{
	struct image_users users = { BUF_INIT(0), BUF_INIT(0) };

	if (chroot("/newroot") == 0 && chdir("/") == 0)
		(void) mount_read_users(&users, NULL);
	image_users_done(&users);
}

bool early_is_meant(const char *argv0)
{
	return strcmp(argv0, program) == 0 && getpid() != 1 && access("/proc/self", F_OK) < 0;
}

int early_main(void)
{
	struct early early = { .err = { .code = 0 } };
	int fd = early_begin(state_path), again;

	if (fd < 0)
		return 1;
	(void) make_all(&early, &early.err);
	again = open_state(state_path);
	early_end(fd, &early);
	if (early.err.code == 0)
		look_ahead();
	/* The end of a process is as much work as its start, and PID 1 needs the processor now, if it is waiting already. */
	early_stay(again);
	_exit(early.err.code ? 1 : 0);
}

int early_take(struct early *ret, int *ret_lock, struct resoluto_err *err)
{
	struct disks disks;
	int r = early_await(state_path, ret, ret_lock);

	if (r < 0)
		return resoluto_fail(err, r, "wait for %s", program);
	if (r > 0) {
		if (ret->err.code)
			*err = ret->err;
		return ret->err.code;
	}
	*ret = (struct early){ .err = { .code = 0 } };
	disks_find(&disks);
	r = mount_views(err);
	return r < 0 ? r : build(&disks, ret, err);
}
