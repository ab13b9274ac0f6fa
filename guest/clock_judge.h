/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * clock_judge.h - how far this machine's clocks are from the host's, from questions and their answers.  Pure.
 *
 * NTP's way: the host read its clocks at some moment between question and answer, and nothing more is believed.  So
 * an answer that took long on a busy machine makes the bounds wider and the judgement milder, never wrong.
 *
 * One round is a question, and further ones while the answers took too long.  Its best answer is judged: the wall
 * clock by itself, the rate over the time since the round before.
 */

#include <stdbool.h>
#include <stdint.h>

enum {
	CLOCK_FINE_US =
		4000, /* an answer that took no longer is good enough; else another is asked for */
	CLOCK_FIRST_US =
		12000, /* the same of the first round, which the program waits for: right to 6 ms then, and asked again soon */
	CLOCK_ANSWERS_MAX = 8, /* of a round */
	CLOCK_STEP_US = 10000, /* off by more the wall clock is set */
	CLOCK_SLEW_US =
		1000, /* off by more it is made to catch up, so that no program sees it jump */
	CLOCK_RATE_PPM = 1000,   /* off by more the rate is wrong */
	CLOCK_BASE_MS = 400,     /* no rate is judged over less */
	CLOCK_ROUNDS_MS = 30000, /* between two rounds in the long run */
};

/* One question with its answer; everything in nanoseconds. */
struct clock_sample {
	int64_t asked, got; /* CLOCK_MONOTONIC_RAW here, around it */
	int64_t wall;       /* CLOCK_REALTIME here at `got` */
	int64_t host_wall, host_raw;
};

/* Starts as { 0 }. */
struct clock_judge {
	struct clock_sample best; /* of this round */
	int answers;              /* of this round */
	struct clock_sample last; /* the best of the round before */
	int rounds;               /* that have ended */
	int drift;                /* as judged over the last round: -1 too slow, 1 too fast */
	bool is_told;             /* the rate was found wrong */
};

struct clock_verdict {
	enum {
		CLOCK_ASK_AGAIN, /* the round goes on */
		CLOCK_FITS,
		CLOCK_SLEW, /* by offset_ns, slowly */
		CLOCK_STEP, /* by offset_ns, at once */
	} wall;
	int64_t offset_ns; /* the host's wall clock minus this one's */
	int rate_ppm;      /* not 0: the rate is wrong by so much, positive too fast; said once */
};

void clock_judge(struct clock_judge *judge, const struct clock_sample *sample,
                 struct clock_verdict *ret_verdict);
/* From the end of a round to the next one. */
int clock_pause_ms(const struct clock_judge *judge);
