/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * channel.h - one non-blocking socket of the shim with its two buffers.
 *
 * Neither side can make the other wait: what cannot be written stays in `out`, and who would fill it
 * further looks at channel_is_full() first.
 */

#include <stdbool.h>

#include "base/buf.h"
#include "base/loop.h"
#include "wire/frame.h"

enum {
	CHANNEL_READ_MAX = 64 * 1024, /* bytes read per wake-up: nobody is starved */
	CHANNEL_OUT_FULL = 64 * 1024, /* above that nothing more is added */
	CHANNEL_OUT_MAX = CHANNEL_OUT_FULL + 2 * FRAME_MAX,
};

struct channel {
	struct loop_watch watch; /* .fd is owned */
	struct buf in, out;
	bool has_ended; /* the other side is gone */
	bool is_paused; /* do not read */
};

/* Takes fd.  fn is called when there is something to read or room to write. */
void channel_init(struct channel *channel, int fd, loop_fn *fn, void *ctx);
void channel_done(struct channel *channel);
int channel_watch(struct channel *channel, struct loop *loop);
/* Ask for what matters now; call after each change of out or is_paused. */
int channel_update(struct channel *channel);
/* Append up to CHANNEL_READ_MAX bytes to in.  The count; 0 at the end (has_ended) or if nothing is there. */
int channel_read(struct channel *channel);
/* Write what can be written. */
int channel_flush(struct channel *channel);
bool channel_is_full(const struct channel *channel);
