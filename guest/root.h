/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * root.h - the root of the program, with its user and workspace, built by a thread: on another processor, where
 * there is one, while the runner speaks with the host.
 *
 *	root_begin()        image and overlay, settings of the kernel, the image's users: what does not depend on the job (early.h)
 *	root_give_job()     user and workspace
 *	root_await_early()  /early has made what it makes: its control groups are the process's now
 *	root_await()        all of it is there; the thread ends with a look ahead (prefetch.h)
 *
 * The thread goes into the new root alone.  The process stays where it was, and enters with mount_enter_root().
 */

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

#include "guest/job.h"
#include "guest/users.h"

struct root {
	/* After root_await(). */
	struct user user;
	int inbox_disk; /* owned; -1: the machine has none */
	bool has_scratch;
	int workspace; /* owned */

	/* The thread's. */
	const struct job *job;
	sem_t has_job, has_early, has_ended;
	int result;
	struct resoluto_err err;
};

/* root must stay where it is, for the life of the process. */
int root_begin(struct root *root, struct resoluto_err *err);
/* Once.  The job must not change until root_await(). */
void root_give_job(struct root *root, const struct job *job);
/* Once, before the process makes the control groups, which /early may be making. */
void root_await_early(struct root *root);
/* Once, with a job given.  A failure is one of the image, of the job or of the kernel. */
int root_await(struct root *root, struct resoluto_err *err);
