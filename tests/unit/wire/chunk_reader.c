/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/cleanup.h"
#include "check.h"
#include "wire/chunk_reader.h"

/* What a reader told: its output as bytes, and how many events there were. */
struct told {
	struct buf output;
	int events, fail_at;
};

static int note(void *ctx, const struct resoluto_event *event)
{
	struct told *told = ctx;

	told->events++;
	if (told->events == told->fail_at)
		return -EPIPE;
	if (event->is_output)
		CHECK(buf_add(&told->output, event->bytes, event->len) == 0);
	return 1; /* only failures stop it */
}

static void told_done(struct told *told)
{
	buf_done(&told->output);
}

#define TOLD_INIT ((struct told){ .output = BUF_INIT(1 << 20) })

static void add_event(struct buf *chunk, const char *span, const char *parent, const char *kind,
                      const char *event, const char *line)
{
	struct event_head head = { .run_id = "r",
		                   .span_id = span,
		                   .parent_span_id = parent,
		                   .kind = kind,
		                   .event = event };
	struct event_piece piece = { line, line ? strlen(line) : 0, false, true, 1 };

	CHECK((line ? event_write_piece(chunk, &head, &piece) : event_write(chunk, &head, NULL)) ==
	      0);
}

static void feed(struct chunk_reader *reader, const struct buf *chunk, struct told *told)
{
	CHECK(chunk_reader_feed(reader, chunk->data, chunk->len, note, told) == 0);
}

static void only_the_programs_lines_are_output(void)
{
	CLEANUP(chunk_reader_free) struct chunk_reader *reader = NULL;
	CLEANUP(buf_done) struct buf chunk = BUF_INIT(1 << 20), second = BUF_INIT(1 << 20);
	CLEANUP(told_done) struct told told = TOLD_INIT;

	CHECK(chunk_reader_new(&reader) == 0);
	add_event(&chunk, "n", "", "node", "open", NULL);
	add_event(&chunk, "1", "n", "log", "log", "staged");
	add_event(&chunk, "w", "n", "workload", "open", NULL);
	add_event(&chunk, "2", "w", "log", "log", "mine");
	add_event(&second, "3", "w", "log", "log", "too");
	add_event(&second, "4", "n", "log", "log", "not mine");
	add_event(&second, "5", "", "workload", "log", "the kind of the line does not count");
	add_event(&second, "w", "n", "workload", "close", NULL);
	add_event(&second, "6", "w", "log", "log", "after its end");
	feed(reader, &chunk, &told);
	feed(reader, &second, &told);
	CHECK(told.events == 9);
	CHECK_STR(told.output.data, "mine\ntoo\n");
}

static void bad_lines_are_passed_over(void)
{
	CLEANUP(chunk_reader_free) struct chunk_reader *reader = NULL;
	CLEANUP(buf_done) struct buf chunk = BUF_INIT(4 << 20);
	CLEANUP(told_done) struct told told = TOLD_INIT;

	CHECK(chunk_reader_new(&reader) == 0);
	add_event(&chunk, "w", "", "workload", "open", NULL);
	CHECK(buf_add_str(&chunk, "garbage\n\n \r\n{}\n") == 0);
	CHECK(buf_add(&chunk, "\0\xff\n", 3) == 0);
	for (int i = 0; i < EVENT_JSON_MAX; i++)
		CHECK(buf_add(&chunk, "x", 1) == 0);
	CHECK(buf_add_str(&chunk, "y\n") == 0);
	add_event(&chunk, "1", "w", "log", "log", "on");
	chunk.len--; /* a last line without its newline */
	feed(reader, &chunk, &told);
	CHECK(chunk_reader_bad_lines(reader) == 4);
	CHECK(told.events == 2);
	CHECK_STR(told.output.data, "on\n");
}

static void a_refusal_stops_it(void)
{
	CLEANUP(chunk_reader_free) struct chunk_reader *reader = NULL;
	CLEANUP(buf_done) struct buf chunk = BUF_INIT(1 << 20);
	CLEANUP(told_done) struct told told = TOLD_INIT;

	CHECK(chunk_reader_new(&reader) == 0);
	for (int i = 0; i < 5; i++)
		add_event(&chunk, "w", "", "workload", "open", NULL);
	told.fail_at = 3;
	CHECK(chunk_reader_feed(reader, chunk.data, chunk.len, note, &told) == -EPIPE);
	CHECK(told.events == 3);
}

