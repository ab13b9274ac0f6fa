/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>

#include "base/cleanup.h"
#include "check.h"
#include "wire/event.h"

static const struct event_head log_head = {
	.run_id = "run-1",
	.span_id = "00000000000000aa",
	.parent_span_id = "00000000000000bb",
	.kind = "log",
	.event = "log",
	.ts = 1764442313.25,
};

static void writes_an_event(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(4096);
	struct event_head head = {
		.run_id = "run-1",
		.span_id = "a",
		.kind = "workload",
		.name = "ru\"n",
		.event = "close",
		.status = "success",
		.ts = 12.000001,
	};

	CHECK(event_write(&out, &head, "{\"argv\":[\"\xc3\xa9\"]}") == 0);
	CHECK_STR(out.data, "{\"run_id\":\"run-1\",\"span_id\":\"a\",\"parent_span_id\":\"\","
	                    "\"kind\":\"workload\",\"name\":\"ru\\\"n\",\"event\":\"close\","
	                    "\"status\":\"success\",\"ts\":12.000001,"
	                    "\"data\":{\"argv\":[\"\\u00e9\"]}}\n");
}

static void check_ts(double ts, const char *want)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(4096);
	struct event_head head = { .ts = ts };

	CHECK(event_write(&out, &head, NULL) == 0);
	CHECK(strstr(out.data, want));
}

static void ts_is_always_a_number(void)
{
	check_ts(0, "\"ts\":0.000000,");
	check_ts(1764442313.999999, "\"ts\":1764442313.999999,");
	check_ts(1.9999999, "\"ts\":2.000000,");
	check_ts(-1, "\"ts\":0.000000,");
	check_ts(NAN, "\"ts\":0.000000,");
	check_ts(INFINITY, "\"ts\":253402300799.000000,");
}

static void check_piece(const struct event_piece *piece, const char *want_data)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);
	char *data;

	CHECK(event_write_piece(&out, &log_head, piece) == 0);
	CHECK(out.data[out.len - 1] == '\n' && strlen(out.data) == out.len);
	data = strstr(out.data, "\"data\":");
	CHECK(data);
	out.data[out.len - 2] = '\0';
	CHECK_STR(data + 7, want_data);
}

static void writes_pieces(void)
{
	check_piece(&(struct event_piece){ "hi", 2, false, true, 7 },
	            "{\"line\":\"hi\",\"stream\":\"stdout\",\"seq\":7}");
	check_piece(&(struct event_piece){ "? ", 2, true, false, 8 },
	            "{\"line\":\"? \",\"stream\":\"stderr\",\"seq\":8,\"nl\":false}");
	check_piece(
		&(struct event_piece){ "\xff\0", 2, false, true, 9 },
		"{\"line\":\"\\ufffd\\u0000\",\"stream\":\"stdout\",\"seq\":9,\"b64\":\"/wA=\"}");
}

static void failure_leaves_the_buffer(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(300);
	CLEANUP(mem_free) char *large = calloc(1, EVENT_LINE_BYTES + 1);
	struct event_piece piece = { large, EVENT_LINE_BYTES + 1, false, true, 1 };

	CHECK(buf_add_str(&out, "kept") == 0);
	CHECK(event_write_piece(&out, &log_head, &piece) == -E2BIG);
	piece.len = EVENT_LINE_BYTES;
	CHECK(event_write_piece(&out, &log_head, &piece) == -E2BIG);
	CHECK_STR(out.data, "kept");
}

static void an_event_has_a_bound(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(3 * EVENT_JSON_MAX);
	CLEANUP(mem_free) char *name = malloc(EVENT_JSON_MAX + 1);
	struct event_head head = { .name = name };

	memset(name, 'x', EVENT_JSON_MAX);
	name[EVENT_JSON_MAX] = '\0';
	CHECK(event_write(&out, &head, NULL) == -E2BIG);
	CHECK(out.len == 0);
	name[EVENT_JSON_MAX - 300] = '\0';
	CHECK(event_write(&out, &head, NULL) == 0);
}

static void parse(struct event_line *line, const char *json)
{
	CHECK(event_parse(json, strlen(json), line) == 0);
}

static void reads_what_it_writes(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);
	CLEANUP(event_line_done) struct event_line line = { 0 };
	const struct resoluto_event *event = &line.event;

	CHECK(event_write_piece(&out, &log_head,
	                        &(struct event_piece){ "\0\xfe\n", 2, true, true, 3 }) == 0);
	CHECK(event_parse(out.data, out.len - 1, &line) == 0);
	CHECK_STR(event->run_id, "run-1");
	CHECK_STR(event->span_id, "00000000000000aa");
	CHECK_STR(event->parent_span_id, "00000000000000bb");
	CHECK_STR(event->kind, "log");
	CHECK_STR(event->name, "");
	CHECK_STR(event->event, "log");
	CHECK(event->ts == 1764442313.25);
	CHECK(event->len == 3 && memcmp(event->bytes, "\0\xfe\n", 3) == 0);
	CHECK(event->is_stderr && event->seq == 3 && !event->is_output);
}

