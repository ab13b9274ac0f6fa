/* SPDX-License-Identifier: Apache-2.0 */
/* demux.c - what a guest may say and what it may not: every rule of docs/design/channel.md. */
#include <errno.h>

#include "base/crc32c.h"
#include "check.h"
#include "shim/demux.h"

static struct demux demux;
static struct demux_action action;
static struct resoluto_err err;

static int give(enum demux_port port, uint8_t type, uint8_t flags, uint32_t stream,
                const void *payload, size_t len)
{
	const struct frame frame = { .type = type,
		                     .flags = flags,
		                     .stream = stream,
		                     .payload = payload,
		                     .len = len };

	err = (struct resoluto_err){ 0 };
	return demux_frame(&demux, port, &frame, &action, &err);
}

static int give_u32(enum demux_port port, uint8_t type, uint32_t stream, uint32_t value)
{
	return give(port, type, 0, stream, &value, sizeof(value));
}

static void greeted(void)
{
	demux = (struct demux){ 0 };
	CHECK(give_u32(DEMUX_CONTROL, FRAME_HELLO, 0, FRAME_VERSION) == 0);
	CHECK(action.what == DEMUX_HELLO);
	CHECK(give_u32(DEMUX_CONDUIT, FRAME_HELLO, 0, FRAME_VERSION) == 0);
}

static int begin_key(uint32_t stream, const char *key, size_t len, uint64_t size)
{
	char payload[1024];

	memcpy(payload, &size, 8);
	memcpy(payload + 8, key, len);
	return give(DEMUX_CONDUIT, FRAME_PUT_BEGIN, 0, stream, payload, 8 + len);
}

static int begin(uint32_t stream, const char *key, uint64_t size)
{
	return begin_key(stream, key, strlen(key), size);
}

static int data(uint32_t stream, const void *bytes, size_t len)
{
	return give(DEMUX_CONDUIT, FRAME_PUT_DATA, 0, stream, bytes, len);
}

static int end(uint32_t stream, uint32_t crc)
{
	return give_u32(DEMUX_CONDUIT, FRAME_PUT_END, stream, crc);
}

/* A whole object, stored. */
static int put(uint32_t stream, const char *key, const char *text)
{
	int r = begin(stream, key, strlen(text));

	if (r == 0)
		r = data(stream, text, strlen(text));
	if (r == 0)
		r = end(stream, crc32c(0, text, strlen(text)));
	if (r == 0 && action.what == DEMUX_END)
		demux_stored(&demux, action.put);
	return r;
}

static void a_run_in_order_is_taken(void)
{
	greeted();
	CHECK(put(1, "_canary_ok", "ok") == 0);
	CHECK(give(DEMUX_CONTROL, FRAME_STARTED, 0, 0, "{}", 2) == 0);
	CHECK(action.what == DEMUX_STARTED && action.len == 2);
	CHECK(give_u32(DEMUX_CONTROL, FRAME_CREDIT, 0, 77) == 0);
	CHECK(action.what == DEMUX_CREDIT && action.number == 77);
	CHECK(give(DEMUX_CONTROL, FRAME_CLOCK, 0, 0, NULL, 0) == 0 && action.what == DEMUX_CLOCK);
	CHECK(give(DEMUX_CONTROL, FRAME_CLOCK, 0, 0, NULL, 0) == 0 && action.what == DEMUX_CLOCK);
	CHECK(put(2, "events-000001.jsonl", "{}\n") == 0);
	CHECK(put(3, "outbox/output.tar.gz", "archive") == 0);
	CHECK(put(4, "result.json", "{}") == 0);
	CHECK(put(5, "events-000002.jsonl", "{}\n") == 0);
	CHECK(put(6, "_manifest.json", "{\"total_chunks\": 2}") == 0);
	CHECK(demux.has_manifest && demux.has_result && demux.chunks == 2);
	CHECK(begin(7, "events-000003.jsonl", 1) == -EPROTO);
}

static void hello_comes_first(void)
{
	demux = (struct demux){ 0 };
	CHECK(give_u32(DEMUX_CONTROL, FRAME_CREDIT, 0, 1) == -EPROTO);
	CHECK(begin(1, "_canary_ok", 2) == -EPROTO);
	CHECK(give_u32(DEMUX_CONTROL, FRAME_HELLO, 0, FRAME_VERSION + 1) == -EPROTO);
	CHECK(strstr(err.text, "version"));
	CHECK(give(DEMUX_CONTROL, FRAME_HELLO, 0, 0, "abc", 3) == -EPROTO);
	greeted();
	CHECK(give_u32(DEMUX_CONTROL, FRAME_HELLO, 0, FRAME_VERSION) == -EPROTO);
}

