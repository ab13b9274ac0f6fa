/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * observer.h - what a run's events leave behind on the caller's side: the program's output, shown
 * and kept, and when the sandbox first spoke.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/capture.h"
#include "resoluto/sandbox.h"

struct observer {
	const struct resoluto_run_options *options; /* borrowed: stream, on_event, ctx */
	struct capture merged, out, errors;
	uint64_t first_event_ms; /* monotonic; 0: none came yet */
	bool has_started;        /* the span of the program was opened */
	bool has_setup;          /* that of the setup hook was */
	bool was_cancelled;      /* a callback of the caller's asked to stop */
	uint64_t last_seq;       /* of a piece of output; 0: none came, or its runner gives none */
	bool has_gap;            /* pieces of output do not follow each other */
};

void observer_init(struct observer *observer, const struct resoluto_run_options *options);
void observer_done(struct observer *observer);
/* -ECANCELED when a callback returned a negative value, -ENOMEM. */
int observer_event(struct observer *observer, const struct resoluto_event *event, uint64_t now_ms);
/* Into output, out and errors of the result. */
int observer_take(const struct observer *observer, struct resoluto_result *result);
