/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* objects.h - how much a run has left in its Conduit. */

#include "check.h"
#include "resoluto/conduit.h"

static inline int count_object(void *ctx, const struct resoluto_object *object)
{
	++*(unsigned *) ctx;
	return 0;
}

static inline unsigned objects_in(struct resoluto_conduit *conduit)
{
	unsigned count = 0;

	CHECK(resoluto_conduit_list(conduit, "", count_object, &count, NULL) == 0);
	return count;
}
