/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * egress.h - what a run may reach, from its options; and what came of it, from the rows that its gateway wrote
 * (docs/design/egress.md).  Pure but for the file of patterns.
 */

#include <stdbool.h>

#include "base/buf.h"
#include "resoluto/sandbox.h"
#include "sandbox/stops.h"

enum {
	EGRESS_RESULT_ROWS =
		10001, /* those of egress/row.h, and one that says that the gateway died */
};

/* Canonical patterns of options->egress and egress_file, and what to say of them ("egress-ignored: ...").
 * -EINVAL: what is wrong, and what to write instead; -ECANCELED: the caller asked to stop before the file was read. */
int egress_compile(const struct resoluto_run_options *options, struct stops *stops,
                   struct strv *ret_patterns, struct strv *ret_notes, struct resoluto_err *err);

struct egress_outcome {
	char *json;       /* owned: the array of rows */
	uint64_t dropped; /* rows that the gateway or we left out */
	bool is_lost;     /* the gateway did not come to its end */
};

/* text: what the gateway wrote.  -ENOMEM. */
int egress_outcome_read(const char *text, size_t len, struct egress_outcome *ret_outcome);
