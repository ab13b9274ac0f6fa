/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * gateway.h - the connections of one run, and what they share.
 *
 *	main.c      order of things: descriptors, configuration, resolver, lock-down, loop, end
 *	config.c    what the launcher says
 *	confine.c   what may still be done
 *	port.c      asked through the port of a microVM: streams of egress/mux.h
 *	redirect.c, redirect_names.c, bridge.c, keeper.c
 *	            asked by a bridge: sockets whose destination the kernel changed
 *	conn.c, conn_way.c, conn_relay.c   one connection, whoever asked for it
 *	resolver.c, hosts.c, dial.c, proxy.c   where it leads
 *	audit.c     the row that each of them leaves
 */

#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "gateway/audit.h"
#include "gateway/config.h"
#include "gateway/resolver.h"

enum {
	GATEWAY_WAITING_MAX = 64 * 1024 * 1024, /* bytes from clients that nobody has taken yet */
	GATEWAY_PIECE = 64 * 1024,              /* bytes read at once */
	GATEWAY_PIECES = 4,                     /* read from one side before another has its turn */
};

struct conn;

struct gateway {
	struct loop *loop;
	struct gateway_config config;
	struct resolver *resolver;
	struct audit audit;
	struct conn *conns; /* all of them */
	size_t conn_count;
	size_t waiting;               /* bytes, of all of them */
	uint8_t piece[GATEWAY_PIECE]; /* for bytes on their way */
};
