/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stddef.h>

#include "image/caller.h"

bool caller_looks(const struct caller *caller)
{
	return caller && caller->progress;
}

bool caller_can_stop(const struct caller *caller)
{
	return caller && caller->is_stopped;
}

void caller_tell(const struct caller *caller, const char *step, uint64_t done, uint64_t total)
{
	if (caller_looks(caller))
		caller->progress(caller->ctx, step, done, total);
}

int caller_check(const struct caller *caller, struct resoluto_err *err)
{
	if (caller_can_stop(caller) && caller->is_stopped(caller->ctx))
		return resoluto_fail(err, -ECANCELED, "stopped");
	return 0;
}
