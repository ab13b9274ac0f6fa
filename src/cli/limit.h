/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * limit.h - --max-output where output is printed: of each stream the head as it comes, and at the end how
 * much was left out and the tail.  No more than the tails are held.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/capture.h"
#include "cli/output.h"

struct limit {
	struct output *output; /* borrowed */
	bool is_set;           /* else everything passes */
	struct limit_stream {
		size_t head_max;
		uint64_t head; /* bytes written so far */
		bool is_in_line;
		struct capture tail;
	} streams[2]; /* standard output, standard error */
};

/* max: bytes of each stream; 0 for all of them. */
void limit_init(struct limit *limit, struct output *output, uint64_t max);
/* As output_write(). */
int limit_write(struct limit *limit, bool is_stderr, const char *bytes, size_t len);
/* Nothing more comes: write what was held, and to standard error how much was left out before it. */
int limit_end(struct limit *limit);
void limit_done(struct limit *limit); /* a cleanup function */
