/* SPDX-License-Identifier: Apache-2.0 */
/* What is made of answers that took no time, some time and very long, on machines whose clocks are right and wrong. */
#include <stdlib.h>

#include "check.h"
#include "guest/clock_judge.h"

#define MS INT64_C(1000000)
#define SECOND INT64_C(1000000000)

static struct clock_judge judge;
static struct clock_verdict verdict;

/* The world: both machines, from the host's point of view. */
static struct {
	int64_t host_wall, host_raw; /* now */
	double rate;                 /* of the guest */
	double raw, wall;            /* the guest's, now */
} world;

static void begin(double rate)
{
	judge = (struct clock_judge){ 0 };
	world.host_wall = 1700000000 * SECOND;
	world.host_raw = 5000 * SECOND;
	world.rate = rate;
	world.raw = 3 * (double) SECOND;
	world.wall = (double) world.host_wall;
}

static void pass(int64_t ns)
{
	world.host_wall += ns;
	world.host_raw += ns;
	world.raw += (double) ns * world.rate;
	world.wall += (double) ns * world.rate;
}

/* A question and its answer, which took so long on its two ways. */
static int ask(int64_t there_ns, int64_t back_ns)
{
	struct clock_sample sample = { .asked = (int64_t) world.raw };

	pass(there_ns);
	sample.host_wall = world.host_wall;
	sample.host_raw = world.host_raw;
	pass(back_ns);
	sample.got = (int64_t) world.raw;
	sample.wall = (int64_t) world.wall;
	clock_judge(&judge, &sample, &verdict);
	if (verdict.wall == CLOCK_STEP || verdict.wall == CLOCK_SLEW)
		world.wall += (double) verdict.offset_ns;
	return (int) verdict.wall;
}

static int64_t error_ns(void)
{
	return llabs((int64_t) world.wall - world.host_wall);
}

static void the_first_answer_sets_the_clock(void)
{
	static const double wrong_s[] = { 0.0001, -0.4, 0.6, -1e9, 1e9 };

	for (size_t i = 0; i < sizeof(wrong_s) / sizeof(wrong_s[0]); i++) {
		begin(1);
		world.wall += wrong_s[i] * (double) SECOND;
		CHECK(ask(1 * MS, 1 * MS) == CLOCK_STEP);
		CHECK(error_ns() < 10000 && judge.rounds == 1);
	}
}

/* The answer that took least counts, and is at most half of that wrong. */
static void slow_answers_are_asked_for_again(void)
{
	begin(1);
	world.wall -= 7 * (double) SECOND;
	CHECK(ask(300 * MS, 0) == CLOCK_ASK_AGAIN);
	CHECK(ask(0, 13 * MS) == CLOCK_ASK_AGAIN);
	CHECK(ask(90 * MS, 90 * MS) == CLOCK_ASK_AGAIN && judge.rounds == 0);
	CHECK(ask(0, 3 * MS) == CLOCK_STEP && judge.rounds == 1);
	CHECK(error_ns() < 2 * MS);
	pass(SECOND);
	CHECK(ask(0, 5 * MS) == CLOCK_ASK_AGAIN && judge.rounds == 1);
	CHECK(ask(0, 3 * MS) != CLOCK_ASK_AGAIN && judge.rounds == 2);
}

/* A program waits for the first round: an answer that may be wrong by 6 ms ends it, and the next one makes that good. */
static void the_first_round_asks_for_less(void)
{
	static const int64_t ways_ms[][2] = { { 12, 0 }, { 0, 12 }, { 6, 6 } };

	for (size_t i = 0; i < sizeof(ways_ms) / sizeof(ways_ms[0]); i++) {
		begin(1);
		world.wall -= 7 * (double) SECOND;
		CHECK(ask(ways_ms[i][0] * MS, ways_ms[i][1] * MS) == CLOCK_STEP);
		CHECK(judge.rounds == 1 && error_ns() <= 6 * MS);
		pass((int64_t) clock_pause_ms(&judge) * MS);
		CHECK(ask(1 * MS, 1 * MS) == (i == 2 ? CLOCK_FITS : CLOCK_SLEW));
		CHECK(verdict.rate_ppm == 0 && error_ns() < 2 * MS);
	}
}

