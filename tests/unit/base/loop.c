/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "check.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"

/* Two pipes, a watch on the reading end of each, and what happened, a word each. */
static struct {
	struct loop *loop;
	int read_end[2], write_end[2];
	struct loop_watch watch[2];
	struct buf story;
} scene;

static void end(void)
{
	for (int i = 0; i < 2; i++) {
		loop_remove(&scene.watch[i]);
		if (scene.loop) {
			fd_close(&scene.read_end[i]);
			fd_close(&scene.write_end[i]);
		}
	}
	loop_free(&scene.loop);
	buf_done(&scene.story);
}

static int note(struct loop_watch *watch, uint32_t events)
{
	char byte;

	if (events & EPOLLIN)
		CHECK(read(watch->fd, &byte, 1) == 1);
	CHECK(buf_addf(&scene.story, "%s%s%s ", (const char *) watch->ctx,
	               events & EPOLLIN ? "+" : "", events & EPOLLHUP ? "!" : "") == 0);
	return 0;
}

static void begin(void)
{
	end();
	scene.story = BUF_INIT(10000);
	CHECK(loop_new(&scene.loop) == 0);
	for (int i = 0; i < 2; i++) {
		int pair[2];

		CHECK(pipe2(pair, O_CLOEXEC | O_NONBLOCK) == 0);
		scene.read_end[i] = pair[0];
		scene.write_end[i] = pair[1];
		scene.watch[i] = (struct loop_watch){ .fd = pair[0],
			                              .events = EPOLLIN,
			                              .fn = note,
			                              .ctx = i ? "b" : "a" };
		CHECK(loop_add(scene.loop, &scene.watch[i]) == 0);
	}
}

static void poke(int i)
{
	CHECK(write(scene.write_end[i], "x", 1) == 1);
}

static void expect_story(const char *want)
{
	CHECK_STR(scene.story.data ? scene.story.data : "", want);
}

static int stop_timer(struct loop_timer *timer)
{
	loop_stop(scene.loop);
	return 0;
}

/* Work off what is ready, then stop: the timer is due, but behind the descriptors. */
static int arm_stop(struct loop_timer *timer)
{
	timer->fn = stop_timer;
	timer->at_ms = 1;
	return 0;
}

static void run_once(void)
{
	struct loop_timer timer = { .at_ms = 1, .fn = arm_stop };

	loop_add_timer(scene.loop, &timer);
	CHECK(loop_run(scene.loop) == 0);
	loop_remove_timer(scene.loop, &timer);
}

static void tells_what_is_ready(void)
{
	begin();
	run_once();
	expect_story("");
	poke(1);
	run_once();
	expect_story("b+ ");
	poke(0);
	run_once();
	expect_story("b+ a+ ");
}

static void goes_on_while_there_is_more(void)
{
	begin();
	poke(0);
	poke(0);
	run_once();
	run_once();
	expect_story("a+ a+ ");
}

static int note_and_remove_other(struct loop_watch *watch, uint32_t events)
{
	struct loop_watch *other = &scene.watch[watch == &scene.watch[0]];

	loop_remove(other);
	loop_remove(other);
	return note(watch, events);
}

/* Both are ready in one wait: the second must not hear of it any more. */
static void forgets_events_of_a_removed_watch(void)
{
	begin();
	scene.watch[0].fn = scene.watch[1].fn = note_and_remove_other;
	poke(0);
	poke(1);
	run_once();
	CHECK(scene.story.len == 3);
	run_once();
	CHECK(scene.story.len == 3);
}

static int note_and_close_other(struct loop_watch *watch, uint32_t events)
{
	int i = watch == &scene.watch[0];

	loop_remove(&scene.watch[i]);
	fd_close(&scene.read_end[i]);
	memset(&scene.watch[i], 0xa5, sizeof(scene.watch[i]));
	scene.watch[i].loop = NULL;
	return note(watch, events);
}

static void touches_no_watch_that_is_gone(void)
{
	begin();
	scene.watch[0].fn = scene.watch[1].fn = note_and_close_other;
	poke(0);
	poke(1);
	run_once();
	CHECK(scene.story.len == 3);
}

