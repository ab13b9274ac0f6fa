/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * capture.h - keep the beginning and the end of a byte stream, and count what lies between.  Pure.
 *
 * Half of the bound goes to the head, half to the tail.  Where bytes were dropped the cut is moved to the
 * edge of a UTF-8 character (at most 3 bytes on each side, which count as dropped too), so that a cut text
 * stays a text.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct capture {
	struct buf head;
	struct buf ring; /* the last bytes beyond the head; full at tail_max, then a ring */
	size_t ring_at;  /* where the oldest byte lies once the ring is full */
	size_t tail_max;
	uint64_t total; /* bytes that came */
};

/* What is left of them. */
struct capture_kept {
	char *bytes; /* head and tail, malloc'd, with a 0 behind them */
	size_t len;
	size_t head_len;  /* so many lie before what was dropped; len where nothing was */
	uint64_t dropped; /* bytes */
};

void capture_init(struct capture *capture, size_t max);
void capture_init_tail(struct capture *capture, size_t max); /* only the end is kept */
void capture_done(struct capture *capture);
int capture_add(struct capture *capture, const void *bytes, size_t len);   /* 0 or -ENOMEM */
int capture_take(const struct capture *capture, struct capture_kept *ret); /* 0 or -ENOMEM */
