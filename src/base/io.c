/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/path.h"
#include "base/random.h"

enum {
	COPY_SIZE = 256 * 1024, /* bytes moved per read() */
	READ_STEP = 64 * 1024,  /* bytes of room that are made for a read() */
};

void fd_close(int *fd)
{
	int kept = errno;

	if (*fd >= 0)
		(void) close(*fd);
	*fd = -1;
	errno = kept;
}

int write_all(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len > 0) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t) n;
	}
	return 0;
}

int write_all_at(int fd, const void *bytes, size_t len, uint64_t offset)
{
	const char *at = bytes;

	while (len > 0) {
		ssize_t n = pwrite(fd, at, len, (off_t) offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t) n;
		offset += (uint64_t) n;
	}
	return 0;
}

ssize_t read_up_to(int fd, void *bytes, size_t cap)
{
	size_t done = 0;

	while (done < cap) {
		ssize_t n = read(fd, (char *) bytes + done, cap - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t) n;
	}
	return (ssize_t) done;
}

int read_rest(int fd, struct buf *buf)
{
	for (;;) {
		size_t room = buf->max - buf->len;
		ssize_t n;
		char extra;
		int r;

		if (room == 0) {
			n = read_up_to(fd, &extra, 1);
			return n < 0 ? (int) n : n > 0 ? -E2BIG : 0;
		}
		if (room > READ_STEP)
			room = READ_STEP;
		r = buf_reserve(buf, room);
		if (r < 0)
			return r;
		n = read_up_to(fd, buf->data + buf->len, room);
		if (n < 0)
			return (int) n;
		buf->len += (size_t) n;
		buf->data[buf->len] = '\0';
		if ((size_t) n < room)
			return 0;
	}
}

/* What came of reading a file whole: nothing of one that could not be. */
static int end_reading(int r, const char *path, size_t max, struct buf *buf,
                       struct resoluto_err *err)
{
	if (r >= 0)
		return 0;
	buf_done(buf);
	if (r == -E2BIG)
		return resoluto_fail(err, r, "%s is larger than %zu bytes", path, max);
	return resoluto_fail(err, r, "read %s", path);
}

int read_file_at(int dirfd, const char *path, size_t max, struct buf *ret_buf,
                 struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = -1;
	struct stat st;

	*ret_buf = BUF_INIT(max);
	fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return resoluto_fail(err, -errno, "open %s", path);
	if (fstat(fd, &st) < 0)
		return resoluto_fail(err, -errno, "stat %s", path);
	/* /proc and /sys files are regular with size 0, so the size is no use here. */
	if (!S_ISREG(st.st_mode))
		return resoluto_fail(err, S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL,
		                     "%s is not a regular file", path);
	return end_reading(read_rest(fd, ret_buf), path, max, ret_buf, err);
}

/* 1: there may be more.  One byte more than fits is asked for, to know that there is one. */
static int read_some(int fd, size_t max, struct buf *buf)
{
	const size_t left = max + 1 - buf->len;
	ssize_t n;
	int r = buf_reserve(buf, left < READ_STEP ? left : READ_STEP);

	if (r < 0)
		return r;
	n = read(fd, buf->data + buf->len, buf->cap - buf->len - 1);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 1 : -errno;
	buf->len += (size_t) n;
	buf->data[buf->len] = '\0';
	return buf->len > max ? -E2BIG : n > 0;
}

int read_given_file(const char *path, size_t max, io_wait_fn *wait, void *ctx, struct buf *ret_buf,
                    struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int r = 1;

	*ret_buf = BUF_INIT(max + 1);
	if (fd < 0)
		return resoluto_fail(err, -errno, "open %s", path);
	while (r > 0) {
		r = wait(ctx, fd);
		if (r == 0)
			r = read_some(fd, max, ret_buf);
	}
	return end_reading(r, path, max, ret_buf, err);
}

static int write_part(int fd, const void *bytes, size_t len, mode_t mode)
{
	int r = write_all(fd, bytes, len);

	return r == 0 && fchmod(fd, mode) < 0 ? -errno : r;
}

static int exchange(int dirfd, const char *name, const void *bytes, size_t len, mode_t mode,
                    bool flush, struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = -1;
	char id[RANDOM_ID_SIZE], part[300];
	int r;

	r = random_id(id);
	if (r < 0)
		return resoluto_fail(err, r, "get random bytes");
	snprintf(part, sizeof(part), "%s.%s.part", name, id);
	fd = openat(dirfd, part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return resoluto_fail(err, -errno, "create %s", part);
	r = write_part(fd, bytes, len, mode);
	if (r == 0 && flush && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(dirfd, part, dirfd, name) < 0)
		r = -errno;
	if (r < 0) {
		(void) unlinkat(dirfd, part, 0);
		return resoluto_fail(err, r, "write %s", name);
	}
	return 0;
}

int replace_file_at(int dirfd, const char *name, const void *bytes, size_t len, mode_t mode,
                    struct resoluto_err *err)
{
	return exchange(dirfd, name, bytes, len, mode, true, err);
}

int replace_file_unflushed_at(int dirfd, const char *name, const void *bytes, size_t len,
                              mode_t mode, struct resoluto_err *err)
{
	return exchange(dirfd, name, bytes, len, mode, false, err);
}

static int copy_by_kernel(int from, int to, uint64_t *ret_size)
{
	for (;;) {
		ssize_t n = copy_file_range(from, NULL, to, NULL, 1 << 30, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		*ret_size += (uint64_t) n;
	}
}

static int copy_by_hand(int from, int to, uint64_t *ret_size)
{
	CLEANUP(mem_free) char *bytes = malloc(COPY_SIZE);

	if (!bytes)
		return -ENOMEM;
	for (;;) {
		ssize_t n = read_up_to(from, bytes, COPY_SIZE);
		int r;

		if (n <= 0)
			return (int) n;
		r = write_all(to, bytes, (size_t) n);
		if (r < 0)
			return r;
		*ret_size += (uint64_t) n;
	}
}

int copy_fd(int from, int to, uint64_t *ret_size, struct resoluto_err *err)
{
	uint64_t size = 0;
	int r;

	if (lseek(from, 0, SEEK_SET) < 0)
		return resoluto_fail(err, -errno, "seek");
	r = copy_by_kernel(from, to, &size);
	/* 0 bytes may mean that the file has no size, as those of /proc. */
	if (size == 0)
		r = copy_by_hand(from, to, &size);
	if (r < 0)
		return resoluto_fail(err, r, "copy");
	if (ret_size)
		*ret_size = size;
	return 0;
}

int fd_set_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

int fd_set_cloexec(int fd, int on)
{
	return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0 ? -errno : 0;
}

int lock_within(int fd, int operation, uint64_t limit_ms)
{
	static const struct timespec again = { .tv_nsec = 5 * 1000 * 1000 };
	const uint64_t until = clock_mono_ms() + limit_ms;

	while (flock(fd, operation | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (clock_mono_ms() >= until)
			return -EWOULDBLOCK;
		(void) nanosleep(&again, NULL);
	}
	return 0;
}