/* All single bytes, all pairs with an interesting first byte, with and without newline. */
static void bytes_come_back_exactly(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);

	for (unsigned i = 0; i < 65536; i++) {
		char bytes[3] = { (char) (i >> 8), (char) i, 'x' };
		struct event_piece piece = { bytes, i % 4, i & 1, i & 2, i };
		CLEANUP(event_line_done) struct event_line line = { 0 };

		if (piece.len == 0 && !piece.has_newline)
			continue;
		buf_clear(&out);
		CHECK(event_write_piece(&out, &log_head, &piece) == 0);
		CHECK(event_parse(out.data, out.len - 1, &line) == 0);
		CHECK(line.event.len == piece.len + piece.has_newline);
		CHECK(memcmp(line.event.bytes, bytes, piece.len) == 0);
		CHECK(!piece.has_newline || line.event.bytes[piece.len] == '\n');
		CHECK(line.event.seq == i && line.event.is_stderr == (bool) (i & 1));
	}
}

static void reads_the_original(void)
{
	CLEANUP(event_line_done) struct event_line beat = { 0 }, log = { 0 };

	parse(&beat,
	      "{\"run_id\":\"\",\"span_id\":\"hb\",\"parent_span_id\":\"\",\"kind\":\"heartbeat\","
	      "\"name\":\"\",\"event\":\"log\",\"ts\":12.5,\"status\":\"\",\"data\":{}}");
	CHECK_STR(beat.event.kind, "heartbeat");
	CHECK(!beat.event.bytes);
	parse(&log, "{\"run_id\":\"r\",\"span_id\":\"s\",\"parent_span_id\":\"p\",\"kind\":\"log\","
	            "\"name\":\"\","
	            "\"event\":\"log\",\"ts\":1,\"status\":\"\",\"data\":{\"line\":"
	            "\"a\\u0000\xc3\xa9\"}}");
	CHECK(log.event.len == 5 && memcmp(log.event.bytes, "a\0\xc3\xa9\n", 5) == 0);
	CHECK(log.event.seq == 0 && !log.event.is_stderr);
	CHECK_STR(log.event.data, "{\"line\":\"a\\u0000\xc3\xa9\"}");
}

static void minimal_event_gets_defaults(void)
{
	CLEANUP(event_line_done) struct event_line line = { 0 };

	parse(&line, "{\"run_id\":\"r\",\"span_id\":\"s\",\"kind\":\"k\",\"event\":\"open\",\"ts\":"
	             "0,\"new\":[]}");
	CHECK_STR(line.event.parent_span_id, "");
	CHECK_STR(line.event.status, "");
	CHECK_STR(line.event.data, "{}");
	CHECK(!line.event.bytes);
}

#define HEAD "{\"run_id\":\"r\",\"span_id\":\"s\",\"kind\":\"log\",\"event\":\"log\",\"ts\":1"

static void check_bytes(const char *data, const char *want)
{
	CLEANUP(event_line_done) struct event_line line = { 0 };
	CLEANUP(buf_done) struct buf json = BUF_INIT(4096);

	CHECK(buf_addf(&json, HEAD ",\"data\":%s}", data) == 0);
	CHECK(event_parse(json.data, json.len, &line) == 0);
	if (!want) {
		CHECK(!line.event.bytes);
		return;
	}
	CHECK_STR(line.event.bytes, want);
	CHECK(line.event.len == strlen(want));
}

static void exact_bytes_win_when_valid(void)
{
	check_bytes("{\"line\":\"a\",\"b64\":\"Yg==\"}", "b\n");
	check_bytes("{\"line\":\"a\",\"b64\":\"Yg=\"}", "a\n");
	check_bytes("{\"line\":\"a\",\"b64\":7}", "a\n");
	check_bytes("{\"b64\":\"Yg==\",\"nl\":false}", "b");
	check_bytes("{\"line\":\"\",\"nl\":false}", "");
	check_bytes("{\"line\":\"a\",\"nl\":\"false\"}", "a\n");
	check_bytes("{\"line\":\"a\",\"seq\":-5,\"stream\":[]}", "a\n");
	check_bytes("{\"line\":1}", NULL);
	check_bytes("{\"b64\":\"?\"}", NULL);
}

