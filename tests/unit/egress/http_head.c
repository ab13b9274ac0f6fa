/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/buf.h"
#include "egress/http_head.h"

#define HOST "Host: a.org\r\n"
#define GET "GET / HTTP/1.1\r\n" HOST "\r\n"

static struct http_head head;

static void init(void)
{
	static const struct egress_name name = { "a.org" };

	http_head_init(&head, &name, 80);
}

/* Feed bytes in segments; what is passed is taken away each time. */
static enum egress_reason feed(const char *bytes, size_t len, size_t segment, size_t *ret_passed)
{
	enum egress_reason reason = EGRESS_NONE;

	init();
	*ret_passed = 0;
	for (size_t end = 0; reason == EGRESS_NONE && end < len;) {
		size_t pass;

		end = len - end < segment ? len : end + segment;
		reason = http_head_look(&head, bytes + *ret_passed, end - *ret_passed, &pass);
		CHECK(pass <= end - *ret_passed);
		*ret_passed += pass;
	}
	return reason;
}

/* In whatever segments, the same comes of it. */
static void expect_bytes(const char *bytes, size_t len, enum egress_reason want, size_t want_passed)
{
	static const size_t segments[] = { 1, 2, 3, 10, 1000, 1000000 };

	for (size_t i = 0; i < sizeof(segments) / sizeof(segments[0]); i++) {
		size_t passed;
		enum egress_reason reason = feed(bytes, len, segments[i], &passed);

		if (reason != want || passed != want_passed)
			printf("# %zu of %zu passed: %.*s\n", passed, len, (int) len, bytes);
		if (reason != want)
			CHECK_STR(egress_reason_name(reason), egress_reason_name(want));
		CHECK(passed == want_passed);
	}
}

static void expect_all(const char *text, uint64_t requests)
{
	expect_bytes(text, strlen(text), EGRESS_NONE, strlen(text));
	CHECK(head.requests == requests);
	CHECK(http_head_is_between(&head));
}

/* Refused, with nothing passed. */
static void refuse(const char *text, enum egress_reason want)
{
	expect_bytes(text, strlen(text), want, 0);
}

/* Refused behind a request that was passed. */
static void refuse_second(const char *first, const char *second, enum egress_reason want)
{
	char text[4096];

	snprintf(text, sizeof(text), "%s%s", first, second);
	expect_bytes(text, strlen(text), want, strlen(first));
}

static void passes_requests(void)
{
	expect_all(GET, 1);
	expect_all("GET /a/b?c=d HTTP/1.1\r\nAccept: */*\r\nHOST:\tA.ORG \r\nX:\r\n\r\n", 1);
	expect_all("GET / HTTP/1.0\r\nHost: a.org:80\r\n\r\n", 1);
	expect_all("GET / HTTP/1.1\r\nHost: a.org.\r\n\r\n", 1);
	expect_all("HEAD //x HTTP/1.1\r\n" HOST "X-Utf8: \xc3\xbc\r\n\r\n", 1);
	expect_all("DELETE /%20 HTTP/1.1\r\n" HOST "Connection: close, Te\r\n\r\n", 1);
	expect_all("GET / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n\r\n", 1);
	expect_all(GET GET GET, 3);
}

static void host_is_pinned(void)
{
	static const char *const hosts[] = {
		"b.org",       "a.org:81",     "a.org:", "a.org:080x",  "x.a.org",     "",
		"a.org b.org", "a.org,b.org",  "a.org/", "u@a.org",     "a.org:80:80", "1.2.3.4",
		"[::1]",       "http://a.org", "a.org#", "a.org:000080"
	};
	char text[200];

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", hosts[i]);
		refuse(text, EGRESS_HTTP_HOST_OTHER);
		refuse_second(GET, text, EGRESS_HTTP_HOST_OTHER);
	}
	refuse("GET / HTTP/1.1\r\n\r\n", EGRESS_HTTP_HOST_OTHER);
	refuse("GET / HTTP/1.0\r\n\r\n", EGRESS_HTTP_HOST_OTHER);
	refuse("GET / HTTP/1.1\r\n" HOST HOST "\r\n", EGRESS_HTTP_HOST_OTHER);
	refuse("GET / HTTP/1.1\r\n" HOST "Host: b.org\r\n\r\n", EGRESS_HTTP_HOST_OTHER);
	refuse("GET / HTTP/1.1\r\nHost: b.org\r\n" HOST "\r\n", EGRESS_HTTP_HOST_OTHER);
}

