/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * driver.h - follow one sandbox from launch to its end (seed 001 "Run lifecycle", seed 000
 * "Liveness"): tail its events, watch its status, tell how it ended, reap it.
 *
 * No wall-clock limit is built in.  The silence window is armed only once the sandbox was seen
 * running; whoever waits for admission may wait for ever.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "resoluto/conduit.h"
#include "resoluto/err.h"
#include "resoluto/event.h"
#include "resoluto/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
	RESOLUTO_DEAD_AFTER_MS = 120000,  /* seeds: the driver's default; the facade has 600 s */
	RESOLUTO_POLL_INTERVAL_MS = 1000, /* between status polls; output is shown as it comes */
	RESOLUTO_FATAL_POLLS = 15,        /* polls before a bad state counts as final */
	RESOLUTO_LOGS_KEPT = 4000,        /* characters of logs kept of a silent sandbox */
	RESOLUTO_IDLE_LEAVE = 2,          /* of on_idle: leave, the sandbox goes on */
};

#define RESOLUTO_SEQ_END UINT64_MAX /* a cursor behind all output, also what is still to come */

/* Which of the program's two streams. */
enum resoluto_streams {
	RESOLUTO_STREAMS_BOTH,
	RESOLUTO_STREAMS_STDOUT,
	RESOLUTO_STREAMS_STDERR,
};

enum resoluto_disposition {
	RESOLUTO_COMPLETED,   /* manifest and all chunks are there; result.json tells the verdict */
	RESOLUTO_UNSTARTABLE, /* a fatal waiting reason over 15 polls */
	RESOLUTO_EXTERNAL,    /* the sandbox went away from outside, without a manifest */
	RESOLUTO_SILENT,      /* no new chunk for dead_after_ms */
	RESOLUTO_STOPPED,     /* beyond: deadline, signal, caller died, quota */
	RESOLUTO_REFUSED,     /* beyond: before the start */
};

/** "completed", "unstartable" ... as the result's JSON says it; static, "" for none of them. */
const char *resoluto_disposition_name(enum resoluto_disposition disposition);

/* Borrowed for the call.  A negative return ends the drive with it. */
typedef int resoluto_event_fn(void *ctx, const struct resoluto_event *event);

/* Who bounds how many run at once (seeds: Admission, Lease). */
struct resoluto_admission {
	/* Wait for room, launch, and fill *ret_handle.  extra_fd as in runtime wait: readable means
	 * the caller wants to stop, return -ECANCELED; its text as of on_idle. */
	int (*acquire)(void *ctx, struct resoluto_runtime *runtime,
	               const struct resoluto_launch_spec *spec, int extra_fd,
	               struct resoluto_handle *ret_handle, struct resoluto_err *err);
	/* The sandbox is destroyed: its room is free. */
	void (*release)(void *ctx, struct resoluto_handle *handle);
	void *ctx;
};

struct resoluto_drive_options {
	size_t struct_size;
	struct resoluto_runtime *runtime;
	struct resoluto_conduit *conduit;
	/* Where its env has RESOLUTO_RUN_ID, events of other runs are passed over. */
	const struct resoluto_launch_spec *spec;
	const struct resoluto_admission *admission; /* NULL: launch at once */
	resoluto_event_fn *on_event;                /* NULL: none */
	void *ctx;
	uint64_t dead_after_ms;    /* 0 = RESOLUTO_DEAD_AFTER_MS */
	unsigned poll_interval_ms; /* 0 = RESOLUTO_POLL_INTERVAL_MS */
	/* Called once after a launch, and whenever the driver has nothing to read: feed stdin, look at signals.  Returns 0, 1 to
	 * be called again soon (within 10 ms), RESOLUTO_IDLE_LEAVE, or a negative errno value, which
	 * ends the drive: -ECANCELED gives disposition STOPPED with the text of err ("": cancelled) as its
	 * reason. */
	int (*on_idle)(void *ctx, struct resoluto_handle *handle, struct resoluto_err *err);
	int idle_fd;       /* readable: call on_idle; -1 or 0: none */
	bool keep_sandbox; /* do not destroy at the end */

	/* A sandbox that runs already, from the runtime's attach().  Nothing is launched or destroyed, and
	 * of spec only store_prefix counts, and RESOLUTO_RUN_ID of env.  NULL: launch one. */
	const struct resoluto_handle *handle;
	/* The first piece of output that is told, by resoluto_event.seq; what lies before costs next to
	 * nothing, however much it is.  0: all.  RESOLUTO_SEQ_END: no event at all, only the end.  Events
	 * that are no output are told from about there on. */
	uint64_t from_seq;
	bool has_tail; /* instead: begin with the last tail_lines lines of these streams */
	uint64_t tail_lines;
	enum resoluto_streams tail_streams;
	bool until_now; /* leave once all that is stored now has been told */
};

struct resoluto_outcome {
	enum resoluto_disposition disposition;
	char reason[RESOLUTO_REASON_MAX]; /* "" when completed well */
	/* Of the last status, where that gave the reason; of one in the substrate's own words (unstartable,
	 * external) "REASON, exit code N: DETAIL", as far as it says them. */
	char detail[RESOLUTO_DETAIL_MAX];
	enum resoluto_phase observed_phase;
	char *result_json;       /* owned: result.json, NULL if there is none that is valid */
	char *substrate_logs;    /* owned, never NULL after success */
	char *isolation_json;    /* owned: what the runtime proved; may be NULL */
	uint64_t chunks, events; /* read */
	uint64_t foreign_events; /* passed over, since they say that they are of another run */
	uint64_t queue_ms;       /* waited for admission */
	/* Left before the end: nothing above is known but what was read, and the sandbox goes on. */
	bool has_left;
	bool has_started; /* the program's span was seen to be opened */
	struct resoluto_handle
		handle;     /* with has_left or keep_sandbox: still valid, the caller's now */
	uint64_t bad_lines; /* passed over, since they are no events */
};

/**
 * Drive one node.  0 whenever there is an outcome, whatever it is; negative only when driving
 * itself failed (the conduit cannot be read, on_event failed).  The sandbox is destroyed in both
 * cases unless keep_sandbox.  Release *ret_outcome with resoluto_outcome_done().
 */
int resoluto_drive_node(const struct resoluto_drive_options *options,
                        struct resoluto_outcome *ret_outcome, struct resoluto_err *err);

void resoluto_outcome_done(struct resoluto_outcome *outcome);

#ifdef __cplusplus
}
#endif
