/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter_ipv4.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "egress/mux.h"
#include "gateway/conn.h"
#include "gateway/dial.h"
#include "gateway/redirect.h"

enum { ORIGINAL_DST_V6 = 80 }; /* IP6T_SO_ORIGINAL_DST: its header does not agree with others */

/* One connection of a container. */
struct redirected {
	struct redirect *redirect;
	struct redirected *prev, *next;
	struct loop_watch watch; /* .fd is owned */
	struct conn *conn;       /* NULL: gone, and `down` is being written to its end */
	struct loop_timer timer; /* while conn is gone */
	struct buf down;         /* for the container */
	size_t held;             /* bytes that conn has and has not got rid of */
	bool has_ended;          /* it sends no more */
	bool owes_fin;           /* behind `down` */
};

static void client_free(struct redirected *client)
{
	struct redirect *redirect = client->redirect;

	loop_remove(&client->watch);
	loop_remove_timer(redirect->gateway->loop, &client->timer);
	fd_close(&client->watch.fd);
	redirect->waiting -= client->down.len;
	redirect->client_count--;
	buf_done(&client->down);
	if (client->next)
		client->next->prev = client->prev;
	if (client->prev)
		client->prev->next = client->next;
	else
		redirect->clients = client->next;
	free(client);
}

