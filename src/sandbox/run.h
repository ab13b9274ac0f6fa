/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * run.h - one run of the facade, from its options to its result.
 *
 * run_prepare() looks at the options and opens what they name; nothing is left behind if it fails.
 * run_claim() claims the id; from then on there is a result, whatever happens.  run_work() fetches
 * the image, stages, drives and collects; whatever it could not do becomes a verdict.  run_finish()
 * makes the result.
 *
 * A run may be left in its drive (outcome.has_left): when its program has started, for a launch, or
 * when its terminal went away.  run_let_go() then makes it one that outlives us.  For a run that was left,
 * by whomever, struct run is filled from what is stored, and run_judge() and run_finish() do the same.
 */

#include "base/buf.h"
#include "resoluto/sandbox.h"
#include "sandbox/admission.h"
#include "sandbox/backend.h"
#include "sandbox/evidence.h"
#include "sandbox/idle.h"
#include "sandbox/observer.h"
#include "sandbox/options.h"
#include "sandbox/sandbox_internal.h"
#include "sandbox/verdict.h"
#include "wire/result.h"

#define RUN_NODE_ID "run"

struct run {
	struct resoluto_run_options options;
	struct options_plain plain; /* of the options */
	const struct sandbox_tuning *tuning;
	bool is_launch; /* leave once the program has started and has its input */
	char id[RESOLUTO_ID_MAX + 1];
	struct strv file_env, env, labels;
	struct strv egress, egress_notes; /* canonical patterns; what to say of what was given */
	int workspace_fd, output_fd;
	struct idle idle;
	struct place place;
	struct resoluto_image image;
	char host_boot_id[EVIDENCE_BOOT_ID_SIZE];
	struct observer observer;
	struct admission_slots slots;
	struct resoluto_admission admission; /* over slots */
	bool was_launched;
	bool is_noted;       /* what was asked for is stored */
	bool drive_failed;   /* the store or a callback did; the verdict says which */
	bool input_failed;   /* what the program was to read could not be read */
	bool has_odd_result; /* a result.json came back that is not JSON */
	int landing_signo;   /* that ended the landing of the outputs; 0: none did */
	struct resoluto_outcome outcome;
	struct node_result_doc node; /* root is NULL while the guest has given no verdict */
	struct verdict verdict;
	char detail[2 * RESOLUTO_ERR_TEXT]; /* what verdict.detail may point to */
	uint64_t start_ms, launch_ms;       /* monotonic */
	struct resoluto_result *result;
};

int run_prepare(struct run *run, const struct resoluto_run_options *options,
                struct resoluto_err *err);
int run_claim(struct run *run, struct resoluto_err *err);
/* The result of one that could not be claimed; code as it is, or -ENOMEM.  Misuse (-EINVAL) has none. */
int run_refuse_claim(struct run *run, int code, struct resoluto_result **ret_result,
                     const struct resoluto_err *why);
/* Its verdict is that it never started, for this. */
void run_refuse(struct run *run, int code, const struct resoluto_err *why);
/* 0, also when the run went wrong: then run->verdict says how.  -ENOMEM. */
int run_work(struct run *run);
/* The verdict of how the drive ended and of what the guest wrote. */
/* -ENOMEM: nothing can be said. */
int run_judge(struct run *run, struct resoluto_err *err);
uint64_t run_dead_after_ms(const struct run *run);
/* Note what was asked for, for those who come later; once is enough. */
int run_note_request(struct run *run, struct resoluto_err *err);
/* The same right after the launch, where the runtime is local: for readers of other processes, also after our death.  Its
 * guest boots meanwhile; a run that nobody keeps needs no flush, and what fails here only tells them less. */
void run_tell_others(struct run *run);
/* After a failure the sandbox is destroyed. */
int run_let_go(struct run *run, struct resoluto_err *err);
int run_finish(struct run *run, struct resoluto_result **ret_result);
void run_done(struct run *run); /* a cleanup function */
