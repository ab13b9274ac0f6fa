/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* job.h - the JOB message (docs/design/channel.md) of a launch spec.  Pure. */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "resoluto/err.h"

struct job {
	const char *const *env;   /* KEY=VALUE, the later of two wins */
	const char *host_boot_id; /* becomes RESOLUTO_HOST_BOOT_IDS unless env has it */
	bool has_stdin;
	bool has_scratch;
	bool has_inbox;        /* archives are on the inbox disk */
	uint64_t heartbeat_ms; /* the longest silence of a guest that lives; 0: its own */
	bool has_egress;
	const char *const *egress_allow; /* patterns */
	bool egress_learn, egress_wide;
};

/* -E2BIG with the sizes when it is over FRAME_JOB_MAX; -EINVAL for a value that is not UTF-8. */
int job_write(const struct job *job, struct buf *ret_json, struct resoluto_err *err);
