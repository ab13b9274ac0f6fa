/* SPDX-License-Identifier: Apache-2.0 */
/* admission.c - waiting for a slot: without a limit, measured, and stopped by the caller. */
#include <errno.h>
#include <unistd.h>

#include "check.h"
#include "sandbox/admission.h"
#include "scripted.h"

static const struct resoluto_launch_spec spec = { .struct_size = sizeof(spec), .id = "r1" };

static int acquire(struct scripted *scripted, struct admission_slots *slots, int fd,
                   struct resoluto_err *err)
{
	struct resoluto_admission admission = admission_slots(slots);
	struct resoluto_handle handle;

	return admission.acquire(admission.ctx, &scripted->base, &spec, fd, &handle, err);
}

static void a_free_slot_is_taken_at_once(void)
{
	struct admission_slots slots = { 0 };
	struct scripted scripted;

	scripted_init(&scripted);
	CHECK(acquire(&scripted, &slots, -1, NULL) == 0);
	CHECK(slots.attempts == 1 && slots.queue_ms <= 1000);
	scripted_done(&scripted);
}

static void busy_is_tried_again(void)
{
	struct admission_slots slots = { .step_ms = 1 };
	struct scripted scripted;

	scripted_init(&scripted);
	scripted.busy = 100;
	CHECK(acquire(&scripted, &slots, -1, NULL) == 0);
	CHECK(slots.attempts == 101 && slots.queue_ms >= 100);
	scripted_done(&scripted);
}

static void other_failures_are_final(void)
{
	struct admission_slots slots = { .step_ms = 1 };
	struct resoluto_err err = { 0 };
	struct scripted scripted;

	scripted_init(&scripted);
	scripted.launch_code = -EINVAL;
	CHECK(acquire(&scripted, &slots, -1, &err) == -EINVAL && slots.attempts == 1);
	CHECK_STR(err.text, "cannot launch");
	scripted_done(&scripted);
}

/* fork() says it, and no slot that is given back changes that. */
static void no_more_processes_is_no_slot(void)
{
	struct admission_slots slots = { .step_ms = 1 };
	struct scripted scripted;

	scripted_init(&scripted);
	scripted.launch_code = -EAGAIN;
	CHECK(acquire(&scripted, &slots, -1, NULL) == -EAGAIN && slots.attempts == 1);
	scripted_done(&scripted);
}

static void the_caller_can_stop_waiting(void)
{
	struct admission_slots slots = { .step_ms = 60000 };
	struct scripted scripted;
	int ends[2];

	CHECK(pipe(ends) == 0 && write(ends[1], "x", 1) == 1);
	scripted_init(&scripted);
	scripted.busy = 1000000;
	CHECK(acquire(&scripted, &slots, ends[0], NULL) == -ECANCELED && slots.attempts == 1);
	close(ends[0]);
	close(ends[1]);
	scripted_done(&scripted);
}

int main(void)
{
	RUN(a_free_slot_is_taken_at_once);
	RUN(busy_is_tried_again);
	RUN(other_failures_are_final);
	RUN(no_more_processes_is_no_slot);
	RUN(the_caller_can_stop_waiting);
	return check_done();
}