static void what_never_comes_fast_is_used_at_last(void)
{
	begin(1);
	world.wall -= 7 * (double) SECOND;
	for (int i = 1; i < CLOCK_ANSWERS_MAX; i++)
		CHECK(ask((10 + 100 * (i % 3)) * MS, 5 * MS) == CLOCK_ASK_AGAIN);
	CHECK(ask(200 * MS, 0) == CLOCK_STEP);
	CHECK(error_ns() <= 8 * MS);
}

static void a_right_clock_is_left_alone(void)
{
	begin(1.00001);
	CHECK(ask(1 * MS, 2 * MS) == CLOCK_STEP);
	for (int i = 0; i < 100; i++) {
		int what;

		pass((int64_t) clock_pause_ms(&judge) * MS);
		what = ask(i % 4 * MS, (i + 1) % 3 * MS);
		while (what == CLOCK_ASK_AGAIN)
			what = ask(1 * MS, 1 * MS);
		CHECK((what == CLOCK_FITS || what == CLOCK_SLEW) && verdict.rate_ppm == 0);
		CHECK(error_ns() < 5 * MS);
	}
}

/* A machine that drifts a little never jumps and never goes far. */
static void a_small_error_is_made_good_slowly(void)
{
	begin(1);
	(void) ask(0, 0);
	world.wall += 3.0 * MS;
	pass(SECOND);
	CHECK(ask(1 * MS, 1 * MS) == CLOCK_SLEW);
	CHECK(verdict.offset_ns < -1 * MS && verdict.offset_ns > -5 * MS);
}

static void a_machine_that_was_stopped_is_set(void)
{
	static const int64_t stops_s[] = { 1, 3600, 86400 };

	for (size_t i = 0; i < sizeof(stops_s) / sizeof(stops_s[0]); i++) {
		begin(1);
		(void) ask(0, MS);
		pass(10 * SECOND);
		world.host_wall += stops_s[i] * SECOND;
		world.host_raw += stops_s[i] * SECOND;
		pass(10 * SECOND);
		CHECK(ask(MS, 0) == CLOCK_STEP &&
		      llabs(verdict.offset_ns - stops_s[i] * SECOND) < 2 * MS);
		CHECK(verdict.rate_ppm == 0 && error_ns() < MS);
		pass(30 * SECOND);
		CHECK(ask(MS, 0) == CLOCK_FITS && verdict.rate_ppm == 0);
	}
}

static void a_host_whose_clock_was_set_is_followed(void)
{
	begin(1);
	(void) ask(0, MS);
	for (int i = 0; i < 5; i++) {
		pass(10 * SECOND);
		world.host_wall += (i % 2 ? 3600 : -3600) * SECOND;
		CHECK(ask(0, MS) == CLOCK_STEP && verdict.rate_ppm == 0 && error_ns() < MS);
	}
}

/* However late an answer comes, what it cannot prove is not believed. */
static void a_busy_machine_has_no_wrong_clock(void)
{
	unsigned random = 1;

	begin(1);
	(void) ask(0, MS);
	for (int i = 0; i < 2000; i++) {
		int64_t there_ns = (int64_t) (rand_r(&random) % 400) * MS;

		if (judge.answers == 0)
			pass((int64_t) clock_pause_ms(&judge) * MS);
		CHECK(ask(there_ns, (int64_t) (rand_r(&random) % 400) * MS) != CLOCK_STEP);
		CHECK(verdict.rate_ppm == 0 && error_ns() < 250 * MS);
	}
}

