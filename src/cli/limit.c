/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/limit.h"
#include "wire/utf8.h"

void limit_init(struct limit *limit, struct output *output, uint64_t max)
{
	size_t size = max < SIZE_MAX ? (size_t) max : SIZE_MAX;

	*limit = (struct limit){ .output = output, .is_set = max > 0 };
	for (int i = 0; i < 2; i++) {
		limit->streams[i].head_max = size - size / 2;
		capture_init_tail(&limit->streams[i].tail, size / 2);
	}
}

void limit_done(struct limit *limit)
{
	for (int i = 0; i < 2; i++)
		capture_done(&limit->streams[i].tail);
}

/* How many of these bytes belong to the head: whole characters, and none once something lies behind it. */
static size_t head_part(const struct limit_stream *stream, const char *bytes, size_t len)
{
	size_t room = stream->head_max - (size_t) stream->head;

	if (stream->tail.total > 0)
		return 0;
	if (len <= room)
		return len;
	return room - utf8_open_tail((const uint8_t *) bytes, room);
}

int limit_write(struct limit *limit, bool is_stderr, const char *bytes, size_t len)
{
	struct limit_stream *stream = &limit->streams[is_stderr];
	size_t head = limit->is_set ? head_part(stream, bytes, len) : len;

	stream->head += head;
	if (head > 0)
		stream->is_in_line = bytes[head - 1] != '\n';
	if (len > head && limit->output->code == 0)
		limit->output->code = capture_add(&stream->tail, bytes + head, len - head);
	return head > 0 ? output_write(limit->output, is_stderr, bytes, head) : limit->output->code;
}

/* On a line of its own, should both go to one place. */
static void say_dropped(struct limit *limit, bool is_stderr, uint64_t dropped)
{
	const struct limit_stream *stream = &limit->streams[is_stderr];
	char text[160];
	int len = snprintf(text, sizeof(text),
	                   "%s" PROGRAM_NAME ": %s: left out %" PRIu64
	                   " bytes behind the first %" PRIu64 " (--max-output)\n",
	                   stream->is_in_line ? "\n" : "", is_stderr ? "stderr" : "stdout", dropped,
	                   stream->head);

	(void) output_write(limit->output, true, text, (size_t) len);
}

static int end_stream(struct limit *limit, bool is_stderr)
{
	struct limit_stream *stream = &limit->streams[is_stderr];
	struct capture_kept tail;
	int r = capture_take(&stream->tail, &tail);

	if (r < 0)
		return limit->output->code = r;
	if (tail.dropped > 0)
		say_dropped(limit, is_stderr, tail.dropped);
	r = output_write(limit->output, is_stderr, tail.bytes, tail.len);
	free(tail.bytes);
	return r;
}

int limit_end(struct limit *limit)
{
	/* Standard error first: what is said of the other one follows the program's bytes then. */
	if (limit->is_set && limit->output->code == 0)
		(void) end_stream(limit, true);
	if (limit->is_set && limit->output->code == 0)
		(void) end_stream(limit, false);
	return limit->output->code;
}
