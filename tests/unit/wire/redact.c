/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/cleanup.h"
#include "check.h"
#include "wire/redact.h"

#define GITHUB "ghp_0123456789abcdefghijABCDEFGHIJ012345"
#define JWT "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6y"
#define M REDACT_MARK

static void check_with(const char *const *values, bool with_patterns, const char *text,
                       const char *want, uint64_t want_count)
{
	CLEANUP(redactor_free) struct redactor *redactor = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);

	CHECK(redactor_new(values, with_patterns, &redactor) == 0);
	CHECK(redact_text(redactor, text, &out) == 0);
	CHECK_STR(out.data, want);
	CHECK(redactor_count(redactor) == want_count);
}

static void check_pattern(const char *text, const char *want)
{
	check_with(NULL, true, text, want, 1);
}

static void check_plain(const char *text)
{
	check_with(NULL, true, text, text, 0);
}

static void authorization_headers(void)
{
	check_pattern("Authorization: Bearer abc.def\r\nHost: x",
	              "Authorization: Bearer " M "\r\nHost: x");
	check_pattern("> authorization:basic dXNlcjpwYXNz", "> authorization:basic " M);
	check_pattern("AUTHORIZATION: TOKEN abc def", "AUTHORIZATION: TOKEN " M " def");
	check_pattern("curl -H 'Authorization: Bearer abc' https://x",
	              "curl -H 'Authorization: Bearer " M "' https://x");
	check_pattern("{\"Authorization\": \"Bearer abc\", \"a\": 1}",
	              "{\"Authorization\": \"Bearer " M "\", \"a\": 1}");
	check_pattern("{'authorization': 'Basic abc'}", "{'authorization': 'Basic " M "'}");
	check_pattern("{b'Authorization': b'Bearer abc'}", "{b'Authorization': b'Bearer " M "'}");
	check_pattern("{\\\"authorization\\\":\\\"Bearer abc\\\"}",
	              "{\\\"authorization\\\":\\\"Bearer " M "\\\"}");
	check_pattern("map[Authorization:[Bearer abc]", "map[Authorization:[Bearer " M);
	check_pattern("Proxy-Authorization: Basic abc\n", "Proxy-Authorization: Basic " M "\n");
	check_pattern("authorization: s3cr3t-without-scheme\n", "authorization: " M "\n");
	check_pattern("authorization: Odd abc\n", "authorization: " M "\n");
	check_pattern("\"authorization\": \"a \\\"quoted\\\" secret\", 1",
	              "\"authorization\": \"" M "\", 1");
	check_pattern("Authorization: Digest username=\"u\", response=\"1\"\nx",
	              "Authorization: Digest " M "\nx");
	check_pattern("Authorization: AWS4-HMAC-SHA256 Credential=A/b, Signature=c\r\n",
	              "Authorization: AWS4-HMAC-SHA256 " M "\r\n");
	check_pattern("authorization=Bearer abc", "authorization=Bearer " M);
	check_pattern("authorization => Bearer abc", "authorization => Bearer " M);
}

static void authorization_without_a_credential(void)
{
	check_plain("Authorization: Bearer\n");
	check_plain("Authorization: Bearer");
	check_plain("Authorization:\n");
	check_plain("Authorization is required");
	check_plain("authorizations: none");
	check_plain("{\"authorization\": null}");
	check_plain("{\"authorization\": \"\"}");
	check_plain("authorization");
	check_plain("author");
}

static void access_tokens(void)
{
	check_pattern("https://x-access-token:abc@github.com/a", "https://" M "@github.com/a");
	check_pattern("x-access-token:abc@github.com", "x-access-token:" M "@github.com");
	check_pattern("X-Access-Token: abc\r\n", "X-Access-Token: " M "\r\n");
	check_pattern("{\"x-access-token\": \"abc@def\"}", "{\"x-access-token\": \"" M "\"}");
	check_plain("x-access-token:@github.com");
	check_plain("x-access-tokens");
}

static void url_credentials(void)
{
	check_pattern("git clone https://me:p%40ss@host/x", "git clone https://" M "@host/x");
	check_pattern("postgres://u:p:q'r@db:5432/x", "postgres://" M "@db:5432/x");
	check_pattern("redis://:secret@h", "redis://" M "@h");
	check_pattern("https://" GITHUB ":x-oauth-basic@github.com", "https://" M "@github.com");
	check_plain("https://host:8080/path@x");
	check_plain("https://user@host/");
	check_plain("https://user:@host/");
	check_plain("http://host:80 mail me@host");
	check_plain("see http://a:b\n@c");
	check_plain("://");
	check_plain("http://[::1]:80/@");
}

