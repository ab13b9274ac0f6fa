/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * feed.h - carry standard input from where the caller has it to the sandbox, with flow control.
 *
 * At most FEED_BYTES are held.  A descriptor of the caller is read only when poll says that it can be,
 * and its flags are left alone: O_NONBLOCK would belong to everybody who shares it (on a terminal
 * also stdout).  While the sandbox takes nothing, the descriptor is not watched.
 */

#include <stdbool.h>
#include <stddef.h>

#include "resoluto/runtime.h"
#include "resoluto/sandbox.h"

enum {
	FEED_BYTES = 64 * 1024,          /* read and not yet taken */
	FEED_PER_TURN = 4 * 1024 * 1024, /* before events get their turn */
};

struct feed {
	int fd; /* -1: bytes in memory, or nothing */
	bool owns_fd;
	bool is_open;     /* stdin of the program is still fed */
	bool is_at_end;   /* nothing more to read */
	bool is_pollable; /* false: a regular file, always ready */
	bool is_watched;  /* in epoll_fd */
	bool has_sent;    /* a sandbox took something of it */
	int epoll_fd;     /* borrowed: where fd is watched */
	char *held;       /* owned: FEED_BYTES */
	const char *at;   /* what is to be sent next, in held or in the caller's bytes */
	size_t left;
};

#define FEED_NONE ((struct feed){ .fd = -1, .epoll_fd = -1 })

/* -EINVAL names what cannot be read. */
int feed_open(struct feed *feed, const struct resoluto_stdin *input, int epoll_fd,
              struct resoluto_err *err);
void feed_close(struct feed *feed);
/* The sandbox is gone and took nothing of it (has_sent): the next one gets all of it. */
void feed_again(struct feed *feed);
/* Send what the sandbox takes.  1: call again soon; 0: there is nothing to do until the descriptor is
 * readable or the sandbox takes more; negative: reading failed. */
int feed_pump(struct feed *feed, struct resoluto_runtime *runtime, struct resoluto_handle *handle,
              struct resoluto_err *err);
