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

#include "base/buf.h"
#include "resoluto/err.h"
#include "resoluto/runtime.h"

/*
 * Make <state>/runs/<id> (mode 0700, as root later shared with the slot's group), locked as long as this process
 * or the run's shim lives.  -EEXIST: there is such a run already.  *ret_path (may be NULL) is the
 * directory's absolute path: free().
 */
int microvm_claim(struct resoluto_runtime *runtime, const char *id, char **ret_path,
                  struct resoluto_err *err);

/* A claim on a run that another process made and perhaps lets live: attach then uses it, destroy leaves
 * the directory, and microvm_release() removes it or closes it.  -ENOENT: there is no such run. */
int microvm_open(struct resoluto_runtime *runtime, const char *id, char **ret_path,
                 struct resoluto_err *err);
/* Whether somebody has removed the run that this handle is attached to. */
bool microvm_is_removed(const struct resoluto_handle *handle);

/* Before there is a runtime.  -EINVAL: no machine of this host can be made so. */
int microvm_check_resources(const struct resoluto_resources *resources, struct resoluto_err *err);

/* A runtime for runs that are there: it needs no QEMU, and launch returns -EOPNOTSUPP. */
int microvm_reader_new(const char *state_dir, struct resoluto_runtime **ret_runtime,
                       struct resoluto_err *err);

/* What the gateway of a run that is over wrote down (gateway.h): -ENOENT: it had no egress.  *ret_text: buf_done(). */
int microvm_egress(struct resoluto_runtime *runtime, const char *id, struct buf *ret_text,
                   struct resoluto_err *err);

/* Remove what dead runs left that nobody wants to keep, and what was half removed. */
int microvm_tidy(struct resoluto_runtime *runtime, struct resoluto_err *err);

/* What is left of this run shall stay, however it ends, even if we do not live to release it. */
int microvm_keep(struct resoluto_runtime *runtime, const char *id, struct resoluto_err *err);

/* Give a claim back: remove the directory, or leave it there marked as kept.  A run that is still
 * alive is destroyed first.  No such claim: fine. */
int microvm_release(struct resoluto_runtime *runtime, const char *id, bool keep,
                    struct resoluto_err *err);
