/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/cleanup.h"
#include "check.h"
#include "wire/chunk_reader.h"
#include "wire/chunk_writer.h"

/* A store that remembers what it was given. */
struct store {
	struct buf last;
	char key[64];
	int puts, fail; /* fail: what put returns instead of storing */
	size_t largest;
};

static int store_put(void *ctx, const char *key, const void *bytes, size_t len)
{
	struct store *store = ctx;

	if (store->fail < 0)
		return store->fail;
	buf_clear(&store->last);
	CHECK(buf_add(&store->last, bytes, len) == 0);
	snprintf(store->key, sizeof(store->key), "%s", key);
	store->puts++;
	store->largest = len > store->largest ? len : store->largest;
	return 0;
}

static void store_done(struct store *store)
{
	buf_done(&store->last);
}

#define STORE_INIT ((struct store){ .last = BUF_INIT(4 << 20) })

static struct chunk_writer *new_writer(struct store *store, bool object_store)
{
	struct chunk_writer *writer = NULL;
	struct chunk_writer_options options = { .run_id = "run-7",
		                                .object_store = object_store,
		                                .put = store_put,
		                                .ctx = store,
		                                .now_ms = 1000 };

	CHECK(chunk_writer_new(&options, &writer) == 0);
	return writer;
}

static int add_piece(struct chunk_writer *writer, const char *bytes, size_t len, uint64_t now_ms)
{
	struct event_head head = { .span_id = "s",
		                   .parent_span_id = "w",
		                   .kind = "log",
		                   .event = "log" };
	struct event_piece piece = { bytes, len, false, true, 1 };

	return chunk_writer_piece(writer, &head, &piece, now_ms);
}

static int count_lines(const struct buf *chunk)
{
	int n = 0;

	for (size_t i = 0; i < chunk->len; i++)
		n += chunk->data[i] == '\n';
	return n;
}

static void a_line_is_seen_at_the_next_tick(void)
{
	CLEANUP(store_done) struct store store = STORE_INIT;
	CLEANUP(chunk_writer_free) struct chunk_writer *writer = new_writer(&store, false);

	CHECK(chunk_writer_due_ms(writer, 1000) == 1000 + CHUNK_HEARTBEAT_MS);
	CHECK(add_piece(writer, "a", 1, 2000) == 0);
	CHECK(add_piece(writer, "b", 1, 2000) == 0);
	CHECK(store.puts == 0 && chunk_writer_due_ms(writer, 2000) == 2000);
	CHECK(chunk_writer_tick(writer, 2000, 1) == 0);
	CHECK(store.puts == 1 && chunk_writer_count(writer) == 1);
	CHECK_STR(store.key, "events-000001.jsonl");
	CHECK(count_lines(&store.last) == 2 && strstr(store.last.data, "\"run_id\":\"run-7\""));
	CHECK(chunk_writer_tick(writer, 2001, 1) == 0 && store.puts == 1);
}

static void use_up_tokens(struct chunk_writer *writer, struct store *store, uint64_t now_ms)
{
	for (int i = 0; i < CHUNK_BURST; i++) {
		CHECK(add_piece(writer, "x", 1, now_ms) == 0);
		CHECK(chunk_writer_tick(writer, now_ms, 1) == 0);
	}
	CHECK(store->puts == CHUNK_BURST);
}

static void check_refill(bool object_store, uint64_t interval)
{
	CLEANUP(store_done) struct store store = STORE_INIT;
	CLEANUP(chunk_writer_free) struct chunk_writer *writer = new_writer(&store, object_store);

	use_up_tokens(writer, &store, 1000);
	CHECK(add_piece(writer, "x", 1, 1000) == 0);
	CHECK(chunk_writer_due_ms(writer, 1000) == 1000 + interval);
	CHECK(chunk_writer_tick(writer, 999 + interval, 1) == 0 && store.puts == CHUNK_BURST);
	CHECK(chunk_writer_tick(writer, 1000 + interval, 1) == 0 && store.puts == CHUNK_BURST + 1);
	CHECK(add_piece(writer, "y", 1, 1000 + interval) == 0);
	CHECK(chunk_writer_tick(writer, 999 + 2 * interval, 1) == 0 &&
	      store.puts == CHUNK_BURST + 1);
	/* a fraction of an interval is not lost */
	CHECK(chunk_writer_tick(writer, 1000 + 2 * interval, 1) == 0 &&
	      store.puts == CHUNK_BURST + 2);
}

