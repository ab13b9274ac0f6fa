/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waiting chunk is one buffer.  An event is written at its end first and measured then: if the chunk
 * became too large, what was there before is shipped and the event moves to the front.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/chunk_writer.h"
#include "wire/keys.h"
#include "wire/utf8.h"

struct chunk_writer {
	struct chunk_writer_options options;
	struct buf waiting;   /* whole lines that are not shipped yet */
	uint32_t count;       /* chunks shipped */
	uint32_t tokens;      /* flushes that may go out at once */
	uint64_t refilled_ms; /* time up to which tokens were given */
	uint64_t active_ms;   /* when the last event came or the last tick shipped */
	uint64_t retry_ms;    /* after a failed put: no tick tries again before */
};

int chunk_writer_new(const struct chunk_writer_options *options, struct chunk_writer **ret_writer)
{
	struct chunk_writer *writer = malloc(sizeof(*writer));

	if (!writer)
		return -ENOMEM;
	*writer = (struct chunk_writer){
		.options = *options,
		.waiting = BUF_INIT(CHUNK_BYTES + 2 * EVENT_JSON_MAX),
		.tokens = CHUNK_BURST,
		.refilled_ms = options->now_ms,
		.active_ms = options->now_ms,
	};
	*ret_writer = writer;
	return 0;
}

void chunk_writer_free(struct chunk_writer **writer)
{
	if (*writer)
		buf_done(&(*writer)->waiting);
	free(*writer);
	*writer = NULL;
}

uint32_t chunk_writer_count(const struct chunk_writer *writer)
{
	return writer->count;
}

static uint64_t refill_interval_ms(const struct chunk_writer *writer)
{
	if (writer->count >= CHUNK_LATE_NUMBER)
		return CHUNK_LATE_MS;
	return writer->options.object_store ? CHUNK_OBJECT_MS : CHUNK_LOCAL_MS;
}

static uint64_t heartbeat_due_ms(const struct chunk_writer *writer)
{
	const uint64_t wanted = writer->options.heartbeat_ms, interval = refill_interval_ms(writer),
		       heartbeat = wanted ? wanted : CHUNK_HEARTBEAT_MS;

	/* Late in a run heartbeats are rare too. */
	return writer->active_ms + (interval > heartbeat ? interval : heartbeat);
}

static void refill(struct chunk_writer *writer, uint64_t now_ms)
{
	uint64_t interval = refill_interval_ms(writer), earned;

	if (now_ms < writer->refilled_ms)
		return;
	earned = (now_ms - writer->refilled_ms) / interval;
	if (writer->tokens + earned >=
	    CHUNK_BURST) { /* full: the next interval starts at its first use */
		writer->tokens = CHUNK_BURST;
		writer->refilled_ms = now_ms;
		return;
	}
	writer->tokens += (uint32_t) earned;
	writer->refilled_ms += earned * interval;
}

/* Ship the first len bytes of what waits. */
static int ship(struct chunk_writer *writer, size_t len)
{
	char key[KEY_SIZE];
	int r;

	if (writer->count >= KEY_CHUNK_MAX)
		return -EOVERFLOW;
	key_chunk(writer->count + 1, key);
	r = writer->options.put(writer->options.ctx, key, writer->waiting.data, len);
	if (r < 0)
		return r;
	writer->count++;
	buf_drop_front(&writer->waiting, len);
	return 0;
}

static int ship_all(struct chunk_writer *writer)
{
	int r = writer->waiting.len > 0 ? ship(writer, writer->waiting.len) : 0;

	if (r == 0)
		writer->retry_ms = 0;
	return r;
}

/* An event was written behind the first `before` bytes: make the chunk fit again. */
static int keep_to_size(struct chunk_writer *writer, size_t before, uint64_t now_ms)
{
	int r;

	if (before > 0 && writer->waiting.len > CHUNK_BYTES) {
		r = ship(writer, before);
		if (r < 0) {
			buf_cut(&writer->waiting, before);
			writer->retry_ms = now_ms + CHUNK_RETRY_MS;
			return r;
		}
		writer->retry_ms = 0;
	}
	writer->active_ms = now_ms;
	return 0;
}

int chunk_writer_event(struct chunk_writer *writer, const struct event_head *head,
                       const char *data_json, uint64_t now_ms)
{
	struct event_head full = *head;
	size_t before = writer->waiting.len;
	int r;

	full.run_id = writer->options.run_id;
	r = event_write(&writer->waiting, &full, data_json);
	return r < 0 ? r : keep_to_size(writer, before, now_ms);
}

int chunk_writer_piece(struct chunk_writer *writer, const struct event_head *head,
                       const struct event_piece *piece, uint64_t now_ms)
{
	struct event_head full = *head;
	size_t before = writer->waiting.len;
	int r;

	full.run_id = writer->options.run_id;
	r = event_write_piece(&writer->waiting, &full, piece);
	return r < 0 ? r : keep_to_size(writer, before, now_ms);
}

