/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * proc.h - start a program with exactly the descriptors it needs, and wait for it by pidfd.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "resoluto/err.h"

struct proc_fd {
	int from; /* ours */
	int to;   /* the number it has in the program */
};

struct proc_options {
	const char *const *argv; /* argv[0] is looked up in PATH unless it holds a '/' */
	const char *const *env;  /* NULL: ours */
	const struct proc_fd
		*fds; /* all others are closed; 0, 1 and 2 that are not named are /dev/null */
	size_t fd_count;
	int cwd_fd;       /* 0 or -1: ours */
	bool new_session; /* setsid */
	/* Its parent is a process that ends at once, so that it is init's to reap however long we live. */
	bool is_orphan;
	/* Runs in the child right before exec; what it returns < 0 is the error of proc_spawn. */
	int (*prepare)(void *ctx);
	void *ctx;
};

struct proc {
	pid_t pid;
	int pidfd;      /* owned; readable once the process has ended */
	bool is_orphan; /* how it ended is not ours to know: a wait status of 0 */
};

#define PROC_NONE ((struct proc){ .pid = -1, .pidfd = -1 })

/* Returns after the exec has worked; a failure of exec or prepare is told as ours (-ENOENT: no such program).
 * -EAGAIN: the kernel gives this user or cgroup no more processes. */
int proc_spawn(const struct proc_options *options, struct proc *ret_proc, struct resoluto_err *err);
/* Wait up to timeout_ms (-1: for ever).  0 and the wait status, -ETIMEDOUT, or -ESRCH: no process. */
int proc_wait(struct proc *proc, int timeout_ms, int *ret_status);
int proc_kill(struct proc *proc, int signo);
/* Kill if still running, reap, close. */
void proc_done(struct proc *proc);
/* Run to its end with stdout and stderr caught (each bounded by its buf, what does not fit is
 * dropped; NULL: thrown away); returns the exit code, 128 + signal, or a negative errno value if it
 * could not be started.  What children that it leaves behind still write is not waited for. */
int proc_run(const char *const *argv, struct buf *ret_stdout, struct buf *ret_stderr,
             struct resoluto_err *err);
/* When pid started, clock ticks since boot, from /proc/PID/stat; with pid it names a process for good. */
int proc_start_time(pid_t pid, uint64_t *ret_ticks);
