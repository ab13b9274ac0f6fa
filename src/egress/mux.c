/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mux.c - streams are kept in a table by number.  One that is to go is first marked (nothing more is sent or
 * taken), and leaves the table once the callback that told its owner is over.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "egress/mux.h"
#include "wire/frame.h"

enum {
	BUCKETS = 1024, /* streams are numbered in a row, so each has its own */
	OUT_HARD = 4 * 1024 *
	           1024,        /* bytes: an end that sends and takes nothing breaks the rules */
	OUT_MAX = 2 * OUT_HARD, /* bytes */
	CREDIT_STEP = MUX_CREDIT / 4, /* bytes: less is not worth a frame */
};

struct stream {
	struct stream *next; /* in its bucket */
	uint32_t number;
	size_t room;   /* bytes that may be sent */
	size_t expect; /* bytes that the other end may send */
	size_t held;   /* bytes that data() brought and are not consumed */
	size_t owed;   /* consumed, but not yet given back as credit */
	bool is_opened, has_sent_fin, has_got_fin, is_gone;
	void *owner;
};

struct mux {
	enum mux_side side;
	const struct mux_calls *calls;
	void *ctx;
	struct buf in;  /* the beginning of a frame */
	struct buf out; /* whole frames */
	struct stream *buckets[BUCKETS];
	size_t count;
	uint32_t last; /* the highest number in use so far */
	bool has_hello, is_broken;
};

int mux_new(enum mux_side side, const struct mux_calls *calls, void *ctx, struct mux **ret_mux)
{
	struct mux *mux = calloc(1, sizeof(*mux));

	if (!mux)
		return -ENOMEM;
	mux->side = side;
	mux->calls = calls;
	mux->ctx = ctx;
	mux->in = BUF_INIT(FRAME_MAX);
	mux->out = BUF_INIT(OUT_MAX);
	if (frame_add_u32(&mux->out, FRAME_HELLO, 0, FRAME_VERSION) < 0) {
		mux_free(mux);
		return -ENOMEM;
	}
	*ret_mux = mux;
	return 0;
}

void mux_free(struct mux *mux)
{
	if (!mux)
		return;
	for (size_t i = 0; i < BUCKETS; i++) {
		while (mux->buckets[i]) {
			struct stream *stream = mux->buckets[i];

			mux->buckets[i] = stream->next;
			free(stream);
		}
	}
	buf_done(&mux->in);
	buf_done(&mux->out);
	free(mux);
}

struct buf *mux_out(struct mux *mux)
{
	return &mux->out;
}

bool mux_wants_more(const struct mux *mux)
{
	return mux->out.len < MUX_OUT_SOFT;
}

size_t mux_stream_count(const struct mux *mux)
{
	return mux->count;
}

/* Also one that is gone, while its owner is being told. */
static struct stream *look_up(const struct mux *mux, uint32_t number)
{
	struct stream *stream = mux->buckets[number % BUCKETS];

	while (stream && stream->number != number)
		stream = stream->next;
	return stream;
}

static struct stream *find(const struct mux *mux, uint32_t number)
{
	struct stream *stream = look_up(mux, number);

	return stream && !stream->is_gone ? stream : NULL;
}

static struct stream *add_stream(struct mux *mux, uint32_t number)
{
	struct stream *stream = calloc(1, sizeof(*stream)), **bucket;

	if (!stream)
		return NULL;
	bucket = &mux->buckets[number % BUCKETS];
	*stream = (struct stream){
		.next = *bucket,
		.number = number,
		.room = MUX_CREDIT,
		.expect = MUX_CREDIT,
	};
	*bucket = stream;
	mux->last = number;
	mux->count++;
	return stream;
}

static void remove_stream(struct mux *mux, uint32_t number)
{
	struct stream **at = &mux->buckets[number % BUCKETS], *stream;

	while (*at && (*at)->number != number)
		at = &(*at)->next;
	stream = *at;
	if (!stream)
		return;
	*at = stream->next;
	free(stream);
	mux->count--;
}

int mux_open(struct mux *mux, uint16_t port, const void *name, size_t len, uint32_t *ret_stream)
{
	uint8_t payload[2 + MUX_NAME_MAX];
	int r;

	if (len < 1 || len > MUX_NAME_MAX)
		return -EINVAL;
	if (mux->count >= MUX_STREAMS_ASKED || mux->last == UINT32_MAX)
		return -EBUSY;
	payload[0] = (uint8_t) port;
	payload[1] = (uint8_t) (port >> 8);
	memcpy(payload + 2, name, len);
	if (!add_stream(mux, mux->last + 1))
		return -ENOMEM;
	r = frame_add(&mux->out, FRAME_OPEN, 0, mux->last, payload, 2 + len);
	if (r < 0) {
		remove_stream(mux, mux->last--);
		return r;
	}
	*ret_stream = mux->last;
	return 0;
}

