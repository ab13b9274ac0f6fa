/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * job.h - what the runner is asked to do: the JOB message, read once and checked.  Pure.
 *
 * The contract's variables (src/wire/contract.h) become members; all other variables are the program's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "egress/policy.h"
#include "resoluto/err.h"

enum {
	JOB_SCHEMA = 1,
	JOB_DRAIN_MS = 5000, /* default time for output of grandchildren */
	JOB_DRAIN_MAX_MS = 24 * 60 * 60 * 1000,
};

struct job {
	char *run_id, *node_id;
	char *workspace_dir; /* absolute */
	char *cwd;           /* absolute */
	char *user;          /* "" for the default */
	char *probe_host;
	uint16_t probe_port;
	char *boot_ids;      /* NULL: the host did not say */
	char *image_version; /* NULL: the image does not carry the runner */
	uint64_t drain_timeout_ms;
	uint64_t heartbeat_ms; /* 0: CHUNK_HEARTBEAT_MS */
	bool has_stdin, has_scratch, has_inbox, redacts_patterns, has_object_store;
	bool has_egress;
	struct egress_policy egress;                /* only to answer names: the host decides */
	struct strv argv, setup_argv, cleanup_argv; /* the hooks may be empty */
	struct strv output_paths;                   /* globs that passed glob_check */
	struct strv env;                            /* "NAME=value", nothing of ours */
	struct strv redact;                         /* values to take out verbatim */
};

/*
 * -EINVAL with what is wrong.  Even then run_id and node_id are set as far as they could be read, so
 * that the refusal can be reported.
 */
int job_parse(const char *json, size_t len, struct job *ret_job, struct resoluto_err *err);
/* Wipes the values of variables and secrets before it frees them. */
void job_done(struct job *job);

/* The value of a variable of the program, NULL if it has none. */
const char *job_env(const struct job *job, const char *name);

/* Overwrite every string of the list; the list stays. */
void strv_wipe(struct strv *strv);
