/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * watch.h - decide from polls and arriving chunks whether a sandbox is still to be waited for
 * (contract section 2, "Dispositions").  Pure: time is an argument.
 *
 * Polls of the status come at a steady pace and are counted; looks in between (something woke us)
 * only update what is known.  The silence window starts when the sandbox is first seen running.
 */

#include <stdbool.h>
#include <stdint.h>

#include "resoluto/driver.h"
#include "resoluto/runtime.h"

enum watch_verdict {
	WATCH_GO_ON,
	WATCH_UNSTARTABLE, /* a fatal waiting reason, FATAL_POLLS polls in a row */
	WATCH_GONE,        /* unknown, or failed in the substrate's words, and long enough so */
	WATCH_ENDED,       /* a definite end: one more tail, then it is over */
	WATCH_SILENT,      /* running, and no chunk within the silence window */
};

struct watch {
	uint64_t dead_after_ms;
	bool is_armed;                    /* was seen running */
	uint64_t quiet_since_ms;          /* arming or the last chunk, whichever is later */
	unsigned fatal_polls, gone_polls; /* in a row */
	struct resoluto_status last;
};

void watch_init(struct watch *watch, uint64_t dead_after_ms);
void watch_chunk(struct watch *watch, uint64_t now_ms);
/* What the runtime reports; is_poll: at the steady pace. */
void watch_status(struct watch *watch, const struct resoluto_status *status, bool is_poll,
                  uint64_t now_ms);
enum watch_verdict watch_judge(const struct watch *watch, uint64_t now_ms);
/* Until the silence window passes; UINT64_MAX while it is not armed. */
uint64_t watch_left_ms(const struct watch *watch, uint64_t now_ms);

/* Disposition for a sandbox that ended with this reason of its runtime and without a verdict of its own. */
enum resoluto_disposition watch_disposition(const char *reason);
