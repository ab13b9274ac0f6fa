/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * chunk_reader.h - from the bytes of successive chunks to events (seed 000).  Pure; hostile input.
 *
 * It knows which spans of kind "workload" are open, so that it can say which lines are the program's
 * own (those whose parent span is one).  The number of spans it remembers is bounded: over
 * CHUNK_SPANS_MAX the oldest is forgotten.
 *
 * An event says which run it is of, and a hostile guest can say anything: with chunk_reader_expect() those of
 * other runs are passed over and counted.  The original's heartbeat says none.
 */

#include <stdbool.h>

#include "wire/event.h"

enum {
	CHUNK_SPANS_MAX = 1024, /* open workload spans */
	CHUNK_SPAN_ID_MAX = 64, /* bytes; a longer id is never taken for a workload's */
};

struct chunk_reader;

typedef int chunk_event_fn(void *ctx, const struct resoluto_event *event);

int chunk_reader_new(struct chunk_reader **ret_reader);
void chunk_reader_free(struct chunk_reader **reader); /* a cleanup function */
/* From now on only events of this run; borrowed, NULL: of any. */
void chunk_reader_expect(struct chunk_reader *reader, const char *run_id);
/* Whether it is of the run that is expected. */
bool chunk_reader_accepts(const struct chunk_reader *reader, const struct resoluto_event *event);
/* All lines of one chunk, in order.  A line that does not parse is counted and passed over: the
 * stream of a hostile guest must not stop the reader.  Returns 0 or what fn returned < 0. */
int chunk_reader_feed(struct chunk_reader *reader, const char *bytes, size_t len,
                      chunk_event_fn *fn, void *ctx);
/* For who begins in the middle: this span of a workload is open already. */
void chunk_reader_open_workload(struct chunk_reader *reader, const char *span_id);
uint64_t chunk_reader_bad_lines(const struct chunk_reader *reader);
uint64_t chunk_reader_foreign_events(const struct chunk_reader *reader);
