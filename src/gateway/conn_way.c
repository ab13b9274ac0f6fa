/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "egress/address.h"
#include "gateway/conn_internal.h"

static enum egress_reason reason_of_dial(int failure)
{
	switch (-failure) {
	case ETIMEDOUT:
		return EGRESS_CONNECT_TIMEOUT;
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
		return EGRESS_TOO_MANY;
	default:
		return EGRESS_CONNECT_FAILED;
	}
}

static void take_answer(struct conn *conn, unsigned status, size_t used)
{
	if (status < 200 || status > 299) {
		conn_note(conn, "the proxy answered %u", status);
		conn_end(conn, EGRESS_PROXY_REFUSED);
	} else if (used != conn->answer.len) {
		/* Nobody that we wanted to speak to speaks before it is spoken to. */
		conn_note(conn, "the proxy sent more than its answer");
		conn_end(conn, EGRESS_PROXY_REFUSED);
	} else {
		buf_done(&conn->answer);
		(void) conn_begin_relay(conn);
	}
}

static int read_answer(struct conn *conn)
{
	struct buf *answer = &conn->answer;
	unsigned status = 0;
	size_t used = 0;
	ssize_t n;
	int r = buf_reserve(answer, answer->max - answer->len);

	if (r < 0)
		return r;
	n = recv(conn->far.fd, answer->data + answer->len, answer->max - answer->len, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -EPIPE;
	answer->len += (size_t) n;
	r = proxy_answer(answer->data, answer->len, &status, &used);
	if (r == 0)
		take_answer(conn, status, used);
	return r == -EAGAIN ? 0 : r;
}

static int on_far(struct loop_watch *watch, uint32_t events)
{
	struct conn *conn = watch->ctx;
	int r;

	if (conn->state == CONN_RELAYING)
		return conn_relay_event(conn, events);
	r = read_answer(conn);
	if (r < 0) {
		conn_note(conn, "the proxy's answer: %s", strerrordesc_np(-r));
		conn_end(conn, EGRESS_PROXY_REFUSED);
	}
	return 0;
}

static void ask_proxy(struct conn *conn)
{
	CLEANUP(buf_done) struct buf request = BUF_INIT(4 * PROXY_LOGIN_MAX + 4 * EGRESS_NAME_MAX);
	const struct gateway_config *config = &conn->gateway->config;
	int r = proxy_request(&config->proxy, conn->name.text, conn->port, &request);

	conn->state = CONN_TUNNEL;
	conn->timer.at_ms = clock_mono_ms() + config->connect_ms;
	conn->answer = BUF_INIT(PROXY_ANSWER_MAX + 1);
	/* A new socket has room for it. */
	if (r == 0 && send(conn->far.fd, request.data, request.len, MSG_DONTWAIT | MSG_NOSIGNAL) !=
	                      (ssize_t) request.len)
		r = -EPIPE;
	conn->far.events = EPOLLIN;
	if (r == 0)
		r = loop_add(conn->gateway->loop, &conn->far);
	if (request.data)
		explicit_bzero(request.data, request.len);
	if (r < 0)
		conn_end(conn, EGRESS_PROXY_REFUSED);
}

static void on_dialled(struct dial *dial, void *ctx, int fd, const union socket_address *address)
{
	struct conn *conn = ctx;

	if (fd < 0) {
		conn_note(conn, "%s", dial_words(dial));
		conn_end(conn, reason_of_dial(fd));
		return;
	}
	dial_address_text(address, conn->address);
	dial_free(dial);
	conn->dial = NULL;
	conn->far = (struct loop_watch){ .fd = fd, .fn = on_far, .ctx = conn };
	if (conn->gateway->config.proxy.port)
		ask_proxy(conn);
	else
		(void) conn_begin_relay(conn);
}

static void dial(struct conn *conn, const union socket_address *addresses, size_t count)
{
	const struct gateway_config *config = &conn->gateway->config;
	const uint16_t port = config->proxy.port ? config->proxy.port : conn->port;

	conn->state = CONN_DIALLING;
	conn->timer.at_ms = 0;
	if (dial_start(conn->gateway->loop, addresses, count, port, config->connect_ms, on_dialled,
	               conn, &conn->dial) < 0)
		conn_end(conn, EGRESS_TOO_MANY);
}

/* Keeps those that may be dialled, and writes down the others. */
static size_t filter(struct conn *conn, union socket_address *addresses, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		enum egress_address_class class_of = egress_address_classify(&addresses[i].any,
		                                                             sizeof(addresses[i]));
		char text[DIAL_ADDRESS_TEXT];

		if (class_of == EGRESS_ADDRESS_PUBLIC) {
			addresses[kept++] = addresses[i];
			continue;
		}
		dial_address_text(&addresses[i], text);
		conn_note(conn, "%s: %s", text, egress_address_class_name(class_of));
	}
	return kept;
}

static void on_resolved(struct resolver_wait *wait, const struct resolver_answer *answer)
{
	struct conn *conn = (struct conn *) ((char *) wait - offsetof(struct conn, wait));
	const bool is_proxy = conn->gateway->config.proxy.port != 0;
	union socket_address addresses[RESOLVER_ADDRESSES_MAX];
	size_t count = answer->count;

	if (answer->reason != EGRESS_NONE) {
		conn_note(conn, "%s", answer->words);
		conn_end(conn, answer->reason);
		return;
	}
	memcpy(addresses, answer->addresses, sizeof(addresses));
	if (answer->left_out)
		conn_note(conn, "%zu addresses more were not looked at", answer->left_out);
	/* The proxy is where the caller says. */
	if (!is_proxy)
		count = filter(conn, addresses, count);
	if (count == 0)
		conn_end(conn, EGRESS_ADDRESS_REFUSED);
	else
		dial(conn, addresses, count);
}

static bool proxy_is_address(const struct proxy_address *proxy, union socket_address *ret_address)
{
	*ret_address = (union socket_address){ .any.sa_family = AF_INET };
	if (inet_pton(AF_INET, proxy->host, &ret_address->v4.sin_addr) == 1)
		return true;
	*ret_address = (union socket_address){ .any.sa_family = AF_INET6 };
	return inet_pton(AF_INET6, proxy->host, &ret_address->v6.sin6_addr) == 1;
}

void conn_begin_way(struct conn *conn)
{
	const struct gateway_config *config = &conn->gateway->config;
	const char *name = config->proxy.port ? config->proxy.host : conn->name.text;
	union socket_address address;

	if (config->proxy.port && proxy_is_address(&config->proxy, &address)) {
		dial(conn, &address, 1);
		return;
	}
	conn->state = CONN_RESOLVING;
	conn->timer.at_ms = clock_mono_ms() + config->connect_ms;
	conn->wait.fn = on_resolved;
	/* May end the connection at once. */
	if (resolver_ask(conn->gateway->resolver, name, &conn->wait) < 0)
		conn_end(conn, EGRESS_TOO_MANY);
}
