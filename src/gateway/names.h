/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * names.h - names that containers of a bridge asked for, and the made-up addresses that stand for them
 * (198.18.0.0/15 and 2001:2::/48, ranges for benchmarks that nobody has).  Pure; stable, bounded.
 */

#include <netinet/in.h>
#include <stddef.h>

#include "egress/name.h"

enum {
	NAMES_MAX = 4096,
	NAMES_FIRST = 2, /* the number of the first */
};

struct names {
	struct egress_name **items; /* owned */
	size_t count;
};

/* The number of the name, from NAMES_FIRST on; it is added if it is new.  -ENOSPC over NAMES_MAX; -ENOMEM. */
int names_number(struct names *names, const struct egress_name *name);
void names_done(struct names *names);

struct in_addr names_v4(int number);
struct in6_addr names_v6(int number);
/* NULL: it stands for none. */
const struct egress_name *names_find_v4(const struct names *names, struct in_addr address);
const struct egress_name *names_find_v6(const struct names *names, const struct in6_addr *address);
