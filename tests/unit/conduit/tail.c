/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "check.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "conduit/memory.h"
#include "conduit/tail.h"

#define PREFIX "run/run-1"

static struct resoluto_conduit *conduit;
static struct tail tail;
static struct buf seen; /* names of the events, each with a blank behind it */
static struct resoluto_err err;

static void begin(void)
{
	tail_done(&tail);
	resoluto_conduit_close(conduit);
	buf_done(&seen);
	seen = BUF_INIT(65536);
	memset(&err, 0, sizeof(err));
	CHECK(resoluto_conduit_open_url("memory://", &conduit, NULL) == 0);
	CHECK(tail_init(&tail, conduit, PREFIX) == 0);
}

static void put(const char *key, const char *text)
{
	CHECK(resoluto_conduit_put_bytes(conduit, key, text, strlen(text), NULL) == 0);
}

/* Chunk n with one event for each letter of names. */
static void put_chunk(unsigned number, const char *names)
{
	CLEANUP(buf_done) struct buf lines = BUF_INIT(65536);
	char key[64];

	for (; *names; names++)
		CHECK(buf_addf(&lines,
		               "{\"run_id\": \"run-1\", \"span_id\": \"0123456789abcdef\", "
		               "\"kind\": \"log\", \"event\": \"log\", \"ts\": 1.5, "
		               "\"name\": \"%c\"}\n",
		               *names) == 0);
	snprintf(key, sizeof(key), PREFIX "/events-%06u.jsonl", number);
	put(key, lines.data ? lines.data : "");
}

static int note(void *ctx, const struct resoluto_event *event)
{
	return buf_addf(ctx, "%s ", event->name);
}

static int poll_all(unsigned max)
{
	return tail_poll(&tail, max, note, &seen, &err);
}

static void expect_seen(const char *want)
{
	CHECK_STR(seen.data ? seen.data : "", want);
}

static void reads_chunks_as_they_come(void)
{
	begin();
	CHECK(poll_all(10) == 0);
	CHECK(err.code == 0);
	put_chunk(1, "ab");
	CHECK(poll_all(10) == 1);
	CHECK(poll_all(10) == 0);
	put_chunk(2, "c");
	put_chunk(3, "d");
	CHECK(poll_all(10) == 2);
	expect_seen("a b c d ");
	CHECK(err.code == 0);
}

static void asks_for_one_chunk_at_a_time(void)
{
	const struct conduit_memory_counters *counters;

	begin();
	counters = conduit_memory_counters(conduit);
	put_chunk(1, "a");
	put_chunk(2, "b");
	put_chunk(3, "c");
	CHECK(poll_all(2) == 2);
	CHECK(counters->gets == 2 && counters->lists == 0);
	expect_seen("a b ");
	CHECK(poll_all(2) == 1);
	CHECK(counters->gets == 4);
	CHECK(poll_all(0) == 0 && counters->gets == 4);
}

static void waits_at_a_gap(void)
{
	begin();
	put_chunk(1, "a");
	put_chunk(3, "c");
	CHECK(poll_all(10) == 1);
	expect_seen("a ");
	put_chunk(2, "b");
	CHECK(poll_all(10) == 2);
	expect_seen("a b c ");
}

static void is_complete_with_the_last_chunk(void)
{
	begin();
	put_chunk(1, "a");
	put_chunk(2, "b");
	CHECK(poll_all(10) == 2);
	CHECK(tail_is_complete(&tail, &err) == 0);
	put_chunk(3, "c");
	put(PREFIX "/_manifest.json", "{\"total_chunks\": 3}");
	CHECK(tail_is_complete(&tail, &err) == 0);
	CHECK(tail.has_manifest && tail.total == 3);
	CHECK(poll_all(10) == 1);
	CHECK(tail_is_complete(&tail, &err) == 1);
	CHECK(err.code == 0);
	expect_seen("a b c ");
}

static void looks_for_the_manifest_once(void)
{
	const struct conduit_memory_counters *counters;

	begin();
	counters = conduit_memory_counters(conduit);
	put(PREFIX "/_manifest.json", "{\"total_chunks\": 0}");
	CHECK(tail_is_complete(&tail, &err) == 1);
	CHECK(tail_is_complete(&tail, &err) == 1);
	CHECK(counters->gets == 1);
	CHECK(poll_all(10) == 0 && counters->gets == 1);
}

static void ignores_chunks_above_the_total(void)
{
	begin();
	put_chunk(1, "a");
	put_chunk(2, "b");
	put_chunk(3, "x");
	put(PREFIX "/_manifest.json", "{\"total_chunks\": 2}");
	CHECK(tail_is_complete(&tail, &err) == 0);
	CHECK(poll_all(10) == 2);
	CHECK(tail_is_complete(&tail, &err) == 1);
	CHECK(poll_all(10) == 0);
	expect_seen("a b ");
}

