/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings are written in two passes: the first measures and finds out whether anything must be
 * escaped at all, so that the second needs neither checks nor growth, and plain text is one memcpy.
 */
#include <assert.h>
#include <string.h>

#include "wire/json_text.h"
#include "wire/utf8.h"

/* What a byte costs as JSON: 1 as it is, 2 as a short escape, 6 as \u00XX, 0 = look at UTF-8. */
static const uint8_t costs[256] = {
	6, 6, 6, 6, 6, 6, 6, 6, 2, 2, 2, 6, 2, 2, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6,
	6, 6, 6, 6, 6, 6, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 6,
};

static const uint64_t EACH = 0x0101010101010101; /* times a byte: that byte eight times */
static const uint64_t HIGH = 0x8080808080808080;

static const char hex[] = "0123456789abcdef";

struct measure {
	size_t size;   /* characters as JSON, without quotes */
	bool is_exact; /* valid UTF-8 without NUL */
};

/* Nonzero if one of the eight bytes is zero; exact enough, since it is only a hint. */
static uint64_t zero_byte(uint64_t word)
{
	return (word - EACH) & ~word & HIGH;
}

/* Eight bytes at a time, and one by one where a word holds anything that is not plain. */
size_t json_plain_run(const char *text, size_t len)
{
	size_t n = 0;

	for (; len - n >= 8; n += 8) {
		uint64_t word;

		memcpy(&word, text + n, 8);
		if ((word & HIGH) | ((word - EACH * 0x20) & ~word & HIGH) |
		    zero_byte(word ^ EACH * '"') | zero_byte(word ^ EACH * '\\') |
		    zero_byte(word ^ EACH * 0x7f))
			break;
	}
	while (n < len && costs[(uint8_t) text[n]] == 1)
		n++;
	return n;
}

/* Of a character beyond ASCII. */
static size_t char_cost(uint32_t c)
{
	return c > 0xffff ? 12 : 6;
}

static struct measure measure(const uint8_t *at, size_t len)
{
	struct measure result = { .is_exact = true };
	const uint8_t *end = at + len;

	while (at < end) {
		size_t n = json_plain_run((const char *) at, (size_t) (end - at));
		uint32_t c;
		bool valid;

		result.size += n;
		at += n;
		/* What is to be escaped often comes in rows: NUL most of all. */
		for (; at < end && costs[*at] > 1; at++) {
			result.size += costs[*at];
			result.is_exact &= *at != 0;
		}
		if (at == end)
			break;
		if (costs[*at] == 1)
			continue;
		at += utf8_decode(at, (size_t) (end - at), &c, &valid);
		result.size += char_cost(c);
		result.is_exact &= valid;
	}
	return result;
}

static char *put_unit(char *to, uint32_t unit)
{
	*to++ = '\\';
	*to++ = 'u';
	*to++ = hex[unit >> 12 & 15];
	*to++ = hex[unit >> 8 & 15];
	*to++ = hex[unit >> 4 & 15];
	*to++ = hex[unit & 15];
	return to;
}

/* One of ASCII that does not stand for itself. */
static char *put_escape(char *to, uint8_t c)
{
	static const char shorts[] = "\"\"\\\\\bb\tt\nn\ff\rr"; /* pairs: character, letter */

	if (costs[c] != 2)
		return put_unit(to, c);
	for (const char *pair = shorts; *pair; pair += 2) {
		if ((uint32_t) pair[0] == c) {
			*to++ = '\\';
			*to++ = pair[1];
		}
	}
	return to;
}

/* One beyond ASCII. */
static char *put_char(char *to, uint32_t c)
{
	if (c <= 0xffff)
		return put_unit(to, c);
	to = put_unit(to, 0xd800 + ((c - 0x10000) >> 10));
	return put_unit(to, 0xdc00 + ((c - 0x10000) & 0x3ff));
}

static char *put_text(char *to, const uint8_t *at, size_t len)
{
	const uint8_t *end = at + len;

	while (at < end) {
		size_t n = json_plain_run((const char *) at, (size_t) (end - at));
		uint32_t c;
		bool valid;

		memcpy(to, at, n);
		to += n;
		at += n;
		for (; at < end && costs[*at] > 1; at++)
			to = put_escape(to, *at);
		if (at == end)
			break;
		if (costs[*at] == 1)
			continue;
		at += utf8_decode(at, (size_t) (end - at), &c, &valid);
		to = put_char(to, c);
	}
	return to;
}

