/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redirect_names.c - answers questions of DNS: an allowed name has a made-up address, no other name exists, and
 * nothing is ever passed on.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "egress/dns.h"
#include "gateway/redirect.h"

enum {
	QUESTION_MAX = 1024, /* bytes of one by TCP; none of a stub is longer */
	ANSWER_MAX = 4096,
};

/* Somebody who asks by TCP. */
struct asker {
	struct redirect *redirect;
	struct asker *next;
	struct loop_watch watch; /* .fd is owned */
	struct loop_timer timer;
	size_t len;
	uint8_t bytes[2 + QUESTION_MAX];
};

static bool is_allowed(const struct redirect *redirect, const struct dns_query *query)
{
	return query->name_reason == EGRESS_NONE &&
	       egress_policy_has_name(&redirect->gateway->config.policy, &query->host);
}

static enum dns_rcode decide(struct redirect *redirect, const struct dns_query *query,
                             struct dns_address *ret_address, size_t *ret_count)
{
	struct gateway *gateway = redirect->gateway;
	struct in_addr v4;
	struct in6_addr v6;
	int number;

	if (!is_allowed(redirect, query)) {
		audit_asked(&gateway->audit, &gateway->config.policy, query->text,
		            strlen(query->text));
		return DNS_NXDOMAIN;
	}
	if (query->type != DNS_A && query->type != DNS_AAAA)
		return DNS_NXDOMAIN;
	number = names_number(&redirect->names, &query->host);
	if (number < 0)
		return DNS_SERVFAIL;
	/* The family that the bridge does not have: no such data. */
	*ret_count = query->type == DNS_A ? gateway->config.bridge.has_v4
	                                  : gateway->config.bridge.has_v6;
	v4 = names_v4(number);
	v6 = names_v6(number);
	ret_address->type = (enum dns_type) query->type;
	if (query->type == DNS_A)
		memcpy(ret_address->bytes, &v4, sizeof(v4));
	else
		memcpy(ret_address->bytes, &v6, sizeof(v6));
	return DNS_NOERROR;
}

/* Appends nothing to what gets no answer. */
static void answer(struct redirect *redirect, const void *bytes, size_t len, bool is_udp,
                   struct buf *out)
{
	struct dns_query query;
	struct dns_address address = { 0 };
	size_t count = 0;
	int rcode = dns_parse(bytes, len, &query);

	if (rcode == DNS_NOERROR)
		rcode = (int) decide(redirect, &query, &address, &count);
	if (rcode >= 0)
		(void) dns_answer(&query, (enum dns_rcode) rcode, &address, count, REDIRECT_TTL_S,
		                  is_udp, out);
}

static int on_udp(struct loop_watch *watch, uint32_t events)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(ANSWER_MAX);
	uint8_t bytes[QUESTION_MAX];
	union socket_address from;
	socklen_t from_len = sizeof(from);
	ssize_t n = recvfrom(watch->fd, bytes, sizeof(bytes), MSG_DONTWAIT, &from.any, &from_len);

	if (n <= 0)
		return 0;
	answer(watch->ctx, bytes, (size_t) n, true, &out);
	/* One that is lost is asked for again. */
	if (out.len > 0)
		(void) sendto(watch->fd, out.data, out.len, MSG_DONTWAIT | MSG_NOSIGNAL, &from.any,
		              from_len);
	return 0;
}

static void asker_free(struct asker *asker)
{
	struct redirect *redirect = asker->redirect;
	struct asker **link = &redirect->askers;

	while (*link != asker)
		link = &(*link)->next;
	*link = asker->next;
	redirect->asker_count--;
	loop_remove(&asker->watch);
	loop_remove_timer(redirect->gateway->loop, &asker->timer);
	fd_close(&asker->watch.fd);
	free(asker);
}

static int on_asker_timer(struct loop_timer *timer)
{
	asker_free(timer->ctx);
	return 0;
}

