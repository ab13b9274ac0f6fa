/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "guest/clock_judge.h"

enum { NS_PER_US = 1000, NS_PER_MS = 1000 * 1000 };

static int64_t width(const struct clock_sample *sample)
{
	return sample->got - sample->asked;
}

/* --- the wall clock --- */

/* Off for certain, whenever in between the host read its clock. */
static bool is_off_by(const struct clock_sample *sample, int64_t limit_us)
{
	const int64_t low = sample->host_wall - sample->wall;

	return low > limit_us * NS_PER_US || low + width(sample) < -limit_us * NS_PER_US;
}

static void judge_wall(const struct clock_judge *judge, const struct clock_sample *sample,
                       struct clock_verdict *verdict)
{
	/* From the middle of the bounds it is at most half their width to the truth. */
	verdict->offset_ns = sample->host_wall - sample->wall + width(sample) / 2;
	verdict->wall = CLOCK_FITS;
	/* At first it is what a clock chip said, in whole seconds, and nobody has read it. */
	if (judge->rounds == 0 || is_off_by(sample, CLOCK_STEP_US))
		verdict->wall = CLOCK_STEP;
	else if (is_off_by(sample, CLOCK_SLEW_US))
		verdict->wall = CLOCK_SLEW;
}

/* --- the rate --- */

/* Of this machine's time against `host_ns` of the host's: -1 too slow for certain, 1 too fast, else 0. */
static int drift_against(const struct clock_sample *from, const struct clock_sample *to,
                         int64_t host_ns)
{
	const double at_least = (double) (to->asked - from->got) - (double) host_ns;
	const double at_most = (double) (to->got - from->asked) - (double) host_ns;
	const double limit = (double) host_ns * CLOCK_RATE_PPM / 1e6;

	if (host_ns <= 0)
		return 0;
	if (at_least > limit)
		return 1;
	return at_most < -limit ? -1 : 0;
}

/*
 * While the host slept, its own raw clock stood still, but the counter that this machine's clocks are made of may have
 * gone on: then this machine is right by the host's wall clock.  A wrong rate is wrong by both.
 */
static int judge_drift(const struct clock_sample *from, const struct clock_sample *to)
{
	const int64_t raw_ns = to->host_raw - from->host_raw;
	const int drift = drift_against(from, to, raw_ns);

	if (raw_ns < (int64_t) CLOCK_BASE_MS * NS_PER_MS)
		return 0;
	return drift_against(from, to, to->host_wall - from->host_wall) == drift ? drift : 0;
}

static int ppm_between(const struct clock_sample *from, const struct clock_sample *to)
{
	const double host_ns = (double) (to->host_raw - from->host_raw);
	const double here_ns = ((double) (to->asked - from->asked) +
	                        (double) (to->got - from->got)) /
	                       2;
	const double ppm = (here_ns / host_ns - 1) * 1e6;

	return ppm < 1e9 ? (int) ppm : (int) 1e9;
}

/* Twice in a row: a machine that was once stopped for a while has not a wrong rate. */
static int judge_rate(struct clock_judge *judge, const struct clock_sample *sample)
{
	const int before = judge->drift;

	judge->drift = judge_drift(&judge->last, sample);
	if (judge->is_told || judge->drift == 0 || judge->drift != before)
		return 0;
	judge->is_told = true;
	return ppm_between(&judge->last, sample);
}

/* --- a round --- */

static bool is_good_enough(const struct clock_judge *judge)
{
	const int64_t limit_us = judge->rounds == 0 ? CLOCK_FIRST_US : CLOCK_FINE_US;

	return width(&judge->best) <= limit_us * NS_PER_US;
}

void clock_judge(struct clock_judge *judge, const struct clock_sample *sample,
                 struct clock_verdict *ret_verdict)
{
	*ret_verdict = (struct clock_verdict){ .wall = CLOCK_ASK_AGAIN };
	if (judge->answers == 0 || width(sample) < width(&judge->best))
		judge->best = *sample;
	judge->answers++;
	if (!is_good_enough(judge) && judge->answers < CLOCK_ANSWERS_MAX)
		return;
	judge_wall(judge, &judge->best, ret_verdict);
	if (judge->rounds > 0)
		ret_verdict->rate_ppm = judge_rate(judge, &judge->best);
	judge->last = judge->best;
	judge->answers = 0;
	judge->rounds++;
}

/* Often at first: a wrong rate should be known before a short program has ended. */
int clock_pause_ms(const struct clock_judge *judge)
{
	static const int pauses_ms[] = { 500, 500, 9000, CLOCK_ROUNDS_MS };
	const int last = sizeof(pauses_ms) / sizeof(pauses_ms[0]) - 1;
	const int round = judge->rounds > 0 ? judge->rounds - 1 : 0;

	return pauses_ms[round < last ? round : last];
}
