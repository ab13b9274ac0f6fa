/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * conn_internal.h - what the three files of a connection share: conn.c (its life, and how it may begin),
 * conn_way.c (resolving, dialling, tunnel), conn_relay.c (bytes).  A function that returns bool says whether the
 * connection is still there.
 */

#include "egress/client_hello.h"
#include "egress/http_head.h"
#include "egress/mux.h"
#include "gateway/conn.h"
#include "gateway/dial.h"
#include "egress/row.h"

enum {
	CONN_NAME_MAX = MUX_NAME_MAX, /* bytes, as the client wrote it */
	CONN_UP_MAX = MUX_CREDIT,     /* bytes of the client that wait */
};

/* How the client must speak. */
enum conn_kind {
	CONN_TLS,
	CONN_HTTP,
	CONN_EITHER, /* while learning: its first byte says it */
};

enum conn_state { CONN_OPENING, CONN_RESOLVING, CONN_DIALLING, CONN_TUNNEL, CONN_RELAYING };

struct conn {
	struct gateway *gateway;
	struct conn *prev, *next;
	struct client client;
	enum conn_state state;

	/* what was asked for */
	uint8_t asked[CONN_NAME_MAX];
	size_t asked_len;
	uint16_t port;
	bool is_learning;
	struct egress_name name;
	enum conn_kind kind;
	union {
		struct client_hello tls;
		struct http_head http;
	};

	/* where it leads */
	struct resolver_wait wait;
	struct dial *dial;
	char address[DIAL_ADDRESS_TEXT];
	struct buf answer; /* the proxy's */
	struct buf detail; /* for people */

	/* bytes */
	struct loop_watch far; /* .fd is owned; -1: none */
	struct buf up;         /* from the client, not written yet */
	size_t up_checked;     /* of those: may be written, as it began or went on well */
	bool has_up_ended, has_shut_up, has_down_ended;
	bool is_up_void; /* the far side takes no more, having said its last word */
	uint64_t up_bytes, down_bytes;

	uint64_t began_ms, active_ms;
	struct loop_timer timer; /* the limit of the state */
};

/* conn.c */
void conn_end(struct conn *conn, enum egress_reason reason);
/* Add words to the row; what does not fit is left out. */
void conn_note(struct conn *conn, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* conn_way.c */
void conn_begin_way(struct conn *conn);
/* conn_relay.c */
bool conn_begin_relay(struct conn *conn);
bool conn_write_up(struct conn *conn);
/* Bytes that nothing waits in front of; returns how many are out of memory. */
size_t conn_write_now(struct conn *conn, const void *bytes, size_t len);
/* Ask the loop for what matters now. */
bool conn_update(struct conn *conn);
int conn_relay_event(struct conn *conn, uint32_t events);
