/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * verdict.h - from how the drive ended and what the guest said to exit code and reason (contract section 5;
 * docs/result.md has the table).  Pure.
 */

#include "resoluto/driver.h"
#include "resoluto/sandbox.h"
#include "wire/reason.h"
#include "wire/result.h"

struct verdict {
	bool ran;
	int exit_code;
	int signal;
	bool output_is_complete; /* the guest said so, after all of its events */
	enum reason reason;
	enum resoluto_disposition disposition;
	const char *detail; /* borrowed from the node or static; "" when there is nothing to say */
};

struct verdict_inputs {
	const struct resoluto_outcome *outcome;
	const struct node_result *node; /* NULL: none, or one that does not parse */
	bool has_started;               /* the program's span was seen */
	bool has_only_setup;            /* the setup hook's was, and the program's was not */
	int stop_signo;                 /* the caller's signal that asked to stop; 0: none */
};

struct verdict verdict_judge(const struct verdict_inputs *inputs);
/* Something on the host went wrong behind the program's back (outputs, isolation): never ok. */
void verdict_spoil(struct verdict *verdict, enum reason reason, const char *detail);
/* Of a run that was not started, or whose drive failed. */
struct verdict verdict_refused(enum resoluto_disposition disposition, enum reason reason,
                               int stop_signo, const char *detail);
