/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* verdict.h - how a run ended, from everything that was seen (docs/design/channel.md, "Ends").  Pure. */

#include <stdbool.h>

#include "resoluto/runtime.h"
#include "shim/last_words.h"
#include "wire/reason.h"

enum qemu_end {
	QEMU_END_UNKNOWN,  /* QMP did not say */
	QEMU_END_RESET,    /* SHUTDOWN guest-reset */
	QEMU_END_SHUTDOWN, /* SHUTDOWN guest-shutdown */
	QEMU_END_SIGNAL,   /* SHUTDOWN host-signal: a signal that it handles */
};

struct ending {
	bool has_manifest;        /* acknowledged */
	bool has_hello;           /* the runner was there */
	bool leaves_by_reset;     /* the machine has no switch */
	enum last_word last_word; /* on its console */
	enum reason stop;         /* why the shim ended it; REASON_NONE: it did not */
	enum reason store; /* the last object could not be stored for this; REASON_NONE: it could */
	enum qemu_end qemu_end;
	int wait_status; /* of QEMU */
};

struct verdict {
	enum resoluto_phase phase; /* SUCCEEDED or FAILED */
	enum reason reason;
};

struct verdict verdict_of(const struct ending *ending);