int mux_ask(struct mux *mux, const void *name, size_t len)
{
	if (len < 1 || len > MUX_NAME_MAX)
		return -EINVAL;
	return frame_add(&mux->out, FRAME_ASKED, 0, 0, name, len);
}

int mux_opened(struct mux *mux, uint32_t number)
{
	struct stream *stream = find(mux, number);

	if (!stream)
		return 0;
	if (stream->is_opened)
		return -EINVAL;
	stream->is_opened = true;
	return frame_add(&mux->out, FRAME_OPENED, 0, number, NULL, 0);
}

int mux_decide(struct mux *mux, const char *json, size_t len)
{
	if (len < 1 || len > MUX_ROW_MAX)
		return -EINVAL;
	return frame_add(&mux->out, FRAME_DECISION, 0, 0, json, len);
}

/* The gateway has nothing to send before it said OPENED. */
static bool may_send(const struct mux *mux, const struct stream *stream)
{
	return stream && !stream->has_sent_fin && (mux->side == MUX_GUEST || stream->is_opened);
}

size_t mux_room(const struct mux *mux, uint32_t number)
{
	const struct stream *stream = find(mux, number);

	return may_send(mux, stream) ? stream->room : 0;
}

int mux_send(struct mux *mux, uint32_t number, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	if (len == 0)
		return 0;
	if (len > mux_room(mux, number) || !mux_wants_more(mux))
		return -EAGAIN;
	/* Room for all of it first: a part would be out of step with the credit. */
	if (buf_reserve(&mux->out, len + (len / FRAME_PAYLOAD_MAX + 1) * FRAME_HEADER) < 0)
		return -ENOMEM;
	find(mux, number)->room -= len;
	while (len > 0) {
		const size_t part = len < FRAME_PAYLOAD_MAX ? len : FRAME_PAYLOAD_MAX;

		(void) frame_add(&mux->out, FRAME_DATA, 0, number, at, part);
		at += part;
		len -= part;
	}
	return 0;
}

static void remove_if_over(struct mux *mux, uint32_t number)
{
	const struct stream *stream = find(mux, number);

	if (stream && stream->has_sent_fin && stream->has_got_fin)
		remove_stream(mux, number);
}

int mux_fin(struct mux *mux, uint32_t number)
{
	struct stream *stream = find(mux, number);
	int r;

	if (!stream || stream->has_sent_fin)
		return 0;
	if (!may_send(mux, stream))
		return -EINVAL;
	r = frame_add(&mux->out, FRAME_FIN, 0, number, NULL, 0);
	if (r < 0)
		return r;
	stream->has_sent_fin = true;
	remove_if_over(mux, number);
	return 0;
}

static int add_reset(struct mux *mux, uint32_t number, enum egress_reason reason)
{
	CLEANUP(buf_done) struct buf payload = BUF_INIT(FRAME_PAYLOAD_MAX);
	const uint8_t code[] = { (uint8_t) reason, 0, 0, 0 };
	int r = buf_add(&payload, code, sizeof(code));

	if (r == 0)
		r = buf_add_str(&payload, egress_reason_text(reason));
	return r < 0 ? r : frame_add(&mux->out, FRAME_RST, 0, number, payload.data, payload.len);
}

int mux_reset(struct mux *mux, uint32_t number, enum egress_reason reason)
{
	int r;

	if (!find(mux, number))
		return 0;
	if ((unsigned) reason >= EGRESS_REASON_COUNT)
		return -EINVAL;
	r = add_reset(mux, number, reason);
	if (r == 0)
		remove_stream(mux, number);
	return r;
}

int mux_consumed(struct mux *mux, uint32_t number, size_t len)
{
	struct stream *stream = find(mux, number);
	size_t credit;

	if (!stream)
		return 0;
	if (len > stream->held)
		return -EINVAL;
	stream->held -= len;
	stream->owed += len;
	if (stream->has_got_fin || stream->owed < CREDIT_STEP)
		return 0;
	credit = stream->owed;
	stream->owed = 0;
	stream->expect += credit;
	return frame_add_u32(&mux->out, FRAME_CREDIT, number, (uint32_t) credit);
}

