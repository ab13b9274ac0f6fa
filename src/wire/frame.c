/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "wire/frame.h"

uint32_t frame_le32(const void *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return le32toh(value);
}

uint64_t frame_le64(const void *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return le64toh(value);
}

int frame_parse(const void *bytes, size_t len, struct frame *ret_frame, size_t *ret_used)
{
	const uint8_t *at = bytes;
	uint32_t follows;

	if (len < 4)
		return -EAGAIN;
	follows = frame_le32(at);
	if (follows < FRAME_HEADER - 4 || follows > FRAME_MAX - 4)
		return -EBADMSG;
	if (len < FRAME_HEADER)
		return -EAGAIN;
	if ((at[5] & ~FRAME_MORE) || at[6] || at[7])
		return -EBADMSG;
	if (len < 4 + (size_t) follows)
		return -EAGAIN;
	*ret_frame = (struct frame){
		.type = at[4],
		.flags = at[5],
		.stream = frame_le32(at + 8),
		.payload = at + FRAME_HEADER,
		.len = follows - (FRAME_HEADER - 4),
	};
	*ret_used = 4 + (size_t) follows;
	return 0;
}

int frame_add(struct buf *out, uint8_t type, uint8_t flags, uint32_t stream, const void *payload,
              size_t len)
{
	uint32_t follows = htole32((uint32_t) len + FRAME_HEADER - 4), number = htole32(stream);
	uint8_t header[FRAME_HEADER] = { 0 };
	int r;

	assert(len <= FRAME_PAYLOAD_MAX);
	memcpy(header, &follows, 4);
	header[4] = type;
	header[5] = flags;
	memcpy(header + 8, &number, 4);
	r = buf_reserve(out, FRAME_HEADER + len);
	if (r < 0)
		return r;
	r = buf_add(out, header, sizeof(header));
	return r < 0 ? r : buf_add(out, payload, len);
}

int frame_add_message(struct buf *out, uint8_t type, uint32_t stream, const void *payload,
                      size_t len)
{
	const uint8_t *at = payload;
	int r;

	while (len > FRAME_PAYLOAD_MAX) {
		r = frame_add(out, type, FRAME_MORE, stream, at, FRAME_PAYLOAD_MAX);
		if (r < 0)
			return r;
		at += FRAME_PAYLOAD_MAX;
		len -= FRAME_PAYLOAD_MAX;
	}
	return frame_add(out, type, 0, stream, at, len);
}

int frame_add_u32(struct buf *out, uint8_t type, uint32_t stream, uint32_t value)
{
	value = htole32(value);
	return frame_add(out, type, 0, stream, &value, sizeof(value));
}

int frame_add_clock(struct buf *out, const struct frame_clock *clock)
{
	const uint64_t payload[] = { htole64(clock->wall_ns), htole64(clock->raw_ns) };

	return frame_add(out, FRAME_CLOCK, 0, 0, payload, sizeof(payload));
}

int frame_get_u32(const struct frame *frame, uint32_t *ret_value)
{
	if (frame->len != sizeof(*ret_value) || frame->flags)
		return -EBADMSG;
	*ret_value = frame_le32(frame->payload);
	return 0;
}

int frame_get_clock(const struct frame *frame, struct frame_clock *ret_clock)
{
	if (frame->len != 2 * sizeof(uint64_t) || frame->flags)
		return -EBADMSG;
	ret_clock->wall_ns = frame_le64(frame->payload);
	ret_clock->raw_ns = frame_le64(frame->payload + sizeof(uint64_t));
	return 0;
}

int frame_join(struct buf *message, const struct frame *frame)
{
	int r = buf_add(message, frame->payload, frame->len);

	if (r < 0)
		return r;
	return frame->flags & FRAME_MORE ? 0 : 1;
}
