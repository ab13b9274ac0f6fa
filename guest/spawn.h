/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * spawn.h - a child that is in a cgroup of its own from its first moment.
 *
 * As with vfork() it uses the caller's memory, and the calling thread waits, until it executes a program or ends (no
 * other thread may use setuid() and its like meanwhile, which wait for all of them):
 * nothing is copied for it, and what it stores the caller sees.  Moved into the cgroup afterwards instead, by
 * cgroup.procs, it would wait for a grace period of the kernel: some 10 ms.
 */

#include <sys/types.h>

#include "resoluto/err.h"

typedef void spawn_fn(void *ctx);

/*
 * Call fn in a new child of the calling thread, on a stack of its own; what fn returns from, ends with exit code
 * 127.  fn must change nothing but the process (descriptors, rights, limits are the child's alone) and what
 * ctx says, and must not use what keeps state in memory for all (malloc, streams of stdio, setuid() and its like,
 * which speak to all threads).  cgroup_dir -1: the caller's cgroup.  Returns the child's process id.
 */
pid_t spawn_child(int cgroup_dir, spawn_fn *fn, void *ctx, struct resoluto_err *err);