static void without_tokens_a_chunk_waits(void)
{
	check_refill(false, CHUNK_LOCAL_MS);
	check_refill(true, CHUNK_OBJECT_MS);
}

static void tokens_come_back_up_to_the_burst(void)
{
	CLEANUP(store_done) struct store store = STORE_INIT;
	CLEANUP(chunk_writer_free) struct chunk_writer *writer = new_writer(&store, false);
	uint64_t later = 1000 + 10ull * CHUNK_BURST * CHUNK_LOCAL_MS;

	use_up_tokens(writer, &store, 1000);
	store.puts = 0;
	use_up_tokens(writer, &store, later);
	CHECK(add_piece(writer, "x", 1, later) == 0);
	CHECK(chunk_writer_tick(writer, later, 1) == 0 && store.puts == CHUNK_BURST);
}

static void time_that_steps_back_does_no_harm(void)
{
	CLEANUP(store_done) struct store store = STORE_INIT;
	CLEANUP(chunk_writer_free) struct chunk_writer *writer = new_writer(&store, false);

	CHECK(add_piece(writer, "x", 1, 10) == 0);
	CHECK(chunk_writer_tick(writer, 10, 1) == 0 && store.puts == 1);
	CHECK(chunk_writer_due_ms(writer, 5) == 10 + CHUNK_HEARTBEAT_MS);
}

/* Chunks of full size need no token, and no event is lost or doubled in between. */
static void full_chunks_go_out_at_once(void)
{
	CLEANUP(store_done) struct store store = STORE_INIT;
	CLEANUP(chunk_writer_free) struct chunk_writer *writer = new_writer(&store, false);
	CLEANUP(mem_free) char *line = malloc(EVENT_LINE_BYTES);
	int lines = 0;

	use_up_tokens(writer, &store, 1000);
	store.puts = 0;
	memset(line, 'z', EVENT_LINE_BYTES);
	for (int i = 0; i < 5000; i++) {
		int before = store.puts;

		CHECK(add_piece(writer, line, (size_t) i * 7 % 1000, 1000) == 0);
		if (store.puts > before)
			lines += count_lines(&store.last);
	}
	CHECK(store.puts > 10 && store.largest <= CHUNK_BYTES &&
	      store.largest > CHUNK_BYTES - 2000);
	CHECK(chunk_writer_flush(writer) == 0);
	CHECK(lines + count_lines(&store.last) == 5000);
	CHECK(chunk_writer_flush(writer) == 0 &&
	      chunk_writer_count(writer) == CHUNK_BURST + (uint32_t) store.puts);
}

static void one_large_event_is_a_chunk_of_its_own(void)
{
	CLEANUP(store_done) struct store store = STORE_INIT;
	CLEANUP(chunk_writer_free) struct chunk_writer *writer = new_writer(&store, false);
	CLEANUP(mem_free) char *line = malloc(EVENT_LINE_BYTES);

	memset(line, 0xff, EVENT_LINE_BYTES); /* six characters and base64 each */
	use_up_tokens(writer, &store, 1000);
	CHECK(add_piece(writer, "small", 5, 1000) == 0);
	CHECK(add_piece(writer, line, EVENT_LINE_BYTES, 1000) == 0);
	CHECK(store.puts == CHUNK_BURST + 1 && count_lines(&store.last) == 1);
	CHECK(chunk_writer_due_ms(writer, 1000) == 1000);
	CHECK(chunk_writer_tick(writer, 1000, 1) == 0);
	CHECK(store.puts == CHUNK_BURST + 2 && store.last.len > CHUNK_BYTES);
}

