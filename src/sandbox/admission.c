/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "sandbox/admission.h"

/* 1: fd is readable. */
static int pause_unless_readable(int fd, unsigned pause_ms)
{
	struct pollfd watched = { .fd = fd, .events = POLLIN };
	int n = poll(&watched, 1, (int) pause_ms);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	return n > 0;
}

static int acquire(void *ctx, struct resoluto_runtime *runtime,
                   const struct resoluto_launch_spec *spec, int extra_fd,
                   struct resoluto_handle *ret_handle, struct resoluto_err *err)
{
	struct admission_slots *slots = ctx;
	uint64_t start = clock_mono_ms();
	int r;

	for (;;) {
		slots->attempts++;
		slots->queue_ms = clock_mono_ms() - start;
		r = runtime->ops->launch(runtime, spec, ret_handle, err);
		if (r != -EBUSY)
			return r;
		r = pause_unless_readable(extra_fd,
		                          slots->step_ms ? slots->step_ms : ADMISSION_STEP_MS);
		if (r < 0)
			return resoluto_fail(err, r, "wait for a free slot");
		if (r > 0)
			return resoluto_fail(err, -ECANCELED, "cancelled");
	}
}

static void release(void *ctx, struct resoluto_handle *handle)
{
	/* The runtime's own slot went with the sandbox. */
}

struct resoluto_admission admission_slots(struct admission_slots *slots)
{
	return (struct resoluto_admission){ .acquire = acquire, .release = release, .ctx = slots };
}