static void remembered_spans_are_bounded(void)
{
	CLEANUP(chunk_reader_free) struct chunk_reader *reader = NULL;
	CLEANUP(buf_done) struct buf chunk = BUF_INIT(8 << 20);
	CLEANUP(told_done) struct told told = TOLD_INIT;
	char id[32];

	CHECK(chunk_reader_new(&reader) == 0);
	for (int i = 0; i <= CHUNK_SPANS_MAX; i++) {
		snprintf(id, sizeof(id), "w%d", i);
		add_event(&chunk, id, "", "workload", "open", NULL);
	}
	for (int i = 0; i < 3 * CHUNK_SPANS_MAX; i++) { /* these push nobody out */
		snprintf(id, sizeof(id), "n%d", i);
		add_event(&chunk, id, "", "tool", "open", NULL);
	}
	add_event(&chunk, "1", "w0", "log", "log", "forgotten");
	add_event(&chunk, "2", "w1", "log", "log", "kept");
	add_event(&chunk, "w5", "", "workload", "close", NULL);
	add_event(&chunk, "x", "", "workload", "open", NULL); /* takes the free place */
	add_event(&chunk, "3", "w1", "log", "log", "kept");
	add_event(&chunk, "4", "x", "log", "log", "new");
	feed(reader, &chunk, &told);
	CHECK_STR(told.output.data, "kept\nkept\nnew\n");
}

static void odd_span_ids_are_nobodys(void)
{
	CLEANUP(chunk_reader_free) struct chunk_reader *reader = NULL;
	CLEANUP(buf_done) struct buf chunk = BUF_INIT(1 << 20);
	CLEANUP(told_done) struct told told = TOLD_INIT;
	char id[66];

	CHECK(chunk_reader_new(&reader) == 0);
	memset(id, 'a', 65);
	id[65] = '\0';
	add_event(&chunk, "", "", "workload", "open", NULL);
	add_event(&chunk, id, "", "workload", "open", NULL);
	add_event(&chunk, "1", "", "log", "log", "of no parent");
	add_event(&chunk, "2", id, "log", "log", "of a long one");
	id[64] = '\0';
	add_event(&chunk, id, "", "workload", "open", NULL);
	add_event(&chunk, "3", id, "log", "log", "of the longest");
	feed(reader, &chunk, &told);
	CHECK_STR(told.output.data, "of the longest\n");
}

#define LINE_OF(run_id, span, kind, event) \
	"{\"run_id\":\"" run_id "\",\"span_id\":\"" span "\",\"kind\":\"" kind \
	"\",\"event\":\"" event "\",\"ts\":1}\n"

static void events_of_other_runs_are_passed_over(void)
{
	static const char lines[] = LINE_OF("r2", "b", "workload", "open")
		LINE_OF("", "c", "workload", "open") LINE_OF("", "hb", "heartbeat", "log")
			LINE_OF("", "x", "heartbeat", "log")
				LINE_OF("r2", "hb", "heartbeat", "log");
	CLEANUP(chunk_reader_free) struct chunk_reader *reader = NULL;
	CLEANUP(buf_done) struct buf chunk = BUF_INIT(1 << 20);
	CLEANUP(told_done) struct told told = TOLD_INIT;

	CHECK(chunk_reader_new(&reader) == 0);
	chunk_reader_expect(reader, "r");
	CHECK(buf_add_str(&chunk, lines) == 0);
	add_event(&chunk, "1", "b", "log", "log", "under a foreign span");
	add_event(&chunk, "a", "", "workload", "open", NULL);
	add_event(&chunk, "2", "a", "log", "log", "ours");
	feed(reader, &chunk, &told);
	CHECK_STR(told.output.data, "ours\n");
	CHECK(told.events == 4 && chunk_reader_foreign_events(reader) == 4);
	CHECK(chunk_reader_bad_lines(reader) == 0);
	chunk_reader_expect(reader, NULL);
	feed(reader, &chunk, &told);
	CHECK(told.events == 4 + 8 && chunk_reader_foreign_events(reader) == 4);
}

int main(void)
{
	RUN(only_the_programs_lines_are_output);
	RUN(bad_lines_are_passed_over);
	RUN(a_refusal_stops_it);
	RUN(remembered_spans_are_bounded);
	RUN(odd_span_ids_are_nobodys);
	RUN(events_of_other_runs_are_passed_over);
	return check_done();
}