static void quiet_gives_a_heartbeat(void)
{
	CLEANUP(store_done) struct store store = STORE_INIT;
	CLEANUP(chunk_writer_free) struct chunk_writer *writer = new_writer(&store, false);
	CLEANUP(event_line_done) struct event_line line = { 0 };

	CHECK(chunk_writer_tick(writer, 999 + CHUNK_HEARTBEAT_MS, 1) == 0 && store.puts == 0);
	CHECK(chunk_writer_tick(writer, 1000 + CHUNK_HEARTBEAT_MS, 77.5) == 0 && store.puts == 1);
	CHECK(event_parse(store.last.data, store.last.len - 1, &line) == 0);
	CHECK_STR(line.event.kind, "log");
	CHECK_STR(line.event.event, "log");
	CHECK_STR(line.event.run_id, "run-7");
	CHECK(line.event.ts == 77.5 && !line.event.bytes);
	CHECK(chunk_writer_due_ms(writer, 40000) == 1000 + 2 * CHUNK_HEARTBEAT_MS);
	CHECK(add_piece(writer, "x", 1, 50000) == 0);
	CHECK(chunk_writer_tick(writer, 50000, 1) == 0 && store.puts == 2);
	CHECK(chunk_writer_due_ms(writer, 50000) == 50000 + CHUNK_HEARTBEAT_MS);
}

static void a_heartbeat_comes_sooner_if_asked_for(void)
{
	CLEANUP(store_done) struct store store = STORE_INIT;
	CLEANUP(chunk_writer_free) struct chunk_writer *writer = NULL;
	const struct chunk_writer_options options = { .run_id = "run-7",
		                                      .heartbeat_ms = 2000,
		                                      .put = store_put,
		                                      .ctx = &store,
		                                      .now_ms = 1000 };

	CHECK(chunk_writer_new(&options, &writer) == 0);
	CHECK(chunk_writer_due_ms(writer, 1000) == 3000);
	CHECK(chunk_writer_tick(writer, 2999, 1) == 0 && store.puts == 0);
	CHECK(chunk_writer_tick(writer, 3000, 1) == 0 && store.puts == 1);
}

static void heartbeats_need_no_token(void)
{
	CLEANUP(store_done) struct store store = STORE_INIT;
	CLEANUP(chunk_writer_free) struct chunk_writer *writer = new_writer(&store, true);
	uint64_t now = 1000;

	use_up_tokens(writer, &store, now);
	for (int i = 1; i <= 5; i++) {
		now += CHUNK_HEARTBEAT_MS;
		CHECK(chunk_writer_due_ms(writer, now) == now);
		CHECK(chunk_writer_tick(writer, now, 1) == 0 && store.puts == CHUNK_BURST + i);
	}
}

static void a_failed_put_is_tried_again(void)
{
	CLEANUP(store_done) struct store store = STORE_INIT;
	CLEANUP(chunk_writer_free) struct chunk_writer *writer = new_writer(&store, false);

	CHECK(add_piece(writer, "first", 5, 1000) == 0);
	store.fail = -ENOSPC;
	CHECK(chunk_writer_tick(writer, 1000, 1) == -ENOSPC);
	CHECK(chunk_writer_flush(writer) == -ENOSPC);
	CHECK(chunk_writer_count(writer) == 0);
	CHECK(chunk_writer_due_ms(writer, 1000) == 1000 + CHUNK_RETRY_MS); /* nobody spins */
	CHECK(add_piece(writer, "second", 6, 1100) == 0);
	store.fail = 0;
	CHECK(chunk_writer_tick(writer, 1100, 1) == 0 && store.puts == 0);
	CHECK(chunk_writer_tick(writer, 1000 + CHUNK_RETRY_MS, 1) == 0 && store.puts == 1);
	CHECK_STR(store.key, "events-000001.jsonl");
	CHECK(strstr(store.last.data, "first") && strstr(store.last.data, "second"));
}

/* While put fails the writer takes no more than a chunk, and says of each event whether it was taken. */
static void a_full_writer_refuses_and_loses_nothing(void)
{
	CLEANUP(store_done) struct store store = STORE_INIT;
	CLEANUP(chunk_writer_free) struct chunk_writer *writer = new_writer(&store, false);
	char line[1000];
	int taken = 0;

	memset(line, 'q', sizeof(line));
	store.fail = -EAGAIN;
	while (add_piece(writer, line, sizeof(line), 1000) == 0)
		taken++;
	CHECK(taken > 50 && taken < 70);
	CHECK(add_piece(writer, line, sizeof(line), 1000) == -EAGAIN);
	store.fail = 0;
	CHECK(add_piece(writer, line, sizeof(line), 1000) == 0);
	CHECK(store.puts == 1 && count_lines(&store.last) == taken);
	CHECK(chunk_writer_flush(writer) == 0 && count_lines(&store.last) == 1);
}

