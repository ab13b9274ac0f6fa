/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* driver_internal.h - the driver with the clock as an argument, so that its tests do not sleep. */

#include "resoluto/driver.h"

struct driver_clock {
	uint64_t (*now_ms)(void *ctx); /* monotonic */
	void (*nap)(void *ctx,
	            unsigned nap_ms); /* only against a runtime whose wait() does not wait */
	void *ctx;
};

extern const struct driver_clock driver_real_clock;

int driver_drive(const struct resoluto_drive_options *options, const struct driver_clock *clock,
                 struct resoluto_outcome *ret_outcome, struct resoluto_err *err);

/* Bytes of the last `count` characters of UTF-8 text (a broken sequence counts by its bytes). */
size_t driver_last_characters(const char *text, size_t count);