int json_add_string(struct buf *out, const void *text, size_t len, bool *ret_is_exact)
{
	struct measure need = measure(text, len);
	char *to;
	int r = buf_reserve(out, need.size + 2);

	if (r < 0)
		return r;
	to = out->data + out->len;
	*to++ = '"';
	if (need.size == len &&
	    len > 0) /* nothing to escape: each byte costs 1, or it would be more */
		memcpy(to, text, len);
	else
		(void) put_text(to, text, len);
	to += need.size;
	*to++ = '"';
	*to = '\0';
	out->len += need.size + 2;
	if (ret_is_exact)
		*ret_is_exact = need.is_exact;
	return 0;
}

int json_add_cstring(struct buf *out, const char *text)
{
	return json_add_string(out, text ? text : "", text ? strlen(text) : 0, NULL);
}

int json_add_member(struct buf *out, const char *key, const char *text)
{
	bool is_first = out->len > 0 && out->data[out->len - 1] == '{';
	int r = buf_add_str(out, is_first ? "\"" : ",\"");

	if (r == 0)
		r = buf_add_str(out, key);
	if (r == 0)
		r = buf_add_str(out, "\":");
	return r < 0 ? r : json_add_cstring(out, text);
}

static int add_ascii(struct buf *out, const char *json, size_t len)
{
	const uint8_t *at = (const uint8_t *) json, *end = at + len;

	while (at < end) {
		char piece[12], *stop = piece;
		size_t run = 0;
		uint32_t c;
		bool valid;
		int r;

		while (at + run < end && at[run] >= 0x20 && at[run] < 0x7f)
			run++;
		r = buf_add(out, at, run);
		if (r < 0)
			return r;
		at += run;
		if (at == end)
			break;
		at += utf8_decode(at, (size_t) (end - at), &c, &valid);
		if (c < 0x20) /* valid JSON has these only as white space between its tokens */
			*stop++ = ' ';
		else
			stop = put_char(stop, c);
		r = buf_add(out, piece, (size_t) (stop - piece));
		if (r < 0)
			return r;
	}
	return 0;
}

int json_add_text(struct buf *out, const char *json)
{
	return add_ascii(out, json, strlen(json));
}

int json_add_u64(struct buf *out, uint64_t value)
{
	char digits[20], *at = digits + sizeof(digits);

	do {
		*--at = (char) ('0' + value % 10);
		value /= 10;
	} while (value > 0);
	return buf_add(out, at, (size_t) (digits + sizeof(digits) - at));
}

/* The place behind the string whose opening quote is at `at`. */
static size_t skip_string(const char *text, size_t len, size_t at)
{
	for (at++; at < len && text[at] != '"'; at++) {
		if (text[at] == '\\')
			at++;
	}
	return at < len ? at + 1 : len;
}

/* The place behind what follows in one piece: a string, or anything else up to the next or to white space. */
static size_t skip_piece(const char *text, size_t len, size_t at)
{
	if (text[at] == '"')
		return skip_string(text, len, at);
	while (at < len && !strchr("\" \t\r\n", text[at]))
		at++;
	return at;
}

int json_add_compact(struct buf *out, const char *json, size_t len)
{
	int r = 0;

	for (size_t at = 0, next; at < len && r == 0; at = next) {
		next = at + 1;
		if (strchr(" \t\r\n", json[at]))
			continue;
		next = skip_piece(json, len, at);
		r = add_ascii(out, json + at, next - at);
	}
	return r;
}

bool json_is_tame(const char *text, size_t len)
{
	unsigned depth = 0;

	/* jansson takes a NUL behind a number for white space */
	if (len > 0 && memchr(text, '\0', len))
		return false;
	for (size_t at = 0; at < len;) {
		char c = text[at];

		if (c == '"') {
			at = skip_string(text, len, at);
			continue;
		}
		if (c == '{' || c == '[')
			depth++;
		if ((c == '}' || c == ']') && depth > 0)
			depth--;
		if (depth > JSON_DEPTH_MAX)
			return false;
		at++;
	}
	return true;
}