static void too_large_an_event_changes_nothing(void)
{
	CLEANUP(store_done) struct store store = STORE_INIT;
	CLEANUP(chunk_writer_free) struct chunk_writer *writer = new_writer(&store, false);
	CLEANUP(mem_free) char *name = malloc(EVENT_JSON_MAX + 1);
	struct event_head head = { .name = name, .kind = "k", .event = "open" };

	memset(name, 'x', EVENT_JSON_MAX);
	name[EVENT_JSON_MAX] = '\0';
	CHECK(add_piece(writer, "a", 1, 1000) == 0);
	CHECK(chunk_writer_event(writer, &head, NULL, 1000) == -E2BIG);
	CHECK(chunk_writer_flush(writer) == 0 && count_lines(&store.last) == 1);
}

/* The whole life of a writer: it slows down, and after the last number it refuses. */
static void numbers_end_at_999999(void)
{
	CLEANUP(store_done) struct store store = STORE_INIT;
	CLEANUP(chunk_writer_free) struct chunk_writer *writer = new_writer(&store, false);
	uint64_t now = 1000;

	while (chunk_writer_count(writer) < CHUNK_LATE_NUMBER) {
		CHECK(add_piece(writer, "x", 1, now) == 0);
		CHECK(chunk_writer_flush(writer) == 0);
	}
	for (int i = 0; i < CHUNK_BURST; i++) {
		CHECK(add_piece(writer, "x", 1, now) == 0);
		CHECK(chunk_writer_tick(writer, now, 1) == 0);
	}
	CHECK(add_piece(writer, "x", 1, now) == 0);
	CHECK(chunk_writer_due_ms(writer, now) == now + CHUNK_LATE_MS);
	CHECK(chunk_writer_tick(writer, now + CHUNK_LATE_MS, 1) == 0);
	CHECK(chunk_writer_count(writer) == CHUNK_LATE_NUMBER + CHUNK_BURST + 1);
	now += CHUNK_LATE_MS;
	CHECK(chunk_writer_due_ms(writer, now) == now + CHUNK_LATE_MS); /* heartbeats are as rare */
	while (chunk_writer_count(writer) < 999999) {
		CHECK(add_piece(writer, "x", 1, now) == 0);
		CHECK(chunk_writer_flush(writer) == 0);
	}
	CHECK_STR(store.key, "events-999999.jsonl");
	CHECK(add_piece(writer, "x", 1, now) == 0);
	CHECK(chunk_writer_flush(writer) == -EOVERFLOW);
	CHECK(chunk_writer_tick(writer, now + CHUNK_LATE_MS, 1) == -EOVERFLOW);
}

/* Pieces as "text|" for a whole line and "text+" for a part of one. */
static int note_piece(void *ctx, const void *bytes, size_t len, bool has_newline)
{
	struct buf *pieces = ctx;

	CHECK(len <= EVENT_LINE_BYTES);
	CHECK(buf_add(pieces, bytes, len) == 0);
	CHECK(buf_add(pieces, has_newline ? "|" : "+", 1) == 0);
	return 0;
}

static void cutter_done(struct line_cutter *cutter)
{
	buf_done(&cutter->held);
}

static void cut(struct line_cutter *cutter, const char *text, struct buf *pieces)
{
	CHECK(line_cutter_feed(cutter, text, strlen(text), note_piece, pieces) == 0);
}

static void lines_are_cut_at_newlines(void)
{
	CLEANUP(cutter_done) struct line_cutter cutter = LINE_CUTTER_INIT;
	CLEANUP(buf_done) struct buf pieces = BUF_INIT(1 << 20);

	cut(&cutter, "one\n\ntwo\r\nthr", &pieces);
	CHECK_STR(pieces.data, "one||two\r|");
	cut(&cutter, "ee", &pieces);
	cut(&cutter, "\nfour\n", &pieces);
	CHECK_STR(pieces.data, "one||two\r|three|four|");
	CHECK(line_cutter_idle(&cutter, note_piece, &pieces) == 0);
	CHECK_STR(pieces.data, "one||two\r|three|four|");
}

static void a_prompt_goes_out_when_idle(void)
{
	CLEANUP(cutter_done) struct line_cutter cutter = LINE_CUTTER_INIT;
	CLEANUP(buf_done) struct buf pieces = BUF_INIT(1 << 20);

	cut(&cutter, "name? ", &pieces);
	CHECK(pieces.len == 0);
	CHECK(line_cutter_idle(&cutter, note_piece, &pieces) == 0);
	cut(&cutter, "\n", &pieces);
	CHECK_STR(pieces.data, "name? +|");
}

