/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/chunk_reader.h"

/*
 * Only spans of kind "workload" decide anything, so only they are remembered: a guest that opens many
 * others cannot make its program's span be forgotten.
 */
struct chunk_reader {
	char workloads[CHUNK_SPANS_MAX]
		      [CHUNK_SPAN_ID_MAX + 1]; /* ids of open spans; "" is a free place */
	size_t count; /* places in use from the start, free ones among them */
	size_t next;  /* the place that is taken when none is free: the oldest */
	uint64_t bad_lines, foreign_events;
	const char *run_id;     /* borrowed; NULL: any */
	struct event_line line; /* owned: the one that is being told */
};

int chunk_reader_new(struct chunk_reader **ret_reader)
{
	struct chunk_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return -ENOMEM;
	*ret_reader = reader;
	return 0;
}

void chunk_reader_free(struct chunk_reader **reader)
{
	if (*reader)
		event_line_done(&(*reader)->line);
	free(*reader);
	*reader = NULL;
}

uint64_t chunk_reader_bad_lines(const struct chunk_reader *reader)
{
	return reader->bad_lines;
}

uint64_t chunk_reader_foreign_events(const struct chunk_reader *reader)
{
	return reader->foreign_events;
}

void chunk_reader_expect(struct chunk_reader *reader, const char *run_id)
{
	reader->run_id = run_id;
}

/* The original writes it from a place that does not know the run. */
static bool is_heartbeat_of_original(const struct resoluto_event *event)
{
	return !event->run_id[0] && strcmp(event->kind, "heartbeat") == 0 &&
	       strcmp(event->span_id, "hb") == 0;
}

bool chunk_reader_accepts(const struct chunk_reader *reader, const struct resoluto_event *event)
{
	return !reader->run_id || strcmp(event->run_id, reader->run_id) == 0 ||
	       is_heartbeat_of_original(event);
}

static char *find_workload(struct chunk_reader *reader, const char *id)
{
	if (!*id || strlen(id) > CHUNK_SPAN_ID_MAX)
		return NULL;
	for (size_t i = 0; i < reader->count; i++) {
		if (strcmp(reader->workloads[i], id) == 0)
			return reader->workloads[i];
	}
	return NULL;
}

static char *free_place(struct chunk_reader *reader)
{
	char *oldest;

	for (size_t i = 0; i < reader->count; i++) {
		if (!reader->workloads[i][0])
			return reader->workloads[i];
	}
	if (reader->count < CHUNK_SPANS_MAX)
		return reader->workloads[reader->count++];
	oldest = reader->workloads[reader->next];
	reader->next = (reader->next + 1) % CHUNK_SPANS_MAX;
	return oldest;
}

void chunk_reader_open_workload(struct chunk_reader *reader, const char *span_id)
{
	size_t len = strlen(span_id);

	if (len == 0 || len > CHUNK_SPAN_ID_MAX || find_workload(reader, span_id))
		return;
	memcpy(free_place(reader), span_id, len + 1);
}

static void note_open(struct chunk_reader *reader, const struct resoluto_event *event)
{
	if (strcmp(event->kind, "workload") == 0)
		chunk_reader_open_workload(reader, event->span_id);
}

static void note_close(struct chunk_reader *reader, const struct resoluto_event *event)
{
	char *place = find_workload(reader, event->span_id);

	if (place)
		*place = '\0';
}

static void classify(struct chunk_reader *reader, struct resoluto_event *event)
{
	if (strcmp(event->event, "open") == 0)
		note_open(reader, event);
	else if (strcmp(event->event, "close") == 0)
		note_close(reader, event);
	else
		event->is_output = event->bytes && find_workload(reader, event->parent_span_id);
}

static bool is_blank(const char *line, size_t len)
{
	while (len > 0 && (*line == ' ' || *line == '\t' || *line == '\r')) {
		line++;
		len--;
	}
	return len == 0;
}

static int feed_line(struct chunk_reader *reader, const char *line, size_t len, chunk_event_fn *fn,
                     void *ctx)
{
	int r;

	if (is_blank(line, len))
		return 0;
	r = event_parse(line, len, &reader->line);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		reader->bad_lines++;
		return 0;
	}
	if (!chunk_reader_accepts(reader, &reader->line.event)) {
		reader->foreign_events++;
		return 0;
	}
	classify(reader, &reader->line.event);
	r = fn(ctx, &reader->line.event);
	return r < 0 ? r : 0;
}

int chunk_reader_feed(struct chunk_reader *reader, const char *bytes, size_t len,
                      chunk_event_fn *fn, void *ctx)
{
	const char *end = bytes + len;

	while (bytes < end) {
		const char *newline = memchr(bytes, '\n', (size_t) (end - bytes));
		const char *stop = newline ? newline : end;
		int r = feed_line(reader, bytes, (size_t) (stop - bytes), fn, ctx);

		if (r < 0)
			return r;
		bytes = newline ? newline + 1 : end;
	}
	return 0;
}
