/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * text.h - a text that is built piece by piece and checked once, at its end.
 *
 * After the first failure (only memory can run out) further pieces are dropped; text_ok() tells.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum { TEXT_MAX = 1024 * 1024 }; /* bytes; far above any help text, man page or completion */

struct text {
	struct buf buf;
	bool has_failed;
};

#define TEXT_INIT ((struct text){ .buf = BUF_INIT(TEXT_MAX) })

void text_add(struct text *text, const char *piece);
void text_add_bytes(struct text *text, const char *bytes, size_t len);
void text_addf(struct text *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_add_blanks(struct text *text, size_t count);

/* Words filled into lines of at most `columns`, all but the first indented; the first starts at
 * column `at`.  Paragraphs are parted by an empty line.  Ends with a newline. */
void text_fill(struct text *text, const char *words, size_t at, size_t indent, size_t columns);

bool text_ok(const struct text *text);
const char *text_string(const struct text *text); /* "" while empty */
void text_done(struct text *text);                /* a cleanup function */
