/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"

enum { EVENTS_PER_WAIT = 16 };

struct loop {
	int epfd; /* owned */
	bool is_stopped;
	struct loop_timer *timers; /* borrowed, in any order: there are few */
	uint64_t pass;             /* over the timers; the first is 1 */
	/* Of the wait being worked off. */
	struct epoll_event pending[EVENTS_PER_WAIT];
	int pending_count;
};

int loop_new(struct loop **ret_loop)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return -ENOMEM;
	loop->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epfd < 0) {
		int r = -errno;

		free(loop);
		return r;
	}
	*ret_loop = loop;
	return 0;
}

void loop_free(struct loop **loop)
{
	if (!*loop)
		return;
	fd_close(&(*loop)->epfd);
	free(*loop);
	*loop = NULL;
}

int loop_add(struct loop *loop, struct loop_watch *watch)
{
	struct epoll_event event = { .events = watch->events, .data.ptr = watch };

	if (epoll_ctl(loop->epfd, EPOLL_CTL_ADD, watch->fd, &event) < 0)
		return -errno;
	watch->loop = loop;
	return 0;
}

int loop_change(struct loop_watch *watch, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = watch };

	if (!watch->loop || watch->events == events)
		return 0;
	if (epoll_ctl(watch->loop->epfd, EPOLL_CTL_MOD, watch->fd, &event) < 0)
		return -errno;
	watch->events = events;
	return 0;
}

void loop_remove(struct loop_watch *watch)
{
	struct loop *loop = watch->loop;

	if (!loop)
		return;
	(void) epoll_ctl(loop->epfd, EPOLL_CTL_DEL, watch->fd, NULL);
	/* Its events that are already fetched must not reach it any more. */
	for (int i = 0; i < loop->pending_count; i++) {
		if (loop->pending[i].data.ptr == watch)
			loop->pending[i].data.ptr = NULL;
	}
	watch->loop = NULL;
}

void loop_add_timer(struct loop *loop, struct loop_timer *timer)
{
	/* Twice would tie the list into a ring. */
	for (const struct loop_timer *at = loop->timers; at; at = at->next) {
		if (at == timer)
			return;
	}
	timer->next = loop->timers;
	loop->timers = timer;
}

void loop_remove_timer(struct loop *loop, struct loop_timer *timer)
{
	for (struct loop_timer **link = &loop->timers; *link; link = &(*link)->next) {
		if (*link != timer)
			continue;
		*link = timer->next;
		timer->next = NULL;
		return;
	}
}

/* The first timer that is due and had no turn in this pass, NULL if there is none. */
static struct loop_timer *due_timer(const struct loop *loop, uint64_t now)
{
	struct loop_timer *due = NULL;

	for (struct loop_timer *timer = loop->timers; timer; timer = timer->next) {
		if (timer->at_ms == 0 || timer->at_ms > now || timer->pass == loop->pass)
			continue;
		if (!due || timer->at_ms < due->at_ms)
			due = timer;
	}
	return due;
}

/* In the order of their times.  A callback may add and remove timers, so each search starts anew;
 * one that is armed again for a time that has passed gets its next turn behind the descriptors. */
static int run_timers(struct loop *loop, uint64_t now)
{
	struct loop_timer *timer;

	loop->pass++;
	while (!loop->is_stopped && (timer = due_timer(loop, now))) {
		int r;

		timer->at_ms = 0;
		timer->pass = loop->pass;
		r = timer->fn(timer);
		if (r < 0)
			return r;
	}
	return 0;
}

static int wait_ms(const struct loop *loop, uint64_t now)
{
	uint64_t first = UINT64_MAX;

	for (const struct loop_timer *timer = loop->timers; timer; timer = timer->next) {
		if (timer->at_ms != 0 && timer->at_ms < first)
			first = timer->at_ms;
	}
	if (first == UINT64_MAX)
		return -1;
	if (first <= now)
		return 0;
	return first - now > 3600000 ? 3600000 : (int) (first - now);
}

static int run_events(struct loop *loop)
{
	int r = 0;

	for (int i = 0; i < loop->pending_count && r >= 0; i++) {
		struct loop_watch *watch = loop->pending[i].data.ptr;
		uint32_t events = loop->pending[i].events;

		if (!watch)
			continue;
		/* A callback before may have changed what is asked for. */
		events &= watch->events | EPOLLHUP | EPOLLERR;
		if (events)
			r = watch->fn(watch, events);
	}
	loop->pending_count = 0;
	return r < 0 ? r : 0;
}

int loop_run(struct loop *loop)
{
	loop->is_stopped = false;
	while (!loop->is_stopped) {
		int n, r;

		r = run_timers(loop, clock_mono_ms());
		if (r < 0)
			return r;
		if (loop->is_stopped)
			break;
		n = epoll_wait(loop->epfd, loop->pending, EVENTS_PER_WAIT,
		               wait_ms(loop, clock_mono_ms()));
		if (n < 0 && errno != EINTR)
			return -errno;
		loop->pending_count = n < 0 ? 0 : n;
		r = run_events(loop);
		if (r < 0)
			return r;
	}
	return 0;
}

void loop_stop(struct loop *loop)
{
	loop->is_stopped = true;
}
