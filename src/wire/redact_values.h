/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* redact_values.h - the part of redact.h that searches for exact values. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct value_set;

/* values: NULL-terminated, may be NULL. *ret_set is NULL when there is nothing to search for. */
int value_set_new(const char *const *values, struct value_set **ret_set);
void value_set_free(struct value_set **set); /* wipes it */

/* How far one stream has come; starts as {0}, ends with value_stream_done(). */
struct value_stream {
	uint32_t state;          /* a node of the set */
	uint64_t position;       /* bytes taken so far */
	struct buf held;         /* the last bytes: positions from position - held.len */
	struct covered *covered; /* owned: runs of the held bytes that are part of a value */
	size_t covered_count, covered_cap;
};

/* Append what is sure to `out` and add replacements to *count; is_end: append all. */
int value_stream_feed(struct value_stream *stream, const struct value_set *set, const void *bytes,
                      size_t len, bool is_end, struct buf *out, uint64_t *count);
void value_stream_done(struct value_stream *stream); /* wipes it */