/* Found in the first second, said once, however it may be wrong. */
static void a_wrong_rate_is_said(void)
{
	static const double rates[] = { 1.3, 1 / 1.3, 1.02, 0.98, 4, 0.1 };

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		int said = 0, ppm = 0;

		begin(rates[i]);
		(void) ask(MS / 2, MS / 2);
		for (int round = 0; round < 6; round++) {
			/* It waits by its own clock. */
			pass((int64_t) ((double) clock_pause_ms(&judge) * MS / rates[i]));
			CHECK(ask(MS / 8, MS / 8) == CLOCK_STEP || rates[i] == 1.02 ||
			      rates[i] == 0.98);
			said += verdict.rate_ppm != 0;
			ppm += verdict.rate_ppm;
			CHECK(round < 3 || said == 1);
		}
		CHECK(said == 1 && abs(ppm - (int) ((rates[i] - 1) * 1e6)) < 3000);
	}
}

static void the_limit_of_the_rate_is_a_thousandth(void)
{
	static const struct {
		double rate;
		bool is_wrong;
	} rates[] = { { 1.0012, true }, { 0.9988, true }, { 1.0008, false }, { 0.9992, false } };

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		bool said = false;

		begin(rates[i].rate);
		(void) ask(MS, MS);
		for (int round = 0; round < 20; round++) {
			pass((int64_t) clock_pause_ms(&judge) * MS);
			(void) ask(MS, MS);
			said = said || verdict.rate_ppm;
		}
		CHECK(said == rates[i].is_wrong);
	}
}

/* The counter went on, the host's raw clock did not, its wall clock was set when it woke: again and again. */
static void a_host_that_sleeps_has_no_wrong_rate(void)
{
	begin(1);
	(void) ask(0, MS);
	for (int i = 0; i < 10; i++) {
		pass(5 * SECOND);
		world.host_wall += 600 * SECOND;
		world.raw += 600.0 * SECOND;
		world.wall += 600.0 * SECOND;
		pass(5 * SECOND);
		CHECK(ask(0, MS) == CLOCK_FITS && verdict.rate_ppm == 0);
	}
}

/* A host that is no use: it tells the same time again, or runs backwards. */
static void a_host_without_a_clock_is_no_rate(void)
{
	begin(1);
	(void) ask(0, MS);
	for (int i = 0; i < 5; i++) {
		world.raw += 10.0 * SECOND;
		CHECK(ask(0, 0) != CLOCK_ASK_AGAIN && verdict.rate_ppm == 0);
		world.host_raw -= 20 * SECOND;
	}
}

static void rounds_are_often_at_first(void)
{
	int64_t in_all_ms = 0;

	begin(1);
	for (int i = 0; i < 3; i++) {
		(void) ask(0, 0);
		CHECK(clock_pause_ms(&judge) <= 9000);
		in_all_ms += clock_pause_ms(&judge);
	}
	CHECK(in_all_ms == 10000);
	for (int i = 0; i < 3; i++) {
		(void) ask(0, 0);
		CHECK(clock_pause_ms(&judge) == CLOCK_ROUNDS_MS);
	}
}

int main(void)
{
	RUN(the_first_answer_sets_the_clock);
	RUN(slow_answers_are_asked_for_again);
	RUN(the_first_round_asks_for_less);
	RUN(what_never_comes_fast_is_used_at_last);
	RUN(a_right_clock_is_left_alone);
	RUN(a_small_error_is_made_good_slowly);
	RUN(a_machine_that_was_stopped_is_set);
	RUN(a_host_whose_clock_was_set_is_followed);
	RUN(a_busy_machine_has_no_wrong_clock);
	RUN(a_wrong_rate_is_said);
	RUN(the_limit_of_the_rate_is_a_thousandth);
	RUN(a_host_that_sleeps_has_no_wrong_rate);
	RUN(a_host_without_a_clock_is_no_rate);
	RUN(rounds_are_often_at_first);
	return check_done();
}
