/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* leftovers.h - what dead runs left in the state directory; removing it is rundir_sweep_dead(). */

#include "resoluto/err.h"

struct leftovers {
	unsigned dead; /* directories of runs whose processes are gone, or half removed */
	unsigned alive;
	unsigned kept; /* ended runs of --keep */
};

/* Count only.  No state directory yet is nothing left. */
int leftovers_count(const char *state_dir, struct leftovers *ret_count, struct resoluto_err *err);
