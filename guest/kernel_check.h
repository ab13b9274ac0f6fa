/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * kernel_check.h - whether the kernel can do what the runner needs, asked before anything waits for it.
 *
 * Somebody may bring a kernel of their own (local-backend-up.sh --kernel FILE): what it lacks is said all at once
 * and by the names of its configuration.
 */

#include "resoluto/err.h"

/*
 * root: the directory with proc and sys.  Modules are loaded by now.  -ENODEV with a text that names each missing
 * option, but at the first level at which something is missing: without a bus no device can be told from a missing one.
 */
int kernel_check(int root, struct resoluto_err *err);
