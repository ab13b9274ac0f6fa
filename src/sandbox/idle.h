/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * idle.h - what the caller's side of a run does while the sandbox works: feed its standard input
 * (feed.h), pass signals on (stops.h).  One epoll descriptor stands for both of them.
 */

#include "sandbox/feed.h"
#include "sandbox/stops.h"

struct idle {
	int epoll_fd; /* owned */
	struct feed feed;
	struct stops stops;
};

#define IDLE_NONE ((struct idle){ .epoll_fd = -1, .feed = FEED_NONE, .stops = STOPS_NONE })

/* -EINVAL names the descriptor or file that cannot be used. */
int idle_open(struct idle *idle, const struct resoluto_stdin *input, int signal_fd,
              uint64_t grace_ms, struct resoluto_err *err);
void idle_close(struct idle *idle);
/* The driver's on_idle: 1 = call again soon; -ECANCELED with the reason's name when the grace time is over. */
int idle_run(struct idle *idle, struct resoluto_runtime *runtime, struct resoluto_handle *handle,
             struct resoluto_err *err);
/* All input has been handed over, or nobody reads it any more. */
bool idle_has_fed(const struct idle *idle);
/* Before the launch: -ECANCELED once a signal asked to stop. */
int idle_asked_to_stop(struct idle *idle, struct resoluto_err *err);
