/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>

#include "base/cleanup.h"
#include "check.h"
#include "wire/json_text.h"

static void check_string(const char *bytes, size_t len, const char *want, bool want_exact)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(4096);
	bool is_exact;

	CHECK(json_add_string(&out, bytes, len, &is_exact) == 0);
	CHECK_STR(out.data, want);
	CHECK(is_exact == want_exact);
}

static void strings_are_ascii(void)
{
	check_string("", 0, "\"\"", true);
	check_string("plain", 5, "\"plain\"", true);
	check_string("\"\\\b\t\n\f\r", 7, "\"\\\"\\\\\\b\\t\\n\\f\\r\"", true);
	check_string("\x01\x1f\x7f", 3, "\"\\u0001\\u001f\\u007f\"", true);
	check_string("\xc3\xa9", 2, "\"\\u00e9\"", true);
	check_string("\xe2\x80\xa8", 3, "\"\\u2028\"", true);
	check_string("\xf0\x9f\x98\x80", 4, "\"\\ud83d\\ude00\"", true);
	check_string("a\0b", 3, "\"a\\u0000b\"", false);
	check_string("a\xff"
	             "b",
	             3, "\"a\\ufffdb\"", false);
	check_string("\xef\xbf\xbd", 3, "\"\\ufffd\"", true); /* a real U+FFFD */
}

/* Every character there is, and back through jansson. */
static void every_character_comes_back(void)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(8 << 20), out = BUF_INIT(32 << 20);
	json_t *value;

	for (uint32_t c = 1; c <= 0x10ffff; c = c == 0xd7ff ? 0xe000 : c + 1) {
		char bytes[4];
		size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

		for (size_t i = n; i-- > 1;)
			bytes[i] = (char) (0x80 | (c >> (6 * (n - 1 - i)) & 0x3f));
		bytes[0] = (char) (n == 1 ? c : (0xf00u >> n & 0xff) | c >> (6 * (n - 1)));
		CHECK(buf_add(&text, bytes, n) == 0);
	}
	CHECK(json_add_string(&out, text.data, text.len, NULL) == 0);
	for (size_t i = 0; i < out.len; i++)
		CHECK(out.data[i] >= 0x20 && out.data[i] < 0x7f);
	value = json_loadb(out.data, out.len, JSON_DECODE_ANY, NULL);
	CHECK(json_is_string(value) && json_string_length(value) == text.len);
	CHECK(memcmp(json_string_value(value), text.data, text.len) == 0);
	json_decref(value);
}

static void keeps_the_bound(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(7);

	CHECK(json_add_string(&out, "123456", 6, NULL) == -E2BIG);
	CHECK(out.len == 0);
	CHECK(json_add_string(&out, "12345", 5, NULL) == 0);
	CHECK_STR(out.data, "\"12345\"");
}

static void text_becomes_one_ascii_line(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(256);

	CHECK(json_add_text(&out, "{\n\t\"\xc3\xa9\": \"\xf0\x9f\x98\x80\"\r\n}") == 0);
	CHECK_STR(out.data, "{  \"\\u00e9\": \"\\ud83d\\ude00\"  }");
}

static void compact_text_has_no_space_between_tokens(void)
{
	static const char json[] =
		" {\n\t\"a b\\\" \xc3\xa9\" : [ 1e-9 , 18446744073709551615 ,true ]\r\n} ";
	CLEANUP(buf_done) struct buf out = BUF_INIT(256);

	CHECK(json_add_compact(&out, json, sizeof(json) - 1) == 0);
	CHECK_STR(out.data, "{\"a b\\\" \\u00e9\":[1e-9,18446744073709551615,true]}");
}

static void numbers_and_members(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(256);

	CHECK(buf_add_str(&out, "{") == 0);
	CHECK(json_add_member(&out, "a", "b") == 0);
	CHECK(json_add_member(&out, "c", NULL) == 0);
	CHECK(buf_add_str(&out, ":") == 0);
	CHECK(json_add_u64(&out, 0) == 0);
	CHECK(json_add_u64(&out, UINT64_MAX) == 0);
	CHECK_STR(out.data, "{\"a\":\"b\",\"c\":\"\":018446744073709551615");
}

static void depth_is_bounded(void)
{
	char deep[2 * JSON_DEPTH_MAX + 3];

	memset(deep, '[', JSON_DEPTH_MAX);
	memset(deep + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
	CHECK(json_is_tame(deep, 2 * JSON_DEPTH_MAX));
	memset(deep, '[', JSON_DEPTH_MAX + 1);
	CHECK(!json_is_tame(deep, JSON_DEPTH_MAX + 1));
	CHECK(json_is_tame("\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[\"", 46));
	CHECK(json_is_tame("\"\\", 2));
	CHECK(json_is_tame("]]]]", 4));
}

static void nul_is_refused(void)
{
	CHECK(!json_is_tame("{\"a\":1\0}", 8)); /* jansson would take it */
	CHECK(!json_is_tame("\0", 1));
	CHECK(json_is_tame("", 0));
}

int main(void)
{
	RUN(strings_are_ascii);
	RUN(every_character_comes_back);
	RUN(keeps_the_bound);
	RUN(text_becomes_one_ascii_line);
	RUN(compact_text_has_no_space_between_tokens);
	RUN(numbers_and_members);
	RUN(depth_is_bounded);
	RUN(nul_is_refused);
	return check_done();
}
