/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * stops.h - signals of the caller's for the program: forwarded as they come; the first SIGINT,
 * SIGTERM or SIGHUP starts the grace time, its end or a second one ends the sandbox.  With
 * leaves_on_hangup a SIGHUP over a running sandbox is only noted.
 */

#include <stdbool.h>
#include <stdint.h>

#include "resoluto/runtime.h"

struct stops {
	int fd;       /* borrowed, -1: none; each byte is a signal's number */
	int epoll_fd; /* borrowed: where fd and the grace timer are watched */
	int timer_fd; /* owned: the grace time */
	uint64_t grace_ms;
	int signo;    /* the first that asked to stop; 0: none did */
	bool is_over; /* the grace time passed, or it was said twice */
	bool leaves_on_hangup;
	bool has_hung_up;
};

#define STOPS_NONE ((struct stops){ .fd = -1, .epoll_fd = -1, .timer_fd = -1 })

int stops_open(struct stops *stops, int signal_fd, int epoll_fd, uint64_t grace_ms,
               struct resoluto_err *err);
void stops_close(struct stops *stops);
/* Until fd, any descriptor, can be read or is at its end.  -ECANCELED: somebody asked to stop. */
int stops_await(void *stops, int fd);
/* Before there is a program: read what came.  true: one asked to stop, so it need not start. */
bool stops_asked(struct stops *stops);
/* The same where there is no program any more: the last that asked since the last look, 0: none did.  Who hangs up
 * asks for nothing with leaves_on_hangup. */
int stops_asked_anew(struct stops *stops);
/* Forward what came.  true: end the sandbox now. */
bool stops_forward(struct stops *stops, struct resoluto_runtime *runtime,
                   struct resoluto_handle *handle);