static void long_lines_are_cut_between_characters(void)
{
	CLEANUP(cutter_done) struct line_cutter cutter = LINE_CUTTER_INIT;
	CLEANUP(buf_done) struct buf pieces = BUF_INIT(1 << 20), text = BUF_INIT(1 << 20);

	CHECK(buf_add_str(&text, "x") == 0);
	for (int i = 0; i < EVENT_LINE_BYTES; i++)
		CHECK(buf_add_str(&text, "\xc3\xa9") == 0);
	CHECK(buf_add_str(&text, "\n") == 0);
	cut(&cutter, text.data, &pieces);
	CHECK(pieces.len == text.len - 1 + 3);
	CHECK(pieces.data[EVENT_LINE_BYTES - 1] == '+');
	CHECK(pieces.data[2 * EVENT_LINE_BYTES] == '+');
	CHECK(pieces.data[pieces.len - 1] == '|');
}

static int refuse_piece(void *ctx, const void *bytes, size_t len, bool has_newline)
{
	return -EPIPE;
}

static void a_refusal_is_passed_on(void)
{
	CLEANUP(cutter_done) struct line_cutter cutter = LINE_CUTTER_INIT;

	CHECK(line_cutter_feed(&cutter, "a\n", 2, refuse_piece, NULL) == -EPIPE);
	CHECK(line_cutter_feed(&cutter, "a", 1, refuse_piece, NULL) == 0);
	CHECK(line_cutter_idle(&cutter, refuse_piece, NULL) == -EPIPE);
	CHECK(line_cutter_idle(&cutter, refuse_piece, NULL) == 0);
}

static int join_piece(void *ctx, const void *bytes, size_t len, bool has_newline)
{
	struct buf *joined = ctx;

	CHECK(buf_add(joined, bytes, len) == 0);
	return has_newline ? buf_add(joined, "\n", 1) : 0;
}

/* Whatever the bytes and however they come, the pieces make them up again. */
static void pieces_are_the_stream(void)
{
	uint32_t seed = 12345;

	for (int round = 0; round < 200; round++) {
		CLEANUP(cutter_done) struct line_cutter cutter = LINE_CUTTER_INIT;
		CLEANUP(buf_done) struct buf joined = BUF_INIT(1 << 20), text = BUF_INIT(1 << 20);
		size_t len = round * 500u, at = 0;

		while (text.len < len) {
			char c = (char) ((seed = seed * 1664525 + 1013904223) >> 24);

			CHECK(buf_add(&text, c % 64 == 0 && round % 2 ? "\n" : &c, 1) == 0);
		}
		while (at < len) {
			size_t n = (seed = seed * 1664525 + 1013904223) % 40000;

			n = n < len - at ? n : len - at;
			CHECK(line_cutter_feed(&cutter, text.data + at, n, join_piece, &joined) ==
			      0);
			at += n;
		}
		CHECK(line_cutter_idle(&cutter, join_piece, &joined) == 0);
		CHECK(joined.len == len && (len == 0 || memcmp(joined.data, text.data, len) == 0));
	}
}

int main(void)
{
	RUN(a_line_is_seen_at_the_next_tick);
	RUN(without_tokens_a_chunk_waits);
	RUN(tokens_come_back_up_to_the_burst);
	RUN(time_that_steps_back_does_no_harm);
	RUN(full_chunks_go_out_at_once);
	RUN(one_large_event_is_a_chunk_of_its_own);
	RUN(quiet_gives_a_heartbeat);
	RUN(a_heartbeat_comes_sooner_if_asked_for);
	RUN(heartbeats_need_no_token);
	RUN(a_failed_put_is_tried_again);
	RUN(a_full_writer_refuses_and_loses_nothing);
	RUN(too_large_an_event_changes_nothing);
	RUN(numbers_end_at_999999);
	RUN(lines_are_cut_at_newlines);
	RUN(a_prompt_goes_out_when_idle);
	RUN(long_lines_are_cut_between_characters);
	RUN(a_refusal_is_passed_on);
	RUN(pieces_are_the_stream);
	return check_done();
}
