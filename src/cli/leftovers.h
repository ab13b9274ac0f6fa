/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* leftovers.h - what is stored in the state directory of runs, dead, kept or alive. */

#include <stdint.h>

#include "resoluto/err.h"

struct leftovers {
	unsigned dead; /* directories of runs whose processes are gone, or half removed */
	unsigned alive;
	unsigned kept;  /* ended runs of --detach and --keep */
	uint64_t bytes; /* on the disk, of all of them */
};

/* Count only.  No state directory yet is nothing left. */
int leftovers_count(const char *state_dir, struct leftovers *ret_count, struct resoluto_err *err);
