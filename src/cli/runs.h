/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* runs.h - what the commands for runs that are there have in common. */

#include "cli/command.h"
#include "cli/limit.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "resoluto/sandbox.h"

/* Open the run that the command's first word, or this id, names; NULL after saying why not, and then
 * *ret_code is the exit code. */
struct resoluto_run *runs_open(const struct invocation *invocation, const char *id, int *ret_code);
void runs_close(struct resoluto_run **run); /* a cleanup function */
/* Say what failed about a run, in words that need no explanation of the number; the exit code. */
int runs_failed(const struct invocation *invocation, const struct resoluto_err *err);

/* A reader of a run's output: our standard streams, and a signal that says we leave. */
struct reader {
	struct signals signals;
	struct output output;
	struct limit limit; /* on output */
};

/* max_output: of --max-output; 0 for all. */
int reader_open(struct reader *reader, uint64_t max_output, struct resoluto_err *err);
void reader_close(struct reader *reader); /* a cleanup function */
/* The code of who left: 128+N, 141 for a reader that has gone; 0: nobody asked and all was written. */
int reader_code(const struct reader *reader, const struct invocation *invocation);
