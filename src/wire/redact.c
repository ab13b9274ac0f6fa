/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream passes two stages: values first, then what that gave through the patterns.  Each stage holds back what
 * it is not sure of, so the two together do too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "wire/json_text.h"
#include "wire/redact.h"
#include "wire/redact_patterns.h"
#include "wire/redact_values.h"

struct redactor {
	struct value_set *values; /* owned; NULL: none */
	bool with_patterns;
	uint64_t count;
};

struct redact_stream {
	struct redactor *redactor; /* borrowed */
	struct value_stream values;
	struct pattern_stream patterns;
	struct buf between; /* what the first stage gave, on its way to the second */
};

int redactor_new(const char *const *values, bool with_patterns, struct redactor **ret_redactor)
{
	CLEANUP(redactor_free) struct redactor *redactor = calloc(1, sizeof(*redactor));
	int r;

	if (!redactor)
		return -ENOMEM;
	redactor->with_patterns = with_patterns;
	r = value_set_new(values, &redactor->values);
	if (r < 0)
		return r;
	*ret_redactor = mem_take(&redactor);
	return 0;
}

void redactor_free(struct redactor **redactor)
{
	if (*redactor)
		value_set_free(&(*redactor)->values);
	free(*redactor);
	*redactor = NULL;
}

uint64_t redactor_count(const struct redactor *redactor)
{
	return redactor->count;
}

int redact_stream_new(struct redactor *redactor, struct redact_stream **ret_stream)
{
	struct redact_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return -ENOMEM;
	stream->redactor = redactor;
	*ret_stream = stream;
	return 0;
}

void redact_stream_free(struct redact_stream **stream)
{
	if (*stream) {
		value_stream_done(&(*stream)->values);
		pattern_stream_done(&(*stream)->patterns);
		buf_done(&(*stream)->between);
	}
	free(*stream);
	*stream = NULL;
}

static int feed_patterns(struct redact_stream *stream, const void *bytes, size_t len,
                         enum pattern_mode mode, struct buf *out)
{
	if (!stream->redactor->with_patterns)
		return buf_add(out, bytes, len);
	return pattern_stream_feed(&stream->patterns, bytes, len, mode, out,
	                           &stream->redactor->count);
}

static int feed(struct redact_stream *stream, const void *bytes, size_t len, enum pattern_mode mode,
                struct buf *out)
{
	struct redactor *redactor = stream->redactor;
	int r;

	if (!redactor->values)
		return feed_patterns(stream, bytes, len, mode, out);
	stream->between.max = out->max;
	buf_clear(&stream->between);
	r = value_stream_feed(&stream->values, redactor->values, bytes, len, mode == PATTERN_END,
	                      &stream->between, &redactor->count);
	if (r < 0)
		return r;
	return feed_patterns(stream, stream->between.data, stream->between.len, mode, out);
}

int redact_stream_feed(struct redact_stream *stream, const void *bytes, size_t len, struct buf *out)
{
	return feed(stream, bytes, len, PATTERN_FEED, out);
}

int redact_stream_idle(struct redact_stream *stream, struct buf *out)
{
	return feed(stream, NULL, 0, PATTERN_IDLE, out);
}

int redact_stream_end(struct redact_stream *stream, struct buf *out)
{
	return feed(stream, NULL, 0, PATTERN_END, out);
}

int redact_text(struct redactor *redactor, const char *text, struct buf *out)
{
	CLEANUP(redact_stream_free) struct redact_stream *stream = NULL;
	int r = redact_stream_new(redactor, &stream);

	if (r == 0)
		r = redact_stream_feed(stream, text, strlen(text), out);
	return r < 0 ? r : redact_stream_end(stream, out);
}

static bool is_secret_key(const char *key)
{
	static const char *const words[] = { "key",    "secret", "token", "password",
		                             "passwd", "cred",   "auth" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasestr(key, words[i]))
			return true;
	}
	return false;
}

static int redact_string(struct redactor *redactor, json_t *value)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(SIZE_MAX / 4);
	uint64_t before = redactor->count;
	int r = redact_text(redactor, json_string_value(value), &out);

	if (r < 0 || redactor->count == before)
		return r;
	/* a value may have begun within a character */
	if (json_string_setn(value, out.data, out.len) < 0 &&
	    json_string_set(value, REDACT_MARK) < 0)
		return -ENOMEM;
	return 0;
}

static int redact_value(struct redactor *redactor, json_t *value, unsigned depth);

static int redact_object(struct redactor *redactor, json_t *object, unsigned depth)
{
	const char *key;
	json_t *value;
	void *next;

	json_object_foreach_safe(object, next, key, value)
	{
		int r = 0;

		if (!is_secret_key(key)) {
			r = redact_value(redactor, value, depth);
		} else {
			redactor->count++;
			r = json_object_set_new(object, key, json_string(REDACT_MARK)) < 0 ? -ENOMEM
			                                                                   : 0;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static int redact_array(struct redactor *redactor, json_t *array, unsigned depth)
{
	json_t *value;
	size_t i;

	json_array_foreach(array, i, value)
	{
		int r = redact_value(redactor, value, depth);

		if (r < 0)
			return r;
	}
	return 0;
}

static int redact_value(struct redactor *redactor, json_t *value, unsigned depth)
{
	if (depth > JSON_DEPTH_MAX)
		return -ELOOP;
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return redact_object(redactor, value, depth + 1);
	case JSON_ARRAY:
		return redact_array(redactor, value, depth + 1);
	case JSON_STRING:
		return redact_string(redactor, value);
	default:
		return 0;
	}
}

int redact_json(struct redactor *redactor, json_t *value)
{
	return redact_value(redactor, value, 0);
}
