/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "gateway/proxy.h"
#include "wire/base64.h"

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char) tolower((unsigned char) c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* USER:PASSWORD of a URL, with its %XX, as the bytes that they stand for. */
static int add_decoded(struct buf *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char byte = text[i];
		int r;

		if (byte == '%') {
			int high = i + 2 < len ? hex_value(text[i + 1]) : -1;
			int low = i + 2 < len ? hex_value(text[i + 2]) : -1;

			if (high < 0 || low < 0)
				return -EINVAL;
			byte = (char) (high * 16 + low);
			i += 2;
		}
		r = buf_add(out, &byte, 1);
		if (r < 0)
			return r;
	}
	return 0;
}

static int make_login(const char *text, size_t len, char **ret_login)
{
	CLEANUP(buf_done) struct buf plain = BUF_INIT(PROXY_LOGIN_MAX);
	CLEANUP(buf_done) struct buf login = BUF_INIT(2 * PROXY_LOGIN_MAX);
	int r = add_decoded(&plain, text, len);

	if (r == 0)
		r = buf_add_str(&login, "Basic ");
	if (r == 0)
		r = base64_add(&login, plain.data, plain.len);
	if (r < 0)
		return r;
	*ret_login = buf_take(&login);
	return *ret_login ? 0 : -ENOMEM;
}

static bool is_address(const char *host)
{
	struct in6_addr address;

	return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

static int set_host(struct proxy_address *proxy, const char *text, size_t len)
{
	struct egress_name name;

	if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	if (len == 0 || len > EGRESS_NAME_MAX)
		return -EINVAL;
	memcpy(proxy->host, text, len);
	proxy->host[len] = '\0';
	if (is_address(proxy->host))
		return 0;
	if (egress_name_parse(text, len, &name) != EGRESS_NONE)
		return -EINVAL;
	memcpy(proxy->host, name.text, sizeof(proxy->host));
	return 0;
}

/* HOST:PORT with perhaps a slash behind it. */
static int set_place(struct proxy_address *proxy, const char *text)
{
	const char *colon = strrchr(text, ':');
	char *end;
	unsigned long port;

	if (!colon || !isdigit((unsigned char) colon[1]))
		return -EINVAL;
	errno = 0;
	port = strtoul(colon + 1, &end, 10);
	if (errno || port == 0 || port > UINT16_MAX || (strcmp(end, "") != 0 && strcmp(end, "/")))
		return -EINVAL;
	proxy->port = (uint16_t) port;
	return set_host(proxy, text, (size_t) (colon - text));
}

int proxy_parse(const char *text, struct proxy_address *ret_proxy, struct resoluto_err *err)
{
	struct proxy_address proxy = { 0 };
	const char *at;
	int r = 0;

	if (strncasecmp(text, "http://", 7) == 0)
		text += 7;
	else if (strstr(text, "://"))
		return resoluto_fail(err, -EINVAL,
		                     "the proxy must be http://HOST:PORT; no other kind is spoken");
	at = strrchr(text, '@');
	if (at) {
		r = make_login(text, (size_t) (at - text), &proxy.login);
		text = at + 1;
	}
	if (r == 0)
		r = set_place(&proxy, text);
	if (r < 0) {
		proxy_done(&proxy);
		return resoluto_fail(err, r, "the proxy must be http://HOST:PORT");
	}
	*ret_proxy = proxy;
	return 0;
}

void proxy_done(struct proxy_address *proxy)
{
	if (proxy->login)
		explicit_bzero(proxy->login, strlen(proxy->login));
	free(proxy->login);
	proxy->login = NULL;
}

int proxy_request(const struct proxy_address *proxy, const char *name, uint16_t port,
                  struct buf *out)
{
	int r = buf_addf(out, "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n", name, port, name, port);

	if (r == 0 && proxy->login)
		r = buf_addf(out, "Proxy-Authorization: %s\r\n", proxy->login);
	return r < 0 ? r : buf_add_str(out, "\r\n");
}

/* "HTTP/1.1 200 words" */
static int status_of(const char *line, size_t len, unsigned *ret_status)
{
	static const char version[] = "HTTP/1.";
	const size_t digits = sizeof(version) + 1; /* behind the second digit and a space */

	if (len < digits + 3 || memcmp(line, version, sizeof(version) - 1) != 0)
		return -EBADMSG;
	if ((line[digits - 2] != '0' && line[digits - 2] != '1') || line[digits - 1] != ' ')
		return -EBADMSG;
	*ret_status = 0;
	for (size_t i = digits; i < digits + 3; i++) {
		if (line[i] < '0' || line[i] > '9')
			return -EBADMSG;
		*ret_status = *ret_status * 10 + (unsigned) (line[i] - '0');
	}
	return len == digits + 3 || line[digits + 3] == ' ' ? 0 : -EBADMSG;
}

/* How long the line at the start is; -EAGAIN: its end is not there yet. */
static ssize_t line_length(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char byte = (unsigned char) text[i];

		if (byte == '\r')
			return i + 1 == len          ? -EAGAIN
			       : text[i + 1] == '\n' ? (ssize_t) i
			                             : -EBADMSG;
		if ((byte < ' ' && byte != '\t') || byte == 0x7f)
			return -EBADMSG;
	}
	return -EAGAIN;
}

int proxy_answer(const void *bytes, size_t len, unsigned *ret_status, size_t *ret_used)
{
	const char *text = bytes;
	size_t at = 0;
	unsigned status = 0;

	for (;;) {
		ssize_t line = line_length(text + at, len - at);
		int r = 0;

		if (line == -EAGAIN)
			return len > PROXY_ANSWER_MAX ? -E2BIG : -EAGAIN;
		if (line < 0)
			return (int) line;
		if (at == 0)
			r = status_of(text, (size_t) line, &status);
		if (r < 0)
			return r;
		at += (size_t) line + 2;
		if (at > PROXY_ANSWER_MAX)
			return -E2BIG;
		if (line == 0)
			break;
	}
	*ret_status = status;
	*ret_used = at;
	return 0;
}