static void only_origin_form(void)
{
	refuse("GET http://a.org/ HTTP/1.1\r\n" HOST "\r\n", EGRESS_HTTP_FORM);
	refuse("GET http://b.org/ HTTP/1.1\r\n" HOST "\r\n", EGRESS_HTTP_FORM);
	refuse("CONNECT b.org:443 HTTP/1.1\r\n" HOST "\r\n", EGRESS_HTTP_FORM);
	refuse("connect / HTTP/1.1\r\n" HOST "\r\n", EGRESS_HTTP_FORM);
	refuse("OPTIONS * HTTP/1.1\r\n" HOST "\r\n", EGRESS_HTTP_FORM);
	refuse("GET a.org/ HTTP/1.1\r\n" HOST "\r\n", EGRESS_HTTP_FORM);
	refuse_second(GET, "CONNECT b.org:443 HTTP/1.1\r\n" HOST "\r\n", EGRESS_HTTP_FORM);
}

static void no_other_protocol(void)
{
	refuse("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", EGRESS_HTTP_UPGRADE);
	refuse("GET / HTTP/1.1\r\n" HOST "Upgrade: websocket\r\n\r\n", EGRESS_HTTP_UPGRADE);
	refuse("GET / HTTP/1.1\r\n" HOST "Connection: x , upgrade\r\n\r\n", EGRESS_HTTP_UPGRADE);
	refuse("GET / HTTP/1.1\r\n" HOST "HTTP2-Settings: AAMAAABk\r\n\r\n", EGRESS_HTTP_UPGRADE);
	refuse("\x16\x03\x01\x02", EGRESS_HTTP_MALFORMED);
	refuse("SSH-2.0-x\r\n\r\n", EGRESS_HTTP_MALFORMED);
}

static void request_lines_are_strict(void)
{
	static const char *const lines[] = {
		"GET /",
		"GET / HTTP/1.2",
		"GET / http/1.1",
		"GET  / HTTP/1.1",
		"GET / HTTP/1.1 ",
		"GET /  HTTP/1.1",
		"GET\t/ HTTP/1.1",
		"GET /a b HTTP/1.1",
		"GET /# HTTP/1.1",
		"G(T / HTTP/1.1",
		"GET /\xc3 HTTP/1.1",
		"GET / HTTP/1.10",
		"GET / HTTP/3.0",
		"GET",
		"GET /\tx HTTP/1.1",
		"AMETHODTHATISLONGERTHANANYBODYHASS / HTTP/1.1",
	};
	char text[200];

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(text, sizeof(text), "%s\r\n" HOST "\r\n", lines[i]);
		refuse(text, EGRESS_HTTP_MALFORMED);
	}
	refuse(" GET / HTTP/1.1\r\n" HOST "\r\n", EGRESS_HTTP_MALFORMED);
	refuse("\r\n" GET, EGRESS_HTTP_MALFORMED);
	refuse_second(GET, "\r\n" GET, EGRESS_HTTP_MALFORMED);
}

