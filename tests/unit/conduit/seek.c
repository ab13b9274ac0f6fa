/* SPDX-License-Identifier: Apache-2.0 */
/* seek.c - a tail that begins in the middle tells all that was asked for, and reads little of the rest. */
#include <errno.h>

#include "check.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "conduit/memory.h"
#include "conduit/seek.h"
#include "wire/event.h"
#include "wire/keys.h"

#define PREFIX "run/run-1"

enum { PIECES_MAX = 100000 };

static struct resoluto_conduit *conduit;
static struct tail tail;
static struct buf chunk;
static uint32_t chunks;
static uint64_t seq;
static struct resoluto_err err;

/* What a poll told, of the program. */
static uint64_t told[PIECES_MAX];
static size_t told_count, told_before; /* pieces below the cursor that came along */
static uint64_t cursor;

static void begin(void)
{
	tail_done(&tail);
	resoluto_conduit_close(conduit);
	buf_clear(&chunk);
	chunk.max = 4 * 1024 * 1024;
	chunks = 0;
	seq = 0;
	memset(&err, 0, sizeof(err));
	CHECK(resoluto_conduit_open_url("memory://", &conduit, NULL) == 0);
	CHECK(tail_init(&tail, conduit, PREFIX) == 0);
}

static void put(const char *name, const void *bytes, size_t len)
{
	char key[RESOLUTO_KEY_MAX];

	snprintf(key, sizeof(key), PREFIX "/%s", name);
	CHECK(resoluto_conduit_put_bytes(conduit, key, bytes, len, NULL) == 0);
}

static void ship(void)
{
	char key[KEY_SIZE];

	key_chunk(++chunks, key);
	put(key, chunk.data ? chunk.data : "", chunk.len);
	buf_clear(&chunk);
}

static void span(const char *id, const char *kind, const char *event)
{
	const struct event_head head = { .run_id = "r",
		                         .span_id = id,
		                         .kind = kind,
		                         .event = event,
		                         .ts = 1 };

	CHECK(event_write(&chunk, &head, NULL) == 0);
}

static void beat(void)
{
	span("hb", "log", "log");
	ship();
}

static void piece(const char *parent, const char *text, bool is_stderr, bool ends)
{
	const struct event_head head = { .run_id = "r",
		                         .span_id = "00000000000000ff",
		                         .parent_span_id = parent,
		                         .kind = "log",
		                         .event = "log",
		                         .ts = 2 };
	const struct event_piece of = { .bytes = text,
		                        .len = strlen(text),
		                        .is_stderr = is_stderr,
		                        .has_newline = ends,
		                        .seq = ++seq };

	CHECK(event_write_piece(&chunk, &head, &of) == 0);
}

static void pieces(const char *parent, unsigned count, unsigned per_chunk)
{
	for (unsigned i = 1; i <= count; i++) {
		piece(parent, "text", false, true);
		if (i % per_chunk == 0)
			ship();
	}
}

static void finish(void)
{
	CLEANUP(buf_done) struct buf manifest = BUF_INIT(100);

	ship();
	CHECK(buf_addf(&manifest, "{\"total_chunks\": %u}", chunks) == 0);
	put(KEY_MANIFEST, manifest.data, manifest.len);
}

static int note(void *ctx, const struct resoluto_event *event)
{
	if (!event->is_output)
		return 0;
	if (event->seq < cursor) {
		told_before++;
		return 0;
	}
	CHECK(told_count < PIECES_MAX);
	told[told_count++] = event->seq;
	return 0;
}

static unsigned gets(void)
{
	return conduit_memory_counters(conduit)->gets;
}

/* Seek; all pieces of the program from `from` to `last` are told, in order, and not much before. */
static void expect_from(uint64_t from, uint64_t first, uint64_t last, unsigned gets_max)
{
	unsigned before = gets();

	tail_done(&tail);
	CHECK(tail_init(&tail, conduit, PREFIX) == 0);
	CHECK(tail_seek(&tail, from, &err) == 0);
	if (gets() - before > gets_max)
		printf("# %u gets for %u chunks\n", gets() - before, chunks);
	CHECK(gets() - before <= gets_max);
	cursor = from;
	told_count = told_before = 0;
	CHECK(tail_poll(&tail, KEY_CHUNK_MAX, note, NULL, &err) >= 0);
	if (last < first) {
		CHECK(told_count == 0);
		return;
	}
	CHECK(told_count == last - first + 1);
	for (size_t i = 0; i < told_count; i++)
		CHECK(told[i] == first + i);
}

