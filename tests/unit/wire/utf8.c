/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "wire/utf8.h"

static void decodes_each_length(void)
{
	static const struct {
		const char *bytes;
		uint32_t want;
	} cases[] = { { "a", 'a' },
		      { "\xc3\xa9", 0xe9 },
		      { "\xe2\x80\xa8", 0x2028 },
		      { "\xf0\x9f\x98\x80", 0x1f600 },
		      { "\xf4\x8f\xbf\xbf", 0x10ffff } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t len = strlen(cases[i].bytes);
		uint32_t c;
		bool valid;

		CHECK(utf8_decode((const uint8_t *) cases[i].bytes, len, &c, &valid) == len);
		CHECK(valid && c == cases[i].want);
		CHECK(utf8_is_valid(cases[i].bytes, len));
	}
}

/* The number of replacements Python gives for the same bytes. */
static void replaces_the_longest_start(void)
{
	static const struct {
		const char *bytes;
		size_t replacements;
	} cases[] = { { "\xff", 1 },         { "\xc0\xaf", 2 },         /* overlong */
		      { "\xed\xa0\x80", 3 },                            /* surrogate */
		      { "\xf0\x9f\x98", 1 },                            /* cut short */
		      { "\xe2\x80", 1 },     { "\xf4\x90\x80\x80", 4 }, /* over U+10FFFF */
		      { "\xe0\x80\x80", 3 }, { "\x80\x80", 2 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint8_t *at = (const uint8_t *) cases[i].bytes;
		size_t len = strlen(cases[i].bytes), count = 0;
		uint32_t c;
		bool valid;

		CHECK(!utf8_is_valid(at, len));
		for (size_t n; len > 0; at += n, len -= n, count++) {
			n = utf8_decode(at, len, &c, &valid);
			CHECK(n >= 1 && n <= len && !valid && c == UTF8_REPLACEMENT);
		}
		CHECK(count == cases[i].replacements);
	}
}

static void open_tail_is_a_start_only(void)
{
	CHECK(utf8_open_tail((const uint8_t *) "abc", 3) == 0);
	CHECK(utf8_open_tail((const uint8_t *) "a\xc3", 2) == 1);
	CHECK(utf8_open_tail((const uint8_t *) "a\xc3\xa9", 3) == 0);
	CHECK(utf8_open_tail((const uint8_t *) "\xf0\x9f\x98", 3) == 3);
	CHECK(utf8_open_tail((const uint8_t *) "\xf0\x9f\x98\x80", 4) == 0);
	CHECK(utf8_open_tail((const uint8_t *) "\xe0\x80", 2) == 0); /* can never become valid */
	CHECK(utf8_open_tail((const uint8_t *) "\x80\x80\x80\x80", 4) == 0);
	CHECK(utf8_open_tail((const uint8_t *) "", 0) == 0);
}

int main(void)
{
	RUN(decodes_each_length);
	RUN(replaces_the_longest_start);
	RUN(open_tail_is_a_start_only);
	return check_done();
}
