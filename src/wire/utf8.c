/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/utf8.h"

/* How a character of two bytes or more may begin: the standard's table of well-formed sequences. */
struct lead {
	uint8_t first, last; /* range of the first byte */
	uint8_t low, high;   /* range of the second byte; later ones are 80 to bf */
	uint8_t size;        /* bytes of the character */
};

static const struct lead leads[] = {
	{ 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
	{ 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 }, { 0xf0, 0xf0, 0x90, 0xbf, 4 },
	{ 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
};

static const struct lead *find_lead(uint8_t byte)
{
	if (byte < leads[0].first) /* the most common of those that begin nothing */
		return NULL;
	for (size_t i = 0; i < sizeof(leads) / sizeof(leads[0]); i++) {
		if (byte >= leads[i].first && byte <= leads[i].last)
			return &leads[i];
	}
	return NULL;
}

/* How many of the bytes fit the lead: lead->size when the character is whole. */
static size_t fitting(const struct lead *lead, const uint8_t *bytes, size_t len)
{
	size_t n = 1;

	if (n < len && bytes[1] >= lead->low && bytes[1] <= lead->high)
		n++;
	while (n >= 2 && n < lead->size && n < len && (bytes[n] & 0xc0) == 0x80)
		n++;
	return n;
}

size_t utf8_decode(const uint8_t *bytes, size_t len, uint32_t *ret_char, bool *ret_valid)
{
	const struct lead *lead;
	size_t n = 1;

	*ret_valid = true;
	*ret_char = bytes[0];
	if (bytes[0] < 0x80)
		return 1;
	lead = find_lead(bytes[0]);
	if (lead)
		n = fitting(lead, bytes, len);
	if (!lead || n < lead->size) {
		*ret_char = UTF8_REPLACEMENT;
		*ret_valid = false;
		return n;
	}
	*ret_char = bytes[0] & (0x7fu >> lead->size);
	for (size_t i = 1; i < n; i++)
		*ret_char = *ret_char << 6 | (bytes[i] & 0x3f);
	return n;
}

bool utf8_is_valid(const void *bytes, size_t len)
{
	const uint8_t *at = bytes;
	uint32_t c;
	bool valid;

	while (len > 0) {
		size_t n = utf8_decode(at, len, &c, &valid);

		if (!valid)
			return false;
		at += n;
		len -= n;
	}
	return true;
}

size_t utf8_open_tail(const uint8_t *bytes, size_t len)
{
	for (size_t n = 1; n <= 3 && n <= len; n++) {
		const uint8_t *at = bytes + len - n;
		const struct lead *lead = find_lead(*at);

		if (lead)
			return n < lead->size && fitting(lead, at, n) == n ? n : 0;
		if ((*at & 0xc0) != 0x80)
			return 0;
	}
	return 0;
}