static void aws_values(void)
{
	check_pattern("AWS_SECRET_ACCESS_KEY=wJalr/K7+x=\nB=1", "AWS_SECRET_ACCESS_KEY=" M "\nB=1");
	check_pattern("export AWS_SESSION_TOKEN=\"a b\" x", "export AWS_SESSION_TOKEN=\"" M "\" x");
	check_pattern("aws_secret_access_key = abc\r\n", "aws_secret_access_key = " M "\r\n");
	check_pattern("{\"aws_session_token\":\"abc\"}", "{\"aws_session_token\":\"" M "\"}");
	check_pattern("{'AWS_SECRET_ACCESS_KEY': 'abc', 'b': 'c'}",
	              "{'AWS_SECRET_ACCESS_KEY': '" M "', 'b': 'c'}");
	check_pattern("env[\"AWS_SECRET_ACCESS_KEY\"] = \"abc\"",
	              "env[\"AWS_SECRET_ACCESS_KEY\"] = \"" M "\"");
	check_pattern("\"SecretAccessKey\": \"abc\",", "\"SecretAccessKey\": \"" M "\",");
	check_pattern("\"SessionToken\": \"abc\"", "\"SessionToken\": \"" M "\"");
	check_pattern("{\\\"aws_secret_access_key\\\":\\\"abc\\\"}",
	              "{\\\"aws_secret_access_key\\\":\\\"" M "\\\"}");
	check_pattern("aws_secret_access_key: nullable", "aws_secret_access_key: " M);
	check_plain("aws_secret_access_key is missing");
	check_plain("AWS_SECRET_ACCESS_KEY=\n");
	check_plain("{\"aws_session_token\": null, \"a\": \"b\"}");
	check_plain("aws_session_token=");
	check_plain("aws_access_key_id=AKIA");
}

static void github_tokens(void)
{
	check_pattern("token " GITHUB ".", "token " M ".");
	check_pattern("x" GITHUB "\n", "x" M "\n");
	check_pattern("gho_01234567890123456789", M);
	check_pattern("ghu_01234567890123456789 ghs_short", M " ghs_short");
	check_pattern("ghs_01234567890123456789-", M "-");
	check_pattern("ghr_012345678901234567890123456789", M);
	check_pattern("github_pat_01234567890_0123456789", M);
	check_plain("ghp_0123456789012345678");
	check_plain("ghx_01234567890123456789");
	check_plain("github_pat_short");
	check_plain("ghp_");
	check_plain("git gh g");
}

static void jwts(void)
{
	check_pattern("cookie " JWT "; path", "cookie " M "; path");
	check_pattern("a\\n" JWT "\"", "a\\n" M "\"");
	check_plain("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0");
	check_plain("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.short");
	check_plain("x" JWT);
	check_plain("eyJ.eyJ.eyJ");
	check_plain("eyJ2ZXJzaW9uIjozfQ== data");
	check_plain("eyJ");
}

static void values_in_all_their_forms(void)
{
	static const char *const values[] = { "hunter2!",
		                              "line-one-is-long\nshort\nline-two-is-long\n", "abc",
		                              NULL };

	check_with(values, false, "pw=hunter2!.", "pw=" M ".", 1);
	check_with(values, false, "hunter2!hunter2!", M M, 2);
	check_with(values, false, "hunter2 abc short", "hunter2 abc short", 0);
	check_with(values, false, "line-two-is-long\r\n", M "\r\n", 1);
	check_with(values, false, "x line-one-is-long\nshort\nline-two-is-long\n", "x " M "\n", 1);
	check_with(values, false, "aHVudGVyMiE=", M "E=", 1);            /* base64 of hunter2! */
	check_with(values, false, "eGh1bnRlcjIh", "eG" M, 1);            /* of xhunter2! */
	check_with(values, false, "eHhodW50ZXIyIXk=", "eHh" M "Xk=", 1); /* of xxhunter2!y */
}

