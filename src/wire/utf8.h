/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* utf8.h - one character at a time out of bytes that may be anything.  Pure. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UTF8_REPLACEMENT = 0xfffd };

/*
 * Decode the character at the start of len (at least 1) bytes and return how many bytes it took.
 * What is not UTF-8 (overlong forms and surrogates included) gives UTF8_REPLACEMENT and
 * *ret_valid = false; it takes the longest start of a character there is, as the Unicode standard
 * recommends and Python's decoder does.
 */
size_t utf8_decode(const uint8_t *bytes, size_t len, uint32_t *ret_char, bool *ret_valid);

bool utf8_is_valid(const void *bytes, size_t len);

/* How many bytes at the end (0 to 3) are the start of a character that is not whole yet. */
size_t utf8_open_tail(const uint8_t *bytes, size_t len);
