/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * tsc.h - the host's real TSC rate, which a guest under TCG must be told (cmdline.c).
 *
 * Measuring takes some 20 ms, so it is done once per boot of the host and kept in
 * <state>/tsc.json.
 */

#include <stddef.h>
#include <stdint.h>

#include "resoluto/err.h"

/* The rate in kHz from the cache, measured if this boot has none yet.  -EOPNOTSUPP on machines without a TSC. */
int tsc_khz(const char *state_dir, const char *boot_id, uint32_t *ret_khz,
            struct resoluto_err *err);

/* Pure: what stands in the cache; -ENOENT: nothing for this boot. */
int tsc_cache_parse(const char *json, size_t len, const char *boot_id, uint32_t *ret_khz);
