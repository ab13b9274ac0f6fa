/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * chunk_writer.h - collect event lines into numbered, immutable chunks and decide when to ship one.
 *
 * A chunk goes out at CHUNK_BYTES, or when a token is there (interfaces: burst of 2,000 flushes, one
 * more every 500 ms for a local store, 2 s for an object store, 60 s beyond chunk 500,000), so that a
 * line is seen in milliseconds and a long run stays below 999,999 chunks.  Only the flushes of
 * chunk_writer_tick() cost a token: call it when nothing more is to be read at the moment.  No chunk is
 * larger than CHUNK_BYTES, but for one that is a single larger event.  After quiet of
 * CHUNK_HEARTBEAT_MS a heartbeat is written.  Time is an argument (milliseconds, monotonic, and
 * seconds since the epoch for ts); randomness too (span ids come from the caller).
 */

#include "wire/event.h"

enum {
	CHUNK_BYTES = 64 * 1024,
	CHUNK_BURST = 2000,
	CHUNK_LOCAL_MS = 500,
	CHUNK_OBJECT_MS = 2000,
	CHUNK_LATE_MS = 60 * 1000,
	CHUNK_LATE_NUMBER = 500000,
	CHUNK_HEARTBEAT_MS = 30 * 1000,
	CHUNK_HEARTBEAT_MIN_MS = 100,
	CHUNK_RETRY_MS = 500,
};

struct chunk_writer;

struct chunk_writer_options {
	const char *run_id;    /* borrowed for the life of the writer */
	bool object_store;     /* the slower refill */
	uint64_t heartbeat_ms; /* 0: CHUNK_HEARTBEAT_MS */
	/* Store one chunk whole; key is "events-NNNNNN.jsonl".  0 or a negative errno value, which the
	 * call that shipped returns; the chunk stays, and is tried again when more must go out, by a
	 * flush, and by a tick once CHUNK_RETRY_MS have passed. */
	int (*put)(void *ctx, const char *key, const void *bytes, size_t len);
	void *ctx;
	uint64_t now_ms;
};

int chunk_writer_new(const struct chunk_writer_options *options, struct chunk_writer **ret_writer);
void chunk_writer_free(struct chunk_writer **writer); /* a cleanup function; ships nothing */

/*
 * Add an event; head->run_id is filled in by the writer.  A failure means that this event was not taken
 * and may be given again: -E2BIG it is over EVENT_JSON_MAX, -EOVERFLOW chunk 999,999 is written, or
 * what put said about the full chunk before it.
 */
int chunk_writer_event(struct chunk_writer *writer, const struct event_head *head,
                       const char *data_json, uint64_t now_ms);
int chunk_writer_piece(struct chunk_writer *writer, const struct event_head *head,
                       const struct event_piece *piece, uint64_t now_ms);
/* Ship if it is time, write a heartbeat (ts in seconds since the epoch; span "hb", no data) if it was
 * quiet. */
int chunk_writer_tick(struct chunk_writer *writer, uint64_t now_ms, double ts);
/* When the next tick is due (monotonic ms, now or later); never UINT64_MAX, since a heartbeat is always
 * due. */
uint64_t chunk_writer_due_ms(const struct chunk_writer *writer, uint64_t now_ms);
/* Ship what waits, whatever the tokens say. */
int chunk_writer_flush(struct chunk_writer *writer);
uint32_t chunk_writer_count(const struct chunk_writer *writer); /* chunks shipped */

/*
 * Cut a byte stream into pieces: whole lines, or EVENT_LINE_BYTES of one (a few less where a UTF-8
 * character would be cut).  What has no newline yet stays until more comes or line_cutter_idle() is called:
 * after a moment of quiet (a prompt must be seen), and at the end of the stream.  Release by
 * buf_done(&cutter.held).
 */
struct line_cutter {
	struct buf held; /* LINE_CUTTER_INIT */
};

#define LINE_CUTTER_INIT ((struct line_cutter){ BUF_INIT(EVENT_LINE_BYTES) })

/* Gets each piece without its newline; a negative return ends the call that cut it, and the rest of that
 * call's bytes is lost: hold back in fn what cannot be stored yet. */
typedef int line_cutter_fn(void *ctx, const void *bytes, size_t len, bool has_newline);

int line_cutter_feed(struct line_cutter *cutter, const void *bytes, size_t len, line_cutter_fn *fn,
                     void *ctx);
int line_cutter_idle(struct line_cutter *cutter, line_cutter_fn *fn, void *ctx);
