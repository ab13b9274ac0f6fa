/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_seek.c - a reader that begins in the middle of what a hostile guest has numbered: the input is a cursor and chunks,
 * apart by NUL.  Wherever it begins, it begins at a chunk that is there or right behind, ends, and is told nothing of
 * another run.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conduit/seek.h"
#include "wire/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CHUNKS_MAX = 64, INPUT_MAX = 256 * 1024 };

static void require(int truth)
{
	if (!truth)
		abort();
}

static uint32_t put_chunks(struct resoluto_conduit *conduit, const char *at, size_t len)
{
	uint32_t count = 0;

	while (count < CHUNKS_MAX && len > 0) {
		const char *end = memchr(at, '\0', len);
		const size_t n = end ? (size_t) (end - at) : len;
		char name[KEY_SIZE], key[KEY_SIZE + 8];

		key_chunk(++count, name);
		snprintf(key, sizeof(key), "r/%.300s", name);
		require(resoluto_conduit_put_bytes(conduit, key, at, n, NULL) == 0);
		at += n + (end != NULL);
		len -= n + (end != NULL);
	}
	return count;
}

static int note(void *ctx, const struct resoluto_event *event)
{
	require(strcmp(event->run_id, "r") == 0 || strcmp(event->kind, "heartbeat") == 0);
	return 0;
}

static int begin(struct tail *tail, uint8_t how, uint64_t number)
{
	uint64_t from_seq;

	if (how % 3 == 0)
		return tail_seek(tail, number, NULL);
	if (how % 3 == 1)
		return tail_seek_lines(tail, number, (enum resoluto_streams)(how % 4 % 3),
		                       &from_seq, NULL);
	return tail_seek_end(tail, NULL);
}

static void follow(struct resoluto_conduit *conduit, uint32_t count, uint8_t how, uint64_t number)
{
	struct tail tail;
	int r;

	require(tail_init(&tail, conduit, "r") == 0);
	chunk_reader_expect(tail.reader, "r");
	r = begin(&tail, how, number);
	require(r == 0 || r == -EFBIG || r == -EBADMSG);
	require(tail.next >= 1 && tail.next <= count + 1);
	require(tail_poll(&tail, CHUNKS_MAX + 1, note, NULL, NULL) >= 0);
	require(tail.next == count + 1);
	tail_done(&tail);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct resoluto_conduit *conduit;
	uint32_t count;

	if (size < 2 || size > INPUT_MAX)
		return 0;
	require(resoluto_conduit_open_url("memory://", &conduit, NULL) == 0);
	count = put_chunks(conduit, (const char *) data + 2, size - 2);
	follow(conduit, count, data[0], data[1]);
	resoluto_conduit_close(conduit);
	return 0;
}
