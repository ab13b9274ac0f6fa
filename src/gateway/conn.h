/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * conn.h - one connection: who asked for it (the client) is not believed, and gets to the far side only what
 * began as the policy wants it.
 *
 *	opening    bytes of the client are kept until its ClientHello, or request head, is whole
 *	resolving  its name, or that of the proxy
 *	dialling   addresses that are public
 *	tunnel     the proxy is asked for one
 *	relaying   bytes both ways, each end in its own time
 *
 * Any of the functions may end the connection and free it: nothing of it is touched after a call.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "egress/reason.h"
#include "gateway/gateway.h"

/* The client's end.  ctx and number are what conn_new() was given. */
struct client_ops {
	/* How many bytes it takes now. */
	size_t (*room)(void *ctx, uint32_t number);
	int (*send)(void *ctx, uint32_t number, const void *bytes, size_t len);
	/* No more will be sent. */
	void (*fin)(void *ctx, uint32_t number);
	/* The far side is connected. */
	void (*opened)(void *ctx, uint32_t number);
	/* So many bytes of conn_data() are out of memory. */
	void (*consumed)(void *ctx, uint32_t number, size_t len);
	/* The connection is gone.  EGRESS_NONE: it ended as it should, both ways. */
	void (*ended)(void *ctx, uint32_t number, enum egress_reason reason);
};

struct client {
	const struct client_ops *ops;
	void *ctx;
	uint32_t number;
};

/* name: what the client says it wants, any bytes.  NULL if there is no connection: it was refused at once, and the
 * client's end was told by ended(). */
struct conn *conn_new(struct gateway *gateway, const struct client *client, const void *name,
                      size_t len, uint16_t port);
void conn_data(struct conn *conn, const void *bytes, size_t len);
void conn_fin(struct conn *conn);
/* The client gave up; ended() is not called. */
void conn_gone(struct conn *conn);
/* room() has grown. */
void conn_room(struct conn *conn);
/* All clients may have room again. */
void conn_room_all(struct gateway *gateway);
/* The run is over. */
void conn_end_all(struct gateway *gateway);
