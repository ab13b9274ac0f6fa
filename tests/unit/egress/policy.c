/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "check.h"

#include "base/cleanup.h"
#include "egress/policy.h"

static struct resoluto_err err;

/* What the pattern is written as, and what of it was ignored. */
static void expect(const char *text, bool is_wide, const char *want, const char *want_ignored)
{
	CLEANUP(buf_done) struct buf written = BUF_INIT(1024);
	struct egress_pattern pattern, again;
	const char *ignored = "unset";

	memset(&err, 0, sizeof(err));
	if (egress_pattern_parse(text, is_wide, &pattern, &ignored, &err) < 0)
		CHECK_STR(err.text, "");
	CHECK(egress_pattern_write(&pattern, &written) == 0);
	CHECK_STR(written.data, want);
	if (want_ignored)
		CHECK_STR(ignored, want_ignored);
	else
		CHECK(!ignored);
	/* The canonical text stands for the same pattern. */
	CHECK(egress_pattern_parse(written.data, is_wide, &again, NULL, &err) == 0);
	CHECK(again.port == pattern.port && again.is_plain == pattern.is_plain);
	CHECK(again.is_wildcard == pattern.is_wildcard);
	CHECK_STR(again.name.text, pattern.name.text);
}

static void refuse(const char *text, bool is_wide, const char *words)
{
	struct egress_pattern pattern = { .port = 7 };

	memset(&err, 0, sizeof(err));
	CHECK(egress_pattern_parse(text, is_wide, &pattern, NULL, &err) == -EINVAL);
	CHECK(pattern.port == 7);
	if (!strstr(err.text, words))
		CHECK_STR(err.text, words);
}

static void reads_names_and_ports(void)
{
	expect("example.org", false, "example.org:443", NULL);
	expect("Example.ORG.", false, "example.org:443", NULL);
	expect("example.org:8443", false, "example.org:8443", NULL);
	expect("example.org:1", false, "example.org:1", NULL);
	expect("example.org:65535", false, "example.org:65535", NULL);
	expect("localhost", false, "localhost:443", NULL);
	expect("xn--mnchen-3ya.de", false, "xn--mnchen-3ya.de:443", NULL);
	expect("*.example.org", false, "*.example.org:443", NULL);
	expect("*.example.org:22", false, "*.example.org:22", NULL);
}

static void reads_urls(void)
{
	expect("https://example.org", false, "example.org:443", NULL);
	expect("HTTPS://example.org/", false, "example.org:443", NULL);
	expect("https://example.org/simple/", false, "example.org:443", "/simple/");
	expect("https://example.org?q=1", false, "example.org:443", "?q=1");
	expect("https://example.org:8443/a:b@c", false, "example.org:8443", "/a:b@c");
	expect("https://example.org:80", false, "example.org:80", NULL);
	expect("http://example.org", false, "http://example.org:80", NULL);
	expect("http://example.org:8080/x#y", false, "http://example.org:8080", "/x#y");
	expect("Http://*.example.org", false, "http://*.example.org:80", NULL);
	refuse("ftp://example.org", false, "only https:// and http://");
	refuse("://example.org", false, "only https:// and http://");
	refuse("https://", false, "a host name is missing");
	refuse("https:///x", false, "a host name is missing");
	refuse("https://user@example.org", false, "a user or password");
	refuse("http://https://example.org", false, "a port is a number");
	refuse("example.org/simple", false, "without a path");
	refuse("example.org/", false, "without a path");
}

static void a_password_is_not_repeated(void)
{
	refuse("https://user:hunter2@example.org", false, "a user or password");
	CHECK(!strstr(err.text, "hunter2") && strstr(err.text, "@example.org"));
}

static void wildcards(void)
{
	refuse("*", false, "--egress-wide");
	refuse("*:443", false, "--egress-wide");
	refuse("*.com", false, "--egress-wide");
	refuse("*.com.", false, "--egress-wide");
	refuse("http://*", false, "--egress-wide");
	expect("*", true, "*:443", NULL);
	expect("*:8443", true, "*:8443", NULL);
	expect("http://*", true, "http://*:80", NULL);
	expect("*.com", true, "*.com:443", NULL);
	refuse("*.", true, "a host name is missing");
	refuse("*.*.org", true, "whole labels");
	refuse("**.org", true, "whole labels");
	refuse("a*.example.org", false, "whole labels");
	refuse("*a.example.org", false, "whole labels");
	refuse("a.*.org", false, "whole labels");
	refuse("*.example.*", true, "whole labels");
	refuse("*.1.2", true, "only names");
	refuse(".example.org", false, "*.example.org");
}

