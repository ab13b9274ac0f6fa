/* SPDX-License-Identifier: Apache-2.0 */
/* mux.c - both ends talk to each other in memory; what one sends wrongly is made by hand. */
#include <errno.h>

#include "check.h"

#include "base/cleanup.h"
#include "egress/mux.h"
#include "wire/frame.h"

enum { BLOCK = 64 * 1024 };

/* One end, and what it was told last. */
struct end {
	struct mux *mux;
	struct buf said; /* a line for each callback but data() */
	struct buf data; /* what came on any stream */
	bool does_consume;
	unsigned full;             /* gateway: streams over those that may be */
	enum egress_reason answer; /* gateway: EGRESS_NONE: opened() at once */
};

static struct end guest, gateway;
static struct resoluto_err err;
static char block[MUX_CREDIT + 1];

static void on_open(void *ctx, uint32_t stream, uint16_t port, const void *name, size_t len)
{
	struct end *end = ctx;

	CHECK(buf_addf(&end->said, "open %u %u %.*s\n", stream, port, (int) len,
	               (const char *) name) == 0);
	mux_set_owner(end->mux, stream, end);
	if (end->answer == EGRESS_NONE)
		CHECK(mux_opened(end->mux, stream) == 0);
	else
		CHECK(mux_reset(end->mux, stream, end->answer) == 0);
}

static void on_full(void *ctx, uint16_t port, const void *name, size_t len)
{
	((struct end *) ctx)->full++;
	CHECK(port == 443 && len > 0 && ((const char *) name)[0] == 'a');
}

static void on_asked(void *ctx, const void *name, size_t len)
{
	CHECK(buf_addf(&((struct end *) ctx)->said, "asked %.*s\n", (int) len,
	               (const char *) name) == 0);
}

static void on_opened(void *ctx, uint32_t stream)
{
	CHECK(buf_addf(&((struct end *) ctx)->said, "opened %u\n", stream) == 0);
}

static void on_decision(void *ctx, const char *json, size_t len)
{
	CHECK(buf_addf(&((struct end *) ctx)->said, "decision %.*s\n", (int) len, json) == 0);
}

static void on_data(void *ctx, uint32_t stream, const void *bytes, size_t len)
{
	struct end *end = ctx;

	CHECK(buf_add(&end->data, bytes, len) == 0);
	if (end->does_consume)
		CHECK(mux_consumed(end->mux, stream, len) == 0);
}

static void on_fin(void *ctx, uint32_t stream)
{
	struct end *end = ctx;

	CHECK(buf_addf(&end->said, "fin %u%s\n", stream,
	               mux_owner(end->mux, stream) ? " owned" : "") == 0);
}

static void on_reset(void *ctx, uint32_t stream, enum egress_reason reason)
{
	struct end *end = ctx;

	CHECK(buf_addf(&end->said, "reset %u %s%s\n", stream, egress_reason_name(reason),
	               mux_owner(end->mux, stream) ? " owned" : "") == 0);
	/* It is over: nothing of this does anything. */
	CHECK(mux_room(end->mux, stream) == 0);
	CHECK(mux_reset(end->mux, stream, EGRESS_BROKEN) == 0);
	CHECK(mux_fin(end->mux, stream) == 0);
}

