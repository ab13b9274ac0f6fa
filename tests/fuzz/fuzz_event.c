/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_event.c - a line of an event chunk: our reader reads what jansson reads; and the same bytes as a
 * piece of output come back exactly through writer and reader.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/base64.h"
#include "wire/event.h"
#include "wire/json_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

/* What jansson says of the same line. */
struct reference {
	json_t *root;   /* owned */
	bool is_unique; /* no key comes twice in any object */
};

static struct reference load(const char *line, size_t len)
{
	json_t *strict = json_loadb(line, len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
	struct reference reference = { .is_unique = strict != NULL };

	json_decref(strict);
	reference.root = json_loadb(line, len, JSON_ALLOW_NUL, NULL);
	return reference;
}

static bool has_text(const json_t *root, const char *key, bool is_required)
{
	const json_t *value = json_object_get(root, key);

	if (!value)
		return !is_required;
	return json_is_string(value) &&
	       strlen(json_string_value(value)) == json_string_length(value);
}

static bool is_event(const json_t *root)
{
	const char *event = json_string_value(json_object_get(root, "event"));
	const json_t *data = json_object_get(root, "data");

	return json_is_object(root) && has_text(root, "run_id", true) &&
	       has_text(root, "span_id", true) && has_text(root, "kind", true) &&
	       has_text(root, "event", true) && has_text(root, "parent_span_id", false) &&
	       has_text(root, "name", false) && has_text(root, "status", false) &&
	       json_is_number(json_object_get(root, "ts")) && (!data || json_is_object(data)) &&
	       (strcmp(event, "open") == 0 || strcmp(event, "close") == 0 ||
	        strcmp(event, "log") == 0);
}

/* A number that our reader does not take. */
static bool has_huge_number(json_t *value)
{
	const char *key;
	json_t *item;
	size_t i;

	json_object_foreach(value, key, item)
	{
		if (has_huge_number(item))
			return true;
	}
	json_array_foreach(value, i, item)
	{
		if (has_huge_number(item))
			return true;
	}
	return json_is_real(value) && !(fabs(json_real_value(value)) < 0.99e300);
}

static bool is_refused_on_purpose(const char *line, size_t len, const struct reference *reference)
{
	if (!json_is_tame(line, len))
		return true; /* a NUL, or too deep */
	return !reference->is_unique || !is_event(reference->root) ||
	       has_huge_number(reference->root);
}

static void check_text(const json_t *root, const char *key, const char *got)
{
	const char *want = json_string_value(json_object_get(root, key));

	require(strcmp(got, want ? want : "") == 0);
}

static void check_bytes(const json_t *data, const struct resoluto_event *event)
{
	const json_t *exact = json_object_get(data, "b64"), *line = json_object_get(data, "line");
	const json_t *seq = json_object_get(data, "seq");
	const char *stream = json_string_value(json_object_get(data, "stream"));
	struct buf want = BUF_INIT(2 * EVENT_JSON_MAX);
	bool is_there = json_is_string(exact) && base64_add_decoded(&want, json_string_value(exact),
	                                                            json_string_length(exact)) == 0;

	if (!is_there && json_is_string(line)) {
		is_there = true;
		require(buf_add(&want, json_string_value(line), json_string_length(line)) == 0);
	}
	if (is_there && !json_is_false(json_object_get(data, "nl")))
		require(buf_add(&want, "\n", 1) == 0);
	is_there = is_there && strcmp(event->event, "log") == 0;
	require(is_there == (event->bytes != NULL));
	if (is_there) {
		require(event->len == want.len);
		require(want.len == 0 || memcmp(event->bytes, want.data, want.len) == 0);
	}
	require(event->is_stderr == (is_there && stream && strcmp(stream, "stderr") == 0));
	require(event->seq ==
	        (uint64_t) (is_there && json_is_integer(seq) && json_integer_value(seq) > 0
	                            ? json_integer_value(seq)
	                            : 0));
	buf_done(&want);
}

static void check_event(const struct resoluto_event *event, const json_t *root)
{
	json_t *want = json_object_get(root, "data"), *data;
	double ts = json_number_value(json_object_get(root, "ts"));

	require(is_event(root) && !event->is_output);
	check_text(root, "run_id", event->run_id);
	check_text(root, "span_id", event->span_id);
	check_text(root, "parent_span_id", event->parent_span_id);
	check_text(root, "kind", event->kind);
	check_text(root, "name", event->name);
	check_text(root, "event", event->event);
	check_text(root, "status", event->status);
	require(fabs(event->ts - ts) <= fabs(ts) * 1e-15 || fabs(ts) < 1e-300);
	data = json_loads(event->data, JSON_ALLOW_NUL, NULL);
	require(json_is_object(data));
	require(want ? json_equal(data, want) : json_object_size(data) == 0);
	check_bytes(data, event);
	json_decref(data);
}

static void check_against_jansson(const char *line, size_t len)
{
	struct reference reference = load(line, len);
	struct event_line parsed = { 0 };
	int r = event_parse(line, len, &parsed);

	require(r == 0 || r == -EBADMSG);
	if (r == 0)
		check_event(&parsed.event, reference.root);
	else
		require(is_refused_on_purpose(line, len, &reference));
	event_line_done(&parsed);
	json_decref(reference.root);
}

static void check_round_trip(const uint8_t *data, size_t size)
{
	struct event_head head = { .span_id = "s",
		                   .kind = "log",
		                   .event = "log",
		                   .ts = (double) size };
	struct event_piece piece = { data, size, size & 1, size & 2, size };
	struct buf out = BUF_INIT(EVENT_JSON_MAX);
	struct event_line line = { 0 };

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
	if (size <= EVENT_JSON_MAX)
		check_against_jansson((const char *) data, size);
	if (size > 0 && size <= EVENT_LINE_BYTES)
		check_round_trip(data, size);
	return 0;
}
