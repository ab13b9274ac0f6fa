/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * admission.h - wait for a slot: the admission that asks the runtime again and again.
 *
 * The runtime says -EBUSY while it has no room.  Whoever waits, waits for ever, or until extra_fd is
 * readable.  Nothing else is waited for: the kernel's -EAGAIN (no more processes) may never pass.
 */

#include <stdint.h>

#include "resoluto/driver.h"

enum { ADMISSION_STEP_MS = 50 }; /* between two attempts */

struct admission_slots {
	unsigned step_ms;  /* 0: ADMISSION_STEP_MS */
	uint64_t queue_ms; /* out: waited, the launch that worked not counted */
	uint64_t attempts; /* out */
};

/* An admission over slots, which is borrowed as long as the admission is used. */
struct resoluto_admission admission_slots(struct admission_slots *slots);
