/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sandbox/bridge.h"

enum {
	BRIDGE_BUFFER = 256 *
	                1024, /* bytes asked for between the two sides; the kernel may give less */
	BRIDGE_TICK_MS = 100,
};

/* MSG_NOSIGNAL: a consumer that has left must not raise SIGPIPE in the caller's program. */
static int push(void *ctx, const void *bytes, size_t len)
{
	const struct bridge *bridge = ctx;
	const char *at = bytes;

	while (len > 0) {
		ssize_t n = send(bridge->theirs, at, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		/* What a socket says when the other end left bytes unread. */
		if (n < 0 && errno == ECONNRESET)
			return -EPIPE;
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t) n;
	}
	return 0;
}

static void *run(void *ctx)
{
	struct bridge *bridge = ctx;
	struct resoluto_sink sink = { .write = push, .ctx = bridge };

	bridge->result = bridge->produce(bridge->ctx, &sink, &bridge->err);
	fd_close(&bridge->theirs);
	return NULL;
}

static int start_thread(struct bridge *bridge)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	r = pthread_sigmask(SIG_SETMASK, &all, &before);
	if (r != 0)
		return -r;
	r = pthread_create(&bridge->thread, NULL, run, bridge);
	(void) pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}

int bridge_start(struct bridge *bridge, bridge_produce_fn *produce, void *ctx,
                 struct resoluto_err *err)
{
	const int size = BRIDGE_BUFFER;
	int pair[2], r;

	*bridge = (struct bridge){ .produce = produce,
		                   .ctx = ctx,
		                   .ours = -1,
		                   .theirs = -1,
		                   .tick_fd = -1 };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return resoluto_fail(err, -errno, "make a socket pair");
	bridge->ours = pair[0];
	bridge->theirs = pair[1];
	(void) setsockopt(bridge->theirs, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	r = start_thread(bridge);
	if (r < 0) {
		fd_close(&bridge->ours);
		fd_close(&bridge->theirs);
		return resoluto_fail(err, r, "start a thread");
	}
	bridge->is_running = true;
	return 0;
}

static void join(struct bridge *bridge)
{
	if (bridge->is_running)
		(void) pthread_join(bridge->thread, NULL);
	bridge->is_running = false;
}

/* 0 when there is something to read, or what tick said. */
static int wait_for_bytes(const struct bridge *bridge)
{
	struct pollfd watched[] = {
		{ .fd = bridge->ours, .events = POLLIN },
		{ .fd = bridge->tick_fd, .events = POLLIN },
	};

	for (;;) {
		int n = poll(watched, 2, BRIDGE_TICK_MS);
		int r = bridge->tick ? bridge->tick(bridge->tick_ctx) : 0;

		if (n < 0 && errno != EINTR)
			return -errno;
		if (r < 0)
			return r;
		if (n > 0 && watched[0].revents)
			return 0;
		/* What tick left unread there is none of ours. */
		if (n > 0)
			watched[1].fd = -1;
	}
}

ssize_t bridge_read(void *ctx, void *buf, size_t cap)
{
	struct bridge *bridge = ctx;
	ssize_t n;
	int r = wait_for_bytes(bridge);

	if (r < 0)
		return r;
	do
		n = recv(bridge->ours, buf, cap, 0);
	while (n < 0 && errno == EINTR);
	if (n != 0)
		return n < 0 ? -errno : n;
	/* The end is only an end if the other side says so. */
	join(bridge);
	return bridge->result < 0 ? bridge->result : 0;
}

int bridge_end(struct bridge *bridge, int r, struct resoluto_err *err)
{
	bool was_stopped;

	fd_close(&bridge->ours);
	join(bridge);
	/* -EPIPE: it pushed against our closed end, which is our failure, or we had enough. */
	was_stopped = bridge->result == -EPIPE;
	if (bridge->result < 0 && !was_stopped)
		return resoluto_fail(err, bridge->result, "%s", bridge->err.text);
	return r;
}
