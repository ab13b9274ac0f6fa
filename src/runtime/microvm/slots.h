/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * slots.h - how many microVMs may run at once: one locked file <state>/slots/N each.  As root a slot also has a user
 * that no other run of this host has, whatever its state directory: the locked file
 * /run/resoluto-sandbox/uids/UID.
 *
 * The locks belong to the open files, which the shim inherits: a slot and a user are free when nobody alive
 * holds them, however their owners ended.
 */

#include <stdint.h>

#include "resoluto/err.h"

struct slot {
	int fd;          /* owned: holds the lock; -1: none */
	unsigned number; /* from 0 */
	int uid_fd;      /* owned: holds the lock of the user; -1: none */
	uint32_t uid;
};

#define SLOT_NONE ((struct slot){ .fd = -1, .uid_fd = -1 })

/* Where the locks of users are: what every state directory of the host shares and a reboot empties. */
#define UID_LOCKS_TOP "/run"

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
/*
 * Take the first free user of the range for a slot that was taken; its number says nothing about which.
 * top: UID_LOCKS_TOP, and it must be there.  -EBUSY at once if there is none; any other failure means that nobody can
 * tell.
 */
int slot_take_uid(struct slot *slot, const char *top, const struct uid_range *range,
                  struct resoluto_err *err);
