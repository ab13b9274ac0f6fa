/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * early.h - what of a sandbox's start depends neither on the job nor on PID 1, so that it can be done before there is
 * either: settings, cgroup, the root of the program.
 *
 * Our own kernel starts the link /early of the initramfs as soon as that is unpacked, on the processor that has nothing
 * to do while the other one starts the drivers (guest-kernel/patches, "initramfs: /early").  It is this same program.  Before the
 * kernel has made /early.go there are the kernel's own file systems, and no sockets; with /early.disks the disks can be opened.  PID 1
 * takes over what it made, and on a kernel that starts no /early makes it itself.
 *
 * Between the two stands one file with a lock.  Whoever comes first makes the root; the other one keeps away from it.
 */

#include <stdbool.h>

#include "guest/disks.h"
#include "guest/mounts.h"
#include "resoluto/err.h"

/* How far it came.  Of this program and this boot alone, so it is kept as it lies in memory. */
struct early {
	struct resoluto_err err; /* code 0: everything is there */
	struct kernel_done kernel;
	bool has_scratch;
	char inbox[DISK_PATH_SIZE]; /* "": the machine has none */
};

/* Was this process started by the kernel as /early, before anybody else? */
bool early_is_meant(const char *argv0);
/* All of it, as that process, which ends in here; returns the exit code where there is nothing to do. */
int early_main(void);
/*
 * As PID 1: wait for that process, or make the root here.  If PID 1 was waiting by then, the process stays, and does nothing, until
 * *ret_lock is closed; -1: there was none.
 */
int early_take(struct early *ret, int *ret_lock, struct resoluto_err *err);

/* --- the file between the two; for tests, too --- */

/* What early_begin() puts there until early_end(): should the process die, that is how far it came. */
#define EARLY_BROKE_OFF "the early part of the start ended before it was done"

/* The descriptor of the locked file; -EWOULDBLOCK: PID 1 was first. */
int early_begin(const char *path);
/* Closes the file. */
void early_end(int fd, const struct early *early);
/* Wait as long as the other one wants, if it has the lock by now; fd is the file, opened anew, and closed. */
void early_stay(int fd);
/* Waits for early_end(): 1 and what was written, with *ret_lock the caller's, which early_stay() waits for; or 0: there was nobody, and
 * there will be nobody. */
int early_await(const char *path, struct early *ret, int *ret_lock);
