/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "gateway/conn_internal.h"

void conn_note(struct conn *conn, const char *fmt, ...)
{
	char words[EGRESS_ROW_DETAIL_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
	if (words[0] != '\0')
		(void) buf_addf(&conn->detail, "%s%s", conn->detail.len ? "; " : "", words);
}

/* What was wrong with what the client said, whenever it was said. */
static bool is_refusal(enum egress_reason reason)
{
	return (reason > EGRESS_NONE && reason < EGRESS_NO_ADDRESS) ||
	       reason == EGRESS_ADDRESS_REFUSED || reason == EGRESS_LEARNING;
}

/* It asked for nothing: a look at the port, or the slower of two attempts (happy eyeballs of the client's own). */
static bool was_silent(const struct conn *conn, enum egress_reason reason)
{
	return reason == EGRESS_HELLO_CUT && conn->state == CONN_OPENING && conn->up.len == 0;
}

static enum egress_decision decision_of(const struct conn *conn, enum egress_reason reason)
{
	if (was_silent(conn, reason))
		return EGRESS_FAILED;
	if (is_refusal(reason) || (reason == EGRESS_TOO_MANY && conn->state == CONN_OPENING))
		return EGRESS_REFUSED;
	return conn->state == CONN_RELAYING ? EGRESS_ALLOWED : EGRESS_FAILED;
}

static enum egress_protocol protocol_of(const struct conn *conn)
{
	if (conn->kind == CONN_EITHER)
		return EGRESS_PROTOCOL_NONE;
	return conn->kind == CONN_HTTP ? EGRESS_PROTOCOL_HTTP : EGRESS_PROTOCOL_TLS;
}

static void write_row(struct conn *conn, enum egress_reason reason)
{
	struct egress_row row = {
		.port = conn->port,
		.protocol = protocol_of(conn),
		.decision = decision_of(conn, reason),
		.reason = reason,
		.bytes_up = conn->up_bytes,
		.bytes_down = conn->down_bytes,
		.duration_ms = clock_mono_ms() - conn->began_ms,
	};

	egress_row_text(row.name, sizeof(row.name), conn->asked, conn->asked_len);
	snprintf(row.address, sizeof(row.address), "%s", conn->address);
	if (conn->kind == CONN_TLS)
		snprintf(row.sni, sizeof(row.sni), "%s", conn->tls.name.text);
	egress_row_text(row.detail, sizeof(row.detail), conn->detail.data, conn->detail.len);
	audit_add(&conn->gateway->audit, &row);
}

static void conn_free(struct conn *conn)
{
	struct gateway *gateway = conn->gateway;

	resolver_forget(&conn->wait);
	dial_free(conn->dial);
	loop_remove(&conn->far);
	fd_close(&conn->far.fd);
	loop_remove_timer(gateway->loop, &conn->timer);
	gateway->waiting -= conn->up.len;
	buf_done(&conn->up);
	buf_done(&conn->answer);
	buf_done(&conn->detail);
	if (conn->next)
		conn->next->prev = conn->prev;
	if (conn->prev)
		conn->prev->next = conn->next;
	else
		gateway->conns = conn->next;
	gateway->conn_count--;
	free(conn);
}

/* While learning, what came is said, and that nothing was connected. */
static enum egress_reason reason_to_say(struct conn *conn, enum egress_reason reason)
{
	if (!conn->is_learning || reason == EGRESS_LEARNING)
		return reason;
	conn_note(conn, "%s", egress_reason_text(reason));
	return EGRESS_LEARNING;
}

void conn_end(struct conn *conn, enum egress_reason reason)
{
	const struct client client = conn->client;

	reason = reason_to_say(conn, reason);
	write_row(conn, reason);
	conn_free(conn);
	client.ops->ended(client.ctx, client.number, reason);
}

void conn_gone(struct conn *conn)
{
	enum egress_reason reason = conn->state == CONN_OPENING ? EGRESS_HELLO_CUT : EGRESS_NONE;

	conn_note(conn, "the client gave up");
	write_row(conn, reason_to_say(conn, reason));
	conn_free(conn);
}

void conn_end_all(struct gateway *gateway)
{
	while (gateway->conns) {
		conn_note(gateway->conns, "the run ended first");
		write_row(gateway->conns,
		          gateway->conns->is_learning ? EGRESS_LEARNING : EGRESS_NONE);
		conn_free(gateway->conns);
	}
}

static int on_timer(struct loop_timer *timer)
{
	struct conn *conn = timer->ctx;
	const uint32_t idle_ms = conn->gateway->config.idle_ms;

	switch (conn->state) {
	case CONN_OPENING:
		conn_end(conn, EGRESS_HELLO_TIMEOUT);
		break;
	case CONN_RESOLVING:
		conn_note(conn, "no answer in time");
		conn_end(conn, EGRESS_RESOLVER);
		break;
	case CONN_DIALLING:
	case CONN_TUNNEL:
		conn_end(conn, EGRESS_CONNECT_TIMEOUT);
		break;
	case CONN_RELAYING:
		if (clock_mono_ms() >= conn->active_ms + idle_ms)
			conn_end(conn, EGRESS_IDLE);
		else
			timer->at_ms = conn->active_ms + idle_ms;
		break;
	}
	return 0;
}

static void begin_kind(struct conn *conn, enum conn_kind kind)
{
	conn->kind = kind;
	if (kind == CONN_TLS)
		client_hello_init(&conn->tls, UINT64_MAX);
	else if (kind == CONN_HTTP)
		http_head_init(&conn->http, &conn->name, conn->port);
}

static enum egress_reason begin(struct conn *conn, const void *name, size_t len)
{
	enum egress_reason reason;
	bool is_plain = false;

	conn->kind = CONN_EITHER;
	conn->asked_len = len < sizeof(conn->asked) ? len : sizeof(conn->asked);
	memcpy(conn->asked, name, conn->asked_len);
	/* Also those whose client is gone, while they end. */
	if (conn->gateway->conn_count > MUX_STREAMS_MAX)
		return EGRESS_TOO_MANY;
	reason = egress_name_parse(name, len, &conn->name);
	if (reason == EGRESS_NONE)
		reason = egress_policy_check(&conn->gateway->config.policy, &conn->name, conn->port,
		                             &is_plain);
	conn->is_learning = reason == EGRESS_LEARNING;
	if (conn->is_learning)
		return EGRESS_NONE;
	if (reason == EGRESS_NONE)
		begin_kind(conn, is_plain ? CONN_HTTP : CONN_TLS);
	return reason;
}

struct conn *conn_new(struct gateway *gateway, const struct client *client, const void *name,
                      size_t len, uint16_t port)
{
	struct conn *conn = calloc(1, sizeof(*conn));
	enum egress_reason reason;

	if (!conn) {
		client->ops->ended(client->ctx, client->number, EGRESS_TOO_MANY);
		return NULL;
	}
	conn->gateway = gateway;
	conn->client = *client;
	conn->port = port;
	conn->far.fd = -1;
	conn->up = BUF_INIT(CONN_UP_MAX);
	conn->detail = BUF_INIT(EGRESS_ROW_DETAIL_MAX);
	conn->began_ms = clock_mono_ms();
	conn->next = gateway->conns;
	if (conn->next)
		conn->next->prev = conn;
	gateway->conns = conn;
	gateway->conn_count++;
	conn->timer = (struct loop_timer){ .at_ms = conn->began_ms + gateway->config.handshake_ms,
		                           .fn = on_timer,
		                           .ctx = conn };
	loop_add_timer(gateway->loop, &conn->timer);
	reason = begin(conn, name, len);
	if (reason == EGRESS_NONE)
		return conn;
	conn_end(conn, reason);
	return NULL;
}

/* How many of these bytes, all that were not passed yet, may go on. */
static enum egress_reason check(struct conn *conn, const void *bytes, size_t len, size_t *ret_pass)
{
	enum { RECORD_HANDSHAKE = 22 };

	if (conn->kind == CONN_EITHER)
		begin_kind(conn,
		           *(const uint8_t *) bytes == RECORD_HANDSHAKE ? CONN_TLS : CONN_HTTP);
	if (conn->kind == CONN_TLS)
		return client_hello_look(&conn->tls, bytes, len, 0, ret_pass);
	return http_head_look(&conn->http, bytes, len, ret_pass);
}

/* Keeps bytes that cannot be written yet.  false: the connection has ended. */
static bool keep(struct conn *conn, const void *bytes, size_t len)
{
	struct gateway *gateway = conn->gateway;

	if (gateway->waiting + len > GATEWAY_WAITING_MAX || buf_add(&conn->up, bytes, len) < 0) {
		conn_end(conn, EGRESS_TOO_MANY);
		return false;
	}
	gateway->waiting += len;
	return true;
}

/* Keeps bytes, and looks at all that were not passed yet.  false: the connection has ended. */
static bool keep_and_check(struct conn *conn, const void *bytes, size_t len)
{
	enum egress_reason reason;
	size_t pass = 0;

	if (!keep(conn, bytes, len))
		return false;
	reason = check(conn, conn->up.data + conn->up_checked, conn->up.len - conn->up_checked,
	               &pass);
	conn->up_checked += pass;
	if (reason != EGRESS_NONE)
		conn_end(conn, reason);
	return reason == EGRESS_NONE;
}

static bool is_begun(const struct conn *conn)
{
	return conn->kind == CONN_TLS ? conn->tls.is_whole : conn->http.requests > 0;
}

static void take_opening(struct conn *conn, const void *bytes, size_t len)
{
	if (!keep_and_check(conn, bytes, len) || !is_begun(conn))
		return;
	if (conn->is_learning)
		conn_end(conn, EGRESS_LEARNING);
	else if (conn->kind == CONN_TLS && strcmp(conn->tls.name.text, conn->name.text) != 0)
		conn_end(conn, EGRESS_SNI_OTHER);
	else
		conn_begin_way(conn);
}

/* With nothing in front of them, what may be written is written, and only the rest is kept. */
static void take_at_once(struct conn *conn, const uint8_t *bytes, size_t len)
{
	size_t pass = 0, written = 0;
	enum egress_reason reason = check(conn, bytes, len, &pass);

	if (reason != EGRESS_NONE) {
		conn_end(conn, reason);
		return;
	}
	if (pass > 0)
		written = conn_write_now(conn, bytes, pass);
	if (written == len || !keep(conn, bytes + written, len - written))
		return;
	conn->up_checked = pass - written;
	(void) conn_update(conn);
}

void conn_data(struct conn *conn, const void *bytes, size_t len)
{
	if (conn->is_up_void)
		conn->client.ops->consumed(conn->client.ctx, conn->client.number, len);
	else if (conn->state == CONN_OPENING)
		take_opening(conn, bytes, len);
	else if (conn->state == CONN_RELAYING && conn->up.len == 0)
		take_at_once(conn, bytes, len);
	else if (keep_and_check(conn, bytes, len) && conn->state == CONN_RELAYING &&
	         conn_write_up(conn))
		(void) conn_update(conn);
}

void conn_fin(struct conn *conn)
{
	if (conn->state == CONN_OPENING) {
		conn_end(conn, EGRESS_HELLO_CUT);
		return;
	}
	conn->has_up_ended = true;
	if (conn->state == CONN_RELAYING && conn_write_up(conn))
		(void) conn_update(conn);
}
