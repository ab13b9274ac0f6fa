/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/cleanup.h"
#include "check.h"
#include "wire/frame.h"

static void comes_back(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(4096);
	struct frame frame;
	size_t used;

	CHECK(frame_add(&out, FRAME_PUT_DATA, 0, 0x01020304, "hello", 5) == 0);
	CHECK(memcmp(out.data, "\x0d\0\0\0\x11\0\0\0\x04\x03\x02\x01hello", 17) == 0);
	CHECK(frame_parse(out.data, out.len, &frame, &used) == 0);
	CHECK(used == out.len && frame.type == FRAME_PUT_DATA && frame.stream == 0x01020304);
	CHECK(frame.flags == 0 && frame.len == 5 && memcmp(frame.payload, "hello", 5) == 0);
}

static void waits_for_the_rest(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(4096);
	struct frame frame;
	size_t used;

	CHECK(frame_add_u32(&out, FRAME_SIGNAL, 0, 15) == 0);
	for (size_t n = 0; n < out.len; n++)
		CHECK(frame_parse(out.data, n, &frame, &used) == -EAGAIN);
	CHECK(frame_add(&out, FRAME_STDIN, 0, 0, "x", 1) == 0);
	CHECK(frame_parse(out.data, out.len, &frame, &used) == 0);
	CHECK(used == 16 && frame.type == FRAME_SIGNAL);
}

static void refuses_what_is_no_frame(void)
{
	static const char *const bad[] = {
		"\x07\0\0\0\x01\0\0\0\0\0\0\0",   /* shorter than a header */
		"\x09\0\x01\0\x01\0\0\0\0\0\0\0", /* longer than a frame may be */
		"\xff\xff\xff\xff\x01\0\0\0\0\0\0\0",
		"\x08\0\0\0\x01\x02\0\0\0\0\0\0", /* a flag nobody knows */
		"\x08\0\0\0\x01\0\x01\0\0\0\0\0", /* the zero field */
		"\x08\0\0\0\x01\0\0\x01\0\0\0\0",
	};
	struct frame frame;
	size_t used;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(frame_parse(bad[i], FRAME_HEADER, &frame, &used) == -EBADMSG);
	CHECK(frame_parse("\x08\0\x01\0", 4, &frame, &used) == -EAGAIN); /* the largest length */
}

static void numbers_must_fit_exactly(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(4096);
	struct frame frame;
	struct frame_clock clock;
	uint32_t small;
	size_t used;

	CHECK(frame_add_u32(&out, FRAME_CREDIT, 3, 0x05060708) == 0);
	CHECK(frame_parse(out.data, out.len, &frame, &used) == 0);
	CHECK(frame_get_u32(&frame, &small) == 0 && small == 0x05060708);
	CHECK(frame_get_clock(&frame, &clock) == -EBADMSG);
	frame.flags = FRAME_MORE;
	CHECK(frame_get_u32(&frame, &small) == -EBADMSG);
	frame.flags = 0;
	frame.len = 3;
	CHECK(frame_get_u32(&frame, &small) == -EBADMSG);
}

static void a_clock_is_two_numbers(void)
{
	const struct frame_clock sent = { .wall_ns = 0x0102030405060708ull, .raw_ns = 9 };
	CLEANUP(buf_done) struct buf out = BUF_INIT(4096);
	struct frame_clock got = { 0 };
	struct frame frame;
	size_t used;

	CHECK(frame_add_clock(&out, &sent) == 0);
	CHECK(frame_parse(out.data, out.len, &frame, &used) == 0);
	CHECK(frame.type == FRAME_CLOCK && frame.stream == 0);
	CHECK(frame_get_clock(&frame, &got) == 0);
	CHECK(got.wall_ns == sent.wall_ns && got.raw_ns == sent.raw_ns);
	frame.flags = FRAME_MORE;
	CHECK(frame_get_clock(&frame, &got) == -EBADMSG);
	frame.flags = 0;
	frame.len = 15;
	CHECK(frame_get_clock(&frame, &got) == -EBADMSG);
}

/* A message of every length around the edges is split and put together again. */
static void messages_split_and_join(void)
{
	static const size_t sizes[] = { 0,
		                        1,
		                        FRAME_PAYLOAD_MAX - 1,
		                        FRAME_PAYLOAD_MAX,
		                        FRAME_PAYLOAD_MAX + 1,
		                        3 * FRAME_PAYLOAD_MAX };
	CLEANUP(mem_free) char *bytes = malloc(3 * FRAME_PAYLOAD_MAX);

	for (size_t i = 0; i < 3 * FRAME_PAYLOAD_MAX; i++)
		bytes[i] = (char) (i * 7);
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20), message = BUF_INIT(sizes[k]);
		size_t at = 0, used;
		struct frame frame;
		int r = 0;

		CHECK(frame_add_message(&out, FRAME_JOB, 9, bytes, sizes[k]) == 0);
		while (r == 0) {
			CHECK(frame_parse(out.data + at, out.len - at, &frame, &used) == 0);
			CHECK(frame.type == FRAME_JOB && frame.stream == 9);
			r = frame_join(&message, &frame);
			at += used;
		}
		CHECK(r == 1 && at == out.len && message.len == sizes[k]);
		CHECK(sizes[k] == 0 || memcmp(message.data, bytes, sizes[k]) == 0);
	}
}

static void joining_keeps_the_bound(void)
{
	CLEANUP(buf_done) struct buf message = BUF_INIT(7);
	struct frame frame = { .flags = FRAME_MORE,
		               .payload = (const uint8_t *) "12345",
		               .len = 5 };

	CHECK(frame_join(&message, &frame) == 0);
	CHECK(frame_join(&message, &frame) == -E2BIG);
	CHECK(message.len == 5);
}

int main(void)
{
	RUN(comes_back);
	RUN(waits_for_the_rest);
	RUN(refuses_what_is_no_frame);
	RUN(numbers_must_fit_exactly);
	RUN(a_clock_is_two_numbers);
	RUN(messages_split_and_join);
	RUN(joining_keeps_the_bound);
	return check_done();
}