/* A whole question is answered at once, or not at all: an answer is small, and its reader there.  false: it is none. */
static bool answer_asker(struct asker *asker)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(ANSWER_MAX);
	const size_t len = (size_t) asker->bytes[0] << 8 | asker->bytes[1];

	if (len > QUESTION_MAX)
		return false;
	if (asker->len < 2 + len)
		return true;
	if (buf_add(&out, "\0\0", 2) < 0)
		return false;
	answer(asker->redirect, asker->bytes + 2, len, false, &out);
	if (out.len == 2)
		return false;
	out.data[0] = (char) ((out.len - 2) >> 8);
	out.data[1] = (char) (out.len - 2);
	asker->len -= 2 + len;
	memmove(asker->bytes, asker->bytes + 2 + len, asker->len);
	asker->timer.at_ms = clock_mono_ms() + REDIRECT_NAMES_MS;
	return send(asker->watch.fd, out.data, out.len, MSG_DONTWAIT | MSG_NOSIGNAL) ==
	       (ssize_t) out.len;
}

static int on_asker(struct loop_watch *watch, uint32_t events)
{
	struct asker *asker = watch->ctx;
	ssize_t n = recv(watch->fd, asker->bytes + asker->len, sizeof(asker->bytes) - asker->len,
	                 MSG_DONTWAIT);
	size_t before;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		asker_free(asker);
		return 0;
	}
	asker->len += (size_t) n;
	do {
		before = asker->len;
		if (before >= 2 && !answer_asker(asker)) {
			asker_free(asker);
			return 0;
		}
	} while (asker->len < before);
	return 0;
}

static int on_tcp(struct loop_watch *watch, uint32_t events)
{
	struct redirect *redirect = watch->ctx;
	CLEANUP(fd_close) int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct asker *asker;

	if (fd < 0 || redirect->asker_count == REDIRECT_NAMES_CLIENTS)
		return 0;
	asker = calloc(1, sizeof(*asker));
	if (!asker)
		return 0;
	asker->redirect = redirect;
	asker->watch = (struct loop_watch){ .fd = fd_take(&fd),
		                            .events = EPOLLIN,
		                            .fn = on_asker,
		                            .ctx = asker };
	asker->timer = (struct loop_timer){ .at_ms = clock_mono_ms() + REDIRECT_NAMES_MS,
		                            .fn = on_asker_timer,
		                            .ctx = asker };
	asker->next = redirect->askers;
	redirect->askers = asker;
	redirect->asker_count++;
	loop_add_timer(redirect->gateway->loop, &asker->timer);
	if (loop_add(redirect->gateway->loop, &asker->watch) < 0)
		asker_free(asker);
	return 0;
}

static int open_family(struct redirect *redirect, bool is_v6, struct loop_watch *udp,
                       struct loop_watch *tcp)
{
	const struct bridge *bridge = &redirect->gateway->config.bridge;

	*udp = (struct loop_watch){
		.fd = redirect_bind(bridge, is_v6, SOCK_DGRAM, bridge->names_port),
		.events = EPOLLIN,
		.fn = on_udp,
		.ctx = redirect,
	};
	*tcp = (struct loop_watch){
		.fd = redirect_bind(bridge, is_v6, SOCK_STREAM, bridge->names_port),
		.events = EPOLLIN,
		.fn = on_tcp,
		.ctx = redirect,
	};
	return udp->fd < 0 ? udp->fd : tcp->fd < 0 ? tcp->fd : 0;
}

int redirect_names_init(struct redirect *redirect, struct resoluto_err *err)
{
	const struct bridge *bridge = &redirect->gateway->config.bridge;
	int r = 0;

	if (bridge->has_v4)
		r = open_family(redirect, false, &redirect->udp4, &redirect->tcp4);
	if (r == 0 && bridge->has_v6)
		r = open_family(redirect, true, &redirect->udp6, &redirect->tcp6);
	return r < 0 ? resoluto_fail(err, r, "listen on the bridge, port %u", bridge->names_port)
	             : 0;
}

int redirect_names_begin(struct redirect *redirect)
{
	struct loop_watch *all[] = { &redirect->udp4, &redirect->udp6, &redirect->tcp4,
		                     &redirect->tcp6 };
	int r = 0;

	for (int i = 0; i < 4 && r == 0; i++) {
		if (all[i]->fd >= 0)
			r = loop_add(redirect->gateway->loop, all[i]);
	}
	return r;
}

void redirect_names_done(struct redirect *redirect)
{
	struct loop_watch *all[] = { &redirect->udp4, &redirect->udp6, &redirect->tcp4,
		                     &redirect->tcp6 };

	while (redirect->askers)
		asker_free(redirect->askers);
	for (int i = 0; i < 4; i++) {
		loop_remove(all[i]);
		fd_close(&all[i]->fd);
	}
}