static int remove_itself(struct loop_watch *watch, uint32_t events)
{
	loop_remove(watch);
	return note(watch, events);
}

static void lets_a_watch_remove_itself(void)
{
	begin();
	scene.watch[0].fn = remove_itself;
	poke(0);
	poke(0);
	run_once();
	run_once();
	expect_story("a+ ");
	CHECK(loop_add(scene.loop, &scene.watch[0]) == 0);
	run_once();
	expect_story("a+ a+ ");
}

static int note_and_silence_other(struct loop_watch *watch, uint32_t events)
{
	CHECK(loop_change(&scene.watch[watch == &scene.watch[0]], 0) == 0);
	return note(watch, events);
}

/* What is not asked for any more is not told, even when it was fetched before. */
static void tells_only_what_is_asked_for_now(void)
{
	begin();
	scene.watch[0].fn = scene.watch[1].fn = note_and_silence_other;
	poke(0);
	poke(1);
	run_once();
	CHECK(scene.story.len == 3);
	CHECK(loop_change(&scene.watch[0], EPOLLIN) == 0);
	CHECK(loop_change(&scene.watch[1], EPOLLIN) == 0);
	run_once();
	expect_story(scene.story.data[0] == 'a' ? "a+ b+ " : "b+ a+ ");
}

static void tells_a_hang_up(void)
{
	begin();
	CHECK(loop_change(&scene.watch[0], 0) == 0);
	poke(0);
	fd_close(&scene.write_end[0]);
	run_once();
	expect_story("a! ");
}

static int add_other(struct loop_watch *watch, uint32_t events)
{
	CHECK(loop_add(scene.loop, &scene.watch[1]) == 0);
	return note(watch, events);
}

static void lets_a_watch_add_another(void)
{
	begin();
	loop_remove(&scene.watch[1]);
	scene.watch[0].fn = add_other;
	poke(0);
	poke(1);
	run_once();
	expect_story("a+ ");
	run_once();
	expect_story("a+ b+ ");
}

static int fail_watch(struct loop_watch *watch, uint32_t events)
{
	return -EPROTO;
}

static int fail_timer(struct loop_timer *timer)
{
	return -ETIME;
}

static void ends_with_the_failure_of_a_callback(void)
{
	struct loop_timer timer = { .fn = fail_timer };

	begin();
	scene.watch[0].fn = fail_watch;
	poke(0);
	CHECK(loop_run(scene.loop) == -EPROTO);
	timer.at_ms = 1;
	loop_add_timer(scene.loop, &timer);
	CHECK(loop_run(scene.loop) == -ETIME);
	loop_remove_timer(scene.loop, &timer);
	scene.watch[0].fn = note;
	run_once();
	expect_story("a+ ");
}

static void refuses_what_it_cannot_watch(void)
{
	struct loop_watch watch = { .events = EPOLLIN, .fn = note };
	FILE *file = tmpfile();

	begin();
	CHECK(file);
	watch.fd = fileno(file);
	CHECK(loop_add(scene.loop, &watch) == -EPERM);
	watch.fd = -1;
	CHECK(loop_add(scene.loop, &watch) == -EBADF);
	CHECK(loop_add(scene.loop, &scene.watch[0]) == -EEXIST);
	loop_remove(&watch);
	CHECK(loop_change(&watch, EPOLLOUT) == 0);
	fclose(file);
}

struct note_timer {
	struct loop_timer timer; /* first */
	const char *word;
	unsigned again;    /* times it arms itself anew */
	uint64_t again_at; /* for this time */
	bool stops;
	struct note_timer *removes;
};

static int note_timer(struct loop_timer *timer)
{
	struct note_timer *self = (struct note_timer *) timer;
	bool is_last = self->again == 0;

	CHECK(timer->at_ms == 0);
	CHECK(buf_addf(&scene.story, "%s ", self->word) == 0);
	if (!is_last) {
		self->again--;
		timer->at_ms = self->again_at;
	}
	if (self->removes)
		loop_remove_timer(scene.loop, &self->removes->timer);
	if (self->stops && is_last)
		loop_stop(scene.loop);
	return 0;
}

