/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * canary.h - is this sandbox really cut off?  Asked before the program starts (contract section 2).
 *
 * Three probes: an outside TCP address must not answer, the metadata address must not answer, and an
 * object must be storable.  A probe that could not be made proves nothing and fails.
 *
 * With egress four more: a name that is not on the list must not resolve, one that is must mean a made-up
 * address, and a public address by number, of IPv4 and of IPv6, must not answer on the port that names are
 * allowed on.
 */

#include <stdbool.h>
#include <stdint.h>

#include "egress/policy.h"

enum {
	CANARY_TRIES = 60, /* while the only fault is that something still answers */
	CANARY_AGAIN_MS = 500,
	CANARY_CONNECT_MS = 1000, /* no answer within this is no answer */
	CANARY_DETAIL = 160,      /* bytes, the 0 included */
};

enum canary_outcome {
	CANARY_BLOCKED,   /* as it must be */
	CANARY_REACHABLE, /* something answered */
	CANARY_UNPROVEN,  /* the probe could not be made */
};

struct canary_probe {
	const char *name;
	enum canary_outcome outcome;
	char detail[CANARY_DETAIL];
};

/* Those of a run with egress. */
struct canary_egress {
	struct canary_probe refused, allowed, address, address6;
};

struct canary {
	struct canary_probe external, metadata;
	bool store_ok;
	char store_detail[CANARY_DETAIL];
	bool has_egress;
	struct canary_egress egress;
};

enum canary_verdict { CANARY_PASSED, CANARY_AGAIN, CANARY_FAILED };

/* What the probes say together; tries: how often they were made, this one included.  Pure. */
enum canary_verdict canary_judge(const struct canary *canary, int tries);

/* Try to connect to the address (IPv4 or IPv6, no name) and say what came of it. */
void canary_connect(const char *host, uint16_t port, struct canary_probe *probe);

/* Ask for both kinds of names, and connect to `host` and to a public address of IPv6 on port 443. */
void canary_egress(const struct egress_policy *policy, const char *host, struct canary_egress *ret);
/* What an answer (as egress_probe() returns) to a name says.  Pure. */
void canary_judge_name(const char *name, bool is_allowed, int answer, const uint8_t address[4],
                       struct canary_probe *probe);
