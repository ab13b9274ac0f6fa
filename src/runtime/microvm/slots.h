/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * slots.h - how many microVMs may run at once: one locked file <state>/slots/N each.
 *
 * The lock belongs to the open file, which the shim inherits: a slot is free when nobody alive
 * holds it, however its owners ended.
 */

#include <stdint.h>

#include "resoluto/err.h"

struct slot {
	int fd;          /* owned: holds the lock; -1: none */
	unsigned number; /* from 0 */
};

#define SLOT_NONE ((struct slot){ .fd = -1 })

/* Take the first free one of count.  -EBUSY at once if there is none. */
int slot_try(const char *state_dir, unsigned count, struct slot *ret_slot,
             struct resoluto_err *err);
void slot_done(struct slot *slot);

/* Pure: how many there are.  configured: RESOLUTO_LOCAL_MAX_RUNS or NULL for one per 512 MiB of
 * available memory, at least 1. */
int slot_count(const char *configured, uint64_t available_bytes, unsigned *ret_count,
               struct resoluto_err *err);

/* Users that runs started by root may have: RESOLUTO_LOCAL_UIDS=FIRST-LAST. */
struct uid_range {
	uint32_t first, last;
};

/* Pure.  -EINVAL unless both are ordinary ids, first <= last. */
int uid_range_parse(const char *text, struct uid_range *ret_range, struct resoluto_err *err);
