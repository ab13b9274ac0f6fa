/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/proc.h"
#include "base/quantity.h"
#include "base/random.h"
#include "runtime/microvm/files.h"

enum {
	MKFS_WORDS_MAX = 1024, /* bytes of its complaint that are kept */
	SCRATCH_FD = 3,        /* of the disk in mkfs */
	SCRATCH_MIN = 16 * 1024 * 1024,
};

/* For file systems without O_TMPFILE. */
static int create_and_unlink(int dirfd)
{
	char id[RANDOM_ID_SIZE], name[64];
	int r = random_id(id);
	int fd;

	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "%s.part", id);
	fd = openat(dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (unlinkat(dirfd, name, 0) < 0) {
		r = -errno;
		fd_close(&fd);
		return r;
	}
	return fd;
}

int file_without_name(int dirfd, uint64_t size, struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = openat(dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct rlimit limit;
	char text[32];

	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
		fd = create_and_unlink(dirfd);
	else if (fd < 0)
		fd = -errno;
	if (fd < 0)
		return resoluto_fail(err, fd, "create a file in the run directory");
	if (ftruncate(fd, (off_t) size) == 0)
		return fd_take(&fd);
	quantity_format_bytes(size, text, sizeof(text));
	if (errno == EFBIG && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < size)
		return resoluto_fail(
			err, -EFBIG,
			"files may not become as large as %s (ulimit -f): a run needs sparse ones "
			"of that size",
			text);
	if (errno == EFBIG)
		return resoluto_fail(
			err, -EFBIG,
			"the file system of the state directory cannot hold a sparse file of %s; "
			"set RESOLUTO_STATE_DIR to a place on ext4, xfs, btrfs or tmpfs",
			text);
	return resoluto_fail(err, -errno, "make a sparse file of %s", text);
}

int file_in_memory(const char *name, const void *bytes, size_t len, struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return resoluto_fail(err, -errno, "make a file in memory");
	r = write_all(fd, bytes, len);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		r = -errno;
	return r < 0 ? resoluto_fail(err, r, "write a file in memory") : fd_take(&fd);
}

int reopen_fd(int fd, int flags)
{
	char path[64];
	int again;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, flags | O_CLOEXEC);
	return again < 0 ? -errno : again;
}

static const char *find_mkfs(void)
{
	static const char *const places[] = { "/sbin/mkfs.ext4", "/usr/sbin/mkfs.ext4", NULL };

	for (int i = 0; places[i]; i++) {
		if (access(places[i], X_OK) == 0)
			return places[i];
	}
	return NULL;
}

/* No journal: the disk does not outlive the VM. */
static int run_mkfs(const char *mkfs, int fd, struct buf *complaint, struct resoluto_err *err)
{
	const char *const argv[] = { mkfs,
		                     "-q",
		                     "-F",
		                     "-O",
		                     "^has_journal",
		                     "-m",
		                     "0",
		                     "-E",
		                     "lazy_itable_init=1,nodiscard",
		                     "/proc/self/fd/3",
		                     NULL };
	CLEANUP(fd_close) int out = -1, in = -1;
	CLEANUP(proc_done) struct proc proc = PROC_NONE;
	const struct proc_fd fds[] = { { fd, SCRATCH_FD }, { 0, 2 } };
	struct proc_fd placed[2] = { fds[0], fds[1] };
	int pair[2], status, r;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return resoluto_fail(err, -errno, "make a pipe");
	out = pair[0];
	in = pair[1];
	placed[1].from = in;
	r = proc_spawn(&(struct proc_options){ .argv = argv, .fds = placed, .fd_count = 2 }, &proc,
	               err);
	fd_close(&in);
	if (r < 0)
		return r;
	(void) read_rest(out, complaint); /* too long a complaint is cut */
	fd_close(&out);
	r = proc_wait(&proc, -1, &status);
	if (r == 0 && status != 0)
		r = -EIO;
	return r < 0 ? resoluto_fail(err, r, "format the scratch disk: %s",
	                             complaint->data ? complaint->data : "")
	             : 0;
}

int scratch_check(uint64_t size, struct resoluto_err *err)
{
	if (size >= SCRATCH_MIN)
		return 0;
	return resoluto_fail(err, -EINVAL, "disk: a scratch disk has at least %d MiB",
	                     SCRATCH_MIN >> 20);
}

int scratch_build(int dirfd, uint64_t size, int *ret_fd, struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = -1;
	CLEANUP(buf_done) struct buf complaint = BUF_INIT(MKFS_WORDS_MAX);
	const char *mkfs = find_mkfs();
	int r;

	if (!mkfs)
		return resoluto_fail(
			err, -ENOENT,
			"mkfs.ext4 is missing, which a scratch disk needs; install e2fsprogs");
	r = scratch_check(size, err);
	if (r < 0)
		return r;
	fd = file_without_name(dirfd, size, err);
	if (fd < 0)
		return resoluto_fail_in(err, fd, "make the scratch disk");
	r = run_mkfs(mkfs, fd, &complaint, err);
	if (r < 0)
		return r;
	*ret_fd = fd_take(&fd);
	return 0;
}
