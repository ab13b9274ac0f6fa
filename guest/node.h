/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * node.h - one run in the guest, in the order that interfaces.md section 7 fixes:
 *
 *	guard -> canary -> own kernel -> root and inputs -> setup -> program -> outputs -> cleanup -> result
 *	-> last chunk -> manifest
 *
 * Whatever goes wrong before the program, it is not started and the result says why.
 */

#include "guest/channel.h"
#include "guest/job.h"
#include "guest/root.h"

/*
 * root has been given the job.  From a job that came to an acknowledged manifest.  A failure means that the way out is broken: nothing
 * is left to do but to switch off.
 */
int node_run(struct channel *channel, struct root *root, struct job *job,
             const struct resoluto_err *job_failure, struct resoluto_err *err);
