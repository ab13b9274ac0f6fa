/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * root.h - the root of the program, with its user and workspace, built by a thread: on another processor, where
 * there is one, while the runner speaks with the host.
 *
 *	root_begin()        image and overlay, settings of the kernel, the image's users: what does not depend on the job (early.h)
 *	root_await_image()  so far
 *	root_give_job()     user and workspace
 *	root_await()        all of it is there; the thread looks ahead (prefetch.h).  Or it starts the program ahead, up to its
 *	                    gate: root_await_program()
 *
 *	root_let_go()       the thread ends, and what is left of /early
 *
 * The thread goes into the new root alone.  The process stays where it was, and enters with mount_enter_root().
 */

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

#include "guest/cgroup.h"
#include "guest/identity.h"
#include "guest/job.h"
#include "guest/program.h"
#include "guest/users.h"

struct root {
	/* After root_await(). */
	struct user user;
	int inbox_disk; /* owned; -1: the machine has none */
	bool has_scratch;
	int workspace;              /* owned */
	struct cgroup cgroup;       /* of the programs; open for the life of the process */
	struct program program;     /* what the job asks for */
	char boot_id[BOOT_ID_SIZE]; /* of this kernel; "" where it could not be read */
	struct strv
		env; /* of all programs: the job's, whose strings are borrowed, and what every program has */
	struct program_gate gate; /* where it starts ahead */

	/* The thread's. */
	const struct job *job;
	sem_t is_open, has_job, has_ended, has_started, may_end;
	int early_lock; /* owned; -1: there was no /early */
	int open_result, result, start_result;
	struct resoluto_err err, start_err;
	struct program_child child;
	struct program_failure failure;
};

/* Whether the program waits at its gate before anything else is done for it. */
bool root_starts_ahead(const struct job *job);
/* root must stay where it is, for the life of the process. */
int root_begin(struct root *root, struct resoluto_err *err);
/* Once.  The job must live as long as the process, and not change until root_await(), its argv, env and cwd never. */
void root_give_job(struct root *root, const struct job *job);
/* Once: the image can be entered.  Why not is root_await()'s to say. */
int root_await_image(struct root *root);
/* Once, with a job given.  A failure is one of the image, of the job or of the kernel. */
int root_await(struct root *root, struct resoluto_err *err);
/* Once, where it starts ahead and its gate was opened: as program_start(). */
int root_await_program(struct root *root, struct program_child *ret_child,
                       struct program_failure *ret_failure, struct resoluto_err *err);
/* At most once: when nobody waits for anything they would take the processor from. */
void root_let_go(struct root *root);
