/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * record.h - run.json: what whoever launched a run wrote down for those who come later.
 *
 * Where shim and caller are one user the shim can write it too, so its pid is never believed without a
 * look at the process, and nothing in it decides what may be written outside the run's directory.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "resoluto/err.h"

enum { RUN_RECORD_MAX = 256 * 1024 }; /* bytes of run.json */

struct run_record {
	const char *id;
	const char *const *labels; /* NULL-terminated KEY=VALUE; may be NULL */
	const char *image;
	double created;             /* seconds since the epoch */
	pid_t caller_pid, shim_pid; /* with start times, for sweep across processes */
	uint64_t caller_start, shim_start;
	const char *boot_id;        /* of the host; "" unknown */
	const char *accel, *kernel; /* as in struct run; "" unknown */
	const char *objects;        /* absolute path of the directory of its objects; "" unknown */
	bool keep;                  /* no sweep removes it, but one that names it */
};

int run_record_write(int dirfd, const struct run_record *record, struct resoluto_err *err);
/* Set keep in the run.json that is there; without one, one is made. */
int run_record_keep(int dirfd, const char *id, struct resoluto_err *err);

/* A run.json that was read; the strings of record point into it. */
struct run_record_doc {
	struct run_record record;
	json_t *root;       /* owned */
	const char **words; /* owned: the array that record.labels is */
};

/* -ENOENT: there is none.  What is missing in it or of the wrong kind is "" or 0; -EBADMSG: it is not of this version, or
 * not of our user. */
int run_record_read(int dirfd, struct run_record_doc *ret_doc, struct resoluto_err *err);
/* The bytes of one; hostile input. */
int run_record_parse(const char *json, size_t len, struct run_record_doc *ret_doc,
                     struct resoluto_err *err);
void run_record_doc_done(struct run_record_doc *doc); /* a cleanup function */

/* A pidfd of the shim that the record names, if that process still is the one: same pid, same start,
 * and a shim.  -ESRCH if not. */
int run_record_open_shim(const struct run_record *record);
