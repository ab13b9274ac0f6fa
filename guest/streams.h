/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * streams.h - from the start of a program to its last byte: both outputs in the order in which they are read,
 * stdin as the program takes it, signals, the end, and what grandchildren still write.
 */

#include <stdbool.h>

#include "guest/channel.h"
#include "guest/clock_sync.h"
#include "guest/egress.h"
#include "guest/program.h"
#include "guest/report.h"

enum {
	STREAM_READ = 64 * 1024, /* bytes taken at once */
	STREAM_LOOPBACK_MS =
		50, /* from the program's start until nobody waits for the loopback device any more */
	STREAM_MEMORY_MS =
		2000, /* between two looks at whether the program only waits for memory */
	STREAM_STALLED_LOOKS = 4, /* so many in a row say so: it is killed, as out of memory */
	STREAM_IDLE_MS = 20,      /* quiet after which a line without an end (a prompt) is shown */
};

struct stream_options {
	struct channel *channel;  /* stdin and signals come from it; NULL: neither comes */
	struct clock_sync *clock; /* kept right meanwhile; NULL: not */
	struct egress *egress;    /* its rows are taken in meanwhile; NULL: none come */
	struct report *report;
	const struct report_span *span; /* lines go beneath it */
	const struct cgroup *cgroup;
	uint64_t drain_timeout_ms; /* for what holds the outputs open when the program has ended */
	bool is_hook; /* stdin waits for the program, and so do signals, which the hook gets as well */
};

struct program_end {
	int wait_status;
	bool is_complete; /* both outputs ended by themselves */
	bool was_stalled; /* it was killed since it only waited for memory */
};

/*
 * Until the program has ended and its outputs are read.  SIGCHLD must be blocked.  Closes child's descriptors.
 * A failure is one of the way out: the run is over.
 */
int streams_run(const struct stream_options *options, struct program_child *child,
                struct program_end *ret_end, struct resoluto_err *err);
