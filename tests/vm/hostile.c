/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/crc32c.h"
#include "base/io.h"
#include "hostile.h"
#include "wire/base64.h"
#include "wire/frame.h"

enum {
	SCRIPT_MAX = 96 * 1024 * 1024, /* bytes */
	KEY_MAX = 8192,
	UNANSWERED = 64, /* chunks that are sent before an answer is read */
	CREDIT_STEP = FRAME_STDIN_CREDIT / 2,
};

static void stay(void)
{
	for (;;)
		pause();
}

static void tell(const struct hostile *guest, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void tell(const struct hostile *guest, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vdprintf(guest->console, fmt, args);
	va_end(args);
}

static void give_up(const struct hostile *guest, const char *what)
{
	tell(guest, "hostile: %s\n", what);
	stay();
}

/* A host that ends us in the middle of a write is what many scripts are about. */
static void send_bytes(const struct hostile *guest, int fd, const void *bytes, size_t len)
{
	if (write_all(fd, bytes, len) < 0)
		give_up(guest, "the host is gone");
}

static void send_frame(const struct hostile *guest, int fd, uint8_t type, uint32_t stream,
                       const void *payload, size_t len)
{
	struct buf out = BUF_INIT(FRAME_MAX);

	if (frame_add(&out, type, 0, stream, payload, len) < 0)
		give_up(guest, "that is no frame");
	send_bytes(guest, fd, out.data, out.len);
	buf_done(&out);
}

static void send_u32(const struct hostile *guest, int fd, uint8_t type, uint32_t stream,
                     uint32_t value)
{
	send_frame(guest, fd, type, stream, &value, sizeof(value));
}

/* Its payload stays valid until the next call. */
static struct frame receive(const struct hostile *guest, int fd)
{
	static uint8_t bytes[FRAME_MAX];
	struct frame frame = { 0 };
	size_t used;

	if (read_up_to(fd, bytes, 4) != 4 || frame_le32(bytes) > FRAME_MAX - 4 ||
	    read_up_to(fd, bytes + 4, frame_le32(bytes)) != (ssize_t) frame_le32(bytes) ||
	    frame_parse(bytes, 4 + frame_le32(bytes), &frame, &used) < 0)
		give_up(guest, "the host says nothing more");
	return frame;
}

/* --- the script --- */

static void read_script(struct hostile *guest, struct buf *script)
{
	uint32_t taken = 0;

	for (;;) {
		struct frame frame = receive(guest, guest->control);

		if (frame.type == FRAME_STDIN_EOF)
			return;
		if (frame.type != FRAME_STDIN)
			continue;
		if (buf_add(script, frame.payload, frame.len) < 0)
			give_up(guest, "the script is too long");
		taken += (uint32_t) frame.len;
		if (taken >= CREDIT_STEP) {
			send_u32(guest, guest->control, FRAME_CREDIT, 0, taken);
			taken = 0;
		}
	}
}

static const char *text_of(const json_t *line, const char *name)
{
	const char *text = json_string_value(json_object_get(line, name));

	return text ? text : "";
}

static uint64_t number_of(const json_t *line, const char *name, uint64_t otherwise)
{
	const json_t *value = json_object_get(line, name);

	return json_is_integer(value) ? (uint64_t) json_integer_value(value) : otherwise;
}

static void decode(const struct hostile *guest, const json_t *line, struct buf *ret)
{
	const char *text = text_of(line, "data");

	if (base64_add_decoded(ret, text, strlen(text)) < 0)
		give_up(guest, "data is no base64");
}

/* --- what it does --- */

static void await_answer(const struct hostile *guest, const char *what)
{
	struct frame answer;

	do {
		answer = receive(guest, guest->conduit);
	} while (answer.stream != guest->stream);
	if (!what)
		return;
	if (answer.type == FRAME_ACK)
		tell(guest, "put %s: ACK\n", what);
	else
		tell(guest, "put %s: NAK %u\n", what, frame_le32(answer.payload));
}

static void begin(struct hostile *guest, const void *key, size_t len, uint64_t size)
{
	char payload[8 + KEY_MAX];

	if (len > KEY_MAX)
		give_up(guest, "the key is too long");
	for (int i = 0; i < 8; i++)
		payload[i] = (char) (size >> (8 * i));
	memcpy(payload + 8, key, len);
	send_frame(guest, guest->conduit, FRAME_PUT_BEGIN, ++guest->stream, payload, 8 + len);
}

/* Its length is the JSON string's, so that it may hold a NUL. */
static void begin_line(struct hostile *guest, const json_t *line, uint64_t otherwise)
{
	const json_t *key = json_object_get(line, "key");

	begin(guest, json_string_value(key), json_string_length(key),
	      number_of(line, "size", otherwise));
}

static uint32_t send_data(const struct hostile *guest, const char *bytes, size_t len, uint32_t crc)
{
	while (len > 0) {
		size_t n = len < FRAME_PAYLOAD_MAX ? len : FRAME_PAYLOAD_MAX;

		send_frame(guest, guest->conduit, FRAME_PUT_DATA, guest->stream, bytes, n);
		crc = crc32c(crc, bytes, n);
		bytes += n;
		len -= n;
	}
	return crc;
}

static uint32_t send_zeros(const struct hostile *guest, uint64_t count)
{
	static const char zeros[FRAME_PAYLOAD_MAX];
	uint32_t crc = 0;

	while (count > 0) {
		size_t n = count < sizeof(zeros) ? (size_t) count : sizeof(zeros);

		crc = send_data(guest, zeros, n, crc);
		count -= n;
	}
	return crc;
}

static void put(struct hostile *guest, const json_t *line)
{
	struct buf bytes = BUF_INIT(SCRIPT_MAX);
	const uint64_t fill = number_of(line, "fill", 0);
	uint32_t crc;

	decode(guest, line, &bytes);
	begin_line(guest, line, bytes.len + fill);
	crc = fill ? send_zeros(guest, fill) : send_data(guest, bytes.data, bytes.len, 0);
	crc ^= json_is_false(json_object_get(line, "crc"));
	send_u32(guest, guest->conduit, FRAME_PUT_END, guest->stream, crc);
	await_answer(guest, text_of(line, "key"));
	buf_done(&bytes);
}

static void put_chunk(struct hostile *guest, const char *bytes, size_t len)
{
	char key[32];

	snprintf(key, sizeof(key), "events-%06u.jsonl", ++guest->chunks);
	begin(guest, key, strlen(key), len);
	send_u32(guest, guest->conduit, FRAME_PUT_END, guest->stream,
	         send_data(guest, bytes, len, 0));
}

static void put_chunks(struct hostile *guest, const json_t *line)
{
	const uint64_t count = number_of(line, "count", 1);
	struct buf bytes = BUF_INIT(SCRIPT_MAX);

	decode(guest, line, &bytes);
	guest->chunks = (uint32_t) number_of(line, "after", guest->chunks);
	for (uint64_t i = 1; i <= count; i++) {
		put_chunk(guest, bytes.data, bytes.len);
		if (i % UNANSWERED == 0 || i == count)
			await_answer(guest, NULL);
	}
	buf_done(&bytes);
}

static void put_beats(struct hostile *guest, const json_t *line)
{
	const uint64_t ms = number_of(line, "every_ms", 100);
	const struct timespec pause = { .tv_sec = (time_t) (ms / 1000),
		                        .tv_nsec = (long) (ms % 1000) * 1000000 };
	char beat[256];

	snprintf(beat, sizeof(beat),
	         "{\"run_id\":\"%s\",\"span_id\":\"hb\",\"kind\":\"heartbeat\",\"event\":\"log\","
	         "\"ts\":1,\"data\":{}}\n",
	         text_of(line, "run_id"));
	for (;;) {
		put_chunk(guest, beat, strlen(beat));
		await_answer(guest, NULL);
		(void) nanosleep(&pause, NULL);
	}
}

static void send_raw(struct hostile *guest, const json_t *line)
{
	const bool is_control = strcmp(text_of(line, "port"), "control") == 0;
	const uint64_t times = number_of(line, "times", 1);
	struct buf bytes = BUF_INIT(SCRIPT_MAX);

	decode(guest, line, &bytes);
	for (uint64_t i = 0; i < times; i++)
		send_bytes(guest, is_control ? guest->control : guest->conduit, bytes.data,
		           bytes.len);
	buf_done(&bytes);
}

static void say_hello(struct hostile *guest, const json_t *line)
{
	send_u32(guest, guest->conduit, FRAME_HELLO, 0, FRAME_VERSION);
	(void) receive(guest, guest->conduit);
}

static void say_started(struct hostile *guest, const json_t *line)
{
	char json[128];

	snprintf(json, sizeof(json), "{\"guest_boot_id\":\"%s\"}", guest->boot_id);
	send_frame(guest, guest->control, FRAME_STARTED, 0, json, strlen(json));
}

static void begin_only(struct hostile *guest, const json_t *line)
{
	begin_line(guest, line, UINT64_MAX);
}

static void put_endless(struct hostile *guest, const json_t *line)
{
	begin_line(guest, line, UINT64_MAX);
	(void) send_zeros(guest, UINT64_MAX);
}

static void go_off(struct hostile *guest, const json_t *line)
{
	guest->off();
}

static void do_nothing(struct hostile *guest, const json_t *line)
{
	stay();
}

static const struct {
	const char *word;
	void (*fn)(struct hostile *guest, const json_t *line);
} deeds[] = {
	{ "hello", say_hello },   { "started", say_started }, { "raw", send_raw },
	{ "put", put },           { "begin", begin_only },    { "endless", put_endless },
	{ "chunks", put_chunks }, { "beats", put_beats },     { "off", go_off },
	{ "stay", do_nothing },
};

static void do_line(struct hostile *guest, const char *text, size_t len)
{
	json_t *line = json_loadb(text, len, JSON_ALLOW_NUL, NULL);
	const char *word = text_of(line, "do");

	for (size_t i = 0; i < sizeof(deeds) / sizeof(deeds[0]); i++) {
		if (strcmp(deeds[i].word, word) == 0) {
			deeds[i].fn(guest, line);
			json_decref(line);
			return;
		}
	}
	give_up(guest, "no such line");
}

void hostile_play(struct hostile *guest)
{
	struct buf script = BUF_INIT(SCRIPT_MAX);
	const char *at;

	send_u32(guest, guest->control, FRAME_HELLO, 0, FRAME_VERSION);
	read_script(guest, &script);
	for (at = script.data; at && *at;) {
		size_t len = strcspn(at, "\n");

		do_line(guest, at, len);
		at += len + (at[len] == '\n');
	}
	stay();
	abort();
}
