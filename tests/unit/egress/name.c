/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "egress/name.h"

static void expect_bytes(const void *bytes, size_t len, const char *want)
{
	struct egress_name name = { "unset" };

	CHECK(egress_name_parse(bytes, len, &name) == EGRESS_NONE);
	CHECK_STR(name.text, want);
}

static void expect(const char *text, const char *want)
{
	expect_bytes(text, strlen(text), want);
}

static void refuse_bytes(const void *bytes, size_t len, enum egress_reason want)
{
	struct egress_name name = { "unset" };
	enum egress_reason got = egress_name_parse(bytes, len, &name);

	if (got != want)
		printf("# %.*s\n", (int) len, (const char *) bytes);
	CHECK(got == want);
	CHECK_STR(name.text, "unset");
}

static void refuse(const char *text, enum egress_reason want)
{
	refuse_bytes(text, strlen(text), want);
}

static void folds_and_drops(void)
{
	expect("example.org", "example.org");
	expect("EXAMPLE.Org", "example.org");
	expect("example.org.", "example.org");
	expect("localhost", "localhost");
	expect("a", "a");
	expect("x-1.3com.de", "x-1.3com.de");
	expect("xn--mnchen-3ya.de", "xn--mnchen-3ya.de");
	expect("1.2.3.4.in-addr.arpa", "1.2.3.4.in-addr.arpa");
	expect("4.example", "4.example");
	expect("0xz", "0xz");
	expect("1e100.net", "1e100.net");
	expect("12a", "12a");
	expect_bytes("example.org/path", 11, "example.org");
}

static void refuses_what_is_no_name(void)
{
	static const char *const texts[] = { "",
		                             ".",
		                             "..",
		                             "a..b",
		                             ".a",
		                             "a..",
		                             "-a.org",
		                             "a-.org",
		                             "a.-b",
		                             "a.b-",
		                             "a_b.org",
		                             "_dns.a",
		                             "a b.org",
		                             " a.org",
		                             "a.org ",
		                             "a.org\n",
		                             "*.a.org",
		                             "*",
		                             "a.org:443",
		                             "a.org/",
		                             "m\xc3\xbcnchen.de",
		                             "a@b",
		                             "a,b",
		                             "a.org\x7f",
		                             "http://a.org",
		                             "a%2eorg",
		                             ":",
		                             "a:b" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		refuse(texts[i], EGRESS_NAME_MALFORMED);
	refuse_bytes("a\0b.org", 7, EGRESS_NAME_MALFORMED);
	refuse_bytes("a.org\0", 6, EGRESS_NAME_MALFORMED);
	refuse_bytes("\0", 1, EGRESS_NAME_MALFORMED);
}

static void refuses_addresses(void)
{
	static const char *const texts[] = {
		"127.0.0.1",
		"127.0.0.1.",
		"127.1",
		"1",
		"0",
		"2130706433",
		"0x7f000001",
		"0x7F.1",
		"0177.0.0.1",
		"1.2.3.0x",
		"a.b.1",
		"example.0x7f",
		"999.999.999",
		"::1",
		"::",
		"[::1]",
		"[::1]:80",
		"fe80::1%eth0",
		"FD00:EC2::254",
		"::ffff:10.0.0.1",
		"64:ff9b::a9fe:a9fe",
		"1:2:3:4:5:6:7:8",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		refuse(texts[i], EGRESS_NAME_ADDRESS);
}

/* `labels` labels of `len` bytes each and a last one. */
static size_t long_name(char *text, size_t len, size_t labels, size_t last)
{
	size_t at = 0;

	for (size_t i = 0; i < labels; i++) {
		memset(text + at, 'a', len);
		at += len;
		text[at++] = '.';
	}
	memset(text + at, 'z', last);
	return at + last;
}

static void lengths(void)
{
	char text[600], want[600];
	size_t len = long_name(text, 63, 3, 61);

	CHECK(len == 253);
	memcpy(want, text, len);
	want[len] = '\0';
	expect_bytes(text, len, want);
	text[len] = '.';
	expect_bytes(text, len + 1, want);
	text[len + 1] = '.';
	refuse_bytes(text, len + 2, EGRESS_NAME_MALFORMED);
	refuse_bytes(text, long_name(text, 63, 3, 62), EGRESS_NAME_MALFORMED);
	refuse_bytes(text, long_name(text, 63, 3, 63), EGRESS_NAME_MALFORMED); /* 255 bytes */
	refuse_bytes(text, long_name(text, 64, 1, 3), EGRESS_NAME_MALFORMED);
	refuse_bytes(text, long_name(text, 3, 1, 64), EGRESS_NAME_MALFORMED);
	refuse_bytes(text, long_name(text, 1, 250, 1), EGRESS_NAME_MALFORMED);
}

int main(void)
{
	RUN(folds_and_drops);
	RUN(refuses_what_is_no_name);
	RUN(refuses_addresses);
	RUN(lengths);
	return check_done();
}
