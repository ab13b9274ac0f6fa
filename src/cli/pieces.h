/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * pieces.h - lines of JSON, one for a piece of output each, with a bound: the head as they come, and at the end
 * a line that counts what was left out, and the tail.  Whole lines only.
 */

#include <stddef.h>
#include <stdint.h>

#include "cli/output.h"

struct piece_line;

struct pieces {
	struct output *output; /* borrowed */
	uint64_t head_left;    /* bytes that may still be printed as they come */
	size_t held, held_max; /* bytes of the lines that wait for the end */
	struct piece_line *first, *last;
	uint64_t dropped_pieces, dropped_bytes; /* of output */
};

/* max: bytes of JSON; 0 for all of it. */
void pieces_init(struct pieces *pieces, struct output *output, uint64_t max);
/* One line, which tells so many bytes of output.  As output_write(). */
int pieces_add(struct pieces *pieces, const char *line, size_t len, size_t bytes);
int pieces_end(struct pieces *pieces);
void pieces_done(struct pieces *pieces); /* a cleanup function */
