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
	CGROUP_PIDS_MAX = 4096,
	CGROUP_KILL_MS = 10 *
	                 1000, /* after this the machine is switched off with processes in it */
};

struct cgroup {
	int dir; /* owned */
};

#define CGROUP_NONE ((struct cgroup){ .dir = -1 })

/* Memory of the program when the machine has so much.  Pure. */
uint64_t cgroup_memory_max(uint64_t machine_bytes);

int cgroup_create(struct cgroup *ret_cgroup, struct resoluto_err *err);
/* Move the calling process into it. */
int cgroup_enter(const struct cgroup *cgroup);
/* Kill all in it without waiting. */
int cgroup_kill_now(const struct cgroup *cgroup);
/* Kill all in it; returns when all are gone (and reaped, where they are ours) or -ETIMEDOUT. */
int cgroup_kill(const struct cgroup *cgroup);
/* How many processes the kernel killed in it for lack of memory. */
uint64_t cgroup_oom_kills(const struct cgroup *cgroup);
/* The number behind "name " in text of lines "name number"; 0 if there is none.  Pure. */
uint64_t cgroup_read_stat(const char *text, const char *name);
void cgroup_done(struct cgroup *cgroup);
