/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* options_copy.h - option structs of callers, which begin with size_t struct_size.  Pure. */

#include <stddef.h>

#include "resoluto/err.h"

/*
 * Copy an option struct of a caller who may have been compiled against an older or newer header:
 * members the caller does not know are 0.  -EINVAL when there is none, when the size is not set, or when the
 * caller uses members that this library does not know.
 */
int options_copy(void *to, size_t to_size, const void *from, struct resoluto_err *err);