static void refuses_what_is_no_event(void)
{
	static const char *const bad[] = {
		"",
		"{",
		"[]",
		"7",
		"{}",
		"null",
		HEAD,
		HEAD "}}",
		HEAD ",\"data\":[]}",
		HEAD ",\"data\":null}",
		HEAD ",\"ts\":2}",
		HEAD ",\"name\":null}",
		HEAD ",\"status\":1}",
		HEAD ",\"name\":\"\\u0000\"}",
		HEAD ",\"name\":\"\xff\"}",
		HEAD ",\"data\":{\"\\u0000\":1}}",
		HEAD ",\"data\":{\"a\":\"\\ud800\"}}",
		HEAD ",\"data\":{\"a\":1e999}}",
		HEAD ",\"data\":{\"line\":\"a\",\"line\":\"b\"}}",
		HEAD ",\"data\":{},\"data\":{}}",
		"{\"run_id\":\"r\",\"span_id\":\"s\",\"kind\":\"log\",\"event\":\"log\",\"ts\":"
		"\"1\"}",
		"{\"run_id\":\"r\",\"span_id\":\"s\",\"kind\":\"log\",\"event\":\"other\",\"ts\":"
		"1}",
		"{\"run_id\":1,\"span_id\":\"s\",\"kind\":\"log\",\"event\":\"log\",\"ts\":1}",
		"{\"span_id\":\"s\",\"kind\":\"log\",\"event\":\"log\",\"ts\":1}",
		"{\"run_id\":\"r\",\"kind\":\"log\",\"event\":\"log\",\"ts\":1}",
		"{\"run_id\":\"r\",\"span_id\":\"s\",\"event\":\"log\",\"ts\":1}",
		"{\"run_id\":\"r\",\"span_id\":\"s\",\"kind\":\"log\",\"ts\":1}",
		"{\"run_id\":\"r\",\"span_id\":\"s\",\"kind\":\"log\",\"event\":\"log\"}",
		"{\"run_id\":\"r\",\"span_id\":\"s\",\"kind\":\"log\",\"event\":\"log\",\"ts\":"
		"NaN}",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CLEANUP(event_line_done) struct event_line line = { 0 };

		CHECK(event_parse(bad[i], strlen(bad[i]), &line) == -EBADMSG);
	}
}

static void refuses_depth_and_size(void)
{
	CLEANUP(event_line_done) struct event_line line = { 0 };
	CLEANUP(buf_done) struct buf json = BUF_INIT(4 << 20);

	CHECK(buf_add_str(&json, HEAD ",\"data\":{\"a\":") == 0);
	for (int i = 0; i < 100000; i++)
		CHECK(buf_add(&json, "[", 1) == 0);
	CHECK(event_parse(json.data, json.len, &line) == -EBADMSG);
	while (json.len <= EVENT_JSON_MAX)
		CHECK(buf_add(&json, " ", 1) == 0);
	CHECK(event_parse(json.data, json.len, &line) == -E2BIG);
}

static void data_is_the_text_of_the_object(void)
{
	CLEANUP(event_line_done) struct event_line plain = { 0 }, escaped = { 0 };

	parse(&plain, HEAD ",\"data\":{\"k\": [1, {\"data\":2}]},\"name\":\"data\"}");
	CHECK_STR(plain.event.data, "{\"k\": [1, {\"data\":2}]}");
	parse(&escaped, HEAD ",\"d\\u0061ta\":{\"k\": 1}}");
	CHECK_STR(escaped.event.data, "{\"k\": 1}");
}

/* One struct for many lines: nothing of an earlier one shows. */
static void a_line_can_be_used_again(void)
{
	CLEANUP(event_line_done) struct event_line line = { 0 };

	parse(&line, HEAD
	      ",\"name\":\"n\",\"data\":{\"line\":\"long one\",\"stream\":\"stderr\",\"seq\":4}}");
	CHECK(line.event.len == 9);
	CHECK(event_parse("{", 1, &line) == -EBADMSG);
	CHECK(!line.event.bytes && !line.event.seq);
	CHECK_STR(line.event.name, "");
	parse(&line, HEAD ",\"data\":{\"line\":\"x\"}}");
	CHECK_STR(line.event.bytes, "x\n");
	CHECK_STR(line.event.name, "");
	CHECK(!line.event.is_stderr && line.event.seq == 0);
	parse(&line, HEAD "}");
	CHECK(!line.event.bytes);
	CHECK_STR(line.event.data, "{}");
}

static void span_ids_are_hex(void)
{
	char id[EVENT_SPAN_ID_SIZE];

	event_span_id(0x0123456789abcdefull, id);
	CHECK_STR(id, "0123456789abcdef");
	event_span_id(0, id);
	CHECK_STR(id, "0000000000000000");
}

int main(void)
{
	RUN(writes_an_event);
	RUN(ts_is_always_a_number);
	RUN(writes_pieces);
	RUN(failure_leaves_the_buffer);
	RUN(an_event_has_a_bound);
	RUN(reads_what_it_writes);
	RUN(bytes_come_back_exactly);
	RUN(reads_the_original);
	RUN(minimal_event_gets_defaults);
	RUN(exact_bytes_win_when_valid);
	RUN(refuses_what_is_no_event);
	RUN(refuses_depth_and_size);
	RUN(data_is_the_text_of_the_object);
	RUN(a_line_can_be_used_again);
	RUN(span_ids_are_hex);
	return check_done();
}
