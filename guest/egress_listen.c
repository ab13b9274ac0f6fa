/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/egress_service.h"

struct egress_listener {
	struct loop_watch watch;
	struct egress_service *service;
	const struct egress_host *host;
	uint16_t port;
	struct egress_listener *next;
};

static int on_connection(struct loop_watch *watch, uint32_t events)
{
	struct egress_listener *listener = watch->ctx;

	for (int i = 0; i < EGRESS_ACCEPTS; i++) {
		int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			break;
		egress_stream_new(listener->service, fd, listener->host, listener->port);
	}
	egress_port_flush(listener->service);
	return 0;
}

static socklen_t make_address(const struct egress_host *host, int family, uint16_t port,
                              struct sockaddr_storage *ret)
{
	if (family == AF_INET) {
		*(struct sockaddr_in *) ret = (struct sockaddr_in){ .sin_family = AF_INET,
			                                            .sin_port = htons(port),
			                                            .sin_addr = egress_address4(
									    host->number) };
		return sizeof(struct sockaddr_in);
	}
	*(struct sockaddr_in6 *) ret = (struct sockaddr_in6){ .sin6_family = AF_INET6,
		                                              .sin6_port = htons(port),
		                                              .sin6_addr = egress_address6(
								      host->number) };
	return sizeof(struct sockaddr_in6);
}

static int bind_one(const struct egress_host *host, int family, uint16_t port)
{
	CLEANUP(fd_close)
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_storage address;
	const socklen_t size = make_address(host, family, port, &address);
	const int on = 1;

	/* IPv6 knows an address of a local route as its own only behind the bind. */
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    (family == AF_INET6 &&
	     setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof(on)) < 0) ||
	    bind(fd, (struct sockaddr *) &address, size) < 0 || listen(fd, EGRESS_BACKLOG) < 0)
		return -errno;
	return fd_take(&fd);
}

static int add(struct egress_service *service, const struct egress_host *host, int family,
               uint16_t port)
{
	struct egress_listener *listener;
	int fd, r;

	if (service->listener_count >= EGRESS_LISTENERS_MAX)
		return -ENOSPC;
	fd = bind_one(host, family, port);
	if (fd < 0)
		return fd;
	listener = malloc(sizeof(*listener));
	if (!listener) {
		(void) close(fd);
		return -ENOMEM;
	}
	*listener = (struct egress_listener){
		.watch = { .fd = fd, .events = EPOLLIN, .fn = on_connection, .ctx = listener },
		.service = service,
		.host = host,
		.port = port,
		.next = service->listeners,
	};
	service->listeners = listener;
	service->listener_count++;
	r = loop_add(service->loop, &listener->watch);
	return r;
}

/* Those of this call: an address that is not wholly there is not handed out. */
static void undo(struct egress_service *service, size_t count)
{
	while (service->listener_count > count) {
		struct egress_listener *listener = service->listeners;

		service->listeners = listener->next;
		service->listener_count--;
		loop_remove(&listener->watch);
		(void) close(listener->watch.fd);
		free(listener);
	}
}

bool egress_has_six(void)
{
	CLEANUP(fd_close) int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0;
}

int egress_listen(struct egress_service *service, struct egress_host *host, int family)
{
	bool *is_bound = family == AF_INET ? &host->has_four : &host->has_six;
	uint16_t ports[EGRESS_HOST_PORTS_MAX];
	const size_t before = service->listener_count;
	size_t count;
	int r = 0;

	if (*is_bound)
		return 0;
	count = egress_policy_ports(service->policy, &host->name, ports, EGRESS_HOST_PORTS_MAX);
	if (count > EGRESS_HOST_PORTS_MAX)
		return -ENOSPC;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = add(service, host, family, ports[i]);
	if (r < 0)
		undo(service, before);
	else
		*is_bound = true;
	return r;
}
