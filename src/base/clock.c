/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "base/clock.h"

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

uint64_t clock_mono_ms(void)
{
	return now_ns(CLOCK_MONOTONIC) / 1000000u;
}

uint64_t clock_mono_us(void)
{
	return now_ns(CLOCK_MONOTONIC) / 1000u;
}

double clock_wall(void)
{
	return (double) now_ns(CLOCK_REALTIME) / 1e9;
}

uint64_t clock_wall_ns(void)
{
	return now_ns(CLOCK_REALTIME);
}

uint64_t clock_raw_ns(void)
{
	return now_ns(CLOCK_MONOTONIC_RAW);
}
