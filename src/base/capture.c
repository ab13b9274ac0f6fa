/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/capture.h"

static void init(struct capture *capture, size_t head_max, size_t tail_max)
{
	*capture = (struct capture){
		.head = BUF_INIT(head_max),
		.ring = BUF_INIT(tail_max),
		.tail_max = tail_max,
	};
}

void capture_init(struct capture *capture, size_t max)
{
	init(capture, max - max / 2, max / 2);
}

void capture_init_tail(struct capture *capture, size_t max)
{
	init(capture, 0, max);
}

void capture_done(struct capture *capture)
{
	buf_done(&capture->head);
	buf_done(&capture->ring);
}

/* Overwrite the oldest bytes of a ring that is full. */
static void ring_overwrite(struct capture *capture, const char *bytes, size_t len)
{
	size_t to_end;

	if (len >= capture->tail_max) {
		memcpy(capture->ring.data, bytes + len - capture->tail_max, capture->tail_max);
		capture->ring_at = 0;
		return;
	}
	to_end = capture->tail_max - capture->ring_at;
	if (to_end > len)
		to_end = len;
	memcpy(capture->ring.data + capture->ring_at, bytes, to_end);
	memcpy(capture->ring.data, bytes + to_end, len - to_end);
	capture->ring_at = (capture->ring_at + len) % capture->tail_max;
}

static size_t fill(struct buf *buf, const char *bytes, size_t len, int *ret)
{
	size_t n = buf->max - buf->len;

	if (n > len)
		n = len;
	*ret = n > 0 ? buf_add(buf, bytes, n) : 0;
	return n;
}

int capture_add(struct capture *capture, const void *bytes, size_t len)
{
	const char *at = bytes;
	size_t n;
	int r;

	capture->total += len;
	n = fill(&capture->head, at, len, &r);
	if (r < 0)
		return r;
	at += n;
	len -= n;
	n = fill(&capture->ring, at, len, &r);
	if (r < 0)
		return r;
	if (len > n && capture->tail_max > 0)
		ring_overwrite(capture, at + n, len - n);
	return 0;
}

/* Bytes at the end of text that begin a character and do not finish it. */
static size_t torn_end(const char *text, size_t len)
{
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		unsigned char c = (unsigned char) text[len - back];

		if ((c & 0xc0) == 0x80)
			continue;
		if ((c >= 0xf0 && back < 4) || (c >= 0xe0 && back < 3) || (c >= 0xc0 && back < 2))
			return back;
		return 0;
	}
	return 0;
}

/* Bytes at the start of text that end a character begun before it. */
static size_t torn_start(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && n < 3 && ((unsigned char) text[n] & 0xc0) == 0x80)
		n++;
	return n;
}

static void unroll(const struct capture *capture, char *to)
{
	size_t first = capture->ring.len - capture->ring_at;

	if (capture->ring.len == 0)
		return;
	memcpy(to, capture->ring.data + capture->ring_at, first);
	memcpy(to + first, capture->ring.data, capture->ring_at);
}

int capture_take(const struct capture *capture, struct capture_kept *ret)
{
	size_t head = capture->head.len, tail = capture->ring.len, skip = 0;
	char *bytes = malloc(head + tail + 1);

	if (!bytes)
		return -ENOMEM;
	if (head > 0)
		memcpy(bytes, capture->head.data, head);
	unroll(capture, bytes + head);
	if (capture->total > head + tail) {
		size_t torn = torn_end(bytes, head);

		skip = torn_start(bytes + head, tail);
		memmove(bytes + head - torn, bytes + head + skip, tail - skip);
		head -= torn;
		tail -= skip;
	}
	bytes[head + tail] = '\0';
	*ret = (struct capture_kept){ .bytes = bytes,
		                      .len = head + tail,
		                      .head_len = head + tail == capture->total ? head + tail
		                                                                : head,
		                      .dropped = capture->total - head - tail };
	return 0;
}
