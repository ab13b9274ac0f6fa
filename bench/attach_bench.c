/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach_bench.c - the C side of bench/attach.sh: a long run without a sandbox, and what following it costs.
 *
 * usage: attach_bench make DIR EVENTS PER_CHUNK   chunks of a program that wrote so many lines, of the run
 *                                                 that DIR is named after; prints their count
 *        attach_bench follow DIR NEW              from the end on: NEW chunks come one by one; prints microseconds
 *                                                 per new chunk and per look that finds nothing
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/path.h"
#include "conduit/seek.h"
#include "wire/event.h"
#include "wire/keys.h"

enum { CHUNK_MAX_BYTES = 4 * 1024 * 1024 };

static void fail(const char *what)
{
	fprintf(stderr, "attach_bench: %s\n", what);
	exit(1);
}

/* Nobody reads yet, so nothing needs to appear at once. */
static void put(int root, uint32_t number, const struct buf *lines)
{
	CLEANUP(fd_close) int fd = -1;
	char key[KEY_SIZE];

	key_chunk(number, key);
	fd = openat(root, key, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write_all(fd, lines->data, lines->len) < 0)
		fail("a chunk cannot be written");
}

static void add_open(struct buf *lines, const char *run_id)
{
	const struct event_head open = { .run_id = run_id,
		                         .span_id = "00000000000000aa",
		                         .kind = "workload",
		                         .name = "workload",
		                         .event = "open",
		                         .ts = 1 };

	if (event_write(lines, &open, NULL) < 0)
		fail("out of memory");
}

static void add_line(struct buf *lines, const char *run_id, uint64_t seq)
{
	char id[EVENT_SPAN_ID_SIZE], text[64];
	const struct event_head head = { .run_id = run_id,
		                         .span_id = id,
		                         .parent_span_id = "00000000000000aa",
		                         .kind = "log",
		                         .event = "log",
		                         .ts = 1 + (double) seq };
	const int len = snprintf(text, sizeof(text), "line %llu of a long run",
	                         (unsigned long long) seq);
	const struct event_piece piece = { .bytes = text,
		                           .len = (size_t) len,
		                           .has_newline = true,
		                           .seq = seq };

	event_span_id(seq, id);
	if (event_write_piece(lines, &head, &piece) < 0)
		fail("out of memory");
}

static int make(int root, const char *run_id, uint64_t events, uint64_t per_chunk)
{
	CLEANUP(buf_done) struct buf lines = BUF_INIT(CHUNK_MAX_BYTES);
	uint32_t chunks = 0;

	add_open(&lines, run_id);
	for (uint64_t seq = 1; seq <= events; seq++) {
		add_line(&lines, run_id, seq);
		if (seq % per_chunk != 0 && seq != events)
			continue;
		put(root, ++chunks, &lines);
		buf_clear(&lines);
	}
	printf("%u\n", chunks);
	return 0;
}

static int count(void *ctx, const struct resoluto_event *event)
{
	++*(uint64_t *) ctx;
	return 0;
}

static int follow(int root, const char *dir, uint64_t wanted)
{
	CLEANUP(buf_done) struct buf lines = BUF_INIT(CHUNK_MAX_BYTES);
	struct resoluto_conduit *conduit = NULL;
	uint64_t looking_us = 0, reading_us = 0, events = 0;
	struct tail tail;
	char url[4096];

	snprintf(url, sizeof(url), "localfs://%s", dir);
	if (resoluto_conduit_open_url(url, &conduit, NULL) < 0 ||
	    tail_init(&tail, conduit, "") < 0 || tail_seek_end(&tail, NULL) < 0)
		fail("the run cannot be read");
	for (uint64_t i = 0; i < wanted; i++) {
		uint64_t start = clock_mono_us();

		if (tail_poll(&tail, 64, count, &events, NULL) != 0)
			fail("there is something new already");
		looking_us += clock_mono_us() - start;
		buf_clear(&lines);
		add_line(&lines, "", 1);
		put(root, tail.next, &lines);
		start = clock_mono_us();
		if (tail_poll(&tail, 64, count, &events, NULL) != 1)
			fail("the new chunk is not seen");
		reading_us += clock_mono_us() - start;
	}
	printf("%.3f %.3f\n", (double) reading_us / (double) wanted,
	       (double) looking_us / (double) wanted);
	tail_done(&tail);
	resoluto_conduit_close(conduit);
	return events == wanted ? 0 : 1;
}

int main(int argc, char **argv)
{
	CLEANUP(fd_close) int root = -1;

	if (argc < 4 || mkdirs(argv[2], 0700) < 0)
		fail("usage: make DIR EVENTS PER_CHUNK | follow DIR NEW");
	root = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		fail("the directory cannot be opened");
	if (strcmp(argv[1], "make") == 0 && argc == 5)
		return make(root, basename(argv[2]), strtoull(argv[3], NULL, 10),
		            strtoull(argv[4], NULL, 10));
	return follow(root, argv[2], strtoull(argv[3], NULL, 10));
}
