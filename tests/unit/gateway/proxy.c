/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "check.h"
#include "gateway/proxy.h"

static void reads_a_place(void)
{
	static const struct {
		const char *text, *host;
		unsigned port;
	} good[] = {
		{ "http://proxy.corp:3128", "proxy.corp", 3128 },
		{ "HTTP://Proxy.Corp:3128/", "proxy.corp", 3128 },
		{ "proxy:80", "proxy", 80 },
		{ "http://10.0.0.1:65535", "10.0.0.1", 65535 },
		{ "http://[fd00::1]:8080/", "fd00::1", 8080 },
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct proxy_address proxy;

		CHECK(proxy_parse(good[i].text, &proxy, NULL) == 0);
		CHECK_STR(proxy.host, good[i].host);
		CHECK(proxy.port == good[i].port && !proxy.login);
		proxy_done(&proxy);
	}
}

static void refuses_what_is_no_place(void)
{
	static const char *const bad[] = {
		"",
		"proxy",
		"http://proxy",
		"http://proxy:",
		"http://proxy:0",
		"http://proxy:65536",
		"http://proxy:-1",
		"http://proxy: 80",
		"http://proxy:80x",
		"http://proxy:80/path",
		"http://:80",
		"http://[]:80",
		"http://pro xy:80",
		"http://pro\nxy:80",
		"http://pro_xy:80",
		"https://proxy:443",
		"socks5://proxy:1080",
		"http://us%4:x@proxy:80",
		"http://us%zz:x@proxy:80",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct proxy_address proxy = { 0 };
		struct resoluto_err err = { 0 };

		CHECK(proxy_parse(bad[i], &proxy, &err) == -EINVAL);
		CHECK(proxy.port == 0 && strstr(err.text, "http://HOST:PORT"));
	}
}

static void a_login_is_decoded_and_in_no_message(void)
{
	struct proxy_address proxy;
	struct resoluto_err err = { 0 };

	CHECK(proxy_parse("http://user:p%40ss%0d%0aX: y@proxy:3128", &proxy, NULL) == 0);
	/* A line end in it stays within the text of base64. */
	CHECK_STR(proxy.login, "Basic dXNlcjpwQHNzDQpYOiB5");
	proxy_done(&proxy);
	CHECK(proxy_parse("http://user:secret@proxy", &proxy, &err) < 0);
	CHECK(!strstr(err.text, "secret"));
}

static void writes_a_request(void)
{
	struct proxy_address proxy;
	struct buf out = BUF_INIT(1000);

	CHECK(proxy_parse("http://a:b@proxy:3128", &proxy, NULL) == 0);
	CHECK(proxy_request(&proxy, "pypi.org", 443, &out) == 0);
	CHECK_STR(out.data, "CONNECT pypi.org:443 HTTP/1.1\r\nHost: pypi.org:443\r\n"
	                    "Proxy-Authorization: Basic YTpi\r\n\r\n");
	buf_done(&out);
	proxy_done(&proxy);
}

static int answer(const char *text, unsigned *status, size_t *used)
{
	return proxy_answer(text, strlen(text), status, used);
}

static void reads_an_answer_at_every_cut(void)
{
	static const char text[] = "HTTP/1.1 200 Connection established\r\nVia: 1.1 x\r\n\r\n";
	unsigned status = 0;
	size_t used = 0;

	for (size_t len = 0; len < sizeof(text) - 1; len++)
		CHECK(proxy_answer(text, len, &status, &used) == -EAGAIN);
	CHECK(answer(text, &status, &used) == 0);
	CHECK(status == 200 && used == sizeof(text) - 1);
	CHECK(answer("HTTP/1.0 407 no\r\n\r\nmore", &status, &used) == 0);
	CHECK(status == 407 && used == strlen("HTTP/1.0 407 no\r\n\r\n"));
	CHECK(answer("HTTP/1.1 204\r\n\r\n", &status, &used) == 0 && status == 204);
}

static void refuses_what_is_no_answer(void)
{
	static const char *const bad[] = {
		"HTTP/2 200 OK\r\n\r\n",       "HTTP/1.2 200 OK\r\n\r\n",
		"HTTP/1.1 20 OK\r\n\r\n",      "HTTP/1.1 2000 OK\r\n\r\n",
		"HTTP/1.1  200 OK\r\n\r\n",    "HTTP/1.1 200 OK\n\n",
		"HTTP/1.1 200 OK\r\rx",        "HTTP/1.1 -20 OK\r\n\r\n",
		"SSH-2.0-x\r\n\r\n",           "HTTP/1.1 200 OK\r\nA: \x01\r\n\r\n",
		"\r\nHTTP/1.1 200 OK\r\n\r\n", "http/1.1 200 OK\r\n\r\n",
	};
	unsigned status;
	size_t used;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(answer(bad[i], &status, &used) == -EBADMSG);
}

static void a_head_has_a_bound(void)
{
	static char text[PROXY_ANSWER_MAX + 100];
	unsigned status;
	size_t used;

	memset(text, 'a', sizeof(text));
	memcpy(text, "HTTP/1.1 200 ", 13);
	CHECK(proxy_answer(text, PROXY_ANSWER_MAX, &status, &used) == -EAGAIN);
	CHECK(proxy_answer(text, sizeof(text), &status, &used) == -E2BIG);
	memcpy(text + sizeof(text) - 4, "\r\n\r\n", 4);
	CHECK(proxy_answer(text, sizeof(text), &status, &used) == -E2BIG);
}

int main(void)
{
	RUN(reads_a_place);
	RUN(refuses_what_is_no_place);
	RUN(a_login_is_decoded_and_in_no_message);
	RUN(writes_a_request);
	RUN(reads_an_answer_at_every_cut);
	RUN(refuses_what_is_no_answer);
	RUN(a_head_has_a_bound);
	return check_done();
}