static struct note_timer timer_of(const char *word, uint64_t at_ms)
{
	return (struct note_timer){ .timer = { .at_ms = at_ms, .fn = note_timer }, .word = word };
}

static void calls_timers_in_the_order_of_their_times(void)
{
	struct note_timer timers[] = { timer_of("c", 3), timer_of("a", 1), timer_of("off", 0),
		                       timer_of("b", 2) };

	begin();
	timers[0].stops = true;
	for (int i = 0; i < 4; i++)
		loop_add_timer(scene.loop, &timers[i].timer);
	CHECK(loop_run(scene.loop) == 0);
	expect_story("a b c ");
}

static void waits_until_a_timer_is_due(void)
{
	struct note_timer timer = timer_of("late", 0);
	uint64_t at_ms = clock_mono_ms() + 30;

	begin();
	timer.timer.at_ms = at_ms;
	timer.stops = true;
	loop_add_timer(scene.loop, &timer.timer);
	CHECK(loop_run(scene.loop) == 0);
	CHECK(clock_mono_ms() >= at_ms);
	expect_story("late ");
}

static void calls_a_timer_once_for_each_arming(void)
{
	struct note_timer timer = timer_of("t", 1);

	begin();
	timer.again = 2;
	timer.again_at = 1;
	timer.stops = true;
	loop_add_timer(scene.loop, &timer.timer);
	CHECK(loop_run(scene.loop) == 0);
	expect_story("t t t ");
	loop_remove_timer(scene.loop, &timer.timer);
	run_once();
	expect_story("t t t ");
}

/* One that is always due takes its turns with the others and with the descriptors. */
static void lets_no_timer_starve_the_rest(void)
{
	struct note_timer greedy = timer_of("g", 1), modest = timer_of("m", 2);

	begin();
	greedy.again = 3;
	greedy.again_at = 1;
	greedy.stops = true;
	loop_add_timer(scene.loop, &modest.timer);
	loop_add_timer(scene.loop, &greedy.timer);
	poke(0);
	CHECK(loop_run(scene.loop) == 0);
	expect_story("g m a+ g g g ");
}

static void bears_a_timer_added_twice(void)
{
	struct note_timer timers[] = { timer_of("a", 1), timer_of("b", 2) };

	begin();
	timers[1].stops = true;
	for (int i = 0; i < 4; i++)
		loop_add_timer(scene.loop, &timers[i % 2].timer);
	CHECK(loop_run(scene.loop) == 0);
	expect_story("a b ");
}

static void lets_a_timer_remove_timers(void)
{
	struct note_timer a = timer_of("a", 1), b = timer_of("b", 2), c = timer_of("c", 3);

	begin();
	a.removes = &b;
	c.removes = &c;
	c.stops = true;
	loop_add_timer(scene.loop, &a.timer);
	loop_add_timer(scene.loop, &b.timer);
	loop_add_timer(scene.loop, &c.timer);
	CHECK(loop_run(scene.loop) == 0);
	expect_story("a c ");
	loop_remove_timer(scene.loop, &b.timer);
}

static void needs_no_loop_to_be_freed(void)
{
	struct loop *none = NULL;

	loop_free(&none);
	begin();
	end();
	CHECK(!scene.loop);
	end();
}

int main(void)
{
	RUN(tells_what_is_ready);
	RUN(goes_on_while_there_is_more);
	RUN(forgets_events_of_a_removed_watch);
	RUN(touches_no_watch_that_is_gone);
	RUN(lets_a_watch_remove_itself);
	RUN(tells_only_what_is_asked_for_now);
	RUN(tells_a_hang_up);
	RUN(lets_a_watch_add_another);
	RUN(ends_with_the_failure_of_a_callback);
	RUN(refuses_what_it_cannot_watch);
	RUN(calls_timers_in_the_order_of_their_times);
	RUN(waits_until_a_timer_is_due);
	RUN(calls_a_timer_once_for_each_arming);
	RUN(lets_no_timer_starve_the_rest);
	RUN(bears_a_timer_added_twice);
	RUN(lets_a_timer_remove_timers);
	RUN(needs_no_loop_to_be_freed);
	end();
	return check_done();
}
