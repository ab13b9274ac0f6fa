/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "shim/ring.h"

void ring_add(struct ring *ring, const char *bytes, size_t len)
{
	if (len > ring->size) {
		bytes += len - ring->size;
		len = ring->size;
	}
	while (len > 0) {
		size_t n = ring->size - ring->at < len ? ring->size - ring->at : len;

		memcpy(ring->bytes + ring->at, bytes, n);
		ring->at += n;
		bytes += n;
		len -= n;
		if (ring->at == ring->size) {
			ring->at = 0;
			ring->is_full = true;
		}
	}
}

int ring_copy(const struct ring *ring, struct buf *out)
{
	int r = 0;

	if (ring->is_full)
		r = buf_add(out, ring->bytes + ring->at, ring->size - ring->at);
	return r < 0 ? r : buf_add(out, ring->bytes, ring->at);
}
