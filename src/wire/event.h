/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * event.h - write and read the lines of an event chunk (seed 000, SpanEvent).  Pure.
 *
 * Lines are ASCII-only JSON: everything else is escaped, since the Python original splits chunks at
 * U+2028 too.  Writer and reader are our own, for speed; fuzzing holds the reader to what jansson reads.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "resoluto/event.h"

enum {
	EVENT_LINE_BYTES = 32 * 1024, /* longest piece of program output in one event */
	EVENT_JSON_MAX = 1024 * 1024, /* bytes of one event as JSON that a reader takes */
	EVENT_SPAN_ID_SIZE = 17,      /* 16 hex digits and the 0 */
};

struct event_head {
	const char *run_id, *span_id, *parent_span_id, *kind, *name, *event, *status;
	double ts;
};

/*
 * Append one line with its '\n'.  data_json is a JSON object as text, NULL for {}.  The seven
 * strings are escaped; NULL counts as "".  ts is clamped to the years 1970 to 9999.  -E2BIG: over
 * EVENT_JSON_MAX (the '\n' counts); on failure `out` is as it was.
 */
int event_write(struct buf *out, const struct event_head *head, const char *data_json);

/* A piece of output: at most EVENT_LINE_BYTES, without its newline. */
struct event_piece {
	const void *bytes;
	size_t len;
	bool is_stderr;
	bool has_newline; /* false: nl:false is written */
	uint64_t seq;
};

/* Append a log event whose data is {"line","stream","seq"[,"b64"][,"nl":false]}. */
int event_write_piece(struct buf *out, const struct event_head *head,
                      const struct event_piece *piece);

/*
 * A parsed line.  Starts as {0}, may be used for one line after the other, ends with
 * event_line_done().  What `event` points to lives until the next line.
 */
struct event_line {
	struct resoluto_event event;
	struct buf text;  /* owned: the strings */
	struct buf bytes; /* owned: what event.bytes points to */
	struct buf key;   /* owned: scratch */
};

/*
 * Read one line (without its '\n').  Log events with "line" or "b64" get their bytes back: b64
 * where it is valid, else line, and the newline unless nl is false.  event.data is the object's own
 * text, spaces included.  is_output is left false: it needs the parent's kind, see
 * chunk_reader.h.  -EBADMSG: not JSON, not an object, a required member missing or of a wrong
 * type, a NUL in one of the seven strings, one of the keys that count given twice, nested deeper
 * than JSON_DEPTH_MAX, an event other than open, close, log.  -E2BIG: over EVENT_JSON_MAX.
 */
int event_parse(const char *line, size_t len, struct event_line *parsed);
void event_line_clear(struct event_line *line); /* no event, the memory is kept */
void event_line_done(struct event_line *line);

/* 16 hex digits from 8 bytes (any: counters and random ones). */
void event_span_id(uint64_t bits, char ret_id[EVENT_SPAN_ID_SIZE]);
