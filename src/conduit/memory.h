/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * memory.h - what the conduit "memory" offers beside the promises of conduit.h: it counts what it
 * was asked, and fails when told to.  For tests of those who use a conduit.
 */

#include "resoluto/conduit.h"

enum conduit_memory_call {
	CONDUIT_MEMORY_PUT,
	CONDUIT_MEMORY_GET,
	CONDUIT_MEMORY_LIST,
	CONDUIT_MEMORY_COPY,
	CONDUIT_MEMORY_DELETE,
	CONDUIT_MEMORY_CALLS /* how many kinds there are */
};

/* Calls that reached the store, those that failed included. */
struct conduit_memory_counters {
	unsigned puts, gets, lists, copies, deletes;
	size_t objects; /* stored now */
	size_t bytes;   /* of those objects */
};

/* NULL for any other conduit.  Lives as long as the conduit, and changes with it. */
const struct conduit_memory_counters *conduit_memory_counters(
	const struct resoluto_conduit *conduit);
/* The next `times` calls of this kind fail with code (negative) and change nothing.  0, or
 * -EOPNOTSUPP for any other conduit. */
int conduit_memory_fail(struct resoluto_conduit *conduit, enum conduit_memory_call call, int code,
                        unsigned times);