/* A program of 20,000 lines in 2,000 chunks; ten lines a chunk. */
static void long_run(void)
{
	span("aa", "workload", "open");
	pieces("aa", 20000, 10);
	span("aa", "workload", "close");
}

static void finds_any_piece_of_a_long_run(void)
{
	static const uint64_t wanted[] = { 1, 2, 9, 10, 11, 10000, 10001, 19999, 20000 };

	begin();
	long_run();
	finish();
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		expect_from(wanted[i], wanted[i], 20000, 60);
		CHECK(told_before < 10);
	}
	expect_from(20001, 20001, 20000, 60);
	expect_from(UINT64_MAX - 1, 20001, 20000, 60);
}

static void needs_no_manifest(void)
{
	begin();
	long_run();
	expect_from(13333, 13333, 20000, 90);
	CHECK(told_before < 10);
}

static void knows_what_belongs_to_the_program(void)
{
	begin();
	span("00", "node", "open");
	span("5e", "setup", "open");
	pieces("5e", 3000, 7);
	span("5e", "setup", "close");
	for (int i = 0; i < 50; i++)
		beat();
	span("aa", "workload", "open");
	for (int i = 0; i < 50; i++)
		beat();
	pieces("aa", 3000, 7);
	span("aa", "workload", "close");
	span("cc", "cleanup", "open");
	pieces("cc", 3000, 7);
	finish();
	/* the program's are 3001 to 6000 */
	expect_from(100, 3001, 6000, 600);
	expect_from(3000, 3001, 6000, 600);
	expect_from(3001, 3001, 6000, 600);
	expect_from(4500, 4500, 6000, 600);
	CHECK(told_before < 11 && tail.knows_workload);
	expect_from(6000, 6000, 6000, 600);
	expect_from(6001, 6001, 6000, 600);
}

static void all_in_one_chunk(void)
{
	begin();
	span("aa", "workload", "open");
	pieces("aa", 5, 100);
	span("aa", "workload", "close");
	finish();
	for (uint64_t from = 0; from < 8; from++)
		expect_from(from, from ? from : 1, 5, 10);
}

static void a_silent_stretch_is_passed_over(void)
{
	begin();
	span("aa", "workload", "open");
	pieces("aa", 100, 10);
	for (int i = 0; i < 300; i++)
		beat();
	pieces("aa", 100, 10);
	finish();
	expect_from(100, 100, 200, 900);
	expect_from(101, 101, 200, 900);
	expect_from(150, 150, 200, 900);
}

static void nothing_yet(void)
{
	begin();
	CHECK(tail_seek(&tail, 1000, &err) == 0 && tail.next == 1);
	CHECK(tail_seek_end(&tail, &err) == 0 && tail.next == 1);
	beat();
	CHECK(tail_seek(&tail, 1000, &err) == 0 && tail.next == 1);
	CHECK(tail_seek_end(&tail, &err) == 0 && tail.next == 2);
}

static void the_end_is_behind_all_chunks(void)
{
	begin();
	long_run();
	CHECK(tail_seek_end(&tail, &err) == 0 && tail.next == 2001);
	CHECK(gets() < 40);
	finish();
	CHECK(tail_seek_end(&tail, &err) == 0 && tail.next == 2002);
	CHECK(tail_is_complete(&tail, &err) == 1);
}

/* A manifest that promises more than there is: what is there decides. */
static void a_manifest_is_not_believed(void)
{
	begin();
	long_run();
	put(KEY_MANIFEST, "{\"total_chunks\": 999999}", 24);
	expect_from(16000, 16000, 20000, 90);
	tail_done(&tail);
	CHECK(tail_init(&tail, conduit, PREFIX) == 0);
	CHECK(tail_seek_end(&tail, &err) == 0 && tail.next == 2001);
	CHECK(tail_is_complete(&tail, &err) == 0);
}