void mux_set_owner(struct mux *mux, uint32_t number, void *owner)
{
	struct stream *stream = look_up(mux, number);

	if (stream)
		stream->owner = owner;
}

void *mux_owner(const struct mux *mux, uint32_t number)
{
	const struct stream *stream = look_up(mux, number);

	return stream ? stream->owner : NULL;
}

/* What arrives.  Each of these returns NULL, or the rule that was broken. */

static const char *take_hello(struct mux *mux, const struct frame *frame)
{
	uint32_t version;

	if (frame->type != FRAME_HELLO || frame->stream != 0 || frame_get_u32(frame, &version) < 0)
		return "a port begins with HELLO";
	if (version != FRAME_VERSION)
		return "another version of the port";
	mux->has_hello = true;
	return NULL;
}

static const char *take_open(struct mux *mux, const struct frame *frame)
{
	uint16_t port;

	if (frame->len < 3 || frame->len > 2 + MUX_NAME_MAX)
		return "OPEN without a name, or with a long one";
	if (frame->stream <= mux->last)
		return "OPEN of a number that was in use";
	port = (uint16_t) (frame->payload[0] | frame->payload[1] << 8);
	if (mux->count >= MUX_STREAMS_MAX) {
		mux->last = frame->stream;
		mux->calls->full(mux->ctx, port, frame->payload + 2, frame->len - 2);
		return add_reset(mux, frame->stream, EGRESS_TOO_MANY) < 0
		               ? "no memory for an answer"
		               : NULL;
	}
	if (!add_stream(mux, frame->stream))
		return "no memory for a stream";
	mux->calls->open(mux->ctx, frame->stream, port, frame->payload + 2, frame->len - 2);
	return NULL;
}

static const char *take_asked(struct mux *mux, const struct frame *frame)
{
	if (frame->stream != 0 || frame->len < 1 || frame->len > MUX_NAME_MAX)
		return "ASKED without a name, or with a long one";
	mux->calls->asked(mux->ctx, frame->payload, frame->len);
	return NULL;
}

static const char *take_opened(struct mux *mux, struct stream *stream, const struct frame *frame)
{
	if (frame->len != 0 || stream->is_opened)
		return "OPENED twice, or with a payload";
	stream->is_opened = true;
	mux->calls->opened(mux->ctx, stream->number);
	return NULL;
}

static const char *take_decision(struct mux *mux, const struct frame *frame)
{
	if (frame->stream != 0 || frame->len < 1 || frame->len > MUX_ROW_MAX)
		return "DECISION without a row, or with a long one";
	mux->calls->decision(mux->ctx, (const char *) frame->payload, frame->len);
	return NULL;
}

/* The guest's end may hear nothing of a stream before OPENED, nobody anything after FIN. */
static bool may_speak(const struct mux *mux, const struct stream *stream)
{
	return !stream->has_got_fin && (mux->side == MUX_GATEWAY || stream->is_opened);
}

static const char *take_data(struct mux *mux, struct stream *stream, const struct frame *frame)
{
	if (!may_speak(mux, stream))
		return "DATA before OPENED or after FIN";
	if (frame->len == 0 || frame->len > stream->expect)
		return "DATA over the credit, or empty";
	stream->expect -= frame->len;
	stream->held += frame->len;
	mux->calls->data(mux->ctx, stream->number, frame->payload, frame->len);
	return NULL;
}

static const char *take_fin(struct mux *mux, struct stream *stream, const struct frame *frame)
{
	if (!may_speak(mux, stream) || frame->len != 0)
		return "FIN before OPENED, twice, or with a payload";
	stream->has_got_fin = true;
	/* Over already: the owner may look at it, and do nothing more with it. */
	stream->is_gone = stream->has_sent_fin;
	mux->calls->fin(mux->ctx, frame->stream);
	return NULL;
}

static const char *take_credit(struct mux *mux, struct stream *stream, const struct frame *frame)
{
	uint32_t more;

	if (frame_get_u32(frame, &more) < 0 || more > MUX_CREDIT - stream->room)
		return "CREDIT over the window";
	stream->room += more;
	if (may_send(mux, stream))
		mux->calls->credit(mux->ctx, stream->number);
	return NULL;
}

