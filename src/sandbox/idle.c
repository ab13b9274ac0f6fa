/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "sandbox/idle.h"
#include "wire/reason.h"

int idle_open(struct idle *idle, const struct resoluto_stdin *input, int signal_fd,
              uint64_t grace_ms, struct resoluto_err *err)
{
	int r;

	*idle = IDLE_NONE;
	idle->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (idle->epoll_fd < 0)
		return resoluto_fail(err, -errno, "make an epoll descriptor");
	r = stops_open(&idle->stops, signal_fd, idle->epoll_fd, grace_ms, err);
	return r < 0 ? r : feed_open(&idle->feed, input, idle->epoll_fd, err);
}

void idle_close(struct idle *idle)
{
	feed_close(&idle->feed);
	stops_close(&idle->stops);
	fd_close(&idle->epoll_fd);
}

int idle_run(struct idle *idle, struct resoluto_runtime *runtime, struct resoluto_handle *handle,
             struct resoluto_err *err)
{
	if (stops_forward(&idle->stops, runtime, handle))
		return resoluto_fail(err, -ECANCELED, "%s", reason_name(REASON_SIGNAL));
	return feed_pump(&idle->feed, runtime, handle, err);
}

bool idle_has_fed(const struct idle *idle)
{
	return !idle->feed.is_open;
}

int idle_asked_to_stop(struct idle *idle, struct resoluto_err *err)
{
	if (stops_asked(&idle->stops))
		return resoluto_fail(err, -ECANCELED, "%s", reason_name(REASON_SIGNAL));
	return 0;
}
