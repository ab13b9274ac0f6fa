/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* egress_probe.h - what a name means here, asked as a program would: one question to 127.0.0.1:53. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "egress/name.h"

enum {
	EGRESS_QUERY_MAX = 12 + EGRESS_NAME_MAX + 2 + 4, /* bytes */
	EGRESS_PROBE_MS = 5000,
	EGRESS_PROBE_ID = 0x7265, /* any will do: nobody else is on lo */
};

/* Names beneath it are the canary's, and mean nothing to anybody else: nothing is told of them, and nobody is connected. */
#define EGRESS_PROBE_SUFFIX ".resoluto.invalid"
bool egress_is_probe(const struct egress_name *name);

/* A question for A; returns its length.  Pure. */
size_t egress_query(const struct egress_name *name, uint8_t ret_query[EGRESS_QUERY_MAX]);
/* The answer to a question of that length: 1 and the first A, 0: there is no such name; -EBADMSG: something
 * else.  Pure. */
int egress_answer(const uint8_t *answer, size_t len, size_t query_len, uint8_t ret_address[4]);
/* The same, asked; -ETIMEDOUT and other failures of sockets. */
int egress_probe(const struct egress_name *name, uint8_t ret_address[4]);
