/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * microvm.h - what the facade needs of the microVM runtime besides the operation table: a run
 * directory it owns before the launch and after the end.
 *
 * `launch` claims <state>/runs/<id> by itself and `destroy` removes it.  Who wants to keep the
 * conduit in there claims it first: launch then uses that claim, destroy stops the VM and leaves the
 * directory, and microvm_release() ends it.  launch returns -EBUSY at once while all slots are
 * taken; nothing is left behind then, and a claim stays.
 */

#include <stdbool.h>

#include "resoluto/err.h"
#include "resoluto/runtime.h"

/*
 * Make <state>/runs/<id> (mode 0700, as root later shared with the slot's group), locked as long as this process
 * or the run's shim lives.  -EEXIST: there is such a run already.  *ret_path (may be NULL) is the
 * directory's absolute path: free().
 */
int microvm_claim(struct resoluto_runtime *runtime, const char *id, char **ret_path,
                  struct resoluto_err *err);

/* Give a claim back: remove the directory, or leave it there marked as kept.  A run that is still
 * alive is destroyed first.  No such claim: fine. */
int microvm_release(struct resoluto_runtime *runtime, const char *id, bool keep,
                    struct resoluto_err *err);
