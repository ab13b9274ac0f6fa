/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* exit_code.h - with which code `run` ends: the table of docs/result.md as a pure function. */

#include "resoluto/sandbox.h"

struct exit_facts {
	int run_code;                         /* what resoluto_sandbox_run() returned */
	const struct resoluto_result *result; /* not asked if run_code is negative */
	int output_code; /* 0, or the negative errno value that writing the program's output ended with */
	int stop_signal; /* the last signal that asked us to stop; 0: none */
};

int exit_code_of(const struct exit_facts *facts);
