/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>

#include "base/cleanup.h"
#include "check.h"
#include "wire/json_scan.h"

static struct json_scan scan_of(const char *text)
{
	return (struct json_scan){ .at = text, .end = text + strlen(text) };
}

static bool is_value(const char *text)
{
	struct json_scan scan = scan_of(text);

	return json_scan_skip(&scan) == 0 && json_scan_end(&scan) == 0 && scan.depth == 0;
}

static void takes_json(void)
{
	static const char *const good[] = {
		"null",
		" true ",
		"false",
		"0",
		"-0",
		"12",
		"-1.5",
		"1e5",
		"1E+5",
		"1.25e-7",
		"\"\"",
		"\"a\\u00e9\"",
		"[]",
		"[ 1 , [2], {} ]",
		"{\"a\":{\"b\":[null]},\"\":0}\n",
		"9223372036854775807",
		"-9223372036854775808",
		"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
		"\"\x7f\"",
		"1e299",
		"{\"\\\\u0000\":1}",
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		CHECK(is_value(good[i]));
		for (size_t n = 0; n + 1 < strlen(good[i]); n++) { /* a part of it never hurts */
			struct json_scan scan = { .at = good[i], .end = good[i] + n };

			(void) json_scan_skip(&scan);
			CHECK(scan.at <= scan.end);
		}
	}
}

