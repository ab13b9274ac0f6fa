/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * door.h - the FIFO <run>/door, by which every process of the run's user can ask its shim for something:
 * SIGNAL, DESTROY and LOGS (wire/frame.h).
 *
 * A request is one frame of at most DOOR_FRAME_MAX bytes and one write, so that those of several
 * processes do not mix.  There is no answer: what came of it is seen in the Conduit and in state.json.
 */

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "resoluto/err.h"

#define DOOR_NAME "door"

enum { DOOR_FRAME_MAX = PIPE_BUF };

/* Make it; *ret_fd reads without waiting and never comes to an end. */
int door_make(int dirfd, int *ret_fd, struct resoluto_err *err);
/* -ESRCH: nobody listens; -EAGAIN: there is no door yet, or whoever listens has too much to do. */
int door_send(int dirfd, uint8_t type, const void *payload, size_t len, struct resoluto_err *err);