static void frames_stay_on_their_port(void)
{
	greeted();
	CHECK(give(DEMUX_CONTROL, FRAME_PUT_DATA, 0, 1, "x", 1) == -EPROTO);
	CHECK(give(DEMUX_CONTROL, FRAME_JOB, 0, 0, "{}", 2) == -EPROTO);
	CHECK(give(DEMUX_CONTROL, FRAME_CLOCK, 0, 0, "12345678", 8) == -EPROTO);
	CHECK(give(DEMUX_CONDUIT, FRAME_CLOCK, 0, 0, NULL, 0) == -EPROTO);
	CHECK(give(DEMUX_CONDUIT, FRAME_STARTED, 0, 0, "{}", 2) == -EPROTO);
	CHECK(give(DEMUX_CONDUIT, FRAME_ACK, 0, 1, NULL, 0) == -EPROTO);
	CHECK(give(DEMUX_CONDUIT, FRAME_DESTROY, 0, 0, NULL, 0) == -EPROTO);
	CHECK(give(DEMUX_CONTROL, FRAME_STARTED, FRAME_MORE, 0, "{", 1) == -EPROTO);
}

static void only_keys_of_the_protocol_pass(void)
{
	static const char *const keys[] = {
		"run.json",       "inbox/workspace.tar.gz", "outbox/../x.tar.gz",
		"/etc/passwd",    "../result.json",         "result.json/",
		"events-1.jsonl", "events-000000.jsonl",    "task.json",
		"outbox/.tar.gz", "outbox/a/b.tar.gz",      "_manifest.json ",
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		greeted();
		CHECK(begin(1, keys[i], 1) == -EPROTO);
	}
	greeted();
	CHECK(begin_key(1, "result.json\0x", 13, 1) == -EPROTO);
	CHECK(begin_key(1, "", 0, 1) == -EPROTO);
	CHECK(give(DEMUX_CONDUIT, FRAME_PUT_BEGIN, 0, 1, "1234", 4) == -EPROTO);
}

static void chunks_come_in_order_and_once(void)
{
	greeted();
	CHECK(begin(1, "events-000002.jsonl", 1) == -EPROTO);
	greeted();
	CHECK(put(1, "events-000001.jsonl", "{}\n") == 0);
	CHECK(begin(2, "events-000001.jsonl", 1) == -EPROTO);
	CHECK(begin(2, "events-000003.jsonl", 1) == -EPROTO);
	CHECK(begin(2, "events-000002.jsonl", 1) == 0);
	CHECK(begin(3, "events-000002.jsonl", 1) == -EPROTO);
}

static void each_object_once(void)
{
	static const char *const keys[] = { "_canary_ok", "result.json", "outbox/output.tar.gz" };

	for (size_t i = 0; i < 3; i++) {
		greeted();
		CHECK(put(1, keys[i], "{}") == 0);
		CHECK(begin(2, keys[i], 1) == -EPROTO);
		greeted();
		CHECK(begin(1, keys[i], 1) == 0);
		CHECK(begin(2, keys[i], 1) == -EPROTO);
	}
}

static void streams_go_up(void)
{
	greeted();
	CHECK(begin(0, "_canary_ok", 2) == -EPROTO);
	CHECK(put(5, "_canary_ok", "ok") == 0);
	CHECK(begin(5, "result.json", 2) == -EPROTO);
	CHECK(begin(4, "result.json", 2) == -EPROTO);
	CHECK(data(9, "x", 1) == -EPROTO);
	CHECK(end(9, 0) == -EPROTO);
	CHECK(data(5, "x", 1) == -EPROTO);
}

static void four_at_once_and_no_more(void)
{
	greeted();
	CHECK(begin(1, "_canary_ok", 2) == 0);
	CHECK(begin(2, "events-000001.jsonl", 2) == 0);
	CHECK(begin(3, "outbox/a.tar.gz", 2) == 0);
	CHECK(begin(4, "outbox/b.tar.gz", 2) == 0);
	CHECK(begin(5, "outbox/c.tar.gz", 2) == -EPROTO);
}

static void thirty_two_archives_and_no_more(void)
{
	char key[KEY_SIZE];

	greeted();
	for (uint32_t i = 1; i < DEMUX_OUTBOXES_MAX; i++) {
		snprintf(key, sizeof(key), "outbox/a%u.tar.gz", i);
		CHECK(put(i, key, "x") == 0);
	}
	CHECK(begin(100, "outbox/last.tar.gz", 1) == 0);
	CHECK(begin(101, "outbox/over.tar.gz", 1) == -EDQUOT);
}

