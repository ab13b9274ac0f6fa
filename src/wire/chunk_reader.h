/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * chunk_reader.h - from the bytes of successive chunks to events (seed 000).  Pure; hostile input.
 *
 * It knows which spans of kind "workload" are open, so that it can say which lines are the program's
 * own (those whose parent span is one).  The number of spans it remembers is bounded: over
 * CHUNK_SPANS_MAX the oldest is forgotten.
 */

#include "wire/event.h"

enum { CHUNK_SPANS_MAX = 1024 }; /* open workload spans */

struct chunk_reader;

typedef int chunk_event_fn(void *ctx, const struct resoluto_event *event);

int chunk_reader_new(struct chunk_reader **ret_reader);
void chunk_reader_free(struct chunk_reader **reader); /* a cleanup function */
/* All lines of one chunk, in order.  A line that does not parse is counted and passed over: the
 * stream of a hostile guest must not stop the reader.  Returns 0 or what fn returned < 0. */
int chunk_reader_feed(struct chunk_reader *reader, const char *bytes, size_t len,
                      chunk_event_fn *fn, void *ctx);
uint64_t chunk_reader_bad_lines(const struct chunk_reader *reader);
