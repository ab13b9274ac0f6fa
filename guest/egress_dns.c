/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress_dns.c - who answers names: 127.0.0.1:53, UDP and TCP.  Nothing is asked of anybody else: a name that
 * is on the list gets its made-up address, when somebody listens there, and every other one does not exist.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/egress_answer.h"
#include "guest/egress_service.h"

enum {
	DNS_PORT = 53,
	QUERY_MAX = 4096, /* bytes: no question is so long */
	QUERIES_AT_ONCE = 32,
	PREFIX = 2, /* bytes of a length, before each message on TCP */
};

struct dns_client {
	struct loop_watch watch;
	struct egress_service *service;
	uint8_t bytes[PREFIX + QUERY_MAX];
	size_t len;
	struct dns_client *next;
};

static int on_datagram(struct loop_watch *watch, uint32_t events)
{
	struct egress_service *service = watch->ctx;
	uint8_t query[QUERY_MAX], answer[EGRESS_ANSWER_MAX];

	for (int i = 0; i < QUERIES_AT_ONCE; i++) {
		struct sockaddr_in from;
		socklen_t size = sizeof(from);
		ssize_t n = recvfrom(watch->fd, query, sizeof(query), MSG_DONTWAIT,
		                     (struct sockaddr *) &from, &size);
		size_t len;

		if (n < 0)
			break;
		len = egress_dns_answer(service, query, (size_t) n, false, answer);
		if (len > 0)
			(void) sendto(watch->fd, answer, len, MSG_DONTWAIT,
			              (struct sockaddr *) &from, size);
	}
	egress_port_flush(service);
	return 0;
}

static void client_free(struct dns_client *client)
{
	struct egress_service *service = client->service;
	struct dns_client **link = &service->clients;

	while (*link != client)
		link = &(*link)->next;
	*link = client->next;
	service->client_count--;
	loop_remove(&client->watch);
	(void) close(client->watch.fd);
	free(client);
}

/* False: it is not served any more. */
static bool answer_one(struct dns_client *client, const uint8_t *query, size_t query_len)
{
	uint8_t answer[PREFIX + EGRESS_ANSWER_MAX];
	const size_t len = egress_dns_answer(client->service, query, query_len, true,
	                                     answer + PREFIX);

	if (len == 0)
		return false;
	answer[0] = (uint8_t) (len >> 8);
	answer[1] = (uint8_t) len;
	/* Who does not read a few hundred bytes is not waited for. */
	return send(client->watch.fd, answer, PREFIX + len, MSG_DONTWAIT | MSG_NOSIGNAL) ==
	       (ssize_t) (PREFIX + len);
}

static bool answer_all(struct dns_client *client)
{
	while (client->len >= PREFIX) {
		const size_t len = (size_t) (client->bytes[0] << 8 | client->bytes[1]);

		if (len > QUERY_MAX)
			return false;
		if (client->len < PREFIX + len)
			return true;
		if (!answer_one(client, client->bytes + PREFIX, len))
			return false;
		client->len -= PREFIX + len;
		memmove(client->bytes, client->bytes + PREFIX + len, client->len);
	}
	return true;
}

static int on_stream(struct loop_watch *watch, uint32_t events)
{
	struct dns_client *client = watch->ctx;
	struct egress_service *service = client->service;
	ssize_t n = recv(watch->fd, client->bytes + client->len,
	                 sizeof(client->bytes) - client->len, MSG_DONTWAIT);
	bool is_wanted = n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));

	if (n > 0) {
		client->len += (size_t) n;
		is_wanted = answer_all(client);
	}
	if (!is_wanted)
		client_free(client);
	egress_port_flush(service);
	return 0;
}

/* The one that came first of those that are there. */
static struct dns_client *oldest(struct egress_service *service)
{
	struct dns_client *client = service->clients;

	while (client->next)
		client = client->next;
	return client;
}

static void add_client(struct egress_service *service, int fd)
{
	struct dns_client *client = malloc(sizeof(*client));

	if (!client) {
		(void) close(fd);
		return;
	}
	if (service->client_count >= EGRESS_DNS_CLIENTS)
		client_free(oldest(service));
	client->watch = (struct loop_watch){ .fd = fd,
		                             .events = EPOLLIN,
		                             .fn = on_stream,
		                             .ctx = client };
	client->service = service;
	client->len = 0;
	client->next = service->clients;
	service->clients = client;
	service->client_count++;
	if (loop_add(service->loop, &client->watch) < 0)
		client_free(client);
}

static int on_client(struct loop_watch *watch, uint32_t events)
{
	int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0)
		add_client(watch->ctx, fd);
	return 0;
}

static int bind_to(int type, int *ret_fd)
{
	CLEANUP(fd_close)
	int fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	const struct sockaddr_in address = { .sin_family = AF_INET,
		                             .sin_port = htons(DNS_PORT),
		                             .sin_addr = { htonl(INADDR_LOOPBACK) } };
	const int on = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
		return -errno;
	*ret_fd = fd_take(&fd);
	return 0;
}

static int watch(struct egress_service *service, struct loop_watch *watch, int fd, loop_fn *fn)
{
	*watch = (struct loop_watch){ .fd = fd, .events = EPOLLIN, .fn = fn, .ctx = service };
	return loop_add(service->loop, watch);
}

int egress_dns_open(struct egress_service *service)
{
	int udp = -1, tcp = -1, r = bind_to(SOCK_DGRAM, &udp);

	if (r == 0)
		r = bind_to(SOCK_STREAM, &tcp);
	if (r == 0 && listen(tcp, EGRESS_DNS_CLIENTS) < 0)
		r = -errno;
	if (r == 0)
		r = watch(service, &service->udp, udp, on_datagram);
	return r < 0 ? r : watch(service, &service->tcp, tcp, on_client);
}
