/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * rehearsal.h - what PID 1 will do for the first time, done before on samples.
 *
 * Under emulation code that runs for the first time is translated first, and that is most of its time.  /early has nothing to do while the
 * kernel starts its drivers, and it is the same program on the same kernel: what it runs through meanwhile is translated when PID 1 comes
 * to it.  Nothing else comes of it but that the process could execute nothing with a capability any more, and what fails is passed over.  A
 * step that crashed would take the root of the sandbox with it.
 */

#include <stdbool.h>

/* Starts with next 0, once there are sockets and the cgroup of the programs. */
struct rehearsal {
	unsigned next;
	int cgroup_dir; /* borrowed */
};

/* One step, of some milliseconds under emulation; false: none is left. */
bool rehearsal_step(struct rehearsal *rehearsal);

extern const char rehearsal_job[]; /* the sample of a JOB message; for tests */
