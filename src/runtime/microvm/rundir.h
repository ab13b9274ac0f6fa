/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * rundir.h - <state>/runs/<id>: claimed by making it, alive as long as its file `lock` is locked,
 * dead when the lock is free.  No pid is ever believed for that.
 *
 * The lock belongs to the open file that the caller and the shim share, so it is free exactly when
 * both are gone.  Making, sweeping and removing happen under <state>/claim.lock; what is
 * removed is first renamed away, so that nobody waits for a large tree.
 *
 * As root the directory belongs to root and is open to the group of the run's user with the sticky bit
 * on: the shim makes its own files in it and cannot replace run.json or lock.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "resoluto/err.h"

struct rundir {
	char *path; /* owned: absolute */
	int fd;     /* owned: the directory */
	int lock;   /* owned: holds the flock */
};

#define RUNDIR_NONE ((struct rundir){ .fd = -1, .lock = -1 })

/* Make <state>/runs/<id> and lock it; dead runs are removed on the way, but for those that
 * cannot be.  -EEXIST: it is there. */
int rundir_claim(const char *state_dir, const char *id, struct rundir *ret_dir,
                 struct resoluto_err *err);
/* Remove it and let the lock go.  One that was swept meanwhile is gone already, whoever has its name now. */
int rundir_remove(const char *state_dir, const char *id, struct rundir *dir,
                  struct resoluto_err *err);
void rundir_done(struct rundir *dir); /* close only */

/* What run.json says: who it is for, and who runs it. */
struct run_record {
	const char *id;
	const char *const *labels; /* NULL-terminated KEY=VALUE; may be NULL */
	const char *image;
	double created;             /* seconds since the epoch */
	pid_t caller_pid, shim_pid; /* with start times, for sweep across processes */
	uint64_t caller_start, shim_start;
	bool keep; /* no sweep removes it */
};

int run_record_write(int dirfd, const struct run_record *record, struct resoluto_err *err);
/* Set keep in the run.json that is there; without one, one is made. */
int run_record_keep(int dirfd, const char *id, struct resoluto_err *err);

/*
 * End and remove every run beneath state_dir that has all these labels (NULL: all), alive or dead, but
 * for dead ones that are kept.  Returns how many, or a negative errno value if any could not be removed;
 * the others are gone all the same.
 */
int rundir_sweep(const char *state_dir, const char *const *labels, struct resoluto_err *err);
/* Only the dead ones. */
int rundir_sweep_dead(const char *state_dir, struct resoluto_err *err);
