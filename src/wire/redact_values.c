/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aho and Corasick's automaton over all forms of all values.  Its state after a byte is the longest
 * end of what was read that begins a form; so a byte further back than the state is deep can become part of no
 * later match, and goes out.  What matches cover is kept as runs, overlapping ones merged.
 *
 * Forms of a value: the value; its lines; its base64 in both alphabets and at all three
 * alignments, without the characters at either end that depend on neighbours; the pieces of its base64 as
 * tools wrap it.  A long form is cut into pieces, all of which are searched for, so that the
 * automaton is not deeper than FORM_MAX.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/base64.h"
#include "wire/redact.h"
#include "wire/redact_values.h"

enum {
	FORM_MAX = 4096,   /* bytes of one form */
	LINE_MIN = 8,      /* bytes of a line of a value that is searched for by itself */
	BASE64_MIN = 6,    /* characters of a base64 form */
	SLICE = 16 * 1024, /* bytes searched before what is sure goes out */
	NONE = 0,          /* no node: the root is nobody's child */
};

static const size_t wrap_widths[] = { 76, 64 }; /* base64(1) and MIME; openssl and PEM */

struct node {
	uint32_t child, sibling; /* first child, next child of the same parent */
	uint32_t fail;           /* the longest proper end of this that is in the set too */
	uint16_t depth;          /* bytes from the root */
	uint16_t match;          /* length of the longest form that ends here; 0: none */
	uint8_t byte;
};

struct value_set {
	struct node *nodes; /* owned; 0 is the root */
	size_t count, cap;
	uint32_t first[256]; /* the root's children by byte */
};

/* A run of positions that values cover. */
struct covered {
	uint64_t start, end;
	bool is_marked; /* its mark is written, and what came before `start` is gone */
};

static void wipe_free(void *bytes, size_t size)
{
	if (bytes)
		explicit_bzero(bytes, size);
	free(bytes);
}

static void wipe_buf(struct buf *buf)
{
	if (buf->data)
		explicit_bzero(buf->data, buf->cap);
	buf_done(buf);
}

/* Not realloc: the old copy holds secrets and is wiped. */
static int grow(struct value_set *set)
{
	size_t cap = set->cap ? set->cap * 2 : 1024;
	struct node *nodes = calloc(cap, sizeof(*nodes));

	if (!nodes)
		return -ENOMEM;
	if (set->nodes)
		memcpy(nodes, set->nodes, set->count * sizeof(*nodes));
	wipe_free(set->nodes, set->cap * sizeof(*nodes));
	set->nodes = nodes;
	set->cap = cap;
	return 0;
}

static uint32_t find_child(const struct value_set *set, uint32_t parent, uint8_t byte)
{
	uint32_t at;

	if (parent == 0)
		return set->first[byte];
	for (at = set->nodes[parent].child; at != NONE; at = set->nodes[at].sibling) {
		if (set->nodes[at].byte == byte)
			break;
	}
	return at;
}

static int add_child(struct value_set *set, uint32_t parent, uint8_t byte, uint32_t *ret_child)
{
	uint32_t id = (uint32_t) set->count;

	if (set->count == set->cap) {
		int r = grow(set);

		if (r < 0)
			return r;
	}
	set->nodes[id] = (struct node){
		.byte = byte,
		.sibling = set->nodes[parent].child,
		.depth = (uint16_t) (set->nodes[parent].depth + 1),
	};
	set->nodes[parent].child = id;
	if (parent == 0)
		set->first[byte] = id;
	set->count++;
	*ret_child = id;
	return 0;
}

static int add_short_form(struct value_set *set, const uint8_t *bytes, size_t len)
{
	uint32_t at = 0, child;

	for (size_t i = 0; i < len; i++) {
		child = find_child(set, at, bytes[i]);
		if (child == NONE) {
			int r = add_child(set, at, bytes[i], &child);

			if (r < 0)
				return r;
		}
		at = child;
	}
	set->nodes[at].match = set->nodes[at].depth;
	return 0;
}

/* A form of any length, in pieces; the last one reaches back, so that it is long enough too. */
static int add_form(struct value_set *set, const void *bytes, size_t len, size_t min)
{
	const uint8_t *at = bytes;

	if (len < min)
		return 0;
	while (len > FORM_MAX) {
		size_t n = len < 2 * FORM_MAX ? len / 2 : FORM_MAX;
		int r = add_short_form(set, at, n);

		if (r < 0)
			return r;
		at += n;
		len -= n;
	}
	return add_short_form(set, at, len);
}

static int add_lines(struct value_set *set, const char *value)
{
	while (*value) {
		size_t len = strcspn(value, "\r\n");
		int r = add_form(set, value, len, LINE_MIN);

		if (r < 0)
			return r;
		value += len;
		value += strspn(value, "\r\n");
	}
	return 0;
}