static void ports(void)
{
	static const char *const texts[] = { "a.org:0",
		                             "a.org:70000",
		                             "a.org:65536",
		                             "a.org:",
		                             "a.org:-1",
		                             "a.org:+1",
		                             "a.org:0443",
		                             "a.org:http",
		                             "a.org:4 3",
		                             "a.org:443x",
		                             "a.org:99999999999999999999" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		refuse(texts[i], true, "1 to 65535");
	refuse(":443", true, "a host name is missing");
	refuse("http://a.org:0/", true, "1 to 65535");
}

static void addresses(void)
{
	refuse("10.0.0.0/8", true, "CIDR");
	refuse("fd00::/8", true, "CIDR");
	refuse("1.1.1.1", true, "only names");
	refuse("1.1.1.1:443", true, "only names");
	refuse("https://1.1.1.1/dns-query", true, "only names");
	refuse("::1", true, "only names");
	refuse("[::1]:443", true, "only names");
	refuse("https://[2606:4700::1111]/", true, "only names");
	refuse("0x7f000001", true, "only names");
	refuse("2130706433", true, "only names");
}

static void what_is_no_name(void)
{
	refuse("", false, "a host name is missing");
	refuse("a_b.org", false, "underscore");
	refuse("m\xc3\xbcnchen.de", false, "xn--");
	CHECK(strstr(err.text, "m\\xc3\\xbcnchen.de")); /* never raw on a terminal */
	refuse("a.org,b.org", false, "one name each");
	refuse(" a.org", false, "one name each");
	refuse("a..org", false, "no host name");
	refuse("-a.org", false, "no host name");
	refuse("a\x1b[2J.org", false, "no host name");
}

static void long_patterns(void)
{
	char text[8192] = "https://a.org/";

	memset(text + 14, 'x', 4096 - 14);
	text[4096] = '\0';
	expect(text, false, "a.org:443", text + 13);
	text[4096] = 'x';
	text[4097] = '\0';
	refuse(text, false, "more than 4096 bytes");
	memset(text, 'a', 300);
	text[300] = '\0';
	refuse(text, false, "no host name");
	CHECK(strlen(err.text) < RESOLUTO_ERR_TEXT - 1);
}

static void add(struct egress_policy *policy, const char *text)
{
	struct egress_pattern pattern;

	CHECK(egress_pattern_parse(text, true, &pattern, NULL, &err) == 0);
	CHECK(egress_policy_add(policy, &pattern, &err) == 0);
}

static struct egress_name name_of(const char *text)
{
	struct egress_name name;

	CHECK(egress_name_parse(text, strlen(text), &name) == EGRESS_NONE);
	return name;
}

static void check(const struct egress_policy *policy, const char *text, uint16_t port,
                  enum egress_reason want, bool want_plain)
{
	struct egress_name name = name_of(text);
	bool is_plain = !want_plain;
	enum egress_reason got = egress_policy_check(policy, &name, port, &is_plain);

	if (got != want)
		printf("# %s:%u: %s\n", text, port, egress_reason_name(got));
	CHECK(got == want);
	CHECK(is_plain == want_plain);
	CHECK(egress_policy_has_name(policy, &name) == (want != EGRESS_NOT_ALLOWED));
}

static void nothing_allows_nothing(void)
{
	CLEANUP(egress_policy_done) struct egress_policy policy = EGRESS_POLICY_NONE;
	struct egress_name name = name_of("a.org");
	uint16_t port;

	check(&policy, "a.org", 443, EGRESS_NOT_ALLOWED, false);
	CHECK(egress_policy_ports(&policy, &name, &port, 1) == 0);
	policy.is_wide = true;
	check(&policy, "a.org", 443, EGRESS_NOT_ALLOWED, false);
}

static void decides(void)
{
	CLEANUP(egress_policy_done) struct egress_policy policy = EGRESS_POLICY_NONE;

	add(&policy, "a.org");
	add(&policy, "a.org:8443");
	add(&policy, "*.b.org");
	add(&policy, "http://c.org");
	add(&policy, "http://d.org:443");
	add(&policy, "d.org:443");
	check(&policy, "a.org", 443, EGRESS_NONE, false);
	check(&policy, "a.org", 8443, EGRESS_NONE, false);
	check(&policy, "a.org", 80, EGRESS_PORT_NOT_ALLOWED, false);
	check(&policy, "x.a.org", 443, EGRESS_NOT_ALLOWED, false);
	check(&policy, "xa.org", 443, EGRESS_NOT_ALLOWED, false);
	check(&policy, "a.org.evil.com", 443, EGRESS_NOT_ALLOWED, false);
	check(&policy, "b.org", 443, EGRESS_NOT_ALLOWED, false);
	check(&policy, "x.b.org", 443, EGRESS_NONE, false);
	check(&policy, "x.y.b.org", 443, EGRESS_NONE, false);
	check(&policy, "x.b.org", 80, EGRESS_PORT_NOT_ALLOWED, false);
	check(&policy, "xb.org", 443, EGRESS_NOT_ALLOWED, false);
	check(&policy, "www-b.org", 443, EGRESS_NOT_ALLOWED, false);
	check(&policy, "c.org", 80, EGRESS_NONE, true);
	check(&policy, "c.org", 443, EGRESS_PORT_NOT_ALLOWED, false);
	check(&policy, "d.org", 443, EGRESS_NONE, false); /* the plain one never counts */
}

static void wide_ones(void)
{
	CLEANUP(egress_policy_done) struct egress_policy policy = EGRESS_POLICY_NONE;

	add(&policy, "*.com");
	check(&policy, "x.com", 443, EGRESS_NONE, false);
	check(&policy, "com", 443, EGRESS_NOT_ALLOWED, false);
	check(&policy, "x.org", 443, EGRESS_NOT_ALLOWED, false);
	add(&policy, "*:8443");
	check(&policy, "x.org", 8443, EGRESS_NONE, false);
	check(&policy, "x.org", 443, EGRESS_PORT_NOT_ALLOWED, false);
}

static void learns(void)
{
	CLEANUP(egress_policy_done) struct egress_policy policy = EGRESS_POLICY_NONE;
	struct egress_name name = name_of("a.org");
	uint16_t list[2];

	policy.is_learning = true;
	check(&policy, "a.org", 443, EGRESS_LEARNING, false);
	check(&policy, "a.org", 80, EGRESS_LEARNING, true);
	CHECK(egress_policy_ports(&policy, &name, list, 2) == 2);
	CHECK(list[0] == 443 && list[1] == 80);
	add(&policy, "a.org:80");
	check(&policy, "a.org", 80, EGRESS_LEARNING, false);
}

static void lists_ports(void)
{
	CLEANUP(egress_policy_done) struct egress_policy policy = EGRESS_POLICY_NONE;
	struct egress_name name = name_of("x.a.org");
	uint16_t list[3] = { 0 };

	add(&policy, "x.a.org");
	add(&policy, "*.a.org");
	add(&policy, "*.a.org:65535");
	add(&policy, "http://x.a.org");
	add(&policy, "b.org:1");
	CHECK(egress_policy_ports(&policy, &name, list, 3) == 3);
	CHECK(list[0] == 443 && list[1] == 65535 && list[2] == 80);
	list[1] = 0;
	CHECK(egress_policy_ports(&policy, &name, list, 1) == 3);
	CHECK(list[1] == 0);
	CHECK(egress_policy_ports(&policy, &name, NULL, 0) == 3);
}

static void the_same_counts_once(void)
{
	CLEANUP(egress_policy_done) struct egress_policy policy = EGRESS_POLICY_NONE;

	add(&policy, "a.org");
	add(&policy, "https://A.org:443/");
	CHECK(policy.count == 1);
	add(&policy, "http://a.org:443");
	add(&policy, "*.a.org");
	CHECK(policy.count == 3);
}

static void three_hundred_patterns(void)
{
	CLEANUP(egress_policy_done) struct egress_policy policy = EGRESS_POLICY_NONE;
	char text[64];

	for (int i = 0; i < 300; i++) {
		snprintf(text, sizeof(text), "%sn%d.example.org:%d", i % 2 ? "*." : "", i,
		         1000 + i);
		add(&policy, text);
	}
	CHECK(policy.count == 300);
	check(&policy, "n0.example.org", 1000, EGRESS_NONE, false);
	check(&policy, "x.n299.example.org", 1299, EGRESS_NONE, false);
	check(&policy, "n299.example.org", 1299, EGRESS_NOT_ALLOWED, false);
	check(&policy, "n298.example.org", 1297, EGRESS_PORT_NOT_ALLOWED, false);
	check(&policy, "n300.example.org", 1300, EGRESS_NOT_ALLOWED, false);
}

static void too_many_patterns(void)
{
	CLEANUP(egress_policy_done) struct egress_policy policy = EGRESS_POLICY_NONE;
	struct egress_pattern pattern = { .name = name_of("a.org") };

	for (int i = 1; i <= EGRESS_PATTERNS_MAX; i++) {
		pattern.port = (uint16_t) i;
		CHECK(egress_policy_add(&policy, &pattern, &err) == 0);
	}
	CHECK(egress_policy_add(&policy, &pattern, &err) == 0); /* there already */
	pattern.port = EGRESS_PATTERNS_MAX + 1;
	CHECK(egress_policy_add(&policy, &pattern, &err) == -E2BIG);
	CHECK(policy.count == EGRESS_PATTERNS_MAX);
}

static int add_file(struct egress_policy *policy, const char *text, size_t len)
{
	memset(&err, 0, sizeof(err));
	return egress_policy_add_file(policy, "list.txt", (struct span){ text, len }, NULL, NULL,
	                              &err);
}

static void reads_files(void)
{
	CLEANUP(egress_policy_done) struct egress_policy policy = EGRESS_POLICY_NONE;
	static const char text[] = "\xef\xbb\xbf# what pip needs\r\n\n  pypi.org\t# the index\r\n"
				   "https://files.pythonhosted.org/x\n#*\nhttp://deb.debian.org";

	CHECK(add_file(&policy, text, sizeof(text) - 1) == 0);
	CHECK(policy.count == 3);
	check(&policy, "pypi.org", 443, EGRESS_NONE, false);
	check(&policy, "files.pythonhosted.org", 443, EGRESS_NONE, false);
	check(&policy, "deb.debian.org", 80, EGRESS_NONE, true);
	CHECK(add_file(&policy, "", 0) == 0 && policy.count == 3);
}

static void files_say_where(void)
{
	CLEANUP(egress_policy_done) struct egress_policy policy = EGRESS_POLICY_NONE;

	CHECK(add_file(&policy, "a.org\n\nb_c.org\n", 15) == -EINVAL);
	CHECK(strstr(err.text, "list.txt: line 3") && strstr(err.text, "underscore"));
	CHECK(add_file(&policy, "a.org\n*\n", 8) == -EINVAL);
	CHECK(strstr(err.text, "line 2") && strstr(err.text, "--egress-wide"));
	CHECK(add_file(&policy, "a.org\0.evil\n", 12) == -EINVAL);
	CHECK(strstr(err.text, "line 1") && strstr(err.text, "NUL"));
	CHECK(add_file(&policy, "a.org b.org\n", 12) == -EINVAL);
	CHECK(add_file(&policy, "a.org\nx", EGRESS_FILE_MAX + 1) == -E2BIG);
	policy.is_wide = true;
	CHECK(add_file(&policy, "*\n", 2) == 0);
}

int main(void)
{
	RUN(reads_names_and_ports);
	RUN(reads_urls);
	RUN(a_password_is_not_repeated);
	RUN(wildcards);
	RUN(ports);
	RUN(addresses);
	RUN(what_is_no_name);
	RUN(long_patterns);
	RUN(nothing_allows_nothing);
	RUN(decides);
	RUN(wide_ones);
	RUN(learns);
	RUN(lists_ports);
	RUN(the_same_counts_once);
	RUN(three_hundred_patterns);
	RUN(too_many_patterns);
	RUN(reads_files);
	RUN(files_say_where);
	return check_done();
}
