/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/crc32c.h"

/* RFC 3720, appendix B.4 (there as bytes, least significant first). */
static void agrees_with_the_standard(void)
{
	unsigned char bytes[32];

	memset(bytes, 0, sizeof(bytes));
	CHECK(crc32c(0, bytes, 32) == 0x8a9136aa);
	memset(bytes, 0xff, sizeof(bytes));
	CHECK(crc32c(0, bytes, 32) == 0x62a8ab43);
	for (int i = 0; i < 32; i++)
		bytes[i] = (unsigned char) i;
	CHECK(crc32c(0, bytes, 32) == 0x46dd794e);
	for (int i = 0; i < 32; i++)
		bytes[i] = (unsigned char) (31 - i);
	CHECK(crc32c(0, bytes, 32) == 0x113fdb5c);
	CHECK(crc32c(0, "123456789", 9) == 0xe3069283);
	CHECK(crc32c(0, "", 0) == 0);
}

/* By the definition, a bit at a time. */
static uint32_t slowly(const unsigned char *bytes, size_t len)
{
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < len; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
	}
	return ~crc;
}

static void agrees_with_its_definition_at_any_length_and_alignment(void)
{
	unsigned char bytes[96];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char) (i * 151 + 7);
	for (size_t start = 0; start < 9; start++) {
		for (size_t len = 0; start + len <= sizeof(bytes); len++)
			CHECK(crc32c(0, bytes + start, len) == slowly(bytes + start, len));
	}
}

static void continues_over_pieces(void)
{
	static const char text[] = "any cut of the same bytes gives the same sum";
	const size_t len = sizeof(text) - 1;

	for (size_t cut = 0; cut <= len; cut++)
		CHECK(crc32c(crc32c(0, text, cut), text + cut, len - cut) == crc32c(0, text, len));
}

int main(void)
{
	RUN(agrees_with_the_standard);
	RUN(agrees_with_its_definition_at_any_length_and_alignment);
	RUN(continues_over_pieces);
	return check_done();
}
