/* SPDX-License-Identifier: Apache-2.0 */
/* bridge.c - pushing meets pulling: exact bytes, and each side's failure told once, with its own words. */
#include <errno.h>
#include <signal.h>

#include "check.h"
#include "sandbox/bridge.h"

struct making {
	size_t left, step;
	int code;        /* returned at the end */
	int pushed_code; /* what the sink said last */
	bool signals_are_blocked;
};

static unsigned char byte_at(size_t i)
{
	return (unsigned char) (i * 13 + i / 255);
}

static int make(void *ctx, const struct resoluto_sink *sink, struct resoluto_err *err)
{
	struct making *making = ctx;
	unsigned char piece[70000];
	sigset_t blocked;
	size_t at = 0;

	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	making->signals_are_blocked = sigismember(&blocked, SIGINT) &&
	                              sigismember(&blocked, SIGPIPE);
	while (making->left > 0) {
		size_t n = making->left < making->step ? making->left : making->step;

		for (size_t i = 0; i < n; i++)
			piece[i] = byte_at(at + i);
		making->pushed_code = sink->write(sink->ctx, piece, n);
		if (making->pushed_code < 0)
			return making->pushed_code;
		making->left -= n;
		at += n;
	}
	return making->code < 0 ? resoluto_fail(err, making->code, "made badly") : 0;
}

static void all_bytes_arrive(void)
{
	static const size_t sizes[] = { 0, 1, 65536, 3000001 };

	for (size_t s = 0; s < 4; s++) {
		struct making making = { .left = sizes[s], .step = 69999 };
		struct bridge bridge;
		unsigned char got[9999];
		size_t total = 0;
		ssize_t n;

		CHECK(bridge_start(&bridge, make, &making, NULL) == 0);
		while ((n = bridge_read(&bridge, got, sizeof(got))) > 0) {
			for (ssize_t i = 0; i < n; i++)
				CHECK(got[i] == byte_at(total + (size_t) i));
			total += (size_t) n;
		}
		CHECK(n == 0 && total == sizes[s]);
		CHECK(bridge_read(&bridge, got, sizeof(got)) == 0); /* the end stays the end */
		CHECK(bridge_end(&bridge, 0, NULL) == 0);
		CHECK(making.signals_are_blocked);
	}
}

static void a_failure_of_the_pushing_side_is_not_an_end(void)
{
	struct making making = { .left = 10, .step = 10, .code = -EACCES };
	struct resoluto_err err = { 0 };
	struct bridge bridge;
	unsigned char got[100];

	CHECK(bridge_start(&bridge, make, &making, NULL) == 0);
	CHECK(bridge_read(&bridge, got, sizeof(got)) == 10);
	CHECK(bridge_read(&bridge, got, sizeof(got)) == -EACCES);
	CHECK(bridge_end(&bridge, -EIO, &err) == -EACCES);
	CHECK_STR(err.text, "made badly");
}

static void a_puller_that_leaves_stops_the_pusher(void)
{
	struct making making = { .left = 100 * 1000 * 1000, .step = 65536 };
	struct resoluto_err err = { 0 };
	struct bridge bridge;
	unsigned char got[100];

	CHECK(bridge_start(&bridge, make, &making, NULL) == 0);
	CHECK(bridge_read(&bridge, got, sizeof(got)) == 100);
	resoluto_fail(&err, -ENOSPC, "disk full");
	CHECK(bridge_end(&bridge, -ENOSPC, &err) == -ENOSPC);
	CHECK_STR(err.text, "disk full");
	CHECK(making.pushed_code == -EPIPE && making.left > 0);
}

static int stop_at_third(void *ctx)
{
	unsigned *ticks = ctx;

	return ++*ticks == 3 ? -ECANCELED : 0;
}

static void ticks_can_stop_it(void)
{
	struct making making = { .left = 100 * 1000 * 1000, .step = 65536 };
	struct bridge bridge;
	unsigned char got[100];
	unsigned ticks = 0;

	CHECK(bridge_start(&bridge, make, &making, NULL) == 0);
	bridge.tick = stop_at_third;
	bridge.tick_ctx = &ticks;
	CHECK(bridge_read(&bridge, got, sizeof(got)) == 100);
	CHECK(bridge_read(&bridge, got, sizeof(got)) == 100);
	CHECK(bridge_read(&bridge, got, sizeof(got)) == -ECANCELED);
	CHECK(bridge_end(&bridge, -ECANCELED, NULL) == -ECANCELED);
}

int main(void)
{
	RUN(all_bytes_arrive);
	RUN(a_failure_of_the_pushing_side_is_not_an_end);
	RUN(a_puller_that_leaves_stops_the_pusher);
	RUN(ticks_can_stop_it);
	return check_done();
}
