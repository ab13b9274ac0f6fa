/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * report.h - what the host is told while the run goes on: spans and lines, redacted, in chunks that are
 * shipped one after another (at most one is not acknowledged yet, and kept until then).
 *
 * A failure to ship is final for the run and returned by every later call.
 */

#include <stdarg.h>

#include "guest/job.h"
#include "guest/ship.h"
#include "wire/chunk_writer.h"
#include "wire/keys.h"
#include "wire/redact.h"

enum {
	REPORT_CHUNK_MAX = 1024 * 1024, /* bytes; the host takes no larger chunk */
	REPORT_FIRST_SPANS = 2,
};

struct report_span {
	char id[EVENT_SPAN_ID_SIZE], parent[EVENT_SPAN_ID_SIZE];
	const char *kind;
};

struct report {
	struct ship *ship;           /* borrowed */
	struct redactor *redactor;   /* borrowed; NULL: nothing to redact */
	struct chunk_writer *writer; /* owned */
	struct buf chunk;            /* the one that is not acknowledged */
	char chunk_key[KEY_SIZE];
	uint32_t chunk_put;
	bool has_chunk;
	uint64_t next_span; /* ids of spans: a random start, then counted */
	uint64_t seq;       /* lines of output so far, both streams */
	double told_late;   /* seconds since the epoch: when what is told was; 0: now */
	/* The spans that were opened before there was anything else to tell are written with that: until then the program may
	 * run.  Borrowed. */
	const struct report_span *first[REPORT_FIRST_SPANS];
	double first_opened[REPORT_FIRST_SPANS]; /* as told_late */
	unsigned first_count;
	bool has_begun;
	struct resoluto_err failure; /* the first; code 0: none */
};

/* The job is borrowed for the report's life; first_span is random. */
int report_init(struct report *report, struct ship *ship, const struct job *job,
                uint64_t first_span, struct resoluto_err *err);
void report_done(struct report *report);

/* kind is a constant.  parent NULL: the outermost.  The first ones are borrowed until anything else is told. */
int report_open(struct report *report, const char *kind, const struct report_span *parent,
                struct report_span *ret_span);
int report_close(struct report *report, const struct report_span *span, bool is_success);
/* A line of ours beneath the span, redacted. */
int report_line(struct report *report, const struct report_span *span, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* An object that is text already, redacted, as a log event of that kind (a constant) beneath the span. */
int report_row(struct report *report, const struct report_span *span, const char *kind,
               const char *data_json);
/* A piece of a program's output (redacted already) beneath the span. */
int report_piece(struct report *report, const struct report_span *span, bool is_stderr,
                 const void *bytes, size_t len, bool has_newline);

/* Ship if it is time; a heartbeat if it was quiet. */
int report_tick(struct report *report);
int report_due_ms(const struct report *report); /* until the next tick is due, at least 0 */
/* Ship what waits. */
int report_send(struct report *report);
/* The same, and wait until all chunks are stored. */
int report_flush(struct report *report);
