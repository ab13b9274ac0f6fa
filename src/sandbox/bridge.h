/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * bridge.h - join what pushes (pack_tree, conduit get) to what pulls (conduit put, unpack_tree).
 *
 * The pushing side runs in a thread of its own and writes into a socket pair; memory is bounded by the socket's
 * buffer, and the two work at the same time.  The thread has all signals blocked, so that the
 * caller's handlers run where they always do.
 *
 *	struct bridge bridge;
 *	bridge_start(&bridge, produce, ctx, err);
 *	r = resoluto_conduit_put(conduit, key, &(struct resoluto_source){ bridge_read, &bridge }, err);
 *	r = bridge_end(&bridge, r, err);
 */

#include <pthread.h>
#include <stdbool.h>

#include "resoluto/conduit.h"

/* Push everything into sink; 0 or a negative errno value. */
typedef int bridge_produce_fn(void *ctx, const struct resoluto_sink *sink,
                              struct resoluto_err *err);

/* Asked on the pulling side now and then.  Negative: stop with it. */
typedef int bridge_tick_fn(void *ctx);

struct bridge {
	bridge_produce_fn *produce;
	void *ctx;
	bridge_tick_fn *tick; /* may be NULL; also runs whenever tick_fd is readable */
	void *tick_ctx;
	int tick_fd;      /* -1: none */
	int ours, theirs; /* ends of the socket pair; the thread closes `theirs` */
	pthread_t thread;
	bool is_running;
	int result;              /* of produce; read after the join */
	struct resoluto_err err; /* of produce */
};

int bridge_start(struct bridge *bridge, bridge_produce_fn *produce, void *ctx,
                 struct resoluto_err *err);
/* A resoluto_source's read; ctx is the bridge.  A failure of produce is what it returns at the end. */
ssize_t bridge_read(void *ctx, void *buf, size_t cap);
/* Stop the thread if it still pushes, wait for it, and tell how the whole went: r is what the pulling side
 * returned, with its words in err. */
int bridge_end(struct bridge *bridge, int r, struct resoluto_err *err);
