/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stddef.h>

#include "cli/timings.h"

#define STEP(member) \
	{ \
#member, offsetof(struct resoluto_timings, member) \
	}

static const struct {
	const char *name;
	size_t offset; /* of a uint64_t, ms */
} steps[] = {
	STEP(queue), STEP(stage), STEP(boot),    STEP(canary),
	STEP(setup), STEP(run),   STEP(collect), STEP(total),
};

void timings_add(struct text *out, const struct resoluto_timings *timings)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const uint64_t *ms = (const void *) ((const char *) timings + steps[i].offset);

		text_addf(out, "%-8s %9.3f s\n", steps[i].name, (double) *ms / 1000);
	}
}
