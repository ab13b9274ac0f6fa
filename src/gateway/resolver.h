/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * resolver.h - names to addresses, by the name servers of the host (c-ares).
 *
 * What it needs of the file system (resolv.conf, hosts) is read by resolver_new(); afterwards it only opens
 * sockets, so it works behind the filters.  A name of the hosts file has the addresses of that file.  Who
 * asks for a name that is being looked up waits for the same answer.  Nothing is kept for later: an answer
 * is dialled at once or forgotten.  It does not judge addresses; the caller does.
 */

#include <netinet/in.h>
#include <stdint.h>

#include "base/loop.h"
#include "egress/name.h"
#include "egress/reason.h"
#include "resoluto/err.h"

enum {
	RESOLVER_ADDRESSES_MAX = 16, /* of one answer; more are left out */
	RESOLVER_LOOKUPS_MAX = 128,  /* names at once */
	RESOLVER_WORDS = 64,         /* bytes of its words for people */
	RESOLVER_TRY_MS = 2000,      /* until a name server is asked again */
	RESOLVER_TRIES = 3,
};

union socket_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct resolver_answer {
	enum egress_reason reason; /* EGRESS_NONE, EGRESS_NO_ADDRESS or EGRESS_RESOLVER */
	const char *words;         /* what was wrong, for people */
	union socket_address addresses[RESOLVER_ADDRESSES_MAX]; /* the port is 0 */
	size_t count, left_out;
};

/* One that waits; embed it. */
struct resolver_wait {
	void (*fn)(struct resolver_wait *wait, const struct resolver_answer *answer);
	/* private */
	struct resolver_lookup *lookup; /* NULL: does not wait */
	struct resolver_wait *next;
};

struct resolver;

int resolver_new(struct loop *loop, struct resolver **ret_resolver, struct resoluto_err *err);
void resolver_free(struct resolver *resolver);
/* fn is called once, later or before this returns.  -EBUSY over RESOLVER_LOOKUPS_MAX, -ENOMEM. */
int resolver_ask(struct resolver *resolver, const char *name, struct resolver_wait *wait);
/* fn will not be called.  Fine if nothing is waited for. */
void resolver_forget(struct resolver_wait *wait);
