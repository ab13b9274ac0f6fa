/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_chunk_reader.c - a chunk of events: every line is told or counted as bad, blank ones aside, and
 * two readers tell the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/chunk_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct told {
	uint64_t events, output_bytes;
};

static void require(int truth)
{
	if (!truth)
		abort();
}

static int note(void *ctx, const struct resoluto_event *event)
{
	struct told *told = ctx;

	told->events++;
	if (event->is_output) {
		require(event->bytes && strcmp(event->event, "log") == 0);
		told->output_bytes += event->len;
	}
	return 0;
}

static size_t count_lines(const uint8_t *data, size_t size)
{
	size_t lines = size > 0;

	for (size_t i = 0; i + 1 < size; i++)
		lines += data[i] == '\n';
	return lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct told told[2] = { { 0 } };

	for (int i = 0; i < 2; i++) {
		struct chunk_reader *reader;

		require(chunk_reader_new(&reader) == 0);
		require(chunk_reader_feed(reader, (const char *) data, size, note, &told[i]) == 0);
		require(told[i].events + chunk_reader_bad_lines(reader) <= count_lines(data, size));
		require(told[i].output_bytes <= 2 * size);
		chunk_reader_free(&reader);
	}
	require(memcmp(&told[0], &told[1], sizeof(told[0])) == 0);
	return 0;
}
