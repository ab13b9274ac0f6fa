/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * launch_spec.h - what every runtime asks of a launch spec before it does anything.  Pure.
 */

#include <stdbool.h>

#include "resoluto/runtime.h"

enum { RUNTIME_PREFIX_SIZE = RESOLUTO_KEY_MAX + 1 }; /* bytes, the 0 included */

/* A spec as a runtime uses it: of this version, and its prefix is without a '/' behind it. */
struct checked_spec {
	struct resoluto_launch_spec spec; /* borrows what the given one does, and prefix */
	char prefix[RUNTIME_PREFIX_SIZE];
};

/* The spec of a caller who may know an older or newer one (base/options_copy.h).  -EINVAL, with what is wrong, unless
 * it has a run id, an image, a conduit, a prefix that can be a key, and KEY=VALUE in env and labels. */
int runtime_check_spec(const struct resoluto_launch_spec *given, struct checked_spec *ret_checked,
                       struct resoluto_err *err);
/* For runtimes without egress: -EOPNOTSUPP if any is asked for. */
int runtime_refuse_egress(const struct resoluto_launch_spec *spec, const char *runtime,
                          struct resoluto_err *err);
/* Whether labels hold every one of wanted (both NULL-terminated KEY=VALUE, both may be NULL). */
bool runtime_labels_match(const char *const *labels, const char *const *wanted);