static void refuses_all_else(void)
{
	static const char *const bad[] = {
		"",
		" ",
		"nul",
		"True",
		"truex",
		"01",
		"-",
		"+1",
		".5",
		"1.",
		"1e",
		"1e+",
		"0x1",
		"1 2",
		"NaN",
		"Infinity",
		"[",
		"]",
		"[1,]",
		"[,1]",
		"[1 2]",
		"{",
		"}",
		"{\"a\"}",
		"{\"a\":}",
		"{\"a\":1,}",
		"{,}",
		"{a:1}",
		"{1:1}",
		"{\"a\" 1}",
		"'a'",
		"\"",
		"\"\\\"",
		"\"\\x\"",
		"\"\\u12\"",
		"\"\\u12g4\"",
		"\"\n\"",
		"\"\x1f\"",
		"\"\xff\"",
		"\"\xc0\xaf\"",
		"\"\xed\xa0\x80\"",
		"\"\xe2\x80\"",
		"\"\\ud800\"",
		"\"\\ud800x\"",
		"\"\\ud800\\u0041\"",
		"\"\\udc00\"",
		"{\"\\u0000\":1}",
		"[1}",
		"{\"a\":1]",
		"9223372036854775808",
		"-9223372036854775809",
		"1e300",
		"-1e999999999999",
		"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!is_value(bad[i]));
}

static void depth_is_bounded(void)
{
	char deep[2 * JSON_DEPTH_MAX + 3] = { 0 };

	memset(deep, '[', JSON_DEPTH_MAX);
	memset(deep + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
	CHECK(is_value(deep));
	memset(deep, '[', JSON_DEPTH_MAX + 1);
	memset(deep + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
	CHECK(!is_value(deep));
}

static void check_string(const char *json, const char *want, size_t len)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(64);
	struct json_scan scan = scan_of(json);

	CHECK(json_scan_string(&scan, &text) == 0);
	CHECK(text.len == len && (len == 0 || memcmp(text.data, want, len) == 0));
	CHECK(scan.has_nul == (memchr(want, '\0', len) != NULL));
}

static void strings_stand_for_text(void)
{
	check_string("\"\"", "", 0);
	check_string(" \"plain\"", "plain", 5);
	check_string("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8);
	check_string("\"\\u0041\\u00E9\\u20ac\\uD83D\\ude00\"",
	             "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 10);
	check_string("\"x\xc3\xa9y\xf0\x9f\x98\x80\"", "x\xc3\xa9y\xf0\x9f\x98\x80", 8);
	check_string("\"a\\u0000b\"", "a\0b", 3);
}

static void a_full_buffer_says_so(void)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(3);
	struct json_scan scan = scan_of("\"abcd\"");

	CHECK(json_scan_string(&scan, &text) == -E2BIG);
}

static void check_number(const char *json, double real, bool is_integer, int64_t integer)
{
	struct json_scan scan = scan_of(json);
	struct json_number number;

	CHECK(json_scan_number(&scan, &number) == 0);
	CHECK(number.is_integer == is_integer && (!is_integer || number.integer == integer));
	CHECK(fabs(number.real - real) <= fabs(real) * 1e-15);
}

static void numbers_have_their_value(void)
{
	check_number("0", 0, true, 0);
	check_number("-17", -17, true, -17);
	check_number("9223372036854775807", 9223372036854775807.0, true, INT64_MAX);
	check_number("-9223372036854775808", -9223372036854775808.0, true, INT64_MIN);
	check_number("1764442313.123456", 1764442313.123456, false, 0);
	check_number("-0.000001", -0.000001, false, 0);
	check_number("1e299", 1e299, false, 0);
	check_number("123456789012345678901234567890e-10", 12345678901234567890.123456789, false,
	             0);
	check_number("0.00000000000000000000000000012345", 1.2345e-28, false, 0);
	check_number("1e-999999999999", 0, false, 0);
	check_number("0e999999999999", 0, false, 0);
}

/* Times as the writer writes them are read as strtod reads them, to the last bit. */
static void times_are_exact(void)
{
	for (uint64_t micros = 1764442313123456ull; micros < 1764442313123456ull + 2000000;
	     micros += 7) {
		struct json_number number;
		struct json_scan scan;
		char text[32];

		snprintf(text, sizeof(text), "%llu.%06llu", (unsigned long long) (micros / 1000000),
		         (unsigned long long) (micros % 1000000));
		scan = scan_of(text);
		CHECK(json_scan_number(&scan, &number) == 0);
		CHECK(number.real == strtod(text, NULL));
	}
}

static void check_key(struct json_scan *scan, bool is_first, const char *want)
{
	CLEANUP(buf_done) struct buf scratch = BUF_INIT(64);
	struct json_name key;

	CHECK(json_scan_key(scan, is_first, &scratch, &key) == 1);
	CHECK(key.len == strlen(want) && memcmp(key.text, want, key.len) == 0);
	CHECK(json_scan_skip(scan) == 0);
}

static void walks_an_object(void)
{
	CLEANUP(buf_done) struct buf scratch = BUF_INIT(64);
	struct json_scan scan = scan_of(" {\"a\" : 1,\"\":{} , \"\\u0062\x7f\":[]} ");
	struct json_name key;

	CHECK(json_scan_object(&scan) == 0);
	check_key(&scan, true, "a");
	check_key(&scan, false, "");
	check_key(&scan, false, "b\x7f");
	CHECK(json_scan_key(&scan, false, &scratch, &key) == 0);
	CHECK(json_scan_end(&scan) == 0);
}

/* A word at a time or not, at each place a byte that is not plain ends the run. */
static void plain_runs_end_where_they_should(void)
{
	char text[40];

	for (size_t len = 0; len < sizeof(text); len++) {
		for (size_t at = 0; at < len; at++) {
			for (int c = 0; c < 256; c++) {
				bool is_plain = c >= 0x20 && c < 0x7f && c != '"' && c != '\\';

				memset(text, c % 2 ? '!' : '~', sizeof(text));
				text[at] = (char) c;
				CHECK(json_plain_run(text, len) == (is_plain ? len : at));
			}
		}
	}
}

int main(void)
{
	RUN(takes_json);
	RUN(refuses_all_else);
	RUN(depth_is_bounded);
	RUN(strings_stand_for_text);
	RUN(a_full_buffer_says_so);
	RUN(numbers_have_their_value);
	RUN(times_are_exact);
	RUN(walks_an_object);
	RUN(plain_runs_end_where_they_should);
	return check_done();
}
