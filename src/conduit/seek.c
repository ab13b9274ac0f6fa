/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seek.c - bisection over a run's chunks.
 *
 * A piece is an event of a log that has a number.  Chunks without one (spans, heartbeats) are passed
 * over, forwards; that is what the budget bounds.
 */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "conduit/seek.h"
#include "wire/event.h"
#include "wire/keys.h"

enum {
	PARENTS_MAX = 16
}; /* spans whose output is counted; a run has three: setup, program, cleanup */

struct piece {
	uint64_t seq;
	char parent[CHUNK_SPAN_ID_MAX + 1]; /* "" when it is too long to be a program's */
};

struct parent {
	char id[CHUNK_SPAN_ID_MAX + 1];
	bool is_workload;
};

struct seek {
	struct tail *tail;
	unsigned gets_left;
	struct parent parents[PARENTS_MAX];
	size_t parent_count;
};

/* Steps below return -E2BIG when the budget is spent, but for those that say otherwise. */

/* --- one chunk, line by line, no further than wanted --- */

typedef int line_fn(void *ctx, const struct resoluto_event *event); /* 1: enough */

struct scan {
	const struct chunk_reader *reader;
	struct buf bytes;
	size_t at; /* where the next line begins */
	struct event_line line;
	line_fn *fn; /* NULL: nobody wants to know more than that there is a chunk */
	void *ctx;
	bool has_enough;
	int failure;
};

static void scan_done(struct scan *scan)
{
	buf_done(&scan->bytes);
	event_line_done(&scan->line);
}

static void look_at_line(struct scan *scan, size_t len)
{
	int r = event_parse(scan->bytes.data + scan->at, len, &scan->line);

	if (r == -ENOMEM)
		scan->failure = r;
	if (r == 0 && chunk_reader_accepts(scan->reader, &scan->line.event))
		scan->has_enough = scan->fn(scan->ctx, &scan->line.event) == 1;
}

static void look_at_lines(struct scan *scan, bool is_end)
{
	while (!scan->has_enough && scan->failure == 0 && scan->at < scan->bytes.len) {
		const char *start = scan->bytes.data + scan->at;
		size_t left = scan->bytes.len - scan->at;
		const char *newline = memchr(start, '\n', left);

		if (!newline && !is_end)
			return;
		look_at_line(scan, newline ? (size_t) (newline - start) : left);
		scan->at += newline ? (size_t) (newline - start) + 1 : left;
	}
}

static int take_bytes(void *ctx, const void *bytes, size_t len)
{
	struct scan *scan = ctx;

	scan->has_enough = !scan->fn;
	if (scan->fn)
		scan->failure = buf_add(&scan->bytes, bytes, len);
	if (scan->fn && scan->failure == 0)
		look_at_lines(scan, false);
	return scan->has_enough || scan->failure < 0 ? -ECANCELED : 0;
}

/* 1: the chunk is there and fn has seen what it wanted; 0: there is no such chunk. */
static int scan_chunk(struct seek *seek, uint32_t number, line_fn *fn, void *ctx,
                      struct resoluto_err *err)
{
	CLEANUP(scan_done)
	struct scan scan = { .reader = seek->tail->reader,
		             .bytes = BUF_INIT(TAIL_CHUNK_MAX),
		             .fn = fn,
		             .ctx = ctx };
	const struct resoluto_sink sink = { take_bytes, &scan };
	char name[KEY_SIZE], key[RESOLUTO_KEY_MAX + 1];
	struct resoluto_err failure = { 0 };
	int r;

	if (seek->gets_left == 0)
		return -E2BIG;
	seek->gets_left--;
	key_chunk(number, name);
	r = tail_key(seek->tail, name, key, err);
	if (r < 0)
		return r;
	r = resoluto_conduit_get(seek->tail->conduit, key, &sink, &failure);
	if (r == -ENOENT)
		return 0;
	if (r < 0 && !scan.has_enough && scan.failure == 0)
		return resoluto_fail(err, r, "%s", failure.text);
	if (r == 0 && fn)
		look_at_lines(&scan, true);
	return scan.failure == -ENOMEM ? resoluto_fail(err, -ENOMEM, "read %s", name) : 1;
}