static void bears_a_manifest_below_what_was_read(void)
{
	begin();
	put_chunk(1, "a");
	put_chunk(2, "b");
	CHECK(poll_all(10) == 2);
	put(PREFIX "/_manifest.json", "{\"total_chunks\": 1}");
	CHECK(tail_is_complete(&tail, &err) == 1);
	CHECK(poll_all(10) == 0);
	expect_seen("a b ");
}

static void refuses_what_is_no_manifest(void)
{
	static const char *const bad[] = { "",
		                           "[]",
		                           "{}",
		                           "{\"total_chunks\": -1}",
		                           "{\"total_chunks\": 1000000}",
		                           "{\"total_chunks\": 1.5}",
		                           "{\"total_chunks\": \"3\"}",
		                           "{\"total_chunks\": 3" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		begin();
		put(PREFIX "/_manifest.json", bad[i]);
		CHECK(tail_is_complete(&tail, &err) == -EBADMSG);
		CHECK(err.code == -EBADMSG && !tail.has_manifest);
	}
}

static void bounds_manifest_and_chunks(void)
{
	char *large;

	begin();
	large = calloc(1, TAIL_CHUNK_MAX + 2);
	CHECK(large);
	memset(large, ' ', TAIL_CHUNK_MAX + 1);
	put(PREFIX "/_manifest.json", large);
	CHECK(tail_is_complete(&tail, &err) == -EFBIG);
	put(PREFIX "/events-000001.jsonl", large);
	CHECK(poll_all(10) == -EFBIG && err.code == -EFBIG);
	large[TAIL_CHUNK_MAX] = '\0';
	put(PREFIX "/events-000001.jsonl", large);
	CHECK(poll_all(10) == 1);
	free(large);
}

static void passes_bad_lines_over(void)
{
	begin();
	put(PREFIX "/events-000001.jsonl",
	    "garbage\n{\"run_id\": \"r\", \"span_id\": \"s\", \"kind\": \"log\", \"event\": "
	    "\"log\", \"ts\": 1, \"name\": \"a\"}\n[]\n");
	put_chunk(2, "b");
	CHECK(poll_all(10) == 2);
	expect_seen("a b ");
	CHECK(chunk_reader_bad_lines(tail.reader) == 2);
}

static int refuse_b(void *ctx, const struct resoluto_event *event)
{
	if (strcmp(event->name, "b") == 0)
		return -ECANCELED;
	return note(ctx, event);
}

static void tells_no_event_twice(void)
{
	begin();
	put_chunk(1, "abc");
	put_chunk(2, "d");
	CHECK(tail_poll(&tail, 10, refuse_b, &seen, &err) == -ECANCELED);
	CHECK(err.code == -ECANCELED);
	CHECK(poll_all(10) == 1);
	expect_seen("a d ");
}

static void passes_failures_of_the_store_on(void)
{
	begin();
	put_chunk(1, "a");
	put_chunk(2, "b");
	CHECK(conduit_memory_fail(conduit, CONDUIT_MEMORY_GET, -ETIMEDOUT, 2) == 0);
	CHECK(poll_all(10) == -ETIMEDOUT && err.code == -ETIMEDOUT);
	CHECK(tail_is_complete(&tail, &err) == -ETIMEDOUT);
	CHECK(poll_all(10) == 2);
	expect_seen("a b ");
}

static void takes_any_prefix(void)
{
	static const char *const prefixes[] = { "", "p/", "p", "run/x/nodes/y/" };
	static const char *const keys[] = { "_manifest.json", "p/_manifest.json",
		                            "p/_manifest.json", "run/x/nodes/y/_manifest.json" };
	char long_prefix[RESOLUTO_KEY_MAX];

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		begin();
		tail.prefix = prefixes[i];
		put(keys[i], "{\"total_chunks\": 0}");
		CHECK(tail_is_complete(&tail, &err) == 1);
	}
	begin();
	memset(long_prefix, 'p', sizeof(long_prefix));
	long_prefix[sizeof(long_prefix) - 1] = '\0';
	tail.prefix = long_prefix;
	CHECK(poll_all(1) == -EINVAL && err.code == -EINVAL);
}

int main(void)
{
	RUN(reads_chunks_as_they_come);
	RUN(asks_for_one_chunk_at_a_time);
	RUN(waits_at_a_gap);
	RUN(is_complete_with_the_last_chunk);
	RUN(looks_for_the_manifest_once);
	RUN(ignores_chunks_above_the_total);
	RUN(bears_a_manifest_below_what_was_read);
	RUN(refuses_what_is_no_manifest);
	RUN(bounds_manifest_and_chunks);
	RUN(passes_bad_lines_over);
	RUN(tells_no_event_twice);
	RUN(passes_failures_of_the_store_on);
	RUN(takes_any_prefix);
	tail_done(&tail);
	resoluto_conduit_close(conduit);
	buf_done(&seen);
	return check_done();
}
