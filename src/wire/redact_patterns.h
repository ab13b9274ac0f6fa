/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* redact_patterns.h - the part of redact.h that knows what credentials look like. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Where a replaced credential ends, so that its bytes can be dropped as they come. */
struct pattern_tail {
	bool (*is_part)(uint8_t byte); /* NULL: nothing is being dropped */
	uint8_t quote;                 /* ends it too, unless a backslash precedes it; 0: none */
	bool is_escaped;               /* the last dropped byte was such a backslash */
};

/* How far one stream has come; starts as {0}, ends with pattern_stream_done(). */
struct pattern_stream {
	struct buf window; /* a few bytes of context, then what is undecided */
	size_t candidate; /* offset in the window of what may be a credential; before it is context */
	size_t emitted;   /* offset in the window up to which bytes are out */
	struct pattern_tail tail;
};

enum pattern_mode {
	PATTERN_FEED, /* more may come */
	PATTERN_IDLE, /* more may come, but let out fixed letters now */
	PATTERN_END,  /* nothing comes any more */
};

/* Append what is sure to `out` and add replacements to *count. */
int pattern_stream_feed(struct pattern_stream *stream, const void *bytes, size_t len,
                        enum pattern_mode mode, struct buf *out, uint64_t *count);
void pattern_stream_done(struct pattern_stream *stream); /* wipes it */
