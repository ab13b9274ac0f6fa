/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * clock_sync.h - the wall clock follows the host's, and a wrong rate is said (clock_judge.h decides).
 *
 * Questions go out when a round is due, answers are looked at when somebody takes a turn; nobody is woken for it but
 * for the round itself, and nobody waits but clock_sync_start().
 */

#include "guest/channel.h"
#include "guest/clock_judge.h"
#include "guest/report.h"

enum { CLOCK_WARNING_MAX = 160 }; /* bytes, with the 0 */

/* Starts with its three pointers. */
struct clock_sync {
	struct channel *channel;        /* borrowed, as the two below */
	struct report *report;          /* where lines go */
	const struct report_span *span; /* beneath this span */
	struct clock_judge judge;
	uint64_t due_ms;                 /* of the next round, by clock_mono_ms() */
	char warning[CLOCK_WARNING_MAX]; /* for the result; "" for none */
};

/* The first round, with a wait for its answers: the wall clock is set.  A first answer came with the job. */
int clock_sync_start(struct clock_sync *sync, struct resoluto_err *err);
/* An answer that came is used, and a question asked when it is time. */
int clock_sync_turn(struct clock_sync *sync, struct resoluto_err *err);
/* When to take the next turn, at the latest, by clock_mono_ms(); UINT64_MAX: not before an answer. */
uint64_t clock_sync_due_ms(const struct clock_sync *sync);
