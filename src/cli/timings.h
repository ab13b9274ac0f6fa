/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* timings.h - the table of `run --timings`. */

#include "cli/text.h"
#include "resoluto/sandbox.h"

void timings_add(struct text *out, const struct resoluto_timings *timings);