static void base64_of_either_alphabet(void)
{
	static const char *const values[] = { "\xfb\xff\xfe\xfb\xff\xfe", NULL };

	check_with(values, false, "+//++//+", M, 1);
	check_with(values, false, "-__--__-", M, 1);
}

static void wrapped_base64(void)
{
	static const char value[] =
		"0123456789012345678901234567890123456789012345678901234567890123456789";
	static const char *const values[] = { value, NULL };

	check_with(values, false,
	           "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2\n"
	           "Nzg5MDEyMzQ1Njc4OQ==\n",
	           M "\n" M "Q==\n", 2);
}

static void overlapping_values_are_one_run(void)
{
	static const char *const values[] = { "abcdef", "defghi", "cdef", "aaaa", NULL };

	check_with(values, false, "xabcdefghiy", "x" M "y", 1);
	check_with(values, false, "xcdefghi", "x" M, 1);
	check_with(values, false, "aaaaaaaaaaaaaaaaaaaaaaaaaaaab", M "b", 1);
	check_with(values, false, "aaa", "aaa", 0);
}

static void values_and_patterns_together(void)
{
	static const char *const values[] = { "sesame", NULL };

	check_with(values, true, "Authorization: Bearer open-sesame", "Authorization: Bearer " M,
	           2);
	check_with(values, true, "open sesame " GITHUB, "open " M " " M, 2);
	check_with(values, false, GITHUB, GITHUB, 0);
}

static void long_values_are_found_whole(void)
{
	static char value[10001], text[10101], want[256];
	const char *const values[] = { value, NULL };
	uint32_t seed = 7;

	for (size_t i = 0; i < sizeof(value) - 1; i++)
		value[i] = (char) ('a' + ((seed = seed * 1664525 + 1013904223) >> 24) % 26);
	snprintf(text, sizeof(text), "<%s>", value);
	snprintf(want, sizeof(want), "<%s%s%s>", M, M, M);
	check_with(values, false, text, want, 3);
}

static void too_many_values_are_refused(void)
{
	CLEANUP(mem_free) char *value = malloc(REDACT_VALUES_MAX + 2);
	struct redactor *redactor = NULL;

	memset(value, 'v', REDACT_VALUES_MAX + 1);
	value[REDACT_VALUES_MAX + 1] = '\0';
	CHECK(redactor_new((const char *const[]){ value, NULL }, true, &redactor) == -E2BIG);
	CHECK(!redactor);
}

/* Feed in pieces whose sizes come from the seed; 0 feeds byte by byte. */
static void feed_split(struct redactor *redactor, const char *text, size_t len, uint32_t seed,
                       struct buf *out)
{
	CLEANUP(redact_stream_free) struct redact_stream *stream = NULL;
	size_t at = 0, n = 1;

	CHECK(redact_stream_new(redactor, &stream) == 0);
	for (; at < len; at += n) {
		if (seed) {
			seed = seed * 1664525 + 1013904223;
			n = seed >> (seed % 3 ? 28 : 20);
		}
		n = n < len - at ? n : len - at;
		CHECK(redact_stream_feed(stream, text + at, n, out) == 0);
	}
	CHECK(redact_stream_end(stream, out) == 0);
}

static void check_splits(struct redactor *redactor, const char *text, size_t len)
{
	CLEANUP(buf_done) struct buf whole = BUF_INIT(4 << 20);
	uint64_t count = redactor_count(redactor), whole_count;
	CLEANUP(redact_stream_free) struct redact_stream *stream = NULL;

	CHECK(redact_stream_new(redactor, &stream) == 0);
	CHECK(redact_stream_feed(stream, text, len, &whole) == 0);
	CHECK(redact_stream_end(stream, &whole) == 0);
	whole_count = redactor_count(redactor) - count;
	for (uint32_t seed = 0; seed < 12; seed++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT(4 << 20);

		count = redactor_count(redactor);
		feed_split(redactor, text, len, seed, &out);
		CHECK(out.len == whole.len && memcmp(out.data, whole.data, out.len) == 0);
		CHECK(redactor_count(redactor) - count == whole_count);
	}
}

