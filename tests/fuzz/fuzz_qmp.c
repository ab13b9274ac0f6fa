/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_qmp.c - a monitor whose QEMU was taken over: whatever it says, in whatever pieces, is heard the same, and the first
 * end that it tells stands.
 */
#include <stdint.h>
#include <stdlib.h>

#include "shim/qmp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

/* Piece by piece; an end never changes. */
static void feed_pieces(struct qmp *qmp, const char *bytes, size_t len, size_t piece)
{
	while (len > 0) {
		const enum qemu_end before = qmp->end;
		const size_t n = len < piece ? len : piece;

		qmp_feed(qmp, bytes, n);
		require(before == QEMU_END_UNKNOWN || qmp->end == before);
		require(qmp->line.len <= QMP_LINE_MAX);
		bytes += n;
		len -= n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct qmp whole = QMP_INIT, parts = QMP_INIT;

	if (size == 0)
		return 0;
	qmp_feed(&whole, (const char *) data + 1, size - 1);
	feed_pieces(&parts, (const char *) data + 1, size - 1, 1 + data[0] % 64u);
	require(whole.end == parts.end && whole.has_stopped == parts.has_stopped);
	qmp_done(&whole);
	qmp_done(&parts);
	return 0;
}
