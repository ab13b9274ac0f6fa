/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * mux.h - the streams of port `net`, one end of it: numbers, credit, half-close.  Pure: bytes in, calls
 * out.  docs/design/egress.md has the table of messages.
 *
 * Ownership of bytes: those given to callbacks are borrowed for the call.  Everything to be sent is
 * appended to `out`, a buffer that the owner writes to the port and that mux_wants_more() keeps bounded.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "egress/reason.h"
#include "resoluto/err.h"

enum {
	MUX_CREDIT = 256 * 1024, /* bytes per stream and direction at the start */
	MUX_STREAMS_MAX = 1024,  /* open at once */
	MUX_STREAMS_ASKED =
		1280, /* of the guest: beyond MUX_STREAMS_MAX, so that the gateway says no */
	MUX_OUT_SOFT = 512 * 1024, /* of bytes in `out`, no more DATA is taken */
	MUX_NAME_MAX = 255,
	MUX_ROW_MAX = 4096, /* bytes of a DECISION */
};

enum mux_side { MUX_GUEST, MUX_GATEWAY };

struct mux;

/* Any may be NULL where that side cannot get the message. */
struct mux_calls {
	/* gateway: a new stream.  The callee answers, now or later, by mux_opened() or mux_reset(). */
	void (*open)(void *ctx, uint32_t stream, uint16_t port, const void *name, size_t len);
	/* gateway: one over MUX_STREAMS_MAX was reset; it is no stream. */
	void (*full)(void *ctx, uint16_t port, const void *name, size_t len);
	void (*asked)(void *ctx, const void *name, size_t len);    /* gateway */
	void (*opened)(void *ctx, uint32_t stream);                /* guest */
	void (*decision)(void *ctx, const char *json, size_t len); /* guest */
	/* Both.  The callee takes all bytes, and calls mux_consumed() as it got rid of them. */
	void (*data)(void *ctx, uint32_t stream, const void *bytes, size_t len);
	void (*fin)(void *ctx, uint32_t stream);
	void (*reset)(void *ctx, uint32_t stream, enum egress_reason reason);
	void (*credit)(void *ctx, uint32_t stream); /* mux_room() grew */
};

/* HELLO is in mux_out() at once.  -ENOMEM. */
int mux_new(enum mux_side side, const struct mux_calls *calls, void *ctx, struct mux **ret_mux);
void mux_free(struct mux *mux);

/*
 * Bytes from the port, cut anywhere.  -EPROTO: the other end broke a rule (err says which): the port is
 * not to be used any more.  Callbacks may call everything below.
 */
int mux_feed(struct mux *mux, const void *bytes, size_t len, struct resoluto_err *err);
struct buf *mux_out(struct mux *mux);
/* Whether DATA may be added now: `out` is below MUX_OUT_SOFT.  Else wait until the port has taken some. */
bool mux_wants_more(const struct mux *mux);
size_t mux_stream_count(const struct mux *mux);

/* guest: -EBUSY over MUX_STREAMS_ASKED, -EINVAL for a name of another length. */
int mux_open(struct mux *mux, uint16_t port, const void *name, size_t len, uint32_t *ret_stream);
int mux_ask(struct mux *mux, const void *name, size_t len);
/* gateway */
int mux_opened(struct mux *mux, uint32_t stream);
int mux_decide(struct mux *mux, const char *json, size_t len);

/* Both.  How many bytes of DATA the other end takes on this stream now (0 for one that is gone). */
size_t mux_room(const struct mux *mux, uint32_t stream);
/* All or nothing.  -EAGAIN over mux_room(), and while mux_wants_more() is false. */
int mux_send(struct mux *mux, uint32_t stream, const void *bytes, size_t len);
int mux_fin(struct mux *mux, uint32_t stream); /* gateway: -EINVAL before mux_opened() */
int mux_reset(struct mux *mux, uint32_t stream, enum egress_reason reason);
/* So many bytes that data() brought are out of memory: the other end may send as many more. */
int mux_consumed(struct mux *mux, uint32_t stream, size_t len);
/*
 * The owner's pointer of a stream; NULL for one that is gone.  A stream is gone after reset() and
 * mux_reset(), and once both ends sent FIN: after fin() or mux_fin(), whichever is the second.  Within the
 * callback itself the owner is still known.
 */
void mux_set_owner(struct mux *mux, uint32_t stream, void *owner);
void *mux_owner(const struct mux *mux, uint32_t stream);