/* Texts put together from the parts patterns are made of, so that near misses are frequent. */
static void splits_make_no_difference(void)
{
	static const char *const parts[] = {
		"Authorization",
		"authorization",
		":",
		"=",
		" ",
		"Bearer",
		"Basic ",
		"Digest ",
		"\"",
		"'",
		"\\",
		"\n",
		"x-access-token",
		"@",
		"://",
		"https",
		"user",
		"aws_secret_access_key",
		"AWS_SESSION_TOKEN",
		"SecretAccessKey",
		"ghp_",
		"gh",
		"github_pat_",
		"0123456789",
		"abcdefghijkl",
		"eyJ",
		"eyJhbGciOiJI",
		".",
		"null",
		"sesame",
		"ses",
		"secret-value",
		"aaaa",
		"a",
		"e",
		"g",
		"b'",
		"[",
		"\xc3\xa9",
		"\xff",
		"x",
		"aws_se",
	};
	static const char *const values[] = { "sesame",   "secret-value", "aaaa", "e.ses",
		                              "Bearer a", "yJhb",         NULL };
	CLEANUP(redactor_free) struct redactor *redactor = NULL;
	CLEANUP(redactor_free) struct redactor *patterns = NULL;
	uint32_t seed = 42;

	CHECK(redactor_new(values, true, &redactor) == 0);
	CHECK(redactor_new(NULL, true, &patterns) == 0);
	for (int round = 0; round < 3000; round++) {
		CLEANUP(buf_done) struct buf text = BUF_INIT(1 << 20);
		unsigned count = (seed = seed * 1664525 + 1013904223) >> 27;

		for (unsigned i = 0; i < count + 2; i++) {
			seed = seed * 1664525 + 1013904223;
			CHECK(buf_add_str(
				      &text,
				      parts[(seed >> 16) % (sizeof(parts) / sizeof(parts[0]))]) ==
			      0);
		}
		check_splits(redactor, text.data, text.len);
		check_splits(patterns, text.data, text.len);
	}
}

/* What is larger than every buffer and limit inside. */
static void splits_make_no_difference_at_size(void)
{
	static const char *const heads[] = {
		"Authorization: Bearer ", "https://u:", "eyJ",
		"eyJaaaaaaaaaa.",         GITHUB,       "\"aws_session_token\": \"",
		"Authorization: Digest ", "aaaa"
	};
	static const char *const values[] = { "aaaa", "bbbbbbbbbb", NULL };
	CLEANUP(redactor_free) struct redactor *redactor = NULL;
	CLEANUP(redactor_free) struct redactor *patterns = NULL;

	CHECK(redactor_new(values, true, &redactor) == 0);
	CHECK(redactor_new(NULL, true, &patterns) == 0);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		CLEANUP(buf_done) struct buf text = BUF_INIT(1 << 20);

		CHECK(buf_add_str(&text, heads[i]) == 0);
		for (int k = 0; k < 10000; k++)
			CHECK(buf_add(&text, k % 4000 == 3999 ? "." : "b", 1) == 0);
		CHECK(buf_add_str(&text, "@host\" rest") == 0);
		check_splits(redactor, text.data, text.len);
		check_splits(patterns, text.data, text.len);
	}
}

static void random_bytes_pass_unharmed(void)
{
	CLEANUP(redactor_free) struct redactor *redactor = NULL;
	CLEANUP(buf_done) struct buf text = BUF_INIT(4 << 20), out = BUF_INIT(4 << 20);
	uint64_t state = 88172645463325252ull;

	CHECK(redactor_new(NULL, true, &redactor) == 0);
	while (text.len < 3 << 20) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		CHECK(buf_add(&text, &state, sizeof(state)) == 0);
	}
	feed_split(redactor, text.data, text.len, 3, &out);
	CHECK(out.len == text.len && memcmp(out.data, text.data, out.len) == 0);
	CHECK(redactor_count(redactor) == 0);
}

static void check_idle(const char *const *values, const char *text, const char *want)
{
	CLEANUP(redactor_free) struct redactor *redactor = NULL;
	CLEANUP(redact_stream_free) struct redact_stream *stream = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);

	CHECK(redactor_new(values, true, &redactor) == 0);
	CHECK(redact_stream_new(redactor, &stream) == 0);
	CHECK(redact_stream_feed(stream, text, strlen(text), &out) == 0);
	CHECK(redact_stream_idle(stream, &out) == 0);
	CHECK_STR(out.data ? out.data : "", want);
}