/* Names are free to invent: what each of them costs the host ends with the quota, however small they are. */
static void a_flood_of_archives_is_over_the_quota(void)
{
	uint32_t stored = 0;
	char key[KEY_SIZE];
	int r;

	greeted();
	do {
		stored++;
		snprintf(key, sizeof(key), "outbox/a%07u.tar.gz", stored);
		r = put(stored, key, "");
	} while (r == 0 && stored < 2 * DEMUX_OUTBOXES_MAX);
	CHECK(r == -EDQUOT && stored == DEMUX_OUTBOXES_MAX + 1);
	CHECK(strstr(err.text, "archives"));
}

/* The other objects that a guest can name without end are counted by their number. */
static void chunks_end_with_the_last_number(void)
{
	char key[KEY_SIZE];

	greeted();
	demux.chunks = KEY_CHUNK_MAX - 1;
	key_chunk(KEY_CHUNK_MAX, key);
	CHECK(put(1, key, "x") == 0 && demux.chunks == KEY_CHUNK_MAX);
	CHECK(begin(2, "events-1000000.jsonl", 1) == -EPROTO);
}

static void sizes_are_kept(void)
{
	static const char big[FRAME_PAYLOAD_MAX];

	greeted();
	CHECK(begin(1, "events-000001.jsonl", DEMUX_CHUNK_MAX + 1) == -EPROTO);
	CHECK(begin(1, "_canary_ok", DEMUX_CANARY_MAX + 1) == -EPROTO);
	CHECK(begin(1, "_manifest.json", DEMUX_MANIFEST_MAX + 1) == -EPROTO);
	CHECK(begin(1, "events-000001.jsonl", UINT64_MAX) == 0);
	for (int i = 0; i < DEMUX_CHUNK_MAX / FRAME_PAYLOAD_MAX; i++)
		CHECK(data(1, big, sizeof(big)) == 0);
	CHECK(data(1, big, 1) == -EPROTO);
	greeted();
	CHECK(begin(1, "outbox/a.tar.gz", 3) == 0 && data(1, "ab", 2) == 0);
	CHECK(data(1, "cd", 2) == -EPROTO);
	CHECK(end(1, crc32c(0, "ab", 2)) == -EPROTO);
	greeted();
	CHECK(begin(1, "_manifest.json", UINT64_MAX) == 0);
	CHECK(data(1, big, DEMUX_MANIFEST_MAX + 1) == -EPROTO);
}

static void damage_is_told_and_may_be_mended(void)
{
	greeted();
	CHECK(begin(1, "events-000001.jsonl", 2) == 0 && data(1, "ab", 2) == 0);
	CHECK(end(1, 1) == 0 && action.what == DEMUX_DAMAGED);
	demux_failed(&demux, action.put);
	action.put->is_open = false;
	CHECK(put(2, "events-000001.jsonl", "ab") == 0 && demux.chunks == 1);
}

/* The guest sent more before it could know. */
static void what_was_under_way_when_storing_failed_is_ignored(void)
{
	greeted();
	CHECK(begin(1, "events-000001.jsonl", 2) == 0);
	demux_failed(&demux, action.put);
	CHECK(data(1, "ab", 2) == 0 && action.what == DEMUX_NOTHING);
	CHECK(end(1, 7) == 0 && action.what == DEMUX_NOTHING);
	CHECK(begin(2, "events-000002.jsonl", 2) == 0 && action.what == DEMUX_BEHIND);
	CHECK(data(2, "ab", 2) == 0 && action.what == DEMUX_NOTHING);
	CHECK(begin(3, "events-000001.jsonl", 2) == 0 && action.what == DEMUX_BEGIN);
	CHECK(end(2, 7) == 0 && action.what == DEMUX_NOTHING);
}

/* A guest need not end what was refused: the place is given to the next one. */
static void a_refused_put_that_is_never_ended_costs_no_place(void)
{
	greeted();
	for (uint32_t i = 1; i <= 20; i++) {
		CHECK(begin(i, "events-000001.jsonl", 2) == 0 && action.what == DEMUX_BEGIN);
		demux_failed(&demux, action.put);
	}
	CHECK(data(13, "late", 4) == 0 && action.what == DEMUX_NOTHING);
	CHECK(end(13, 0) == 0 && action.what == DEMUX_NOTHING);
	CHECK(put(21, "events-000001.jsonl", "ab") == 0 && demux.chunks == 1);
}