/* --- what there is --- */

/* Number of the last chunk, 0 if there is none: twice as far until there is nothing, then bisection. */
static int find_last(struct seek *seek, uint32_t *ret_last, struct resoluto_err *err)
{
	const struct tail *tail = seek->tail;
	uint32_t there = 0, beyond = 1;
	int r = tail_is_complete(seek->tail, err);

	if (r < 0)
		return r;
	if (tail->has_manifest && tail->total > 0) {
		r = scan_chunk(seek, tail->total, NULL, NULL, err);
		*ret_last = tail->total;
		if (r != 0)
			return r < 0 ? r : 0;
	}
	while (beyond <= KEY_CHUNK_MAX && (r = scan_chunk(seek, beyond, NULL, NULL, err)) == 1) {
		there = beyond;
		beyond *= 2;
	}
	if (beyond > KEY_CHUNK_MAX)
		beyond = KEY_CHUNK_MAX + 1;
	while (r >= 0 && beyond - there > 1) {
		uint32_t middle = there + (beyond - there) / 2;

		r = scan_chunk(seek, middle, NULL, NULL, err);
		there = r == 1 ? middle : there;
		beyond = r == 0 ? middle : beyond;
	}
	*ret_last = there;
	return r < 0 ? r : 0;
}

static int take_piece(void *ctx, const struct resoluto_event *event)
{
	struct piece *piece = ctx;

	if (!event->bytes || event->seq == 0)
		return 0;
	piece->seq = event->seq;
	piece->parent[0] = '\0';
	if (strlen(event->parent_span_id) <= CHUNK_SPAN_ID_MAX)
		memcpy(piece->parent, event->parent_span_id, strlen(event->parent_span_id) + 1);
	return 1;
}

/* The first piece of the chunks first to last, and where it is: 1, or 0 if they hold none. */
static int next_piece(struct seek *seek, uint32_t first, uint32_t last, struct piece *ret_piece,
                      uint32_t *ret_at, struct resoluto_err *err)
{
	*ret_piece = (struct piece){ 0 };
	for (*ret_at = first; *ret_at <= last; ++*ret_at) {
		int r = scan_chunk(seek, *ret_at, take_piece, ret_piece, err);

		if (r < 0)
			return r;
		if (ret_piece->seq > 0)
			return 1;
	}
	return 0;
}

/* --- spans --- */

struct opening {
	const char *id;
	bool is_there, is_workload;
};

static int take_opening(void *ctx, const struct resoluto_event *event)
{
	struct opening *opening = ctx;

	if (strcmp(event->event, "open") != 0 || strcmp(event->span_id, opening->id) != 0)
		return 0;
	opening->is_there = true;
	opening->is_workload = strcmp(event->kind, "workload") == 0;
	return 1;
}

/* The first chunk that begins with output of this span, if one does; last has some of it. */
static int find_span(struct seek *seek, const char *id, uint32_t last, uint32_t *ret_first,
                     struct resoluto_err *err)
{
	uint32_t low = 1, high = last;

	*ret_first = last;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2, at;
		struct piece piece;
		int r = next_piece(seek, middle, high - 1, &piece, &at, err);

		if (r < 0)
			return r;
		if (r == 1 && strcmp(piece.parent, id) != 0) {
			low = at + 1;
			continue;
		}
		*ret_first = r == 1 ? at : *ret_first;
		high = middle;
	}
	return 0;
}

/* Where the span that has a piece in chunk `in` was opened.  is_there tells whether it was found. */
static int find_opening(struct seek *seek, struct opening *opening, uint32_t in, uint32_t *ret_at,
                        struct resoluto_err *err)
{
	int r = scan_chunk(seek, in, take_opening, opening, err);

