/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/io.h"
#include "gateway/conn.h"
#include "gateway/port.h"

/* What callbacks add is written once they are all through. */
static void ask_for_flush(struct port *port)
{
	port->flush.at_ms = 1;
}

static size_t stream_room(void *ctx, uint32_t number)
{
	struct port *port = ctx;

	if (mux_wants_more(port->mux))
		return mux_room(port->mux, number);
	port->was_full = true;
	return 0;
}

static int stream_send(void *ctx, uint32_t number, const void *bytes, size_t len)
{
	struct port *port = ctx;

	ask_for_flush(port);
	return mux_send(port->mux, number, bytes, len);
}

static void stream_fin(void *ctx, uint32_t number)
{
	struct port *port = ctx;

	(void) mux_fin(port->mux, number);
	ask_for_flush(port);
}

static void stream_opened(void *ctx, uint32_t number)
{
	struct port *port = ctx;

	(void) mux_opened(port->mux, number);
	ask_for_flush(port);
}

static void stream_consumed(void *ctx, uint32_t number, size_t len)
{
	struct port *port = ctx;

	(void) mux_consumed(port->mux, number, len);
	ask_for_flush(port);
}

static void stream_ended(void *ctx, uint32_t number, enum egress_reason reason)
{
	struct port *port = ctx;

	mux_set_owner(port->mux, number, NULL);
	if (reason != EGRESS_NONE)
		(void) mux_reset(port->mux, number, reason);
	ask_for_flush(port);
}

static const struct client_ops stream_ops = {
	.room = stream_room,
	.send = stream_send,
	.fin = stream_fin,
	.opened = stream_opened,
	.consumed = stream_consumed,
	.ended = stream_ended,
};

static void on_open(void *ctx, uint32_t number, uint16_t tcp_port, const void *name, size_t len)
{
	struct port *port = ctx;
	const struct client client = { &stream_ops, port, number };
	struct conn *conn = conn_new(port->gateway, &client, name, len, tcp_port);

	mux_set_owner(port->mux, number, conn);
}

static void on_full(void *ctx, uint16_t tcp_port, const void *name, size_t len)
{
	struct port *port = ctx;
	struct egress_row row = { .port = tcp_port,
		                  .decision = EGRESS_REFUSED,
		                  .reason = EGRESS_TOO_MANY };

	egress_row_text(row.name, sizeof(row.name), name, len);
	audit_add(&port->gateway->audit, &row);
}

static void on_asked(void *ctx, const void *name, size_t len)
{
	struct port *port = ctx;

	audit_asked(&port->gateway->audit, &port->gateway->config.policy, name, len);
}

static void on_data(void *ctx, uint32_t number, const void *bytes, size_t len)
{
	struct port *port = ctx;
	struct conn *conn = mux_owner(port->mux, number);

	if (conn)
		conn_data(conn, bytes, len);
}

static void on_fin(void *ctx, uint32_t number)
{
	struct port *port = ctx;
	struct conn *conn = mux_owner(port->mux, number);

	if (conn)
		conn_fin(conn);
}

static void on_reset(void *ctx, uint32_t number, enum egress_reason reason)
{
	struct port *port = ctx;
	struct conn *conn = mux_owner(port->mux, number);

	if (conn)
		conn_gone(conn);
}

static void on_credit(void *ctx, uint32_t number)
{
	struct port *port = ctx;
	struct conn *conn = mux_owner(port->mux, number);

	if (conn)
		conn_room(conn);
}

static const struct mux_calls calls = {
	.open = on_open,
	.full = on_full,
	.asked = on_asked,
	.data = on_data,
	.fin = on_fin,
	.reset = on_reset,
	.credit = on_credit,
};

static void on_row(void *ctx, const char *json, size_t len)
{
	struct port *port = ctx;

	(void) mux_decide(port->mux, json, len);
	ask_for_flush(port);
}

static int update(struct port *port)
{
	const size_t waiting = mux_out(port->mux)->len;

	return loop_change(&port->watch,
	                   (waiting > 0 ? EPOLLOUT : 0) | (waiting < PORT_OUT_FULL ? EPOLLIN : 0));
}

void port_flush(struct port *port)
{
	struct buf *out = mux_out(port->mux);

	while (out->len > 0) {
		ssize_t n = send(port->watch.fd, out->data, out->len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		/* A guest that is gone is told by the reading side. */
		if (n < 0)
			break;
		buf_drop_front(out, (size_t) n);
	}
}

static int write_out(struct port *port)
{
	port_flush(port);
	if (port->was_full && mux_wants_more(port->mux)) {
		port->was_full = false;
		conn_room_all(port->gateway);
	}
	return update(port);
}

static int on_flush(struct loop_timer *timer)
{
	return write_out(timer->ctx);
}

/* The run goes on without a network; who reads the rows sees why. */
static int break_off(struct port *port, const struct resoluto_err *err)
{
	audit_protocol(&port->gateway->audit, err->text);
	loop_stop(port->gateway->loop);
	return 0;
}

static int read_in(struct port *port)
{
	struct resoluto_err err = { 0 };
	struct gateway *gateway = port->gateway;
	uint8_t bytes[PORT_READ_MAX]; /* not the gateway's: connections use that meanwhile */
	ssize_t n = recv(port->watch.fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		loop_stop(gateway->loop);
		return 0;
	}
	return mux_feed(port->mux, bytes, (size_t) n, &err) < 0 ? break_off(port, &err) : 0;
}

static int on_port(struct loop_watch *watch, uint32_t events)
{
	struct port *port = watch->ctx;
	int r = 0;

	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		r = read_in(port);
	return r < 0 ? r : write_out(port);
}

int port_init(struct port *port, struct gateway *gateway, int fd, struct resoluto_err *err)
{
	int r;

	*port = (struct port){
		.gateway = gateway,
		.watch = { .fd = fd, .events = EPOLLIN, .fn = on_port, .ctx = port },
		.flush = { .fn = on_flush, .ctx = port },
	};
	r = fd_set_nonblock(fd);
	if (r == 0)
		r = mux_new(MUX_GATEWAY, &calls, port, &port->mux);
	if (r < 0)
		return resoluto_fail(err, r, "take the port");
	loop_add_timer(gateway->loop, &port->flush);
	gateway->audit.on_row = on_row;
	gateway->audit.ctx = port;
	return 0;
}

int port_begin(struct port *port)
{
	ask_for_flush(port);
	return loop_add(port->gateway->loop, &port->watch);
}

void port_done(struct port *port)
{
	loop_remove(&port->watch);
	if (port->gateway)
		loop_remove_timer(port->gateway->loop, &port->flush);
	mux_free(port->mux);
	port->mux = NULL;
}
