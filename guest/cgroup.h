/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * cgroup.h - the cgroup of the program: what it may take of the machine, and the way to end all of it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "resoluto/err.h"

enum {
	CGROUP_KEPT_MIB = 64, /* of the memory for kernel and runner (a quarter, if that is less) */
	CGROUP_ROOM_MIB = 24, /* of what is available when the program starts, likewise */
	CGROUP_PIDS_MAX = 4096,
	CGROUP_STALL_REFAULTS =
		1000,            /* pages read again between two looks that mean standing still */
	CGROUP_STALL_SHARE = 64, /* when files have less than the limit by this */
	CGROUP_REAP_MAX =
		256, /* in one turn: who starts processes on many processors must not keep us there */
	CGROUP_KILL_MS = 10 * 1000, /* after this the run ends with processes in it */
};

struct cgroup {
	int dir; /* owned; spawn.h starts children in it */
};

#define CGROUP_NONE ((struct cgroup){ .dir = -1 })

/*
 * Memory of the program when the machine has so much, and so much of it is available.  The limit must be
 * reached before the machine's memory is: a kernel without memory stands still, a cgroup without memory is
 * ended.  Pure.
 */
uint64_t cgroup_memory_max(uint64_t machine_bytes, uint64_t available_bytes);

int cgroup_create(struct cgroup *ret_cgroup, struct resoluto_err *err);
/* Set the limit anew: once the job, and once the inputs have taken their part. */
int cgroup_fit_memory(const struct cgroup *cgroup, struct resoluto_err *err);
/* Kill all in it without waiting. */
int cgroup_kill_now(const struct cgroup *cgroup);
/* Kill all in it; returns when all are gone (and reaped, where they are ours) or -ETIMEDOUT. */
int cgroup_kill(const struct cgroup *cgroup);
/* How many processes the kernel killed in it for lack of memory. */
uint64_t cgroup_oom_kills(const struct cgroup *cgroup);
/* What the kernel tells of the memory of all in it. */
struct cgroup_memory {
	uint64_t limit_bytes, used_bytes;
	uint64_t file_bytes; /* of these: of files, which can be dropped and read again */
	uint64_t refaults;   /* pages that had to be read again, ever */
};

int cgroup_read_memory(const struct cgroup *cgroup, struct cgroup_memory *ret_memory);
/*
 * Has a program stood still between two looks?  At the edge of its limit its own code is dropped and read again
 * all the time; and the kernel, which always finds something to drop, kills nobody.  Pure.
 */
bool cgroup_is_stalled(const struct cgroup_memory *before, const struct cgroup_memory *now);
/* The number behind "name " in text of lines "name number"; 0 if there is none.  Pure. */
uint64_t cgroup_read_stat(const char *text, const char *name);
void cgroup_done(struct cgroup *cgroup);
