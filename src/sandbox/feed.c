/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sandbox/feed.h"

static int open_file(struct feed *feed, const char *path, struct resoluto_err *err)
{
	/* Not blocking, so that opening a fifo does not wait for its writer. */
	feed->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (feed->fd < 0)
		return resoluto_fail(err, -EINVAL, "input %s: %s", path, strerrordesc_np(errno));
	feed->owns_fd = true;
	return 0;
}

static int check_readable(const struct feed *feed, struct resoluto_err *err)
{
	struct stat st;
	int flags = fcntl(feed->fd, F_GETFL);

	if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY || fstat(feed->fd, &st) < 0)
		return resoluto_fail(err, -EINVAL, "input: descriptor %d cannot be read", feed->fd);
	if (S_ISDIR(st.st_mode))
		return resoluto_fail(err, -EINVAL, "input: it is a directory");
	return 0;
}

static int watch(struct feed *feed, bool wanted, struct resoluto_err *err)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (!feed->is_pollable || wanted == feed->is_watched)
		return 0;
	if (epoll_ctl(feed->epoll_fd, wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, feed->fd, &event) < 0)
		return resoluto_fail(err, -errno, "watch the input");
	feed->is_watched = wanted;
	return 0;
}

static int open_fd(struct feed *feed, struct resoluto_err *err)
{
	struct epoll_event event = { .events = EPOLLIN };
	int r = check_readable(feed, err);

	if (r < 0)
		return r;
	/* Only asked whether it can be watched at all: before the launch nobody reads. */
	if (epoll_ctl(feed->epoll_fd, EPOLL_CTL_ADD, feed->fd, &event) == 0) {
		feed->is_pollable = feed->is_watched = true;
		r = watch(feed, false, err);
	} else if (errno != EPERM) {
		r = resoluto_fail(err, -errno, "watch the input");
	}
	if (r < 0)
		return r;
	feed->held = malloc(FEED_BYTES);
	return feed->held ? 0 : resoluto_fail(err, -ENOMEM, "read the input");
}

int feed_open(struct feed *feed, const struct resoluto_stdin *input, int epoll_fd,
              struct resoluto_err *err)
{
	int r = 0;

	*feed = FEED_NONE;
	feed->epoll_fd = epoll_fd;
	feed->is_open = input->kind != RESOLUTO_STDIN_NONE;
	if (input->kind == RESOLUTO_STDIN_BYTES) {
		feed->at = input->bytes;
		feed->left = input->len;
		feed->is_at_end = true;
	} else if (input->kind == RESOLUTO_STDIN_FD) {
		feed->fd = input->fd;
	} else if (input->kind == RESOLUTO_STDIN_FILE) {
		r = open_file(feed, input->path, err);
	}
	if (r == 0 && feed->fd >= 0)
		r = open_fd(feed, err);
	return r;
}

static void halt(struct feed *feed)
{
	(void) watch(feed, false, NULL);
	feed->is_open = false;
}

/* Whoever reads the other end of a pipe sees that nobody reads this one any more, if it was ours. */
static void stop(struct feed *feed)
{
	halt(feed);
	feed->left = 0;
	if (feed->owns_fd)
		fd_close(&feed->fd);
	feed->fd = -1;
}

void feed_close(struct feed *feed)
{
	stop(feed);
	free(feed->held);
	*feed = FEED_NONE;
}

void feed_again(struct feed *feed)
{
	/* Where only the end is left, that was told to the one that is gone. */
	if (!feed->has_sent && (feed->fd >= 0 || feed->left > 0 || feed->is_at_end))
		feed->is_open = true;
}

static bool is_readable(const struct feed *feed)
{
	struct pollfd watched = { .fd = feed->fd, .events = POLLIN };

	return !feed->is_pollable || poll(&watched, 1, 0) > 0;
}

/* 1: there is something to send, or the end was seen.  0: nothing can be read now. */
static int refill(struct feed *feed, struct resoluto_err *err)
{
	ssize_t n;

	if (!is_readable(feed))
		return 0;
	n = read(feed->fd, feed->held, FEED_BYTES);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		return resoluto_fail(err, -errno, "read the input of the program");
	feed->is_at_end = n == 0;
	feed->at = feed->held;
	feed->left = (size_t) n;
	return 1;
}

/* 1: go on.  0: nothing to do now.  The end of the sandbox is the driver's to notice, so a failure
 * to send only ends the feeding; and what nobody took anything of is kept for the next one. */
static int send_some(struct feed *feed, struct resoluto_runtime *runtime,
                     struct resoluto_handle *handle, size_t *budget)
{
	ssize_t n = runtime->ops->send_stdin(runtime, handle, feed->at, feed->left, NULL);

	if (n < 0) {
		if (feed->has_sent)
			stop(feed);
		else
			halt(feed);
		return 0;
	}
	feed->has_sent = feed->has_sent || n > 0;
	feed->at += n;
	feed->left -= (size_t) n;
	*budget -= (size_t) n < *budget ? (size_t) n : *budget;
	return n > 0;
}

static int step(struct feed *feed, struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                size_t *budget, struct resoluto_err *err)
{
	int r = 1;

	if (feed->left == 0 && !feed->is_at_end)
		r = refill(feed, err);
	if (r != 1)
		return r;
	if (feed->left > 0)
		return send_some(feed, runtime, handle, budget);
	(void) runtime->ops->close_stdin(runtime, handle, NULL);
	stop(feed);
	return 0;
}

int feed_pump(struct feed *feed, struct resoluto_runtime *runtime, struct resoluto_handle *handle,
              struct resoluto_err *err)
{
	size_t budget = FEED_PER_TURN;
	int r = feed->is_open ? 1 : 0;

	while (r == 1 && budget > 0)
		r = step(feed, runtime, handle, &budget, err);
	if (r < 0)
		return r;
	if (watch(feed, feed->is_open && feed->left == 0 && !feed->is_at_end, err) < 0)
		return -EIO;
	return r;
}