static int write_heartbeat(struct chunk_writer *writer, uint64_t now_ms, double ts)
{
	struct event_head head = { .span_id = "hb",
		                   .kind = "log",
		                   .name = "heartbeat",
		                   .event = "log",
		                   .ts = ts };

	return chunk_writer_event(writer, &head, NULL, now_ms);
}

/* May what waits go out now?  Takes a token if that costs one. */
static bool may_ship(struct chunk_writer *writer, uint64_t now_ms)
{
	refill(writer, now_ms);
	if (writer->waiting.len == 0 || now_ms < writer->retry_ms)
		return false;
	if (writer->waiting.len >= CHUNK_BYTES)
		return true;
	if (writer->tokens == 0)
		return false;
	writer->tokens--;
	return true;
}

int chunk_writer_tick(struct chunk_writer *writer, uint64_t now_ms, double ts)
{
	bool is_quiet = writer->waiting.len == 0 && now_ms >= heartbeat_due_ms(writer);
	int r = 0;

	if (is_quiet)
		r = write_heartbeat(writer, now_ms, ts);
	if (r < 0 || !(may_ship(writer, now_ms) || is_quiet))
		return r;
	r = ship_all(writer);
	if (r < 0)
		writer->retry_ms = now_ms + CHUNK_RETRY_MS;
	else
		writer->active_ms = now_ms;
	return r;
}

static uint64_t ship_due_ms(const struct chunk_writer *writer)
{
	uint64_t due = 0;

	if (writer->waiting.len < CHUNK_BYTES && writer->tokens == 0)
		due = writer->refilled_ms + refill_interval_ms(writer);
	return due > writer->retry_ms ? due : writer->retry_ms;
}

uint64_t chunk_writer_due_ms(const struct chunk_writer *writer, uint64_t now_ms)
{
	uint64_t due = writer->waiting.len > 0 ? ship_due_ms(writer) : heartbeat_due_ms(writer);

	return due > now_ms ? due : now_ms;
}

int chunk_writer_flush(struct chunk_writer *writer)
{
	return ship_all(writer);
}

/* How much of a line without an end goes out at once: all but a character that is not whole. */
static size_t whole_chars(const char *bytes, size_t len)
{
	return len - utf8_open_tail((const uint8_t *) bytes, len);
}

static int cut_held(struct line_cutter *cutter, size_t len, bool has_newline, line_cutter_fn *fn,
                    void *ctx)
{
	int r = fn(ctx, cutter->held.data ? cutter->held.data : "", len, has_newline);

	buf_drop_front(&cutter->held, len);
	return r < 0 ? r : 0;
}

/* Bytes of a line whose end is not among them: hold them, and cut when the held ones are many. */
static int feed_open(struct line_cutter *cutter, const char *bytes, size_t len, line_cutter_fn *fn,
                     void *ctx)
{
	while (len > 0) {
		size_t room = EVENT_LINE_BYTES - cutter->held.len, n = len < room ? len : room;
		int r = buf_add(&cutter->held, bytes, n);

		if (r < 0)
			return r;
		bytes += n;
		len -= n;
		if (cutter->held.len < EVENT_LINE_BYTES)
			break;
		r = cut_held(cutter, whole_chars(cutter->held.data, EVENT_LINE_BYTES), false, fn,
		             ctx);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A line that ends at len.  Without held bytes it needs no copy. */
static int feed_line(struct line_cutter *cutter, const char *bytes, size_t len, line_cutter_fn *fn,
                     void *ctx)
{
	int r;

	if (cutter->held.len == 0 && len <= EVENT_LINE_BYTES) {
		r = fn(ctx, bytes, len, true);
		return r < 0 ? r : 0;
	}
	r = feed_open(cutter, bytes, len, fn, ctx);
	return r < 0 ? r : cut_held(cutter, cutter->held.len, true, fn, ctx);
}

int line_cutter_feed(struct line_cutter *cutter, const void *bytes, size_t len, line_cutter_fn *fn,
                     void *ctx)
{
	const char *at = bytes, *end = at + len;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t) (end - at));
		int r;

		if (!newline)
			return feed_open(cutter, at, (size_t) (end - at), fn, ctx);
		r = feed_line(cutter, at, (size_t) (newline - at), fn, ctx);
		if (r < 0)
			return r;
		at = newline + 1;
	}
	return 0;
}

int line_cutter_idle(struct line_cutter *cutter, line_cutter_fn *fn, void *ctx)
{
	return cutter->held.len > 0 ? cut_held(cutter, cutter->held.len, false, fn, ctx) : 0;
}