static void fields_are_strict(void)
{
	static const char *const lines[] = {
		"X",
		"X : y",
		" X: y",
		": y",
		"X: y\r\n  folded",
		"X: y\r\n\tfolded",
		"X\t: y",
		"X: \x01",
		"X: \x7f",
		"X: a\rb",
		"X: a\nY: b",
		"X: a\r\r\nY: b",
		"X(: y",
		"\xc3\xbc: y",
		"Connection: Host",
		"Connection: close, content-length",
		"Connection: Transfer-Encoding",
		"Expect: y100-continue",
		"Expect: 100-continue, x",
	};
	char text[200];

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n" HOST "%s\r\n\r\n", lines[i]);
		refuse(text, EGRESS_HTTP_MALFORMED);
	}
	expect_bytes("GET / HTTP/1.1\r\n" HOST "X: a\0b\r\n\r\n", 39, EGRESS_HTTP_MALFORMED, 0);
	refuse("GET / HTTP/1.1\n" HOST "\r\n", EGRESS_HTTP_MALFORMED);
	refuse("GET / HTTP/1.1\r\n" HOST "\n", EGRESS_HTTP_MALFORMED);
}

static void bodies_of_a_known_length(void)
{
	static const char binary[] = "POST / HTTP/1.1\r\n" HOST
				     "Content-Length: 5\r\n\r\na\0\r\n\xff" GET;

	expect_all("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nab\r\nc", 1);
	expect_bytes(binary, sizeof(binary) - 1, EGRESS_NONE, sizeof(binary) - 1);
	CHECK(head.requests == 2);
	expect_all("POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n" GET, 2);
	/* The next request is looked for exactly behind it. */
	refuse_second("POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", "/" GET,
	              EGRESS_HTTP_MALFORMED);
	refuse_second("POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", "\r\n" GET,
	              EGRESS_HTTP_MALFORMED);
}

static void a_body_passes_as_it_comes(void)
{
	static const char text[] = "PUT / HTTP/1.1\r\n" HOST
				   "Content-Length: 999999999999999999\r\n\r\n";
	static char block[100000];
	size_t pass;

	init();
	CHECK(http_head_look(&head, text, sizeof(text) - 1, &pass) == EGRESS_NONE);
	CHECK(pass == sizeof(text) - 1);
	for (int i = 0; i < 100; i++) {
		CHECK(http_head_look(&head, block, sizeof(block), &pass) == EGRESS_NONE);
		CHECK(pass == sizeof(block) && !http_head_is_between(&head));
	}
}

static void lengths_are_strict(void)
{
	static const char *const lines[] = {
		"Content-Length: 5\r\nContent-Length: 5",
		"Content-Length: 5\r\nContent-Length: 6",
		"Content-Length: 5, 5",
		"Content-Length: +5",
		"Content-Length: -5",
		"Content-Length: 0x5",
		"Content-Length: 5 5",
		"Content-Length:",
		"Content-Length: 1000000000000000000",
		"Content-Length: 18446744073709551621",
		"Content-Length: 5\r\nTransfer-Encoding: chunked",
		"Transfer-Encoding: chunked\r\nContent-Length: 5",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
		"Transfer-Encoding: gzip, chunked",
		"Transfer-Encoding: chunked, identity",
		"Transfer-Encoding: identity",
		"Transfer-Encoding: xchunked",
		"Transfer-Encoding:",
	};
	char text[200];

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(text, sizeof(text), "POST / HTTP/1.1\r\n" HOST "%s\r\n\r\n", lines[i]);
		refuse(text, EGRESS_HTTP_MALFORMED);
	}
	refuse("POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n",
	       EGRESS_HTTP_MALFORMED);
}

#define CHUNKED "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n"

static void chunked_bodies(void)
{
	expect_all(CHUNKED "0\r\n\r\n", 1);
	expect_all(CHUNKED "5\r\nab\r\nc\r\n000F\r\n0123456789abcde\r\n0\r\n\r\n" GET, 2);
	expect_all(CHUNKED "0\r\nX-Sum: 1\r\nY:\r\n\r\n" GET, 2);
	expect_bytes(CHUNKED "3\r\nGET\r\n", strlen(CHUNKED) + 8, EGRESS_NONE, strlen(CHUNKED) + 8);
	CHECK(!http_head_is_between(&head));
}

