/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_frame.c - a stream of frames: what parses is within its bytes, and writes back as it was. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

static void check_frame(const uint8_t *at, size_t used, const struct frame *frame)
{
	struct buf again = BUF_INIT(FRAME_MAX);
	uint32_t small;
	struct frame_clock clock;

	require(used == FRAME_HEADER + frame->len && frame->payload == at + FRAME_HEADER);
	require(frame->len <= FRAME_PAYLOAD_MAX && !(frame->flags & ~FRAME_MORE));
	require(frame_add(&again, frame->type, frame->flags, frame->stream, frame->payload,
	                  frame->len) == 0);
	require(again.len == used && memcmp(again.data, at, used) == 0);
	require((frame_get_u32(frame, &small) == 0) == (frame->len == 4 && !frame->flags));
	require((frame_get_clock(frame, &clock) == 0) == (frame->len == 16 && !frame->flags));
	buf_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf message = BUF_INIT(1000);
	size_t used = 0;

	for (; size > 0; data += used, size -= used) {
		struct frame frame;
		int r = frame_parse(data, size, &frame, &used);

		require(r == 0 || r == -EAGAIN || r == -EBADMSG);
		if (r < 0)
			break;
		require(used <= size);
		check_frame(data, used, &frame);
		r = frame_join(&message, &frame);
		require(r >= 0 || r == -E2BIG);
		require(message.len <= 1000);
		if (r != 0)
			buf_clear(&message);
	}
	buf_done(&message);
	return 0;
}
