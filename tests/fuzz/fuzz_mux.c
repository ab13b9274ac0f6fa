/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_mux.c - what a hostile end says, to the gateway's end (first byte even) or the guest's (odd), in
 * segments of the second byte: all at once the same comes of it; nothing grows without bound.  The end under
 * test does something at every callback.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "egress/mux.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

struct end {
	struct mux *mux;
	uint64_t digest; /* of all callbacks and what they brought */
};

static void note(struct end *end, unsigned what, uint32_t stream, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	end->digest = end->digest * 31 + what;
	end->digest = end->digest * 31 + stream;
	for (size_t i = 0; i < len; i++)
		end->digest = end->digest * 31 + at[i];
}

static void on_open(void *ctx, uint32_t stream, uint16_t port, const void *name, size_t len)
{
	struct end *end = ctx;

	require(len >= 1 && len <= MUX_NAME_MAX && stream > 0);
	note(end, port, stream, name, len);
	mux_set_owner(end->mux, stream, end);
	if (port % 4 == 0) {
		require(mux_reset(end->mux, stream, EGRESS_NOT_ALLOWED) == 0);
		return;
	}
	require(mux_opened(end->mux, stream) == 0);
	require(mux_send(end->mux, stream, name, len) == 0 || !mux_wants_more(end->mux));
	if (port % 4 == 1)
		require(mux_fin(end->mux, stream) == 0);
}

static void on_asked(void *ctx, const void *name, size_t len)
{
	require(len >= 1 && len <= MUX_NAME_MAX);
	note(ctx, 2, 0, name, len);
}

static void on_full(void *ctx, uint16_t port, const void *name, size_t len)
{
	const struct end *end = ctx;

	require(len >= 1 && len <= MUX_NAME_MAX && mux_stream_count(end->mux) == MUX_STREAMS_MAX);
	note(ctx, 9, port, name, len);
}

static void on_opened(void *ctx, uint32_t stream)
{
	note(ctx, 3, stream, NULL, 0);
}

static void on_decision(void *ctx, const char *json, size_t len)
{
	require(len >= 1 && len <= MUX_ROW_MAX);
	note(ctx, 4, 0, json, len);
}

static void on_data(void *ctx, uint32_t stream, const void *bytes, size_t len)
{
	struct end *end = ctx;
	const uint8_t *at = bytes;

	require(len >= 1 && len <= MUX_CREDIT);
	note(end, 5, stream, bytes, len);
	if (at[0] % 2)
		require(mux_consumed(end->mux, stream, len) == 0);
	if (at[0] == 'R')
		require(mux_reset(end->mux, stream, EGRESS_BROKEN) == 0);
	if (at[0] == 'F')
		require(mux_fin(end->mux, stream) == 0);
}

static void on_fin(void *ctx, uint32_t stream)
{
	struct end *end = ctx;

	note(end, 6, stream, NULL, 0);
	if (stream % 2)
		require(mux_fin(end->mux, stream) == 0);
}

static void on_reset(void *ctx, uint32_t stream, enum egress_reason reason)
{
	struct end *end = ctx;

	require(egress_reason_name(reason) != NULL);
	note(end, 7, stream, NULL, 0);
	require(mux_send(end->mux, stream, "x", 1) == -EAGAIN);
	require(mux_reset(end->mux, stream, EGRESS_IDLE) == 0);
}

static void on_credit(void *ctx, uint32_t stream)
{
	struct end *end = ctx;

	note(end, 8, stream, NULL, 0);
	require(mux_room(end->mux, stream) <= MUX_CREDIT);
}

static const struct mux_calls calls = {
	.open = on_open,
	.full = on_full,
	.asked = on_asked,
	.opened = on_opened,
	.decision = on_decision,
	.data = on_data,
	.fin = on_fin,
	.reset = on_reset,
	.credit = on_credit,
};

/* Returns what comes of it; *ret_digest: what was called, and what is to be sent. */
static int feed(enum mux_side side, const uint8_t *data, size_t size, size_t segment,
                uint64_t *ret_digest)
{
	struct end end = { 0 };
	struct resoluto_err err = { 0 };
	uint32_t stream;
	int r = 0;

	require(mux_new(side, &calls, &end, &end.mux) == 0);
	for (int i = 0; side == MUX_GUEST && i < 3; i++)
		require(mux_open(end.mux, 443, "a.org", 5, &stream) == 0);
	for (size_t at = 0; r == 0 && at < size; at += segment)
		r = mux_feed(end.mux, data + at, size - at < segment ? size - at : segment, &err);
	require(r == 0 || (r == -EPROTO && err.text[0]));
	require(mux_stream_count(end.mux) <= MUX_STREAMS_MAX);
	note(&end, 9, (uint32_t) mux_stream_count(end.mux), mux_out(end.mux)->data,
	     mux_out(end.mux)->len);
	*ret_digest = end.digest;
	mux_free(end.mux);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum mux_side side;
	uint64_t at_once, in_parts;

	if (size < 2)
		return 0;
	side = data[0] % 2 ? MUX_GUEST : MUX_GATEWAY;
	require(feed(side, data + 2, size - 2, size, &at_once) ==
	        feed(side, data + 2, size - 2, data[1] + (size_t) 1, &in_parts));
	require(at_once == in_parts);
	return 0;
}
