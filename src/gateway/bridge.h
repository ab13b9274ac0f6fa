/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * bridge.h - a bridge whose containers reach the network only through us, and the nftables rules that see to
 * it.  Pure: rules are text for `nft -f -`, one transaction to have them and one to be rid of them.
 */

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "egress/policy.h"
#include "resoluto/err.h"

enum {
	BRIDGE_RUN_MAX = 48,       /* characters */
	BRIDGE_INTERFACE_MAX = 15, /* characters: the kernel's */
	BRIDGE_RULES_MAX = 64 * 1024,
};

struct bridge {
	char run[BRIDGE_RUN_MAX + 1]; /* in the name of the table; "" without a bridge */
	char interface[BRIDGE_INTERFACE_MAX + 1];
	bool has_v4, has_v6;
	struct in_addr v4; /* the host's on the bridge: where we listen */
	struct in6_addr v6;
	uint16_t port, names_port; /* for connections; for questions of DNS, UDP and TCP */
};

/* Texts as the configuration has them; v4 or v6 may be NULL.  -EINVAL: what is wrong. */
int bridge_make(const char *run, const char *interface, const char *v4, const char *v6,
                uint16_t port, uint16_t names_port, struct bridge *ret_bridge,
                struct resoluto_err *err);
/* The whole table; one of the same name, left by a process that was killed, is replaced by it. */
int bridge_rules(const struct bridge *bridge, const struct egress_policy *policy, struct buf *out);
/* Rid of it, also if it is not there. */
int bridge_no_rules(const struct bridge *bridge, struct buf *out);
