/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * json_text.h - JSON as text: a fast writer of ASCII-only strings, and the look at a text that comes
 * before a recursive parser may see it.  Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { JSON_DEPTH_MAX = 32 }; /* objects and arrays within each other that readers of ours take */

/* How many bytes from the start on stand for themselves in a JSON string: ASCII but for controls (DEL
 * too), '"' and '\\'. */
size_t json_plain_run(const char *text, size_t len);
/*
 * Append text in quotes.  Any bytes: what is not UTF-8 becomes U+FFFD, what is not ASCII \uXXXX.
 * *ret_is_exact (may be NULL): a reader gets the same bytes back, and none of them is NUL.
 */
int json_add_string(struct buf *out, const void *text, size_t len, bool *ret_is_exact);
/* The same for a C string; NULL is "". */
int json_add_cstring(struct buf *out, const char *text);
/* Append "key":"text" after a comma unless `out` ends in '{'. */
int json_add_member(struct buf *out, const char *key, const char *text);
/* Append JSON that is already text, on one line and in ASCII. */
int json_add_text(struct buf *out, const char *json);
/* The same without the white space between its tokens; of valid JSON only.  Numbers stay as they were written. */
int json_add_compact(struct buf *out, const char *json, size_t len);
int json_add_u64(struct buf *out, uint64_t value);

/* false: the text holds a NUL or is nested deeper than JSON_DEPTH_MAX, so do not parse it. */
bool json_is_tame(const char *text, size_t len);
