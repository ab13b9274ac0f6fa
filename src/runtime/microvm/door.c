/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "runtime/microvm/door.h"
#include "wire/frame.h"

int door_make(int dirfd, int *ret_fd, struct resoluto_err *err)
{
	int fd;

	if (mkfifoat(dirfd, DOOR_NAME, 0600) < 0)
		return resoluto_fail(err, -errno, "make the run's door");
	/* For writing too: a FIFO whose last writer left would be at its end. */
	fd = open_beneath(dirfd, DOOR_NAME, O_RDWR | O_NONBLOCK, 0);
	if (fd < 0)
		return resoluto_fail(err, fd, "open the run's door");
	*ret_fd = fd;
	return 0;
}

static int open_end(int dirfd, int flags)
{
	CLEANUP(fd_close) int fd = open_beneath(dirfd, DOOR_NAME, flags | O_NONBLOCK, 0);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISFIFO(st.st_mode) ? fd_take(&fd) : -ENXIO;
}

static int explain(int code, struct resoluto_err *err)
{
	switch (code) {
	case -ENXIO:
		return resoluto_fail(err, -ESRCH, "the run has ended");
	case -ENOENT:
		return resoluto_fail(err, -EAGAIN, "the run has no sandbox yet");
	case -EAGAIN:
		return resoluto_fail(err, -EAGAIN, "the run does not take any request now");
	default:
		return resoluto_fail(err, code, "reach the run");
	}
}

int door_send(int dirfd, uint8_t type, const void *payload, size_t len, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf frame = BUF_INIT(DOOR_FRAME_MAX);
	CLEANUP(fd_close) int door = open_end(dirfd, O_WRONLY), reader = -1;
	int r;

	if (door < 0)
		return explain(door, err);
	/* A reader of our own: if the shim goes now, the write must not raise SIGPIPE. */
	reader = open_end(dirfd, O_RDONLY);
	if (reader < 0)
		return explain(reader, err);
	r = frame_add(&frame, type, 0, 0, payload, len);
	if (r == 0 && write(door, frame.data, frame.len) < 0)
		r = -errno;
	return r < 0 ? explain(r, err) : 0;
}
