/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * loop.h - wait for descriptors and deadlines, call who asked.  One thread, no global state.
 *
 * A watch belongs to the caller (embed it) and must be removed before it goes away.  A
 * callback may add and remove any watch, its own included; the same holds for timers.
 */

#include <stdint.h>

struct loop;
struct loop_watch;

/* events: EPOLLIN, EPOLLOUT, EPOLLHUP ... A negative return ends loop_run with it. */
typedef int loop_fn(struct loop_watch *watch, uint32_t events);

struct loop_watch {
	int fd;
	uint32_t events; /* asked for now; 0 = not watched (hang-up is still told by epoll) */
	loop_fn *fn;
	void *ctx;
	/* private */
	struct loop *loop; /* NULL: not added */
};

struct loop_timer {
	uint64_t at_ms;                      /* clock_mono_ms() time; 0 = off */
	int (*fn)(struct loop_timer *timer); /* called once per arming; may arm again */
	void *ctx;
	/* private */
	struct loop_timer *next;
	uint64_t pass; /* the last in which it had its turn */
};

int loop_new(struct loop **ret_loop);
void loop_free(struct loop **loop); /* a cleanup function */
/* epoll cannot watch regular files (-EPERM). */
int loop_add(struct loop *loop, struct loop_watch *watch);
int loop_change(struct loop_watch *watch, uint32_t events);
void loop_remove(struct loop_watch *watch);                          /* not added: fine */
void loop_add_timer(struct loop *loop, struct loop_timer *timer);    /* added: fine */
void loop_remove_timer(struct loop *loop, struct loop_timer *timer); /* not added: fine */
/* Until loop_stop() or a failing callback; returns 0 or that failure. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
