/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/text.h"

void text_add_bytes(struct text *text, const char *bytes, size_t len)
{
	if (!text->has_failed && buf_add(&text->buf, bytes, len) < 0)
		text->has_failed = true;
}

void text_add(struct text *text, const char *piece)
{
	text_add_bytes(text, piece, strlen(piece));
}

void text_addf(struct text *text, const char *fmt, ...)
{
	CLEANUP(mem_free) char *piece = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&piece, fmt, ap);
	va_end(ap);
	if (n < 0) {
		piece = NULL;
		text->has_failed = true;
		return;
	}
	text_add_bytes(text, piece, (size_t) n);
}

void text_add_blanks(struct text *text, size_t count)
{
	while (count-- > 0)
		text_add(text, " ");
}

/* One paragraph; at is the column where its first word goes. */
static void fill_paragraph(struct text *text, const char *words, const char *end, size_t at,
                           size_t indent, size_t columns)
{
	bool is_first = true;

	while (words < end) {
		size_t len = strcspn(words, " \n");

		if (len > (size_t) (end - words))
			len = (size_t) (end - words);
		if (!is_first && at + 1 + len > columns) {
			text_add(text, "\n");
			text_add_blanks(text, indent);
			at = indent;
		} else if (!is_first) {
			text_add(text, " ");
			at++;
		}
		text_add_bytes(text, words, len);
		at += len;
		is_first = false;
		words += len;
		words += strspn(words, " \n");
	}
	text_add(text, "\n");
}

void text_fill(struct text *text, const char *words, size_t at, size_t indent, size_t columns)
{
	for (;;) {
		const char *next = strstr(words, "\n\n");

		fill_paragraph(text, words, next ? next : words + strlen(words), at, indent,
		               columns);
		if (!next)
			return;
		text_add(text, "\n");
		text_add_blanks(text, indent);
		at = indent;
		words = next + 2;
	}
}

bool text_ok(const struct text *text)
{
	return !text->has_failed;
}

const char *text_string(const struct text *text)
{
	return text->buf.data ? text->buf.data : "";
}

void text_done(struct text *text)
{
	buf_done(&text->buf);
}