/* An object whose storing fails at its end. */
static void put_fails(uint32_t stream, const char *key, const char *text)
{
	CHECK(begin(stream, key, strlen(text)) == 0 && data(stream, text, strlen(text)) == 0);
	CHECK(end(stream, crc32c(0, text, strlen(text))) == 0 && action.what == DEMUX_END);
	demux_failed(&demux, action.put);
	action.put->is_open = false;
}

/* The three are sent together: a manifest of what is not there is not stored, until what it speaks of is. */
static void a_manifest_behind_a_failure_is_void(void)
{
	static const char *const keys[] = { "result.json", "events-000001.jsonl" };
	static const char manifest[] = "{\"total_chunks\": 1}";

	for (int failing = 0; failing < 2; failing++) {
		greeted();
		put_fails(1, keys[failing], "{}");
		CHECK(put(2, keys[!failing], "{}") == 0);
		CHECK(begin(3, "_manifest.json", strlen(manifest)) == 0);
		CHECK(action.what == DEMUX_BEHIND);
		CHECK(data(3, manifest, strlen(manifest)) == 0 && action.what == DEMUX_NOTHING);
		CHECK(end(3, 0) == 0 && action.what == DEMUX_NOTHING && !demux.has_manifest);
		CHECK(put(4, keys[failing], "{}") == 0);
		CHECK(put(5, "_manifest.json", manifest) == 0 && demux.has_manifest);
	}
}

/* One that was left open when it became void is not what is judged in place of another one. */
static void a_void_manifest_lends_nothing(void)
{
	static const char right[] = "{\"total_chunks\": 0}", wrong[] = "{\"total_chunks\": 7}";

	greeted();
	put_fails(1, "result.json", "{}");
	CHECK(begin(2, "_manifest.json", strlen(right)) == 0 && action.what == DEMUX_BEHIND);
	CHECK(put(3, "result.json", "{}") == 0);
	CHECK(begin(4, "_manifest.json", strlen(wrong)) == 0 && action.what == DEMUX_BEGIN);
	CHECK(data(4, wrong, strlen(wrong)) == 0);
	CHECK(data(2, right, strlen(right)) == 0 && action.what == DEMUX_NOTHING);
	CHECK(end(4, crc32c(0, wrong, strlen(wrong))) == -EPROTO);
}

static void the_manifest_counts_right_and_comes_last(void)
{
	greeted();
	CHECK(put(1, "_manifest.json", "{\"total_chunks\": 1}") == -EPROTO);
	greeted();
	CHECK(put(1, "_manifest.json", "[]") == -EPROTO);
	greeted();
	CHECK(begin(1, "result.json", 2) == 0);
	CHECK(begin(2, "_manifest.json", 20) == -EPROTO);
	greeted();
	CHECK(put(1, "_manifest.json", "{\"total_chunks\": 0}") == 0);
	CHECK(begin(2, "result.json", 2) == -EPROTO);
}

static void started_comes_once_and_small(void)
{
	static const char big[DEMUX_STARTED_MAX + 1];

	greeted();
	CHECK(give(DEMUX_CONTROL, FRAME_STARTED, 0, 0, big, sizeof(big)) == -EPROTO);
	CHECK(give(DEMUX_CONTROL, FRAME_STARTED, 0, 0, "{}", 2) == 0);
	CHECK(give(DEMUX_CONTROL, FRAME_STARTED, 0, 0, "{}", 2) == -EPROTO);
	CHECK(give(DEMUX_CONTROL, FRAME_CREDIT, 0, 0, "12", 2) == -EPROTO);
}

int main(void)
{
	RUN(a_run_in_order_is_taken);
	RUN(hello_comes_first);
	RUN(frames_stay_on_their_port);
	RUN(only_keys_of_the_protocol_pass);
	RUN(chunks_come_in_order_and_once);
	RUN(each_object_once);
	RUN(streams_go_up);
	RUN(four_at_once_and_no_more);
	RUN(thirty_two_archives_and_no_more);
	RUN(a_flood_of_archives_is_over_the_quota);
	RUN(chunks_end_with_the_last_number);
	RUN(sizes_are_kept);
	RUN(damage_is_told_and_may_be_mended);
	RUN(what_was_under_way_when_storing_failed_is_ignored);
	RUN(a_refused_put_that_is_never_ended_costs_no_place);
	RUN(a_manifest_behind_a_failure_is_void);
	RUN(a_void_manifest_lends_nothing);
	RUN(the_manifest_counts_right_and_comes_last);
	RUN(started_comes_once_and_small);
	return check_done();
}