/* Numbers that fall, spans that nobody opened, lines that are none: all of it is told. */
static void nonsense_is_read_from_earlier(void)
{
	begin();
	span("aa", "workload", "open");
	for (int i = 0; i < 200; i++) {
		seq = (uint64_t) (i * 7919) % 1000;
		piece(i % 3 ? "aa" : "bb", "text", false, true);
		CHECK(buf_addf(&chunk, "no json\n") == 0);
		ship();
	}
	tail_done(&tail);
	CHECK(tail_init(&tail, conduit, PREFIX) == 0);
	CHECK(tail_seek(&tail, 500, &err) == 0);
	CHECK(tail.next >= 1 && tail.next <= 200 && gets() < 2000);
	/* Nothing but chunks without a number: the budget bounds it. */
	begin();
	for (int i = 0; i < 3000; i++)
		beat();
	CHECK(tail_seek(&tail, 500, &err) == 0 && tail.next == 1);
	CHECK(gets() <= SEEK_GETS_MAX);
}

/* The last lines: joined by the caller's filter, as the driver does it. */
static void expect_lines(uint64_t lines, enum resoluto_streams streams, uint64_t want_from)
{
	uint64_t from = 12345;

	tail_done(&tail);
	CHECK(tail_init(&tail, conduit, PREFIX) == 0);
	CHECK(tail_seek_lines(&tail, lines, streams, &from, &err) == 0);
	if (from != want_from)
		printf("# %llu lines: from %llu, not %llu\n", (unsigned long long) lines,
		       (unsigned long long) from, (unsigned long long) want_from);
	CHECK(from == want_from);
	cursor = from;
	told_count = told_before = 0;
	CHECK(tail_poll(&tail, KEY_CHUNK_MAX, note, NULL, &err) >= 0);
}

static void counts_lines_from_the_end(void)
{
	begin();
	span("aa", "workload", "open");
	pieces("aa", 1000, 3); /* 1 to 1000 */
	ship();
	piece("aa", "a long ", false, false); /* 1001 */
	ship();
	piece("aa", "line\n", false,
	      false);                      /* 1002; the bytes end the line, however they were cut */
	piece("aa", "stderr", true, true); /* 1003 */
	piece("aa", "no newline", false, false); /* 1004 */
	finish();
	expect_lines(0, RESOLUTO_STREAMS_BOTH, 1005);
	CHECK(told_count == 0);
	expect_lines(1, RESOLUTO_STREAMS_BOTH, 1004);
	expect_lines(2, RESOLUTO_STREAMS_BOTH, 1003);
	expect_lines(3, RESOLUTO_STREAMS_BOTH, 1001);
	CHECK(told_count == 4);
	expect_lines(4, RESOLUTO_STREAMS_BOTH, 1000);
	expect_lines(1, RESOLUTO_STREAMS_STDERR, 0);
	expect_lines(0, RESOLUTO_STREAMS_STDERR, 1004);
	expect_lines(2, RESOLUTO_STREAMS_STDOUT, 1001);
	expect_lines(103, RESOLUTO_STREAMS_BOTH, 901);
	expect_lines(1002, RESOLUTO_STREAMS_BOTH, 2);
	expect_lines(1003, RESOLUTO_STREAMS_BOTH, 0); /* all there are, from the beginning */
	expect_lines(5000, RESOLUTO_STREAMS_BOTH, 0);
}

static void lines_of_hooks_do_not_count(void)
{
	begin();
	span("5e", "setup", "open");
	pieces("5e", 500, 7);
	span("5e", "setup", "close");
	span("aa", "workload", "open");
	pieces("aa", 500, 7); /* 501 to 1000 */
	span("aa", "workload", "close");
	span("cc", "cleanup", "open");
	pieces("cc", 500, 7);
	finish();
	expect_lines(3, RESOLUTO_STREAMS_BOTH, 998);
	CHECK(told_count == 3);
	expect_lines(499, RESOLUTO_STREAMS_BOTH, 502);
	CHECK(told_count == 499);
	expect_lines(501, RESOLUTO_STREAMS_BOTH, 0);
	CHECK(told_count == 500);
}

int main(void)
{
	RUN(finds_any_piece_of_a_long_run);
	RUN(needs_no_manifest);
	RUN(knows_what_belongs_to_the_program);
	RUN(all_in_one_chunk);
	RUN(a_silent_stretch_is_passed_over);
	RUN(nothing_yet);
	RUN(the_end_is_behind_all_chunks);
	RUN(a_manifest_is_not_believed);
	RUN(nonsense_is_read_from_earlier);
	RUN(counts_lines_from_the_end);
	RUN(lines_of_hooks_do_not_count);
	tail_done(&tail);
	resoluto_conduit_close(conduit);
	buf_done(&chunk);
	return check_done();
}
