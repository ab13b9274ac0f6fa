/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdint.h>

#include "wire/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static char *encode_group(char *to, const uint8_t *from, size_t len)
{
	uint32_t bits = (uint32_t) from[0] << 16 | (len > 1 ? (uint32_t) from[1] << 8 : 0) |
	                (len > 2 ? from[2] : 0);

	*to++ = alphabet[bits >> 18];
	*to++ = alphabet[bits >> 12 & 63];
	*to++ = len > 1 ? alphabet[bits >> 6 & 63] : '=';
	*to++ = len > 2 ? alphabet[bits & 63] : '=';
	return to;
}

int base64_add(struct buf *out, const void *bytes, size_t len)
{
	const uint8_t *from = bytes;
	char *to;
	int r = buf_reserve(out, base64_size(len));

	if (r < 0)
		return r;
	to = out->data + out->len;
	for (size_t i = 0; i < len; i += 3)
		to = encode_group(to, from + i, len - i < 3 ? len - i : 3);
	out->len += base64_size(len);
	out->data[out->len] = '\0';
	return 0;
}

static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Four characters of which the last `padding` are '='; returns how many bytes, or -1. */
static int decode_group(const char *from, int padding, uint8_t to[3])
{
	uint32_t bits = 0;

	for (int i = 0; i < 4; i++) {
		int value = i < 4 - padding ? value_of(from[i]) : 0;

		if (value < 0)
			return -1;
		bits = bits << 6 | (uint32_t) value;
	}
	if (bits & ((1u << (8 * padding)) - 1))
		return -1; /* bits that no byte takes up: a second spelling of the same bytes */
	to[0] = (uint8_t) (bits >> 16);
	to[1] = (uint8_t) (bits >> 8);
	to[2] = (uint8_t) bits;
	return 3 - padding;
}

int base64_add_decoded(struct buf *out, const char *text, size_t len)
{
	size_t start = out->len;
	int r;

	if (len % 4 != 0)
		return -EBADMSG;
	r = buf_reserve(out, len / 4 * 3);
	if (r < 0)
		return r;
	for (size_t i = 0; i < len; i += 4) {
		bool is_last = i + 4 == len;
		int padding = is_last && text[i + 3] == '=' ? 1 + (text[i + 2] == '=') : 0;
		uint8_t group[3];
		int n = decode_group(text + i, padding, group);

		for (int k = 0; k < n; k++)
			out->data[out->len++] = (char) group[k];
		if (n < 0) {
			out->len = start;
			r = -EBADMSG;
			break;
		}
	}
	if (out->data)
		out->data[out->len] = '\0';
	return r;
}