static int add_wrapped(struct value_set *set, const char *text, size_t len, size_t width)
{
	for (size_t at = 0; at < len; at += width) {
		size_t n = len - at < width ? len - at : width;
		int r = add_form(set, text + at, n, LINE_MIN);

		if (r < 0)
			return r;
	}
	return 0;
}

static void to_url_alphabet(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		text[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i];
}

/* The characters of base64 that only this value decides, when `before` bytes precede it in its group. */
static int add_base64(struct value_set *set, const char *value, size_t value_len, size_t before)
{
	static const size_t undecided[] = {
		0, 2, 3
	}; /* characters that the bytes before have a part in */
	CLEANUP(wipe_buf) struct buf raw = BUF_INIT(REDACT_VALUES_MAX + 3);
	CLEANUP(wipe_buf) struct buf text = BUF_INIT(2 * REDACT_VALUES_MAX);
	size_t len;
	int r = buf_add(&raw, "\0\0", before);

	if (r == 0)
		r = buf_add(&raw, value, value_len);
	if (r == 0)
		r = base64_add(&text, raw.data, raw.len);
	if (r < 0)
		return r;
	len = raw.len * 8 / 6;
	buf_drop_front(&text, undecided[before]);
	len = len > undecided[before] ? len - undecided[before] : 0;
	r = add_form(set, text.data, len, BASE64_MIN);
	for (size_t i = 0;
	     r == 0 && before == 0 && i < sizeof(wrap_widths) / sizeof(wrap_widths[0]); i++)
		r = add_wrapped(set, text.data, len, wrap_widths[i]);
	if (r < 0)
		return r;
	to_url_alphabet(text.data, text.len);
	return add_form(set, text.data, len, BASE64_MIN);
}

/* Newlines at the end are no part of the secret: a value often comes from a file. */
static size_t trimmed_len(const char *value)
{
	size_t len = strlen(value);

	while (len > 0 && (value[len - 1] == '\n' || value[len - 1] == '\r'))
		len--;
	return len;
}

static int add_value(struct value_set *set, const char *value)
{
	size_t len = trimmed_len(value);
	int r;

	if (len < REDACT_VALUE_MIN)
		return 0;
	r = add_form(set, value, len, REDACT_VALUE_MIN);
	if (r == 0)
		r = add_lines(set, value);
	for (size_t before = 0; r == 0 && before < 3; before++)
		r = add_base64(set, value, len, before);
	return r;
}

/* The node after `byte`; `state` and all before it have their fail links. */
static uint32_t step(const struct value_set *set, uint32_t state, uint8_t byte)
{
	for (;;) {
		uint32_t child = find_child(set, state, byte);

		if (child != NONE || state == 0)
			return child;
		state = set->nodes[state].fail;
	}
}

static void link_node(struct value_set *set, uint32_t parent, uint32_t id)
{
	struct node *node = &set->nodes[id];

	node->fail = parent == 0 ? 0 : step(set, set->nodes[parent].fail, node->byte);
	if (node->match == 0)
		node->match = set->nodes[node->fail].match;
}

/* Breadth first: a fail link points to a node that is nearer to the root. */
static int link_nodes(struct value_set *set)
{
	uint32_t *queue = malloc(set->count * sizeof(*queue));
	size_t head = 0, tail = 0;

	if (!queue)
		return -ENOMEM;
	queue[tail++] = 0;
	while (head < tail) {
		uint32_t parent = queue[head++];

		for (uint32_t id = set->nodes[parent].child; id != NONE;
		     id = set->nodes[id].sibling) {
			link_node(set, parent, id);
			queue[tail++] = id;
		}
	}
	free(queue);
	return 0;
}

static int fill(struct value_set *set, const char *const *values)
{
	size_t total = 0;
	int r = grow(set);

	set->count = 1; /* the root */
	for (; r == 0 && *values; values++) {
		size_t len = strlen(*values);

		if (len > REDACT_VALUES_MAX - total)
			return -E2BIG;
		total += len;
		r = add_value(set, *values);
	}
	return r < 0 ? r : link_nodes(set);
}

int value_set_new(const char *const *values, struct value_set **ret_set)
{
	CLEANUP(value_set_free) struct value_set *set = NULL;
	int r;

	*ret_set = NULL;
	if (!values || !*values)
		return 0;
	set = calloc(1, sizeof(*set));
	if (!set)
		return -ENOMEM;
	r = fill(set, values);
	if (r < 0)
		return r;
	if (set->count > 1)
		*ret_set = mem_take(&set);
	return 0;
}