static void prompts_are_seen_and_secrets_are_not(void)
{
	static const char *const values[] = { "sesame", NULL };

	check_idle(NULL, "Password: ", "Password: ");
	check_idle(NULL, "pick a", "pick a");
	check_idle(NULL, "pick one", "pick one");
	check_idle(NULL, "y/n/g", "y/n/g");
	check_idle(NULL, "Authorization: ", "Authorization: ");
	check_idle(NULL, "x-access-token: b", "x-access-token: "); /* Python's b'...'? */
	check_idle(NULL, "x-access-token: c", "x-access-token: " M);
	check_idle(NULL, "ghp_0123", "ghp_");
	check_idle(NULL, "eyJhbG", "eyJ");
	check_idle(NULL, "https://u:p", "https://");
	check_idle(values, "open ses", "open ");
	check_idle(values, "open sea", "open sea");
}

static void a_secret_is_found_across_idle(void)
{
	CLEANUP(redactor_free) struct redactor *redactor = NULL;
	CLEANUP(redact_stream_free) struct redact_stream *stream = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);

	CHECK(redactor_new((const char *const[]){ "sesame", NULL }, true, &redactor) == 0);
	CHECK(redact_stream_new(redactor, &stream) == 0);
	for (const char *at = "a sesame " GITHUB " " JWT "\n"; *at; at++) {
		CHECK(redact_stream_feed(stream, at, 1, &out) == 0);
		CHECK(redact_stream_idle(stream, &out) == 0);
	}
	CHECK(redact_stream_end(stream, &out) == 0);
	CHECK_STR(out.data, "a " M " ghp_" M " eyJ" M "\n");
	CHECK(redactor_count(redactor) == 3);
}

static void json_is_redacted_in_place(void)
{
	CLEANUP(redactor_free) struct redactor *redactor = NULL;
	json_t *value = json_loads("{\"argv\":[\"a\",\"Authorization: Bearer "
	                           "x\"],\"API_Key\":7,\"n\":{\"passwd\":[1]},"
	                           "\"ok\":\"plain\",\"author\":null}",
	                           0, NULL);
	json_t *want = json_loads(
		"{\"argv\":[\"a\",\"Authorization: Bearer [REDACTED]\"],\"API_Key\":\"[REDACTED]\","
		"\"n\":{\"passwd\":\"[REDACTED]\"},\"ok\":\"plain\",\"author\":\"[REDACTED]\"}",
		0, NULL);

	CHECK(redactor_new(NULL, true, &redactor) == 0);
	CHECK(redact_json(redactor, value) == 0);
	CHECK(json_equal(value, want));
	CHECK(redactor_count(redactor) == 4);
	json_decref(value);
	json_decref(want);
}

static void a_value_that_cuts_a_character_takes_the_string(void)
{
	CLEANUP(redactor_free) struct redactor *redactor = NULL;
	json_t *value = json_pack("[s]", "abc\xc3\xa9");

	CHECK(redactor_new((const char *const[]){ "abc\xc3", NULL }, true, &redactor) == 0);
	CHECK(redact_json(redactor, value) == 0);
	CHECK_STR(json_string_value(json_array_get(value, 0)), M);
	json_decref(value);
}

static void deep_json_is_refused(void)
{
	CLEANUP(redactor_free) struct redactor *redactor = NULL;
	json_t *value = json_array();

	for (int i = 0; i < 100; i++)
		value = json_pack("[o]", value);
	CHECK(redactor_new(NULL, true, &redactor) == 0);
	CHECK(redact_json(redactor, value) == -ELOOP);
	json_decref(value);
}

int main(void)
{
	RUN(authorization_headers);
	RUN(authorization_without_a_credential);
	RUN(access_tokens);
	RUN(url_credentials);
	RUN(aws_values);
	RUN(github_tokens);
	RUN(jwts);
	RUN(values_in_all_their_forms);
	RUN(base64_of_either_alphabet);
	RUN(wrapped_base64);
	RUN(overlapping_values_are_one_run);
	RUN(values_and_patterns_together);
	RUN(long_values_are_found_whole);
	RUN(too_many_values_are_refused);
	RUN(splits_make_no_difference);
	RUN(splits_make_no_difference_at_size);
	RUN(random_bytes_pass_unharmed);
	RUN(prompts_are_seen_and_secrets_are_not);
	RUN(a_secret_is_found_across_idle);
	RUN(json_is_redacted_in_place);
	RUN(a_value_that_cuts_a_character_takes_the_string);
	RUN(deep_json_is_refused);
	return check_done();
}
