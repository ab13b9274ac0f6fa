/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <time.h>

#include "base/clock.h"
#include "guest/clock_sync.h"

static const double ns_per_s = 1e9;

static int step_wall(int64_t offset_ns)
{
	const int64_t ns = (int64_t) clock_wall_ns() + offset_ns;
	const struct timespec now = { .tv_sec = (time_t) (ns / 1000000000),
		                      .tv_nsec = (long) (ns % 1000000000) };

	return clock_settime(CLOCK_REALTIME, &now) < 0 ? -errno : 0;
}

/* The kernel spreads it out: 0.5 ms in each second. */
static int slew_wall(int64_t offset_ns)
{
	struct timex change = { .modes = ADJ_OFFSET_SINGLESHOT,
		                .offset = (long) (offset_ns / 1000) };

	return adjtimex(&change) < 0 ? -errno : 0;
}

static int correct(const struct clock_verdict *verdict)
{
	if (verdict->wall == CLOCK_STEP)
		return step_wall(verdict->offset_ns);
	return verdict->wall == CLOCK_SLEW ? slew_wall(verdict->offset_ns) : 0;
}

static void end_round(struct clock_sync *sync)
{
	sync->due_ms = clock_mono_ms() + (uint64_t) clock_pause_ms(&sync->judge);
}

int clock_sync_start(struct clock_sync *sync, struct resoluto_err *err)
{
	struct channel *channel = sync->channel;
	struct clock_verdict verdict;
	int r = 0;

	while (r == 0) {
		if (channel->has_clock) {
			channel->has_clock = false;
			clock_judge(&sync->judge, &channel->clock, &verdict);
			if (verdict.wall != CLOCK_ASK_AGAIN)
				break;
			r = channel_ask_clock(channel, err);
		} else {
			r = channel_wait(channel, -1, err);
		}
	}
	if (r < 0)
		return r;
	r = correct(&verdict);
	end_round(sync);
	return r < 0 ? resoluto_fail(err, r, "set the clock") : 0;
}

static int report_step(struct clock_sync *sync, int64_t offset_ns)
{
	return report_line(sync->report, sync->span, "clock: set %s by %.3f s, to the host's",
	                   offset_ns < 0 ? "back" : "forward",
	                   (double) llabs(offset_ns) / ns_per_s);
}

static int report_rate(struct clock_sync *sync, int rate_ppm)
{
	snprintf(sync->warning, sizeof(sync->warning),
	         "clock-rate: the sandbox's clock runs %.2f %% too %s, and so wrong are times "
	         "measured by it",
	         abs(rate_ppm) / 1e4, rate_ppm < 0 ? "slowly" : "fast");
	return report_line(sync->report, sync->span, "%s", sync->warning);
}

static int use_answer(struct clock_sync *sync, struct resoluto_err *err)
{
	struct clock_verdict verdict;
	int r;

	sync->channel->has_clock = false;
	clock_judge(&sync->judge, &sync->channel->clock, &verdict);
	if (verdict.wall == CLOCK_ASK_AGAIN)
		return channel_ask_clock(sync->channel, err);
	r = correct(&verdict);
	if (r < 0)
		return resoluto_fail(err, r, "set the clock");
	end_round(sync);
	if (verdict.wall == CLOCK_STEP)
		r = report_step(sync, verdict.offset_ns);
	if (r == 0 && verdict.rate_ppm)
		r = report_rate(sync, verdict.rate_ppm);
	return r;
}

static bool is_waiting(const struct clock_sync *sync)
{
	return sync->channel->clock_asked != 0;
}

int clock_sync_turn(struct clock_sync *sync, struct resoluto_err *err)
{
	if (sync->channel->has_clock)
		return use_answer(sync, err);
	if (is_waiting(sync) || clock_mono_ms() < sync->due_ms)
		return 0;
	return channel_ask_clock(sync->channel, err);
}

uint64_t clock_sync_due_ms(const struct clock_sync *sync)
{
	return is_waiting(sync) ? UINT64_MAX : sync->due_ms;
}
