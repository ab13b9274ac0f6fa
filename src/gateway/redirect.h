/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * redirect.h - `resoluto-gateway --redirect`: connections of a bridge, whose rules (bridge.h) lead them here.
 *
 * A container asks for a name and gets a made-up address; where it then connects to is known from the socket (the
 * kernel remembers the original destination), and with it the name.  From there it is conn.h, as in a microVM.  An
 * address that stands for no name is refused: nothing is reached by number.
 *
 * Two processes: one that keeps the right to change the rules and reads nothing, and the gateway, locked down.  fd 3 is a
 * socket: a byte comes when the rules are in force, and its end ends both.  If the gateway dies the rules stay until then:
 * connections fail, and nothing gets past it.
 */

#include "gateway/gateway.h"
#include "gateway/names.h"
#include "resoluto/err.h"

enum {
	REDIRECT_DOWN_MAX =
		256 * 1024, /* bytes for a container that it has not taken, of one connection */
	REDIRECT_WAITING_MAX = 64 * 1024 * 1024, /* the same of all together */
	REDIRECT_CLIENTS_MAX = 1024,   /* also those that only have their answer's end to take */
	REDIRECT_READ_MAX = 16 * 1024, /* bytes at once */
	REDIRECT_BACKLOG = 512,
	REDIRECT_NAMES_CLIENTS = 64,   /* that ask by TCP, at once */
	REDIRECT_NAMES_MS = 10 * 1000, /* for a question by TCP */
	REDIRECT_TTL_S = 60,
};

struct redirect {
	struct gateway *gateway;
	struct names names;
	struct redirected *clients; /* containers' connections */
	size_t client_count;
	size_t waiting;           /* bytes */
	struct loop_watch v4, v6; /* listeners; .fd is owned, -1: none */
	/* redirect_names.c */
	struct loop_watch udp4, udp6, tcp4, tcp6;
	struct asker *askers;
	size_t asker_count;
};

/* Listens; nothing is accepted before redirect_begin(). */
int redirect_init(struct redirect *redirect, struct gateway *gateway, struct resoluto_err *err);
int redirect_begin(struct redirect *redirect);
void redirect_done(struct redirect *redirect);

/* redirect_names.c: the responder. */
int redirect_names_init(struct redirect *redirect, struct resoluto_err *err);
int redirect_names_begin(struct redirect *redirect);
void redirect_names_done(struct redirect *redirect);

/* A socket bound to the bridge's address, listening if it is a stream; or a negative errno value. */
int redirect_bind(const struct bridge *bridge, bool is_v6, int type, uint16_t port);
