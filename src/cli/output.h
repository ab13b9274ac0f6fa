/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * output.h - the program's bytes, written to our standard output and error as they come.
 *
 * Exact and at once.  What a slow reader has not taken waits in the run's directory, not here; a
 * reader that has gone ends the run.  While we wait for a reader, a request to stop is still heard:
 * at the second one, or when the program's grace time is over, waiting ends with -ECANCELED.  Once the
 * terminal has hung up everything is thrown away: the run is left to itself, and keeps its output.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/signals.h"
#include "resoluto/sandbox.h"

struct output {
	int fds[2]; /* standard output, standard error */
	bool is_tty[2];
	int wake_fd;       /* of signals.h; -1: none */
	uint64_t grace_ms; /* between the first request to stop and the end of waiting */
	int code;          /* 0, or why writing ended: sticky */
};

void output_init(struct output *output, int wake_fd);
/* Write all of it.  0, -EPIPE, -ECANCELED, or another negative errno value. */
int output_write(struct output *output, bool is_stderr, const char *bytes, size_t len);
/* The same of a result's JSON, as one line to standard output. */
int output_write_result(struct output *output, const struct resoluto_result *result);
