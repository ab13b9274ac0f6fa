/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * shim.h - one run: its QEMU, its three talkers (guest, caller, monitor) and its end.
 *
 *	main.c     order of things: read the configuration, drop rights, start QEMU, lock down, loop, end
 *	start.c    descriptors, rights, QEMU
 *	guest.c    the ports control and conduit: demux, objects, answers, what is sent to the guest
 *	caller.c   the socket to the caller: stdin, signals, destroy, its leaving; hints back
 *	door.c     the FIFO for everybody else: signals, destroy
 *	watch.c    console, monitor, QEMU's end, deadline
 *	ending.c   why it ended, state.json, console.log
 *
 * States: starting (nothing of the guest is read) -> running -> stopping (QEMU is being killed, after the
 * manifest too) -> ended.  There is no way back.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "base/proc.h"
#include "runtime/microvm/shim_config.h"
#include "runtime/microvm/state.h"
#include "shim/channel.h"
#include "shim/demux.h"
#include "shim/last_words.h"
#include "shim/qmp.h"
#include "shim/ring.h"
#include "shim/store.h"
#include "shim/verdict.h"

enum {
	CONSOLE_RING = 64 * 1024,    /* bytes kept of the guest's console */
	EMULATOR_RING = 16 * 1024,   /* bytes kept of QEMU's stderr */
	DEADLINE_KILL_MS = 5 * 1000, /* from SIGTERM to SIGKILL of the program */
	DEADLINE_END_MS = 10 * 1000, /* from there to the end of QEMU */
	STDIN_PIECE = 16 * 1024,     /* bytes of stdin per frame to the guest */
	CREDIT_STEP = FRAME_STDIN_CREDIT / 4,
};

struct shim {
	struct shim_config config;
	struct run_state state;
	struct loop *loop;
	struct proc qemu;
	struct loop_watch qemu_watch;

	struct channel caller, control, conduit, monitor, console, emulator;
	struct demux demux;
	struct store store;
	struct qmp qmp;
	struct last_words last_words; /* on the console */
	struct ring console_ring, emulator_ring;
	char console_bytes[CONSOLE_RING], emulator_bytes[EMULATOR_RING];

	/* towards the guest */
	bool has_greeted; /* HELLO and CLOCK are out */
	bool owes_clock;  /* the guest asked; asking again before the answer changes nothing */
	uint64_t job_size, job_sent;
	uint64_t signals;       /* bit n: signal n waits */
	struct buf stdin_bytes; /* came from the caller, not sent yet */
	uint64_t guest_credit;  /* bytes the guest still takes */
	uint64_t caller_credit; /* bytes the caller may still send */
	bool stdin_has_ended, stdin_end_sent;

	/* towards the caller */
	bool news, tell_started, is_detached;
	bool is_dropped; /* destroyed by its caller, who removes what lies there */

	/* from everybody else */
	struct loop_watch door_watch;
	struct buf door_in;

	/* the end */
	struct ending ending;
	char detail[STATE_DETAIL_MAX];
	bool is_stopping;
	struct loop_timer boot_timer, deadline_timer, silence_timer;
	int deadline_step;
	uint64_t quiet_since_ms; /* the last chunk, or the moment it was detached */
};

/* start.c */
int shim_open(struct shim *shim, struct resoluto_err *err); /* configuration and descriptors */
int shim_drop_rights(struct shim *shim, struct resoluto_err *err);
int shim_start_qemu(struct shim *shim, struct resoluto_err *err);
int shim_lock_down(struct shim *shim, struct resoluto_err *err);
void shim_done(struct shim *shim);

/* guest.c */
loop_fn shim_control_event, shim_conduit_event;
int shim_feed_guest(struct shim *shim);   /* send what may be sent on control */
void shim_drain_guest(struct shim *shim); /* QEMU is gone: take in what it still wrote */

/* caller.c */
loop_fn shim_caller_event;
int shim_feed_caller(struct shim *shim);
void shim_tell_news(struct shim *shim);
/* What anybody may ask for: SIGNAL, DESTROY, LOGS; the rest is passed over. */
int shim_take_request(struct shim *shim, const struct frame *frame);

/* door.c */
loop_fn shim_door_event;

/* watch.c */
loop_fn shim_console_event, shim_monitor_event, shim_emulator_event, shim_qemu_event;
int shim_arm_timers(struct shim *shim);
void shim_watch_silence(struct shim *shim); /* nobody else does from now on */

/* ending.c */
/* Kill QEMU for this reason; the first one counts.  detail may be NULL. */
int shim_stop(struct shim *shim, enum reason reason, const char *detail);
int shim_write_state(struct shim *shim);
int shim_write_logs(struct shim *shim);
/* The final state, after QEMU has been reaped. */
void shim_end(struct shim *shim);
/* It never came to a guest: the final state of that. */
void shim_refuse(struct shim *shim, enum reason reason, const struct resoluto_err *err);
