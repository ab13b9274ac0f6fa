/* SPDX-License-Identifier: Apache-2.0 */
#include <endian.h>
#include <string.h>

#include "base/crc32c.h"

#define POLYNOMIAL 0x82f63b78u /* reflected */

enum { SLICES = 8 };

static uint32_t table[SLICES][256];

/* Filled before main, so that threads need no lock. */
__attribute__((constructor)) static void fill_table(void)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;

		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
		table[0][byte] = crc;
	}
	for (int slice = 1; slice < SLICES; slice++) {
		for (int byte = 0; byte < 256; byte++) {
			uint32_t before = table[slice - 1][byte];

			table[slice][byte] = before >> 8 ^ table[0][before & 0xff];
		}
	}
}

static uint32_t step8(uint32_t crc, const uint8_t *at)
{
	uint32_t low, high;

	memcpy(&low, at, 4);
	memcpy(&high, at + 4, 4);
	low = le32toh(low) ^ crc;
	high = le32toh(high);
	return table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^
	       table[4][low >> 24] ^ table[3][high & 0xff] ^ table[2][high >> 8 & 0xff] ^
	       table[1][high >> 16 & 0xff] ^ table[0][high >> 24];
}

uint32_t crc32c(uint32_t crc, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	crc = ~crc;
	for (; len >= 8; at += 8, len -= 8)
		crc = step8(crc, at);
	for (; len > 0; at++, len--)
		crc = crc >> 8 ^ table[0][(crc ^ *at) & 0xff];
	return ~crc;
}
