/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "gateway/conn_internal.h"

/* So many bytes at the start of `up` are out of memory. */
static void took(struct conn *conn, size_t len)
{
	buf_drop_front(&conn->up, len);
	conn->up_checked -= len;
	conn->gateway->waiting -= len;
	conn->client.ops->consumed(conn->client.ctx, conn->client.number, len);
	/* An idle connection costs no buffer. */
	if (conn->up.len == 0) {
		buf_done(&conn->up);
		conn->up = BUF_INIT(CONN_UP_MAX);
	}
}

static void count_up(struct conn *conn, size_t len)
{
	conn->up_bytes += len;
	conn->gateway->audit.up += len;
	conn->active_ms = clock_mono_ms();
}

/* Both have said their last word. */
static bool end_if_over(struct conn *conn)
{
	if (!conn->has_down_ended || !conn->has_shut_up)
		return true;
	conn_end(conn, EGRESS_NONE);
	return false;
}

/* The far side is through with us: what the client still sends, often its goodbye, has no reader. */
static void make_void(struct conn *conn)
{
	conn->is_up_void = true;
	conn->up_checked = conn->up.len;
	took(conn, conn->up.len);
}

/* How many bytes were written.  Where no more can be, what the far side said before is read yet: often it says
 * why, and that is all that the client will hear. */
static size_t write_some(struct conn *conn, const void *bytes, size_t len)
{
	ssize_t n;

	do {
		n = send(conn->far.fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n >= 0) {
		count_up(conn, (size_t) n);
		return (size_t) n;
	}
	if (errno == EAGAIN)
		return 0;
	if (!conn->has_down_ended)
		conn_note(conn, "write: %s", strerrordesc_np(errno));
	make_void(conn);
	return 0;
}

size_t conn_write_now(struct conn *conn, const void *bytes, size_t len)
{
	size_t n = write_some(conn, bytes, len);

	if (conn->is_up_void)
		n = len;
	if (n > 0)
		conn->client.ops->consumed(conn->client.ctx, conn->client.number, n);
	return n;
}

bool conn_write_up(struct conn *conn)
{
	while (conn->up_checked > 0) {
		const size_t n = write_some(conn, conn->up.data, conn->up_checked);

		if (n == 0)
			break;
		took(conn, n);
	}
	/* A request that was never whole is not sent. */
	if (conn->has_up_ended && conn->up_checked == 0 && !conn->has_shut_up) {
		(void) shutdown(conn->far.fd, SHUT_WR);
		conn->has_shut_up = true;
	}
	return end_if_over(conn);
}

/* false: the client does not take it. */
static bool send_down(struct conn *conn, const void *bytes, size_t len)
{
	const struct client *client = &conn->client;
	int r;

	if (len == 0) {
		conn->has_down_ended = true;
		client->ops->fin(client->ctx, client->number);
		return true;
	}
	r = client->ops->send(client->ctx, client->number, bytes, len);
	conn->down_bytes += len;
	conn->gateway->audit.down += len;
	if (r < 0)
		conn_end(conn, r == -ENOMEM || r == -E2BIG ? EGRESS_TOO_MANY : EGRESS_BROKEN);
	return r >= 0;
}

/* What the far side sent, as far as the client has room. */
static bool read_down(struct conn *conn)
{
	uint8_t *piece = conn->gateway->piece;
	const struct client *client = &conn->client;

	for (int i = 0; i < GATEWAY_PIECES && !conn->has_down_ended; i++) {
		size_t room = client->ops->room(client->ctx, client->number);
		ssize_t n;

		if (room == 0)
			break;
		n = recv(conn->far.fd, piece, room < GATEWAY_PIECE ? room : GATEWAY_PIECE,
		         MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n < 0) {
			conn_note(conn, "read: %s", strerrordesc_np(errno));
			conn_end(conn, EGRESS_BROKEN);
			return false;
		}
		conn->active_ms = clock_mono_ms();
		if (!send_down(conn, piece, (size_t) n))
			return false;
	}
	return end_if_over(conn);
}

bool conn_update(struct conn *conn)
{
	const struct client *client = &conn->client;
	uint32_t events = 0;
	int r;

	if (conn->up_checked > 0)
		events |= EPOLLOUT;
	if (!conn->has_down_ended && client->ops->room(client->ctx, client->number) > 0)
		events |= EPOLLIN;
	/* epoll tells a hang-up again and again, whatever is asked for. */
	if (events == 0) {
		loop_remove(&conn->far);
		return true;
	}
	if (conn->far.loop) {
		r = loop_change(&conn->far, events);
	} else {
		conn->far.events = events;
		r = loop_add(conn->gateway->loop, &conn->far);
	}
	if (r < 0)
		conn_end(conn, EGRESS_TOO_MANY);
	return r == 0;
}

int conn_relay_event(struct conn *conn, uint32_t events)
{
	if ((events & EPOLLOUT) && !conn_write_up(conn))
		return 0;
	if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && !read_down(conn))
		return 0;
	/* A hang-up that leaves nothing to read is only told to who still writes. */
	if ((events & (EPOLLHUP | EPOLLERR)) && conn->up_checked > 0 && !conn_write_up(conn))
		return 0;
	(void) conn_update(conn);
	return 0;
}

bool conn_begin_relay(struct conn *conn)
{
	conn->state = CONN_RELAYING;
	conn->active_ms = clock_mono_ms();
	conn->timer.at_ms = conn->active_ms + conn->gateway->config.idle_ms;
	conn->client.ops->opened(conn->client.ctx, conn->client.number);
	return conn_write_up(conn) && conn_update(conn);
}

void conn_room(struct conn *conn)
{
	if (conn->state == CONN_RELAYING)
		(void) conn_update(conn);
}

void conn_room_all(struct gateway *gateway)
{
	struct conn *next;

	for (struct conn *conn = gateway->conns; conn; conn = next) {
		next = conn->next;
		conn_room(conn);
	}
}
