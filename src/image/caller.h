/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * caller.h - whoever asked for an image: told meanwhile how far it is, and asked whether it still wants it.
 *
 * Every function takes NULL for somebody who wants to hear nothing and waits for ever.
 */

#include <stdbool.h>
#include <stdint.h>

#include "resoluto/err.h"

enum { CALLER_STEP_MS = 100 }; /* between two questions, where there is nothing to do but to wait */

struct caller {
	/* As in resoluto_image_options; either may be NULL. */
	void (*progress)(void *ctx, const char *step, uint64_t done, uint64_t total);
	bool (*is_stopped)(void *ctx);
	void *ctx;
};

/* Does anybody look? */
bool caller_looks(const struct caller *caller);
/* Can it stop what it asked for?  Else a wait may be one without an end. */
bool caller_can_stop(const struct caller *caller);
void caller_tell(const struct caller *caller, const char *step, uint64_t done, uint64_t total);
/* -ECANCELED: it asked to stop. */
int caller_check(const struct caller *caller, struct resoluto_err *err);
