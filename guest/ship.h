/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * ship.h - how the runner stores objects: an operation table with one implementation now (the
 * channel of the microVM, ship_channel.h); a directory shared with a relay fits it too.
 *
 * An object is begun, filled and ended; only the wait says that it is stored (for which durability see
 * docs/design/channel.md).  At most SHIP_PUTS are under way at once.  Failures:
 *   -EAGAIN  could not be stored or came damaged; the same object may be begun again
 *   -ENOSPC  no space or over a quota
 *   -EPIPE, -EPROTO  the way out is broken for good
 */

#include <stddef.h>
#include <stdint.h>

#include "resoluto/err.h"

enum {
	SHIP_PUTS = 4,
	SHIP_TRIES = 10,     /* how often an object is begun again after -EAGAIN */
	SHIP_AGAIN_MS = 100, /* first pause before that; it doubles up to SHIP_AGAIN_MAX_MS */
	SHIP_AGAIN_MAX_MS = 5000,
};

#define SHIP_SIZE_UNKNOWN UINT64_MAX

struct ship;

struct ship_ops {
	int (*begin)(struct ship *ship, const char *key, uint64_t size, uint32_t *ret_put,
	             struct resoluto_err *err);
	/* May tell already that the put was refused; it still wants a wait or to be abandoned. */
	int (*data)(struct ship *ship, uint32_t put, const void *bytes, size_t len,
	            struct resoluto_err *err);
	int (*end)(struct ship *ship, uint32_t put, struct resoluto_err *err);
	/* Until the put is stored or has failed; after that its number means nothing any more. */
	int (*wait)(struct ship *ship, uint32_t put, struct resoluto_err *err);
	/* Instead of end and wait: the object must not come into being. */
	int (*abandon)(struct ship *ship, uint32_t put, struct resoluto_err *err);
	/* Let time pass without losing what comes in. */
	int (*pause)(struct ship *ship, int ms, struct resoluto_err *err);
};

struct ship {
	const struct ship_ops *ops;
};

/* Send a small object without waiting. */
int ship_send(struct ship *ship, const char *key, const void *bytes, size_t len, uint32_t *ret_put,
              struct resoluto_err *err);
/* Wait for a small object that was sent; sends it again while that may help. */
int ship_settle(struct ship *ship, const char *key, const void *bytes, size_t len, uint32_t put,
                struct resoluto_err *err);
