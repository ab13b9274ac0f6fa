/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * staging.h - the workspace into the inbox of a run: packed and stored at the same time, in
 * bounded memory.
 */

#include "resoluto/conduit.h"
#include "resoluto/sandbox.h"
#include "sandbox/idle.h"
#include "wire/pack.h"

struct staging {
	int workspace_fd;                           /* borrowed */
	const struct resoluto_run_options *options; /* paths, exclude, protect, progress */
	struct resoluto_conduit *conduit;           /* borrowed */
	const char *store_prefix;
	struct idle *idle; /* a signal ends the staging */
};

/* -ECANCELED: a signal asked to stop. */
int staging_run(const struct staging *staging, struct pack_report *ret_report,
                struct resoluto_err *err);
/* How many entries were left out, and one line that says why ("" if none; free()). */
int staging_explain(const struct pack_report *report, uint64_t *ret_left_out, char **ret_why);
