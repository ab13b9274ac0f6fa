/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * settings.h - what the runner tells the kernel before the program starts, so that the program gets less of it: one
 * table, each line with its reason (docs/guest-kernel.md, "Hardening", says what is missing from our kernel besides).
 *
 * What a kernel does not have needs no setting.  What it has and will not set, nobody may run on.
 */

#include <stdbool.h>
#include <stdint.h>

#include "resoluto/err.h"

/* All that *done has no bit of; dir is /proc/sys.  Those that the kernel has by now get their bit: the other ones may be of a
 * driver that has not started yet. */
int settings_apply(const char *dir, uint32_t *done, struct resoluto_err *err);

/*
 * Lock the kernel down, as strictly as it can be: nobody reads or changes it any more, root included.  dir is
 * /sys/kernel/security; a kernel without that directory cannot be told, ours is locked down from its start.
 */
int settings_lock_down(const char *dir, struct resoluto_err *err);
/* Pure: does the file `lockdown` say so already? */
bool settings_is_locked_down(const char *text);
