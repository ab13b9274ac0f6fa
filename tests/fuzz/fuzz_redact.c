/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_redact.c - redaction: the first line of the input names a value, and a byte in front of it how the rest is
 * split.  However it is split, with idle moments in between or not, no byte appears from nowhere, the
 * value does not appear, and without idle moments the output is the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/redact.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 64 << 20 };

static void require(int truth)
{
	if (!truth)
		abort();
}

static void feed(struct redactor *redactor, const uint8_t *text, size_t len, size_t step,
                 int is_idle, struct buf *out)
{
	struct redact_stream *stream;

	require(redact_stream_new(redactor, &stream) == 0);
	for (size_t n; len > 0; text += n, len -= n) {
		n = step < len ? step : len;
		require(redact_stream_feed(stream, text, n, out) == 0);
		require(!is_idle || redact_stream_idle(stream, out) == 0);
	}
	require(redact_stream_end(stream, out) == 0);
	redact_stream_free(&stream);
}

/* What stands between the marks must stand in the input, in the same order, and nothing must be left
 * over at its start and end. */
static void check_invents_nothing(const uint8_t *text, size_t len, const struct buf *out)
{
	const char *at = out->data, *end = at + out->len;
	const uint8_t *from = text, *text_end = text + len;

	if (out->len == 0 || memmem(text, len, REDACT_MARK, strlen(REDACT_MARK)))
		return;
	for (;;) {
		const char *mark = memmem(at, (size_t) (end - at), REDACT_MARK,
		                          strlen(REDACT_MARK));
		size_t n = (size_t) ((mark ? mark : end) - at);
		const uint8_t *found = mark ? memmem(from, (size_t) (text_end - from), at, n)
		                            : text_end - n;

		require(found && found >= from && (at != out->data || found == text));
		require(memcmp(found, at, n) == 0);
		if (!mark)
			break;
		from = found + n;
		at = mark + strlen(REDACT_MARK);
	}
}

static void check_splits(struct redactor *redactor, const uint8_t *text, size_t len, size_t step)
{
	struct buf whole = BUF_INIT(OUT_MAX), split = BUF_INIT(OUT_MAX), idle = BUF_INIT(OUT_MAX);
	uint64_t before = redactor_count(redactor), count;

	feed(redactor, text, len, len, 0, &whole);
	count = redactor_count(redactor) - before;
	if (count == 0)
		require(whole.len == len && (len == 0 || memcmp(whole.data, text, len) == 0));
	feed(redactor, text, len, step, 0, &split);
	require(redactor_count(redactor) - before == 2 * count);
	require(split.len == whole.len);
	require(whole.len == 0 || memcmp(split.data, whole.data, whole.len) == 0);
	feed(redactor, text, len, step, 1, &idle);
	require(redactor_count(redactor) - before == 3 * count);
	buf_done(&whole);
	buf_done(&split);
	buf_done(&idle);
}

static void check_value_is_gone(const char *value, const uint8_t *text, size_t len)
{
	const char *const values[] = { value, NULL };
	struct buf out = BUF_INIT(OUT_MAX);
	struct redactor *redactor = NULL;

	require(redactor_new(values, false, &redactor) == 0);
	feed(redactor, text, len, len, 0, &out);
	/* the value may be part of the mark, or of what a mark and its neighbours make */
	if (out.len > 0 && strlen(value) >= REDACT_VALUE_MIN && !strpbrk(value, REDACT_MARK "\r\n"))
		require(!memmem(out.data, out.len, value, strlen(value)));
	check_invents_nothing(text, len, &out);
	buf_done(&out);
	redactor_free(&redactor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *newline = size > 0 ? memchr(data + 1, '\n', size - 1) : NULL;
	struct redactor *redactor = NULL;
	size_t rest;
	char *value;

	if (!newline)
		return 0;
	value = strndup((const char *) data + 1, (size_t) (newline - data - 1));
	rest = size - (size_t) (newline + 1 - data);
	require(value && redactor_new((const char *const[]){ value, NULL }, true, &redactor) == 0);
	check_splits(redactor, newline + 1, rest, 1u + data[0]);
	check_value_is_gone(value, newline + 1, rest);
	redactor_free(&redactor);
	free(value);
	return 0;
}