	*ret_at = in;
	if (r < 0 || opening->is_there || in == 1)
		return r < 0 ? r : 0;
	r = find_span(seek, opening->id, in, ret_at, err);
	/* Between it and its first piece lies only silence. */
	for (; r >= 0 && *ret_at >= 1; --*ret_at) {
		r = scan_chunk(seek, *ret_at, take_opening, opening, err);
		if (r >= 0 && opening->is_there)
			return 0;
	}
	return r < 0 ? r : 0;
}

/* --- to begin at a chunk --- */

/* What the reader must know that stands before it. */
static int enter(struct seek *seek, uint32_t chunk, struct resoluto_err *err)
{
	struct opening opening = { 0 };
	struct piece piece;
	uint32_t at;
	int r;

	if (chunk <= 1)
		return 0;
	r = next_piece(seek, chunk, chunk, &piece, &at, err);
	if (r <= 0)
		return r;
	opening.id = piece.parent;
	r = find_opening(seek, &opening, chunk, &at, err);
	if (r < 0 || !opening.is_there)
		return r;
	seek->tail->next = chunk;
	if (at < chunk && opening.is_workload) {
		chunk_reader_open_workload(seek->tail->reader, piece.parent);
		seek->tail->knows_workload = true;
	}
	return 0;
}

/* A guest that cost all gets is read from its beginning. */
static int settle(int r)
{
	return r == -E2BIG ? 0 : r;
}

static int find_chunk(struct seek *seek, uint64_t from_seq, uint32_t *ret_chunk,
                      struct resoluto_err *err)
{
	uint32_t low = 1, high;
	int r = find_last(seek, &high, err);

	/* The first piece of low is at or before it; behind high is nothing of it. */
	for (high++; r >= 0 && high > low && high - low > 1;) {
		uint32_t middle = low + (high - low) / 2, at;
		struct piece piece;

		r = next_piece(seek, middle, high - 1, &piece, &at, err);
		if (r == 1 && piece.seq <= from_seq)
			low = at;
		else
			high = middle;
	}
	*ret_chunk = low;
	return r < 0 ? r : 0;
}

int tail_seek(struct tail *tail, uint64_t from_seq, struct resoluto_err *err)
{
	struct seek seek = { .tail = tail, .gets_left = SEEK_GETS_MAX };
	uint32_t chunk;
	int r;

	if (from_seq <= 1)
		return 0;
	r = find_chunk(&seek, from_seq, &chunk, err);
	return settle(r < 0 ? r : enter(&seek, chunk, err));
}

static int take_workload(void *ctx, const struct resoluto_event *event)
{
	bool *is_there = ctx;

	if (strcmp(event->event, "open") == 0 && strcmp(event->kind, "workload") == 0)
		*is_there = true;
	return *is_there;
}

/* Whether the program was started, as far as the beginning tells. */
static int look_at_beginning(struct seek *seek, uint32_t last, struct resoluto_err *err)
{
	int r = 0;

	for (uint32_t at = 1; at <= last && at <= SEEK_BEGINNING && r >= 0; at++) {
		if (seek->tail->knows_workload)
			return 0;
		r = scan_chunk(seek, at, take_workload, &seek->tail->knows_workload, err);
	}
	return r < 0 ? r : 0;
}

int tail_seek_end(struct tail *tail, struct resoluto_err *err)
{
	struct seek seek = { .tail = tail, .gets_left = SEEK_GETS_MAX };
	uint32_t last = 0;
	int r = find_last(&seek, &last, err);

	if (r == 0)
		tail->next = last + 1;
	/* A guest that got to its manifest says so itself. */
	if (r == 0 && !tail->has_manifest)
		r = look_at_beginning(&seek, last, err);
	return settle(r);
}

/* --- the last lines --- */

/* A piece of the streams that are asked for. */
struct counted {
	uint64_t seq;
	bool ends_line;
};

struct counting {
	struct seek *seek;
	uint32_t chunk;
	enum resoluto_streams streams;
	struct buf pieces; /* struct counted, of this chunk, in their order */
	int failure;
	struct resoluto_err *err;
};

