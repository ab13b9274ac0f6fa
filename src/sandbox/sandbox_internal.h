/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* sandbox_internal.h - the facade with its waiting times as arguments, so that its tests are quick. */

#include "resoluto/sandbox.h"

struct sandbox_tuning {
	uint64_t grace_ms; /* between the signal to the program and the end of the sandbox */
	unsigned poll_interval_ms;  /* of the driver; 0: RESOLUTO_POLL_INTERVAL_MS */
	unsigned admission_step_ms; /* 0: ADMISSION_STEP_MS */
};

/* For a variable that shall release it. */
static inline void result_free(struct resoluto_result **result)
{
	resoluto_result_free(*result);
}

int sandbox_launch(const struct resoluto_run_options *options, const struct sandbox_tuning *tuning,
                   struct resoluto_run **ret_run, struct resoluto_result **ret_result,
                   struct resoluto_err *err);
int sandbox_attach(const struct resoluto_attach_options *options,
                   const struct sandbox_tuning *tuning, struct resoluto_run **ret_run,
                   struct resoluto_err *err);
int sandbox_run(const struct resoluto_run_options *options, const struct sandbox_tuning *tuning,
                struct resoluto_result **ret_result, struct resoluto_err *err);
