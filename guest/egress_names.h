/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * egress_names.h - names the program asked for, each with a number that stays, and the made-up addresses that
 * stand for the numbers.  Pure; the names are hostile, their count is bounded.
 */

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "egress/name.h"

enum {
	EGRESS_NAMES_MAX = 4096,
	EGRESS_NAMES_SLOTS = 8192, /* of the hash table: a power of two */
	EGRESS_PREFIX4 = 15,       /* of 198.18.0.0, the range for benchmarks (RFC 2544) */
	EGRESS_PREFIX6 = 48,       /* of 2001:2::, the same (RFC 5180) */
};

struct egress_host {
	struct egress_name name;
	uint32_t number;        /* from 0 upwards, for good */
	bool has_four, has_six; /* listeners are bound on the address of this family */
};

struct egress_names {
	struct egress_host **hosts; /* owned, by number */
	size_t count;
	uint16_t slots[EGRESS_NAMES_SLOTS]; /* number + 1; 0: free */
};

/* NULL: it is not there. */
struct egress_host *egress_names_find(const struct egress_names *names,
                                      const struct egress_name *name);
/* The one that is there, or a new one.  -ENOSPC: there are EGRESS_NAMES_MAX; -ENOMEM. */
int egress_names_add(struct egress_names *names, const struct egress_name *name,
                     struct egress_host **ret_host);
void egress_names_done(struct egress_names *names);

/* Never the first of its range, which is the guest's own. */
struct in_addr egress_address4(uint32_t number);
struct in6_addr egress_address6(uint32_t number);
/* Whether it is one of the made-up ones; a is in network order. */
bool egress_is_made_up4(const uint8_t a[4]);
/* The number it stands for, if it is one that names can have. */
bool egress_number4(const uint8_t a[4], uint32_t *ret_number);
bool egress_number6(const uint8_t a[16], uint32_t *ret_number);
