/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * signals.h - the signals of `run`, turned into bytes.
 *
 * Each signal that is forwarded becomes one byte in a pipe that the library reads
 * (resoluto_run_options.signal_fd).  A second pipe wakes us while we wait for a slow reader of our
 * output. What was ignored when we were started (nohup, a shell's background job) stays ignored.
 *
 * Two requests to stop are the library's to handle: the program first, then the sandbox.  Whoever
 * asks on and on ends this process at once; the supervisor of the sandbox notices, and kills it.
 * SIGHUP is no request to stop: the terminal has gone, and with it whoever read our output.
 */

#include <stdbool.h>

#include "resoluto/err.h"

struct signals {
	int forward_fd; /* for the library; -1: not open */
	int wake_fd;    /* readable once somebody asked us to stop */
};

#define SIGNALS_NONE ((struct signals){ -1, -1 })

/* There is one set of signals in a process: open once at a time. */
int signals_open(struct signals *signals, struct resoluto_err *err);
void signals_close(struct signals *signals); /* a cleanup function */
/* How often we were asked to stop since signals_open(), and by which signal last (0: none). */
unsigned signals_stop_count(void);
int signals_last_stop(void);
/* The terminal has gone: a SIGHUP came, or somebody found out by writing to it (signals_hang_up()). */
bool signals_has_hung_up(void);
void signals_hang_up(void);
