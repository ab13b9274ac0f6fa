/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ring.h - the last bytes of an endless stream.  Pure. */

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct ring {
	char *bytes; /* borrowed: storage of the owner */
	size_t size;
	size_t at; /* where the next byte goes */
	bool is_full;
};

void ring_add(struct ring *ring, const char *bytes, size_t len);
/* Append the content, oldest first. */
int ring_copy(const struct ring *ring, struct buf *out);