static const char *take_reset(struct mux *mux, struct stream *stream, const struct frame *frame)
{
	uint32_t reason;

	if (frame->len < sizeof(reason))
		return "RST without a reason";
	reason = frame_le32(frame->payload);
	if (reason >= EGRESS_REASON_COUNT)
		return "RST with an unknown reason";
	stream->is_gone = true;
	mux->calls->reset(mux->ctx, frame->stream, (enum egress_reason) reason);
	return NULL;
}

static const char *take_for_stream(struct mux *mux, const struct frame *frame)
{
	struct stream *stream = find(mux, frame->stream);
	const char *wrong;

	if (frame->stream == 0 || frame->stream > mux->last)
		return "a stream that was never opened";
	if (!stream)
		return NULL; /* they crossed */
	if (frame->type == FRAME_DATA)
		wrong = take_data(mux, stream, frame);
	else if (frame->type == FRAME_CREDIT)
		wrong = take_credit(mux, stream, frame);
	else if (frame->type == FRAME_FIN)
		wrong = take_fin(mux, stream, frame);
	else if (frame->type == FRAME_RST)
		wrong = take_reset(mux, stream, frame);
	else
		wrong = take_opened(mux, stream, frame);
	/* The callback may have freed it. */
	stream = look_up(mux, frame->stream);
	if (stream && stream->is_gone)
		remove_stream(mux, frame->stream);
	return wrong;
}

static const char *take_frame(struct mux *mux, const struct frame *frame)
{
	if (frame->flags)
		return "a message in parts";
	if (mux->out.len > OUT_HARD)
		return "it sends and does not take the answers";
	if (!mux->has_hello)
		return take_hello(mux, frame);
	switch (frame->type) {
	case FRAME_DATA:
	case FRAME_CREDIT:
	case FRAME_FIN:
	case FRAME_RST:
		return take_for_stream(mux, frame);
	case FRAME_OPEN:
		return mux->side == MUX_GATEWAY ? take_open(mux, frame) : "OPEN from the gateway";
	case FRAME_ASKED:
		return mux->side == MUX_GATEWAY ? take_asked(mux, frame) : "ASKED by the gateway";
	case FRAME_OPENED:
		return mux->side == MUX_GUEST ? take_for_stream(mux, frame) : "OPENED by the guest";
	case FRAME_DECISION:
		return mux->side == MUX_GUEST ? take_decision(mux, frame) : "DECISION by the guest";
	default:
		return "an unknown type of message";
	}
}

/* How many bytes are missing to the frame that `in` begins, or to its length. */
static size_t missing(const struct buf *in)
{
	return in->len < 4 ? 4 - in->len : 4 + frame_le32(in->data) - in->len;
}

/* More of a frame that came in pieces. */
static int take_piece(struct mux *mux, const uint8_t *bytes, size_t len, size_t *ret_used,
                      const char **ret_wrong)
{
	struct frame frame;
	size_t whole;
	int r;

	*ret_used = missing(&mux->in) < len ? missing(&mux->in) : len;
	r = buf_add(&mux->in, bytes, *ret_used);
	if (r < 0)
		return r;
	r = frame_parse(mux->in.data, mux->in.len, &frame, &whole);
	if (r < 0)
		return r == -EAGAIN ? 0 : r;
	*ret_wrong = take_frame(mux, &frame);
	buf_clear(&mux->in);
	return 0;
}

/* One frame where it lies, without a copy; or keep the beginning of one. */
static int take_some(struct mux *mux, const uint8_t *bytes, size_t len, size_t *ret_used,
                     const char **ret_wrong)
{
	struct frame frame;
	int r;

	if (mux->in.len > 0)
		return take_piece(mux, bytes, len, ret_used, ret_wrong);
	r = frame_parse(bytes, len, &frame, ret_used);
	if (r == -EAGAIN) {
		*ret_used = len;
		return buf_add(&mux->in, bytes, len);
	}
	if (r == 0)
		*ret_wrong = take_frame(mux, &frame);
	return r;
}

int mux_feed(struct mux *mux, const void *bytes, size_t len, struct resoluto_err *err)
{
	const uint8_t *at = bytes;
	const char *wrong = mux->is_broken ? "the port was given up before" : NULL;

	while (len > 0 && !wrong) {
		size_t used = 0;
		int r = take_some(mux, at, len, &used, &wrong);

		if (r == -EBADMSG)
			wrong = "what came is no frame";
		else if (r < 0)
			return resoluto_fail(err, r, "read the net port");
		at += used;
		len -= used;
	}
	if (!wrong)
		return 0;
	mux->is_broken = true;
	return resoluto_fail(err, -EPROTO, "net port: %s", wrong);
}
