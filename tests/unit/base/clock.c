/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "check.h"

#include "base/clock.h"

static void never_goes_back(void)
{
	uint64_t us = clock_mono_us(), ms = clock_mono_ms(), raw = clock_raw_ns();

	for (int i = 0; i < 100000; i++) {
		uint64_t now_us = clock_mono_us(), now_ms = clock_mono_ms();

		CHECK(now_us >= us && now_ms >= ms && clock_raw_ns() >= raw);
		us = now_us;
		ms = now_ms;
		raw = clock_raw_ns();
	}
}

static void counts_in_its_units(void)
{
	uint64_t ms = clock_mono_ms(), us = clock_mono_us(), after = clock_mono_ms();

	CHECK(ms <= us / 1000 && us / 1000 <= after);
}

static void knows_the_time(void)
{
	time_t before = time(NULL);
	double wall = clock_wall();
	uint64_t ns = clock_wall_ns();
	time_t after = time(NULL);

	/* time() may be a tick behind. */
	CHECK(wall >= (double) before - 1 && wall <= (double) after + 2);
	CHECK(ns / 1000000000u + 1 >= (uint64_t) before &&
	      ns / 1000000000u <= (uint64_t) after + 2);
}

int main(void)
{
	RUN(never_goes_back);
	RUN(counts_in_its_units);
	RUN(knows_the_time);
	return check_done();
}