static bool is_wanted(const struct counting *counting, const struct resoluto_event *event)
{
	return counting->streams == RESOLUTO_STREAMS_BOTH ||
	       event->is_stderr == (counting->streams == RESOLUTO_STREAMS_STDERR);
}

/* Whether a span that has a piece in this chunk is a program's; one that opens too many has none. */
static int is_workload(struct counting *counting, const char *id)
{
	struct seek *seek = counting->seek;
	struct opening opening = { .id = id };
	struct parent *parent;
	uint32_t at;
	int r;

	for (size_t i = 0; i < seek->parent_count; i++) {
		if (strcmp(seek->parents[i].id, id) == 0)
			return seek->parents[i].is_workload;
	}
	if (seek->parent_count == PARENTS_MAX || strlen(id) > CHUNK_SPAN_ID_MAX)
		return 0;
	r = find_opening(seek, &opening, counting->chunk, &at, counting->err);
	if (r < 0)
		return r;
	parent = &seek->parents[seek->parent_count++];
	memcpy(parent->id, id, strlen(id) + 1);
	parent->is_workload = opening.is_workload;
	return opening.is_workload;
}

static int count_piece(void *ctx, const struct resoluto_event *event)
{
	struct counting *counting = ctx;
	struct counted counted;
	int r;

	if (!event->bytes || event->seq == 0 || !is_wanted(counting, event))
		return 0;
	r = is_workload(counting, event->parent_span_id);
	counted.seq = event->seq;
	counted.ends_line = event->len > 0 && event->bytes[event->len - 1] == '\n';
	if (r == 1)
		r = buf_add(&counting->pieces, &counted, sizeof(counted));
	counting->failure = r < 0 ? r : 0;
	return r < 0;
}

struct goal {
	uint64_t lines_left;
	uint64_t from_seq; /* the earliest piece that is wanted; 0: none was seen */
	uint32_t chunk;    /* it is in */
	bool is_reached;
};

/* One piece, backwards.  A newline that is not the very last byte ends the line before those seen. */
static void step_back(struct goal *goal, const struct counted *counted, uint32_t chunk)
{
	if (goal->from_seq == 0 && goal->lines_left == 0) {
		goal->from_seq = counted->seq + 1;
		goal->chunk = chunk;
		goal->is_reached = true;
		return;
	}
	if (goal->from_seq != 0 && counted->ends_line && --goal->lines_left == 0) {
		goal->is_reached = true;
		return;
	}
	goal->from_seq = counted->seq;
	goal->chunk = chunk;
}

static int count_back(struct counting *counting, uint32_t last, struct goal *goal)
{
	for (uint32_t chunk = last; chunk >= 1 && !goal->is_reached; chunk--) {
		const struct counted *pieces;
		int r;

		counting->chunk = chunk;
		buf_clear(&counting->pieces);
		r = scan_chunk(counting->seek, chunk, count_piece, counting, counting->err);
		if (r >= 0)
			r = counting->failure;
		if (r < 0)
			return r;
		pieces = (const void *) counting->pieces.data;
		for (size_t i = counting->pieces.len / sizeof(*pieces); i > 0 && !goal->is_reached;
		     i--)
			step_back(goal, &pieces[i - 1], chunk);
	}
	return 0;
}

int tail_seek_lines(struct tail *tail, uint64_t lines, enum resoluto_streams streams,
                    uint64_t *ret_from_seq, struct resoluto_err *err)
{
	struct seek seek = { .tail = tail, .gets_left = SEEK_GETS_MAX };
	struct counting counting = { .seek = &seek,
		                     .streams = streams,
		                     .pieces = BUF_INIT(TAIL_CHUNK_MAX),
		                     .err = err };
	struct goal goal = { .lines_left = lines };
	uint32_t last = 0;
	int r = find_last(&seek, &last, err);

	*ret_from_seq = 0;
	if (r == 0)
		r = count_back(&counting, last, &goal);
	buf_done(&counting.pieces);
	if (r < 0 || !goal.is_reached)
		return settle(r);
	*ret_from_seq = goal.from_seq;
	return settle(enter(&seek, goal.chunk, err));
}
