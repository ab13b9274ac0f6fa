/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "shim/shim.h"

static int drop_in(struct channel *channel)
{
	buf_clear(&channel->in);
	return channel_update(channel);
}

/* Told to switch off, and has no switch: it would stand still for ever. */
static void end_halted(struct shim *shim)
{
	enum reason reason = shim->ending.has_hello ? REASON_GUEST_POWER_OFF : REASON_BOOT_FAILED;

	(void) shim_stop(shim, shim->ending.has_manifest ? REASON_NONE : reason, NULL);
}

int shim_console_event(struct loop_watch *watch, uint32_t events)
{
	struct shim *shim = watch->ctx;
	int r = channel_read(&shim->console);

	if (r < 0)
		return r;
	ring_add(&shim->console_ring, shim->console.in.data, shim->console.in.len);
	last_words_feed(&shim->last_words, shim->console.in.data, shim->console.in.len);
	if (shim->last_words.has_halted)
		end_halted(shim);
	return drop_in(&shim->console);
}

int shim_emulator_event(struct loop_watch *watch, uint32_t events)
{
	struct shim *shim = watch->ctx;
	int r = channel_read(&shim->emulator);

	if (r < 0)
		return r;
	ring_add(&shim->emulator_ring, shim->emulator.in.data, shim->emulator.in.len);
	return drop_in(&shim->emulator);
}

int shim_monitor_event(struct loop_watch *watch, uint32_t events)
{
	struct shim *shim = watch->ctx;
	int r = channel_flush(&shim->monitor);

	if (r == 0)
		r = channel_read(&shim->monitor);
	if (r < 0)
		return r;
	qmp_feed(&shim->qmp, shim->monitor.in.data, shim->monitor.in.len);
	if (shim->qmp.has_stopped && !shim->ending.has_manifest)
		(void) shim_stop(
			shim, REASON_EMULATOR_FAILED,
			"QEMU stopped the machine, as it does where it or KVM meets what it "
			"cannot run");
	return drop_in(&shim->monitor);
}

/* Take in all that it wrote before it ended. */
static void drain_all(struct shim *shim)
{
	do {
		(void) shim_console_event(&shim->console.watch, 0);
	} while (!shim->console.has_ended && channel_read(&shim->console) > 0);
	do {
		(void) shim_emulator_event(&shim->emulator.watch, 0);
	} while (!shim->emulator.has_ended && channel_read(&shim->emulator) > 0);
	do {
		(void) shim_monitor_event(&shim->monitor.watch, 0);
	} while (!shim->monitor.has_ended && channel_read(&shim->monitor) > 0);
	shim_drain_guest(shim);
}

int shim_qemu_event(struct loop_watch *watch, uint32_t events)
{
	struct shim *shim = watch->ctx;
	int r;

	loop_remove(&shim->qemu_watch);
	r = proc_wait(&shim->qemu, -1, &shim->ending.wait_status);
	if (r < 0)
		return r;
	drain_all(shim);
	loop_stop(shim->loop);
	return 0;
}

/* Before HELLO nobody else watches the guest. */
static int boot_time(struct loop_timer *timer)
{
	struct shim *shim = timer->ctx;

	if (shim->ending.has_hello)
		return 0;
	return shim_stop(shim, REASON_BOOT_FAILED,
	                 "the runner did not say hello within RESOLUTO_LOCAL_BOOT_LIMIT; the "
	                 "substrate logs tell how far the kernel came");
}

/* SIGTERM to the program, SIGKILL to it, the end of its machine. */
static int deadline_time(struct loop_timer *timer)
{
	struct shim *shim = timer->ctx;

	if (shim->is_stopping)
		return 0; /* it is being ended already */
	switch (shim->deadline_step++) {
	case 0:
		shim->ending.stop = REASON_DEADLINE;
		/* Told now, since the guest's verdict is read before QEMU has ended. */
		snprintf(shim->state.reason, sizeof(shim->state.reason), "%s",
		         reason_name(REASON_DEADLINE));
		(void) shim_write_state(shim);
		shim->signals |= UINT64_C(1) << SIGTERM;
		timer->at_ms = clock_mono_ms() + DEADLINE_KILL_MS;
		return shim_feed_guest(shim);
	case 1:
		shim->signals |= UINT64_C(1) << SIGKILL;
		timer->at_ms = clock_mono_ms() + DEADLINE_END_MS;
		return shim_feed_guest(shim);
	default:
		return shim_stop(shim, REASON_DEADLINE,
		                 "the program and its runner did not end in time");
	}
}

/* Each chunk puts it off; looked at only when it fires. */
static int silence_time(struct loop_timer *timer)
{
	struct shim *shim = timer->ctx;
	const uint64_t end_ms = shim->quiet_since_ms + shim->config.dead_after_ms;

	if (shim->is_stopping)
		return 0; /* it is being ended already */
	if (clock_mono_ms() >= end_ms)
		return shim_stop(shim, REASON_SILENT, NULL);
	timer->at_ms = end_ms;
	return 0;
}

void shim_watch_silence(struct shim *shim)
{
	shim->quiet_since_ms = clock_mono_ms();
	if (shim->config.dead_after_ms)
		shim->silence_timer.at_ms = shim->quiet_since_ms + shim->config.dead_after_ms;
}

int shim_arm_timers(struct shim *shim)
{
	const uint64_t deadline = shim->config.deadline_ms;

	shim->deadline_timer = (struct loop_timer){ .fn = deadline_time, .ctx = shim };
	shim->boot_timer = (struct loop_timer){ .fn = boot_time,
		                                .ctx = shim,
		                                .at_ms = clock_mono_ms() +
		                                         shim->config.boot_limit_ms };
	shim->silence_timer = (struct loop_timer){ .fn = silence_time, .ctx = shim };
	if (deadline)
		shim->deadline_timer.at_ms = clock_mono_ms() + deadline;
	loop_add_timer(shim->loop, &shim->boot_timer);
	loop_add_timer(shim->loop, &shim->deadline_timer);
	loop_add_timer(shim->loop, &shim->silence_timer);
	return 0;
}
