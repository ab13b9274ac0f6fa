/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * attached.h - a run as one process looks at it, whoever launched it: its parts, a handle from the
 * runtime's attach(), and what was asked for.  Everything else is read when it is wanted.
 */

#include "sandbox/backend.h"
#include "sandbox/request.h"
#include "sandbox/sandbox_internal.h"

struct resoluto_run {
	struct place place;
	struct resoluto_handle handle;
	struct request request; /* empty where nothing was noted */
	bool has_odd_request;   /* something was, but not as this version writes it */
	uint64_t cursor;        /* number of the next piece of output */
	unsigned poll_interval_ms;
};

/* The silence after which a reader ends it.  None, where nothing was noted: then whoever launched it is the one to judge,
 * for only he knows what was asked for. */
uint64_t attached_silence_ms(const struct resoluto_run *run);
/* -EINVAL: there is no run, or no place for what is asked for. */
int attached_check(const struct resoluto_run *run, bool has_place, struct resoluto_err *err);
/* Is it over?  A removed one is: -ENOENT. */
int attached_state(struct resoluto_run *run, enum resoluto_run_state *ret_state,
                   struct resoluto_err *err);
