/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_event.c - a line of an event chunk: what parses has all its members and data that is JSON; and the
 * same bytes as a piece of output come back exactly through writer and reader.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

static void check_event(const struct event_line *line)
{
	const struct resoluto_event *event = &line->event;
	json_t *want = json_object_get(line->root, "data"), *data;

	require(event->run_id && event->span_id && event->parent_span_id && event->kind);
	require(event->name && event->event && event->status && !event->is_output);
	require(!event->bytes || event->bytes[event->len] == '\0');
	data = json_loads(event->data, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
	require(json_is_object(data));
	require(want ? json_equal(data, want) : json_object_size(data) == 0);
	json_decref(data);
}

static void check_round_trip(const uint8_t *data, size_t size)
{
	struct event_head head = { .span_id = "s",
		                   .kind = "log",
		                   .event = "log",
		                   .ts = (double) size };
	struct event_piece piece = { data, size, size & 1, size & 2, size };
	struct buf out = BUF_INIT(EVENT_JSON_MAX);
	struct event_line line;

	require(event_write_piece(&out, &head, &piece) == 0);
	for (size_t i = 0; i + 1 < out.len; i++)
		require(out.data[i] >= 0x20 && out.data[i] < 0x7f);
	require(event_parse(out.data, out.len - 1, &line) == 0);
	require(line.event.len == size + piece.has_newline);
	require(memcmp(line.event.bytes, data, size) == 0);
	event_line_done(&line);
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct event_line line;
	int r = event_parse((const char *) data, size, &line);

	require(r == 0 || r == -EBADMSG || r == -E2BIG);
	if (r == 0) {
		check_event(&line);
		event_line_done(&line);
	}
	if (size > 0 && size <= EVENT_LINE_BYTES)
		check_round_trip(data, size);
	return 0;
}
