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
 * <state>/launch/<id>/, what its caller noted about it out of the shim's reach, goes with it.
 *
 * As root the directory belongs to root and is open to the group of the run's user with the sticky bit
 * on: the shim makes its own files in it and cannot replace run.json or lock.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "resoluto/err.h"

#define RUNDIR_LAUNCH "launch" /* of the state directory */

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

/* Open one that is there, without its lock (lock stays -1): it belongs to others, or to nobody.  -ENOENT. */
int rundir_open(const char *state_dir, const char *id, struct rundir *ret_dir,
                struct resoluto_err *err);
/* Whether somebody holds its lock, or is just making it. */
bool rundir_is_alive(int dirfd);
bool rundir_is_removed(int dirfd);
/*
 * The bytes of a file in it, where a shim may have put anything: follows no link, waits for nothing.  is_launchers: written
 * by whoever launched it, so it must belong to our user.  -ENOENT: there is none; -EBADMSG: no regular file, another's,
 * or larger than buf takes.
 */
int rundir_read(int dirfd, const char *name, bool is_launchers, struct buf *buf,
                struct resoluto_err *err);
/* The ids of all there are, sorted.  No state directory yet: none. */
int rundir_names(const char *state_dir, struct strv *ret_ids, struct resoluto_err *err);

enum rundir_fate {
	RUNDIR_ALIVE,
	RUNDIR_KEPT, /* dead, but somebody wants it, or might: its record is there and says nothing we understand */
	RUNDIR_DEAD,
};

/* What a sweep would make of it.  For whoever holds the claim lock. */
enum rundir_fate rundir_fate(int dirfd);

/*
 * End and remove every run beneath state_dir that has all these labels (NULL: all), alive or dead, but
 * for dead ones that are kept.  Returns how many, or a negative errno value if any could not be removed;
 * the others are gone all the same.
 */
int rundir_sweep(const char *state_dir, const char *const *labels, struct resoluto_err *err);
/* Only the dead ones. */
int rundir_sweep_dead(const char *state_dir, struct resoluto_err *err);
