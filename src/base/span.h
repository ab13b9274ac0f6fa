/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* span.h - a piece of somebody else's text: a place and a length, nothing behind it.  Pure. */

#include <stddef.h>
#include <string.h>

struct span {
	const char *at; /* borrowed */
	size_t len;
};

/* Without the bytes of `blanks` (a C string) at both ends. */
static inline struct span span_trim(struct span text, const char *blanks)
{
	const size_t count = strlen(blanks);

	while (text.len > 0 && memchr(blanks, text.at[0], count)) {
		text.at++;
		text.len--;
	}
	while (text.len > 0 && memchr(blanks, text.at[text.len - 1], count))
		text.len--;
	return text;
}