static void on_credit(void *ctx, uint32_t stream)
{
	CHECK(buf_addf(&((struct end *) ctx)->said, "credit %u\n", stream) == 0);
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

static void end_new(struct end *end, enum mux_side side)
{
	mux_free(end->mux);
	buf_done(&end->said);
	buf_done(&end->data);
	*end = (struct end){ .said = BUF_INIT(1 << 20), .data = BUF_INIT(1 << 26) };
	end->does_consume = true;
	CHECK(mux_new(side, &calls, end, &end->mux) == 0);
}

/* Bytes of `from` to `to`, `step` at a time. */
static void carry(struct end *from, struct end *to, size_t step)
{
	struct buf *out = mux_out(from->mux);

	for (size_t at = 0; at < out->len; at += step) {
		size_t len = out->len - at < step ? out->len - at : step;

		if (mux_feed(to->mux, out->data + at, len, &err) < 0)
			CHECK_STR(err.text, "");
	}
	buf_clear(out);
}

static void exchange(void)
{
	while (mux_out(guest.mux)->len > 0 || mux_out(gateway.mux)->len > 0) {
		carry(&guest, &gateway, 50000);
		carry(&gateway, &guest, 50000);
	}
}

static void start(void)
{
	memset(&err, 0, sizeof(err));
	end_new(&guest, MUX_GUEST);
	end_new(&gateway, MUX_GATEWAY);
	exchange();
}

static uint32_t open_one(void)
{
	uint32_t stream;

	CHECK(mux_open(guest.mux, 443, "a.org", 5, &stream) == 0);
	exchange();
	buf_clear(&guest.said);
	buf_clear(&gateway.said);
	return stream;
}

static void said(struct end *end, const char *want)
{
	CHECK_STR(end->said.data ? end->said.data : "", want);
	buf_clear(&end->said);
}

static void hello_comes_first(void)
{
	start();
	end_new(&guest, MUX_GUEST);
	CHECK(mux_out(guest.mux)->len == FRAME_HEADER + 4);
	CHECK(memcmp(mux_out(guest.mux)->data, "\x0c\0\0\0\1\0\0\0\0\0\0\0\1\0\0", 15) == 0);
}

static void opens_and_carries(void)
{
	uint32_t stream;

	start();
	CHECK(mux_open(guest.mux, 8443, "a.org", 5, &stream) == 0);
	CHECK(stream == 1 && mux_stream_count(guest.mux) == 1);
	CHECK(mux_send(guest.mux, stream, "early", 5) == 0); /* before OPENED */
	exchange();
	said(&gateway, "open 1 8443 a.org\n");
	said(&guest, "opened 1\n");
	CHECK_STR(gateway.data.data, "early");
	CHECK(mux_send(gateway.mux, stream, "answer", 6) == 0);
	exchange();
	CHECK_STR(guest.data.data, "answer");
	CHECK(mux_owner(gateway.mux, stream) == &gateway && !mux_owner(guest.mux, stream));
	CHECK(mux_open(guest.mux, 1, "b", 1, &stream) == 0 && stream == 2);
}

static void a_refused_stream_is_gone(void)
{
	uint32_t stream;

	start();
	gateway.answer = EGRESS_NOT_ALLOWED;
	CHECK(mux_open(guest.mux, 443, "evil.org", 8, &stream) == 0);
	mux_set_owner(guest.mux, stream, &guest);
	CHECK(mux_send(guest.mux, stream, "early", 5) == 0);
	exchange();
	said(&guest, "reset 1 not-allowed owned\n");
	CHECK(mux_stream_count(guest.mux) == 0 && mux_stream_count(gateway.mux) == 0);
	CHECK(gateway.data.len == 0);
	CHECK(mux_send(guest.mux, stream, "x", 1) == -EAGAIN);
	CHECK(mux_room(guest.mux, stream) == 0 && !mux_owner(guest.mux, stream));
}

static void half_close_both_ways(void)
{
	uint32_t stream;

	start();
	stream = open_one();
	CHECK(mux_fin(guest.mux, stream) == 0);
	CHECK(mux_fin(guest.mux, stream) == 0); /* once is enough */
	exchange();
	said(&gateway, "fin 1 owned\n");
	CHECK(mux_room(guest.mux, stream) == 0);
	CHECK(mux_send(gateway.mux, stream, "tail", 4) == 0);
	exchange();
	CHECK_STR(guest.data.data, "tail");
	mux_set_owner(guest.mux, stream, &guest);
	CHECK(mux_fin(gateway.mux, stream) == 0);
	CHECK(mux_stream_count(gateway.mux) == 0);
	exchange();
	said(&guest, "fin 1 owned\n");
	CHECK(mux_stream_count(guest.mux) == 0);
}

/* Who will send nothing more needs no credit. */
static void no_credit_behind_a_fin(void)
{
	uint32_t stream;

	start();
	stream = open_one();
	gateway.does_consume = false;
	CHECK(mux_send(guest.mux, stream, block, MUX_CREDIT) == 0);
	CHECK(mux_fin(guest.mux, stream) == 0);
	exchange();
	CHECK(mux_consumed(gateway.mux, stream, MUX_CREDIT) == 0);
	CHECK(mux_out(gateway.mux)->len == 0);
}

static void fins_may_cross(void)
{
	uint32_t stream;

	start();
	stream = open_one();
	CHECK(mux_fin(guest.mux, stream) == 0 && mux_fin(gateway.mux, stream) == 0);
	exchange();
	said(&guest, "fin 1\n");
	said(&gateway, "fin 1 owned\n");
	CHECK(mux_stream_count(guest.mux) == 0 && mux_stream_count(gateway.mux) == 0);
}

static void what_crossed_is_passed_over(void)
{
	uint32_t stream;

	start();
	stream = open_one();
	CHECK(mux_send(guest.mux, stream, "lost", 4) == 0);
	CHECK(mux_fin(guest.mux, stream) == 0);
	CHECK(mux_reset(gateway.mux, stream, EGRESS_BROKEN) == 0);
	exchange();
	said(&guest, "reset 1 broken\n");
	said(&gateway, "");
	CHECK(gateway.data.len == 0);
	stream = open_one();
	CHECK(mux_reset(guest.mux, stream, EGRESS_NONE) == 0);
	CHECK(mux_reset(gateway.mux, stream, EGRESS_BROKEN) == 0);
	exchange();
	CHECK(mux_stream_count(guest.mux) == 0 && mux_stream_count(gateway.mux) == 0);
}

static void credit_runs_out(void)
{
	uint32_t stream;

	start();
	stream = open_one();
	gateway.does_consume = false;
	CHECK(mux_room(guest.mux, stream) == MUX_CREDIT);
	CHECK(mux_send(guest.mux, stream, block, MUX_CREDIT + 1) == -EAGAIN);
	CHECK(mux_send(guest.mux, stream, block, MUX_CREDIT) == 0);
	CHECK(mux_room(guest.mux, stream) == 0);
	exchange();
	CHECK(gateway.data.len == MUX_CREDIT);
	CHECK(mux_send(guest.mux, stream, block, 1) == -EAGAIN);
	/* The other direction, and other streams, go on. */
	CHECK(mux_send(gateway.mux, stream, "x", 1) == 0);
	CHECK(mux_consumed(gateway.mux, stream, BLOCK - 1) == 0);
	exchange();
	CHECK(mux_room(guest.mux, stream) == 0); /* not worth a frame yet */
	CHECK(mux_consumed(gateway.mux, stream, 1) == 0);
	exchange();
	said(&guest, "credit 1\n");
	CHECK(mux_room(guest.mux, stream) == BLOCK);
	CHECK(mux_consumed(gateway.mux, stream, MUX_CREDIT - BLOCK) == 0);
	exchange();
	CHECK(mux_room(guest.mux, stream) == MUX_CREDIT);
	CHECK(mux_consumed(gateway.mux, stream, 1) == -EINVAL); /* more than it brought */
}

static void much_passes(void)
{
	uint32_t stream;
	size_t sent = 0;

	start();
	stream = open_one();
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (char) (i * 7 % 251);
	while (sent < 8 * 1024 * 1024) {
		size_t room = mux_room(gateway.mux, stream);
		size_t len = room < 100003 ? room : 100003;

		CHECK(len > 0 && mux_send(gateway.mux, stream, block, len) == 0);
		sent += len;
		carry(&gateway, &guest, 4097);
		CHECK(guest.data.len == len && memcmp(guest.data.data, block, len) == 0);
		buf_clear(&guest.data);
		carry(&guest, &gateway, 5);
	}
}

static void out_is_bounded(void)
{
	uint32_t stream[4];

	start();
	for (int i = 0; i < 4; i++)
		stream[i] = open_one();
	CHECK(mux_wants_more(guest.mux));
	CHECK(mux_send(guest.mux, stream[0], block, MUX_CREDIT) == 0);
	CHECK(mux_wants_more(guest.mux));
	CHECK(mux_send(guest.mux, stream[1], block, MUX_CREDIT) == 0);
	CHECK(!mux_wants_more(guest.mux));
	CHECK(mux_send(guest.mux, stream[2], block, 1) == -EAGAIN);
	CHECK(mux_fin(guest.mux, stream[2]) == 0); /* small things always go */
	exchange();
	CHECK(mux_wants_more(guest.mux) && mux_send(guest.mux, stream[3], block, 1) == 0);
}

static void too_many_streams(void)
{
	uint32_t stream;

	start();
	for (int i = 0; i < MUX_STREAMS_ASKED; i++)
		CHECK(mux_open(guest.mux, 443, "a.org", 5, &stream) == 0);
	CHECK(mux_open(guest.mux, 443, "a.org", 5, &stream) == -EBUSY);
	exchange();
	CHECK(gateway.full == MUX_STREAMS_ASKED - MUX_STREAMS_MAX);
	CHECK(mux_stream_count(guest.mux) == MUX_STREAMS_MAX);
	CHECK(mux_stream_count(gateway.mux) == MUX_STREAMS_MAX);
	CHECK(mux_reset(guest.mux, 17, EGRESS_NONE) == 0);
	CHECK(mux_open(guest.mux, 443, "a.org", 5, &stream) == 0 &&
	      stream == MUX_STREAMS_ASKED + 1);
	exchange();
	CHECK(mux_stream_count(gateway.mux) == MUX_STREAMS_MAX);
	for (uint32_t i = 1; i <= stream; i++) {
		const bool is_there = i == stream || (i <= MUX_STREAMS_MAX && i != 17);

		mux_set_owner(guest.mux, i, &block[i]);
		CHECK(mux_owner(guest.mux, i) == (is_there ? &block[i] : NULL));
	}
}

static void names_rows_and_questions(void)
{
	char name[MUX_NAME_MAX + 1];
	uint32_t stream;

	start();
	memset(name, 'n', sizeof(name));
	CHECK(mux_open(guest.mux, 443, name, 0, &stream) == -EINVAL);
	CHECK(mux_open(guest.mux, 443, name, MUX_NAME_MAX + 1, &stream) == -EINVAL);
	CHECK(mux_open(guest.mux, 443, name, MUX_NAME_MAX, &stream) == 0);
	CHECK(mux_ask(guest.mux, name, 0) == -EINVAL);
	CHECK(mux_ask(guest.mux, name, MUX_NAME_MAX + 1) == -EINVAL);
	exchange();
	buf_clear(&gateway.said);
	buf_clear(&guest.said);
	CHECK(mux_ask(guest.mux, "evil.org", 8) == 0);
	CHECK(mux_decide(gateway.mux, "{}", 2) == 0);
	CHECK(mux_decide(gateway.mux, "{}", 0) == -EINVAL);
	CHECK(mux_decide(gateway.mux, block, MUX_ROW_MAX + 1) == -EINVAL);
	exchange();
	said(&gateway, "asked evil.org\n");
	said(&guest, "decision {}\n");
}

static void the_gateway_waits_with_its_words(void)
{
	uint32_t stream;

	start();
	CHECK(mux_open(guest.mux, 443, "a.org", 5, &stream) == 0);
	gateway.answer = EGRESS_NONE;
	CHECK(mux_room(gateway.mux, stream) == 0); /* not there yet */
	CHECK(mux_fin(gateway.mux, stream) == 0);
	exchange();
	CHECK(mux_opened(gateway.mux, stream) == -EINVAL); /* twice */
	CHECK(mux_opened(gateway.mux, 99) == 0);
}

static struct buf raw;

static void frame(uint8_t type, uint8_t flags, uint32_t stream, const void *payload, size_t len)
{
	CHECK(frame_add(&raw, type, flags, stream, payload, len) == 0);
}

/* Feeding `raw` to that end breaks a rule, and it stays broken. */
static void breaks(struct end *end, const char *words)
{
	CHECK(mux_feed(end->mux, raw.data, raw.len, &err) == -EPROTO);
	if (!strstr(err.text, words))
		CHECK_STR(err.text, words);
	CHECK(mux_feed(end->mux, "x", 1, &err) == -EPROTO);
	buf_clear(&raw);
}

/* A fresh pair with stream 1 open; raw is empty. */
static void start_raw(void)
{
	start();
	(void) open_one();
	buf_done(&raw);
	raw = BUF_INIT(1 << 24);
}

static void hello_is_checked(void)
{
	start_raw();
	end_new(&gateway, MUX_GATEWAY);
	frame(FRAME_OPEN, 0, 1, "\xbb\1a", 3);
	breaks(&gateway, "begins with HELLO");
	end_new(&gateway, MUX_GATEWAY);
	frame(FRAME_HELLO, 0, 0, "\2\0\0\0", 4);
	breaks(&gateway, "version");
	end_new(&gateway, MUX_GATEWAY);
	frame(FRAME_HELLO, 0, 1, "\1\0\0\0", 4);
	breaks(&gateway, "begins with HELLO");
	start_raw();
	frame(FRAME_HELLO, 0, 0, "\1\0\0\0", 4);
	breaks(&gateway, "unknown type");
}

static void streams_are_checked(void)
{
	start_raw();
	frame(FRAME_OPEN, 0, 1, "\xbb\1a", 3);
	breaks(&gateway, "in use");
	start_raw();
	frame(FRAME_OPEN, 0, 0, "\xbb\1a", 3);
	breaks(&gateway, "in use");
	start_raw();
	frame(FRAME_OPEN, 0, 2, "\xbb\1", 2);
	breaks(&gateway, "without a name");
	start_raw();
	frame(FRAME_OPEN, 0, 2, block, 3 + MUX_NAME_MAX);
	breaks(&gateway, "long one");
	start_raw();
	frame(FRAME_DATA, 0, 2, "x", 1);
	breaks(&gateway, "never opened");
	start_raw();
	frame(FRAME_FIN, 0, 0, NULL, 0);
	breaks(&gateway, "never opened");
	start_raw();
	frame(FRAME_OPEN, 0, 7, "\xbb\1a", 3); /* upwards, with a gap */
	frame(FRAME_DATA, 0, 3, "x", 1);       /* so that one is gone */
	CHECK(mux_feed(gateway.mux, raw.data, raw.len, &err) == 0);
	CHECK(gateway.data.len == 0);
	buf_clear(&raw);
	frame(FRAME_OPEN, 0, 3, "\xbb\1a", 3);
	breaks(&gateway, "in use");
}

static void data_is_checked(void)
{
	start_raw();
	frame(FRAME_DATA, 0, 1, NULL, 0);
	breaks(&gateway, "empty");
	start_raw();
	gateway.does_consume = false;
	for (int i = 0; i < 4; i++)
		frame(FRAME_DATA, 0, 1, block, BLOCK);
	CHECK(mux_feed(gateway.mux, raw.data, raw.len, &err) == 0);
	buf_clear(&raw);
	frame(FRAME_DATA, 0, 1, "x", 1);
	breaks(&gateway, "over the credit");
	start_raw();
	frame(FRAME_FIN, 0, 1, NULL, 0);
	frame(FRAME_DATA, 0, 1, "x", 1);
	breaks(&gateway, "after FIN");
	start_raw();
	frame(FRAME_FIN, 0, 1, NULL, 0);
	frame(FRAME_FIN, 0, 1, NULL, 0);
	breaks(&gateway, "twice");
	start_raw();
	frame(FRAME_FIN, 0, 1, "x", 1);
	breaks(&gateway, "payload");
	start_raw();
	frame(FRAME_DATA, FRAME_MORE, 1, "x", 1);
	breaks(&gateway, "parts");
}

static void credit_and_rst_are_checked(void)
{
	start_raw();
	frame(FRAME_CREDIT, 0, 1, "\1\0\0\0", 4);
	breaks(&gateway, "over the window");
	start_raw();
	frame(FRAME_CREDIT, 0, 1, "\1\0\0", 3);
	breaks(&gateway, "CREDIT");
	start_raw();
	CHECK(mux_send(gateway.mux, 1, "x", 1) == 0);
	frame(FRAME_CREDIT, 0, 1, "\xff\xff\xff\xff", 4);
	breaks(&gateway, "over the window");
	start_raw();
	frame(FRAME_RST, 0, 1, "\0\0\0", 3);
	breaks(&gateway, "without a reason");
	start_raw();
	frame(FRAME_RST, 0, 1, "\0\1\0\0", 4);
	breaks(&gateway, "unknown reason");
	start_raw();
	frame(FRAME_RST, 0, 1, "\0\0\0\0because", 11);
	CHECK(mux_feed(gateway.mux, raw.data, raw.len, &err) == 0);
	said(&gateway, "reset 1 none owned\n");
	buf_clear(&raw);
}

static void each_end_has_its_messages(void)
{
	start_raw();
	frame(FRAME_OPENED, 0, 1, NULL, 0);
	breaks(&gateway, "by the guest");
	start_raw();
	frame(FRAME_DECISION, 0, 0, "{}", 2);
	breaks(&gateway, "by the guest");
	start_raw();
	frame(FRAME_OPEN, 0, 2, "\xbb\1a", 3);
	breaks(&guest, "from the gateway");
	start_raw();
	frame(FRAME_ASKED, 0, 0, "a", 1);
	breaks(&guest, "by the gateway");
	start_raw();
	frame(FRAME_OPENED, 0, 1, NULL, 0);
	breaks(&guest, "OPENED twice");
	start_raw();
	frame(FRAME_ASKED, 0, 1, "a", 1);
	breaks(&gateway, "ASKED");
	start_raw();
	frame(FRAME_DECISION, 0, 0, block, MUX_ROW_MAX + 1);
	breaks(&guest, "long one");
	start_raw();
	frame(FRAME_JOB, 0, 0, "{}", 2);
	breaks(&guest, "unknown type");
	start_raw();
	frame(FRAME_OPENED, 0, 1, NULL, 0);
	end_new(&guest, MUX_GUEST);
	frame(FRAME_HELLO, 0, 0, "\1\0\0\0", 4);
	breaks(&guest, "begins with HELLO");
}

static void nothing_before_opened(void)
{
	uint32_t stream;

	start_raw();
	CHECK(mux_open(guest.mux, 443, "a.org", 5, &stream) == 0);
	frame(FRAME_DATA, 0, stream, "x", 1);
	breaks(&guest, "before OPENED");
	start_raw();
	CHECK(mux_open(guest.mux, 443, "a.org", 5, &stream) == 0);
	frame(FRAME_FIN, 0, stream, NULL, 0);
	breaks(&guest, "before OPENED");
}

static void garbage_is_no_frame(void)
{
	start_raw();
	CHECK(buf_add(&raw, "GET / HTTP/1.1\r\n\r\n", 18) == 0);
	breaks(&gateway, "no frame");
	start_raw();
	CHECK(mux_feed(gateway.mux, "\x0c\0", 2, &err) == 0);
	CHECK(mux_feed(gateway.mux, "\xff\xff", 2, &err) == -EPROTO);
}

static void a_guest_beyond_its_streams(void)
{
	start_raw();
	for (uint32_t i = 2; i <= MUX_STREAMS_MAX + 1; i++)
		frame(FRAME_OPEN, 0, i, "\xbb\1a", 3);
	CHECK(mux_feed(gateway.mux, raw.data, raw.len, &err) == 0);
	CHECK(mux_stream_count(gateway.mux) == MUX_STREAMS_MAX);
	CHECK(!mux_owner(gateway.mux, MUX_STREAMS_MAX + 1));
	buf_clear(&raw);
}

/* It asks and asks and never takes an answer: memory stays bounded. */
static void a_guest_that_never_reads(void)
{
	int r = 0;

	start_raw();
	gateway.answer = EGRESS_NOT_ALLOWED;
	for (uint32_t i = 2; r == 0 && i < 1000000; i++) {
		frame(FRAME_OPEN, 0, i, "\xbb\1a", 3);
		r = mux_feed(gateway.mux, raw.data, raw.len, &err);
		buf_clear(&raw);
		buf_clear(&gateway.said);
	}
	CHECK(r == -EPROTO && strstr(err.text, "does not take"));
	CHECK(mux_out(gateway.mux)->len < 5 * 1024 * 1024);
}

int main(void)
{
	RUN(hello_comes_first);
	RUN(opens_and_carries);
	RUN(a_refused_stream_is_gone);
	RUN(half_close_both_ways);
	RUN(no_credit_behind_a_fin);
	RUN(fins_may_cross);
	RUN(what_crossed_is_passed_over);
	RUN(credit_runs_out);
	RUN(much_passes);
	RUN(out_is_bounded);
	RUN(too_many_streams);
	RUN(names_rows_and_questions);
	RUN(the_gateway_waits_with_its_words);
	RUN(hello_is_checked);
	RUN(streams_are_checked);
	RUN(data_is_checked);
	RUN(credit_and_rst_are_checked);
	RUN(each_end_has_its_messages);
	RUN(nothing_before_opened);
	RUN(garbage_is_no_frame);
	RUN(a_guest_beyond_its_streams);
	RUN(a_guest_that_never_reads);
	mux_free(guest.mux);
	mux_free(gateway.mux);
	buf_done(&guest.said);
	buf_done(&guest.data);
	buf_done(&gateway.said);
	buf_done(&gateway.data);
	buf_done(&raw);
	return check_done();
}