/* The kernel says so to the other end. */
static void client_reset(struct redirected *client)
{
	const struct linger linger = { .l_onoff = 1 };

	(void) setsockopt(client->watch.fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	client_free(client);
}

static int client_update(struct redirected *client)
{
	uint32_t events = client->down.len > 0 ? EPOLLOUT : 0;

	if (client->conn && !client->has_ended && client->held < MUX_CREDIT - REDIRECT_READ_MAX)
		events |= EPOLLIN;
	/* epoll tells a hang-up again and again, whatever is asked for. */
	if (events == 0) {
		loop_remove(&client->watch);
		return 0;
	}
	if (client->watch.loop)
		return loop_change(&client->watch, events);
	client->watch.events = events;
	return loop_add(client->redirect->gateway->loop, &client->watch);
}

static size_t client_room(void *ctx, uint32_t number)
{
	const struct redirected *client = ctx;

	return client->owes_fin ? 0 : REDIRECT_DOWN_MAX - client->down.len;
}

/* What can be written; a negative errno value if the container is gone. */
static int client_write(struct redirected *client)
{
	struct buf *down = &client->down;

	while (down->len > 0) {
		ssize_t n = send(client->watch.fd, down->data, down->len,
		                 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		buf_drop_front(down, (size_t) n);
		client->redirect->waiting -= (size_t) n;
	}
	buf_done(down);
	*down = BUF_INIT(REDIRECT_DOWN_MAX);
	if (client->owes_fin)
		(void) shutdown(client->watch.fd, SHUT_WR);
	return 0;
}

static int client_send(void *ctx, uint32_t number, const void *bytes, size_t len)
{
	struct redirected *client = ctx;
	struct redirect *redirect = client->redirect;
	int r = len > REDIRECT_WAITING_MAX - redirect->waiting ? -E2BIG : 0;

	if (r == 0)
		r = buf_add(&client->down, bytes, len);
	if (r < 0)
		return r;
	redirect->waiting += len;
	r = client_write(client);
	return r < 0 ? r : client_update(client);
}

static void client_fin(void *ctx, uint32_t number)
{
	struct redirected *client = ctx;

	client->owes_fin = true;
	/* One that is gone is told by the reading side. */
	(void) client_write(client);
	(void) client_update(client);
}

static void client_opened(void *ctx, uint32_t number)
{
}

static void client_consumed(void *ctx, uint32_t number, size_t len)
{
	struct redirected *client = ctx;

	client->held -= len;
	(void) client_update(client);
}

static int on_patience(struct loop_timer *timer)
{
	client_reset(timer->ctx);
	return 0;
}

/* The end of an answer has its time to be taken, as a connection has between two bytes. */
static void await_taking(struct redirected *client)
{
	struct gateway *gateway = client->redirect->gateway;

	client->timer = (struct loop_timer){ .at_ms = clock_mono_ms() + gateway->config.idle_ms,
		                             .fn = on_patience,
		                             .ctx = client };
	loop_add_timer(gateway->loop, &client->timer);
	(void) client_update(client);
}

static void client_ended(void *ctx, uint32_t number, enum egress_reason reason)
{
	struct redirected *client = ctx;

	client->conn = NULL;
	if (reason != EGRESS_NONE)
		client_reset(client);
	else if (client->down.len == 0)
		client_free(client);
	else
		await_taking(client);
}

static const struct client_ops client_ops = {
	.room = client_room,
	.send = client_send,
	.fin = client_fin,
	.opened = client_opened,
	.consumed = client_consumed,
	.ended = client_ended,
};

/* false: the container is gone, and all of it was told. */
static bool read_client(struct redirected *client)
{
	uint8_t bytes[REDIRECT_READ_MAX];
	ssize_t n = recv(client->watch.fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n < 0) {
		conn_gone(client->conn);
		client_free(client);
		return false;
	}
	/* May end the connection, and free the client. */
	if (n == 0) {
		client->has_ended = true;
		(void) client_update(client);
		conn_fin(client->conn);
	} else {
		client->held += (size_t) n;
		(void) client_update(client);
		conn_data(client->conn, bytes, (size_t) n);
	}
	return false;
}

static bool write_client(struct redirected *client)
{
	int r = client_write(client);

	if (r == 0 && (client->conn || client->down.len > 0))
		return true;
	if (client->conn)
		conn_gone(client->conn);
	client_free(client);
	return false;
}

static int on_client(struct loop_watch *watch, uint32_t events)
{
	struct redirected *client = watch->ctx;

	int r;

	if (client->down.len > 0 && !write_client(client))
		return 0;
	/* What was waited for is over: epoll would tell again and again that there is room. */
	r = client_update(client);
	if (r < 0)
		return r;
	if (client->conn && client->down.len == 0)
		conn_room(client->conn);
	return 0;
}

static int on_client_event(struct loop_watch *watch, uint32_t events)
{
	struct redirected *client = watch->ctx;

	if (client->conn && !client->has_ended && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return read_client(client) ? client_update(client) : 0;
	return on_client(watch, events);
}

/* Where the container wanted to go. */
static int original_destination(int fd, union socket_address *ret_address)
{
	socklen_t len = sizeof(*ret_address);
	int domain = AF_INET;
	socklen_t domain_len = sizeof(domain);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_len) < 0)
		return -errno;
	if (getsockopt(fd, domain == AF_INET ? SOL_IP : SOL_IPV6,
	               domain == AF_INET ? SO_ORIGINAL_DST : ORIGINAL_DST_V6, ret_address,
	               &len) < 0)
		return -errno;
	return 0;
}

static const struct egress_name *name_of(const struct names *names,
                                         const union socket_address *address)
{
	if (address->any.sa_family == AF_INET)
		return names_find_v4(names, address->v4.sin_addr);
	return names_find_v6(names, &address->v6.sin6_addr);
}

static struct redirected *client_new(struct redirect *redirect, int fd)
{
	struct redirected *client = calloc(1, sizeof(*client));
	const int on = 1;

	if (!client) {
		fd_close(&fd);
		return NULL;
	}
	(void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	client->redirect = redirect;
	client->watch = (struct loop_watch){ .fd = fd, .fn = on_client_event, .ctx = client };
	client->down = BUF_INIT(REDIRECT_DOWN_MAX);
	client->next = redirect->clients;
	if (client->next)
		client->next->prev = client;
	redirect->clients = client;
	redirect->client_count++;
	return client;
}

static void take_client(struct redirect *redirect, int fd)
{
	union socket_address to = { 0 };
	const struct egress_name *name = NULL;
	char number[DIAL_ADDRESS_TEXT] = "0.0.0.0";
	struct redirected *made = client_new(redirect, fd);
	const struct client client = { &client_ops, made, 0 };
	struct conn *conn;

	if (!made)
		return;
	if (original_destination(fd, &to) == 0) {
		name = name_of(&redirect->names, &to);
		dial_address_text(&to, number);
	}
	/* One that stands for no name is refused as the number that it is. */
	conn = conn_new(redirect->gateway, &client, name ? name->text : number,
	                strlen(name ? name->text : number), ntohs(to.v4.sin_port));
	if (!conn)
		return;
	made->conn = conn;
	if (client_update(made) < 0) {
		conn_gone(conn);
		client_free(made);
	}
}

static int on_listener(struct loop_watch *watch, uint32_t events)
{
	int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	struct redirect *redirect = watch->ctx;

	if (fd < 0)
		return 0; /* gone already */
	/* Fewer than there are descriptors, so that nobody waits for one, and the loop with it. */
	if (redirect->client_count < REDIRECT_CLIENTS_MAX)
		take_client(redirect, fd);
	else
		fd_close(&fd);
	return 0;
}

int redirect_bind(const struct bridge *bridge, bool is_v6, int type, uint16_t port)
{
	union socket_address at = { .any.sa_family = is_v6 ? AF_INET6 : AF_INET };
	CLEANUP(fd_close) int fd = socket(at.any.sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	const int on = 1;

	at.v4.sin_port = htons(port); /* at the same place in both */
	if (is_v6)
		at.v6.sin6_addr = bridge->v6;
	else
		at.v4.sin_addr = bridge->v4;
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		return -errno;
	if (is_v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0)
		return -errno;
	if (bind(fd, &at.any, is_v6 ? sizeof(at.v6) : sizeof(at.v4)) < 0)
		return -errno;
	if (type == SOCK_STREAM && listen(fd, REDIRECT_BACKLOG) < 0)
		return -errno;
	return fd_take(&fd);
}

static int open_listener(struct redirect *redirect, bool is_v6, struct loop_watch *watch)
{
	const struct bridge *bridge = &redirect->gateway->config.bridge;

	watch->fn = on_listener;
	watch->ctx = redirect;
	watch->events = EPOLLIN;
	watch->fd = redirect_bind(bridge, is_v6, SOCK_STREAM, bridge->port);
	return watch->fd < 0 ? watch->fd : 0;
}

int redirect_init(struct redirect *redirect, struct gateway *gateway, struct resoluto_err *err)
{
	const struct bridge *bridge = &gateway->config.bridge;
	int r = 0;

	*redirect = (struct redirect){ .gateway = gateway, .v4.fd = -1, .v6.fd = -1 };
	redirect->udp4.fd = redirect->udp6.fd = redirect->tcp4.fd = redirect->tcp6.fd = -1;
	if (bridge->has_v4)
		r = open_listener(redirect, false, &redirect->v4);
	if (r == 0 && bridge->has_v6)
		r = open_listener(redirect, true, &redirect->v6);
	if (r < 0)
		return resoluto_fail(err, r, "listen on the bridge, port %u", bridge->port);
	return redirect_names_init(redirect, err);
}

int redirect_begin(struct redirect *redirect)
{
	int r = 0;

	if (redirect->v4.fd >= 0)
		r = loop_add(redirect->gateway->loop, &redirect->v4);
	if (r == 0 && redirect->v6.fd >= 0)
		r = loop_add(redirect->gateway->loop, &redirect->v6);
	return r < 0 ? r : redirect_names_begin(redirect);
}

void redirect_done(struct redirect *redirect)
{
	conn_end_all(redirect->gateway);
	while (redirect->clients)
		client_reset(redirect->clients);
	loop_remove(&redirect->v4);
	loop_remove(&redirect->v6);
	fd_close(&redirect->v4.fd);
	fd_close(&redirect->v6.fd);
	redirect_names_done(redirect);
	names_done(&redirect->names);
}
