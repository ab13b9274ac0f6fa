/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resoluto-shim - owns the QEMU of one run; started by libresoluto-sandbox, never by hand.
 *
 * What it reads from the guest is hostile, so before the first byte of it is read the shim can do no
 * more than write beneath two directories, answer, and end its QEMU.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/turn.h"
#include "runtime/microvm/door.h"
#include "shim/shim.h"

enum { EXIT_REFUSED = 125 };

static int start(struct shim *shim, struct resoluto_err *err)
{
	int r = shim_drop_rights(shim, err);

	if (r == 0)
		r = store_init(&shim->store, SHIM_FD_PREFIX, &shim->config.quotas, err);
	shim->store.is_lazy = shim->config.drops_objects;
	if (r == 0)
		r = shim_start_qemu(shim, err);
	if (r == 0)
		r = shim_lock_down(shim, err);
	return r;
}

static int run(struct shim *shim)
{
	int r = shim_arm_timers(shim);
	char why[128];

	if (r == 0)
		r = shim_write_state(shim);
	shim_tell_news(shim);
	if (r == 0)
		r = shim_feed_caller(shim);
	if (r == 0)
		r = loop_run(shim->loop);
	/* Out of memory, or no place for state.json: no more can be done for the run. */
	if (r < 0) {
		snprintf(why, sizeof(why), "the shim could not go on: %s", strerrordesc_np(-r));
		(void) shim_stop(shim, r == -ENOSPC ? REASON_STORE_FULL : REASON_STORE_FAILED, why);
		(void) shim_qemu_event(&shim->qemu_watch, 0);
	}
	shim_end(shim);
	return 0;
}

static void init(struct shim *shim)
{
	*shim = (struct shim){
		.qemu = PROC_NONE,
		.qmp = QMP_INIT,
		.stdin_bytes = BUF_INIT(FRAME_STDIN_CREDIT),
		.door_in = BUF_INIT(32 * DOOR_FRAME_MAX),
		.guest_credit = FRAME_STDIN_CREDIT,
		.state = { .phase = RESOLUTO_PHASE_PENDING,
		           .shim_pid = getpid(),
		           .started_at = clock_wall() },
	};
	shim->console_ring = (struct ring){ .bytes = shim->console_bytes, .size = CONSOLE_RING };
	shim->emulator_ring = (struct ring){ .bytes = shim->emulator_bytes, .size = EMULATOR_RING };
	for (int i = 0; i < DEMUX_PUTS_MAX; i++)
		shim->store.writers[i] = LOCAL_WRITER_NONE;
	shim->monitor.watch.fd = shim->console.watch.fd = shim->control.watch.fd = -1;
	shim->conduit.watch.fd = shim->emulator.watch.fd = shim->caller.watch.fd = -1;
}

int main(void)
{
	struct resoluto_err err = { 0 };
	struct shim *shim = malloc(sizeof(*shim));
	int r;

	turn_make_short();
	if (!shim)
		return EXIT_REFUSED;
	init(shim);
	umask(077);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	r = chdir("/") < 0 ? resoluto_fail(&err, -EIO, "go to /") : shim_open(shim, &err);
	if (r == 0)
		r = start(shim, &err);
	if (r < 0)
		shim_refuse(shim, REASON_REFUSED, &err);
	else
		r = run(shim);
	shim_done(shim);
	free(shim);
	return r < 0 ? EXIT_REFUSED : 0;
}