static void chunks_are_strict(void)
{
	static const char *const sizes[] = { "\r\n",
		                             " 5\r\n",
		                             "5 \r\n",
		                             "5;x=y\r\n",
		                             "0x5\r\n",
		                             "-1\r\n",
		                             "g\r\n",
		                             "5\n",
		                             "5\r\r\n",
		                             "5\rx",
		                             "0000000000000005\r\n",
		                             "ffffffffffffffff\r\n" };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		refuse_second(CHUNKED, sizes[i], EGRESS_HTTP_MALFORMED);
	refuse_second(CHUNKED "1\r\nx", "y\r\n0\r\n\r\n", EGRESS_HTTP_MALFORMED);
	refuse_second(CHUNKED "1\r\nx", "\n0\r\n\r\n", EGRESS_HTTP_MALFORMED);
	refuse_second(CHUNKED "1\r\nx", "\r0\r\n\r\n", EGRESS_HTTP_MALFORMED);
	refuse_second(CHUNKED "0\r\n", "Host: a.org\r\n\r\n", EGRESS_HTTP_MALFORMED);
	refuse_second(CHUNKED "0\r\n", "Content-Length: 5\r\n\r\n", EGRESS_HTTP_MALFORMED);
	refuse_second(CHUNKED "0\r\n", "Transfer-Encoding: chunked\r\n\r\n", EGRESS_HTTP_MALFORMED);
	refuse_second(CHUNKED "0\r\n", " folded: x\r\n\r\n", EGRESS_HTTP_MALFORMED);
	refuse_second(CHUNKED "0\r\n", "GET / HTTP/1.1\r\n\r\n", EGRESS_HTTP_MALFORMED);
}

static void heads_are_bounded(void)
{
	struct buf text = BUF_INIT(1 << 20);
	const size_t fixed = strlen("GET / HTTP/1.1\r\n" HOST "X: \r\n\r\n");
	size_t len = HTTP_HEAD_MAX - fixed, pass;

	CHECK(buf_add_str(&text, "GET / HTTP/1.1\r\n" HOST "X: ") == 0);
	CHECK(buf_reserve(&text, len + 4) == 0);
	memset(text.data + text.len, 'x', len);
	text.len += len;
	CHECK(buf_add_str(&text, "\r\n\r\n") == 0);
	CHECK(text.len == HTTP_HEAD_MAX);
	init();
	CHECK(http_head_look(&head, text.data, text.len, &pass) == EGRESS_NONE && pass == text.len);
	buf_cut(&text, text.len - 4);
	CHECK(buf_add_str(&text, "y\r\n\r\n") == 0);
	init();
	CHECK(http_head_look(&head, text.data, text.len, &pass) == EGRESS_HTTP_MALFORMED);
	buf_done(&text);
}

static void nothing_passes_before_a_head_is_whole(void)
{
	size_t pass;

	init();
	CHECK(http_head_is_between(&head));
	CHECK(http_head_look(&head, GET, strlen(GET) - 1, &pass) == EGRESS_NONE && pass == 0);
	CHECK(!http_head_is_between(&head));
	CHECK(http_head_look(&head, GET, strlen(GET), &pass) == EGRESS_NONE && pass == strlen(GET));
	CHECK(http_head_is_between(&head));
	CHECK(http_head_look(&head, "", 0, &pass) == EGRESS_NONE && pass == 0);
}

int main(void)
{
	RUN(passes_requests);
	RUN(host_is_pinned);
	RUN(only_origin_form);
	RUN(no_other_protocol);
	RUN(request_lines_are_strict);
	RUN(fields_are_strict);
	RUN(bodies_of_a_known_length);
	RUN(a_body_passes_as_it_comes);
	RUN(lengths_are_strict);
	RUN(chunked_bodies);
	RUN(chunks_are_strict);
	RUN(heads_are_bounded);
	RUN(nothing_passes_before_a_head_is_whole);
	return check_done();
}