void value_set_free(struct value_set **set)
{
	if (*set)
		wipe_free((*set)->nodes, (*set)->cap * sizeof(*(*set)->nodes));
	wipe_free(*set, sizeof(**set));
	*set = NULL;
}

/* The bytes [start, end) are part of a value.  Runs are disjoint and in order; one that only touches
 * its neighbour stays a run of its own. */
static int cover(struct value_stream *stream, uint64_t start, uint64_t end)
{
	struct covered run = { .start = start, .end = end };

	while (stream->covered_count > 0 &&
	       stream->covered[stream->covered_count - 1].end > start) {
		const struct covered *before = &stream->covered[--stream->covered_count];

		run.start = before->start < run.start ? before->start : run.start;
		run.is_marked |= before->is_marked;
	}
	if (stream->covered_count == stream->covered_cap) {
		size_t cap = stream->covered_cap ? stream->covered_cap * 2 : 16;
		struct covered *runs = realloc(stream->covered, cap * sizeof(*runs));

		if (!runs)
			return -ENOMEM;
		stream->covered = runs;
		stream->covered_cap = cap;
	}
	stream->covered[stream->covered_count++] = run;
	return 0;
}

static int search(struct value_stream *stream, const struct value_set *set, const uint8_t *bytes,
                  size_t len)
{
	uint32_t state = stream->state;
	int r = 0;

	for (size_t i = 0; r == 0 && i < len; i++) {
		state = state == 0 ? set->first[bytes[i]] : step(set, state, bytes[i]);
		if (set->nodes[state].match > 0)
			r = cover(stream, stream->position + i + 1 - set->nodes[state].match,
			          stream->position + i + 1);
	}
	stream->state = state;
	stream->position += len;
	return r;
}

struct emission {
	const char *held; /* the byte at position `start` */
	uint64_t start, at, until;
	struct buf *out;
	uint64_t *count;
};

static int emit_plain(struct emission *emission, uint64_t until)
{
	uint64_t from = emission->at;

	if (until == from)
		return 0;
	emission->at = until;
	return buf_add(emission->out, emission->held + (from - emission->start),
	               (size_t) (until - from));
}

/* 1: the run goes on behind `until`, where what is known of it now starts. */
static int emit_run(struct emission *emission, struct covered *run)
{
	int r = 0;

	if (!run->is_marked) {
		r = emit_plain(emission, run->start);
		if (r == 0)
			r = buf_add_str(emission->out, REDACT_MARK);
		if (r < 0)
			return r;
		++*emission->count;
	}
	emission->at = run->end < emission->until ? run->end : emission->until;
	if (run->end <= emission->until)
		return 0;
	run->start = emission->until;
	run->is_marked = true;
	return 1;
}

/* Emit held bytes up to the position `until`; no later match starts before it. */
static int emit(struct value_stream *stream, uint64_t until, struct buf *out, uint64_t *count)
{
	struct emission emission = {
		.held = stream->held.data,
		.start = stream->position - stream->held.len,
		.at = stream->position - stream->held.len,
		.until = until,
		.out = out,
		.count = count,
	};
	size_t used = 0;
	int r = 0;

	while (used < stream->covered_count && stream->covered[used].start < until) {
		r = emit_run(&emission, &stream->covered[used]);
		if (r != 0)
			break;
		used++;
	}
	if (r == 0)
		r = emit_plain(&emission, until);
	if (r < 0)
		return r;
	if (used > 0)
		memmove(stream->covered, stream->covered + used,
		        (stream->covered_count - used) * sizeof(*stream->covered));
	stream->covered_count -= used;
	buf_drop_front(&stream->held, (size_t) (until - emission.start));
	return 0;
}

static int feed_slice(struct value_stream *stream, const struct value_set *set,
                      const uint8_t *bytes, size_t len, struct buf *out, uint64_t *count)
{
	int r = buf_add(&stream->held, bytes, len);

	if (r == 0)
		r = search(stream, set, bytes, len);
	if (r < 0)
		return r;
	return emit(stream, stream->position - set->nodes[stream->state].depth, out, count);
}

int value_stream_feed(struct value_stream *stream, const struct value_set *set, const void *bytes,
                      size_t len, bool is_end, struct buf *out, uint64_t *count)
{
	const uint8_t *at = bytes;
	int r = 0;

	stream->held.max = REDACT_HOLD_MAX;
	while (r == 0 && len > 0) {
		size_t n = len < SLICE ? len : SLICE;

		r = feed_slice(stream, set, at, n, out, count);
		at += n;
		len -= n;
	}
	if (r < 0 || !is_end)
		return r;
	stream->state = 0;
	return emit(stream, stream->position, out, count);
}

void value_stream_done(struct value_stream *stream)
{
	wipe_buf(&stream->held);
	free(stream->covered);
	*stream = (struct value_stream){ 0 };
}
