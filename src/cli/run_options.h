/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* run_options.h - from the command line of `run` to struct resoluto_run_options.  Pure. */

#include <stdbool.h>
#include <stdint.h>

#include "cli/option.h"
#include "resoluto/sandbox.h"

/* Where the rows of run_option_table put their values. */
struct run_args {
	const char *backend, *runtime, *flavor;
	const char *image, *pull, *platform, *authfile;
	const char *workspace, *output_dir;
	struct strv paths, exclude, protect, outputs;
	const char *workdir, *user, *env_file, *stdin_file, *setup, *cleanup, *id;
	struct strv env, labels, quotas, egress;
	const char *egress_file;
	bool egress_learn, egress_wide;
	bool reads_our_stdin; /* -i */
	uint64_t memory_bytes, disk_bytes, deadline_ms, dead_after_ms, drain_timeout_ms, max_output;
	uint32_t cpu_milli;
	bool detach, keep, no_redact_patterns, cold, json, quiet, timings;
};

extern const struct option run_option_table[];

/* Options for the library and the lists that they borrow from; they also borrow from args. */
struct run_request {
	struct resoluto_run_options options;
	struct strv env, setup, cleanup;
};

void run_request_done(struct run_request *request); /* a cleanup function */

/**
 * environment: NULL-terminated KEY=VALUE, where `--env KEY` looks.  -EINVAL with a sentence when
 * options do not go together or a value makes no sense.
 */
int run_request_fill(struct run_request *request, const struct run_args *args,
                     const char *const *program, const char *const *environment,
                     struct resoluto_err *err);
