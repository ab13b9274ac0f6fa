/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * program.h - start a program as the workload's user: own session and process group, own cgroup, no capability,
 * no way to gain any, nothing of ours but three pipes.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "guest/cgroup.h"
#include "guest/users.h"
#include "resoluto/err.h"
#include "wire/reason.h"

enum {
	PROGRAM_STRING_MAX = 128 *
	                     1024, /* bytes of one argument or variable, the 0 included (kernel) */
	PROGRAM_STACK_BYTES = 8 * 1024 * 1024, /* as everywhere */
	PROGRAM_STACK_LARGE =
		64 * 1024 *
		1024, /* for many arguments: the kernel takes a quarter, at most 6 MiB */
	PROGRAM_FILES_SOFT = 65536,
	PROGRAM_FILES_HARD = 1048576,
	PROGRAM_DETAIL = 512,    /* bytes, the 0 included */
	PROGRAM_PATH_MAX = 4096, /* of a path that is tried, the 0 included */
};

#define PROGRAM_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/*
 * Where a program waits that is started ahead of its time: as the user it will be, without a right, and with not one of its
 * instructions executed.  Starts as { 0 }.  Opened or dropped once, by another thread than the one that starts.
 */
struct program_gate {
	_Atomic uint32_t state;
};

void program_gate_open(struct program_gate *gate);
/* It will not be executed.  Nothing where it was opened. */
void program_gate_drop(struct program_gate *gate);

struct program {
	const struct strv *argv; /* not empty */
	const struct strv *env;
	const char *cwd;
	const struct user *user;
	const struct cgroup *cgroup;
	bool has_stdin;            /* else it reads an empty one */
	struct program_gate *gate; /* NULL: it is executed at once */
};

struct program_child {
	pid_t pid; /* also its process group */
	int stdin_fd, stdout_fd,
		stderr_fd; /* owned, not blocking; stdin_fd is -1 without has_stdin */
};

#define PROGRAM_CHILD_NONE \
	((struct program_child){ .pid = -1, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1 })

/* Which step of the start failed, and how. */
enum program_step { STEP_NONE, STEP_CONFINE, STEP_CWD, STEP_DROPPED, STEP_FIND, STEP_EXEC };

struct program_failure {
	enum program_step step;
	int error; /* an errno value */
};

/*
 * Once, by the thread that will start programs: none of them can have a capability then, nor can what the thread
 * itself would execute.  Not at the start of each, since it takes as many calls as there are capabilities.
 */
int program_empty_bounding_set(struct resoluto_err *err);
/*
 * Returns when it runs, or waits no more: the caller waits at the gate as well.
 *
 * 0: the program runs.  -ECHILD: it could not be executed, *ret_failure says why.  Other negative values: the
 * machine could not start anything.
 */
int program_start(const struct program *program, struct program_child *ret_child,
                  struct program_failure *ret_failure, struct resoluto_err *err);
void program_child_done(struct program_child *child); /* closes; does not kill */
/* Where it is looked for. */
const char *program_path(const struct program *program);

/* The next place where PATH has name, which has no slash; *path moves on.  False: that was all.  Pure. */
bool program_next_candidate(const char **path, const char *name, char ret[PROGRAM_PATH_MAX]);

/* How large arguments and environment are, as the kernel counts. */
struct program_size {
	uint64_t total,
		largest; /* bytes, with the 0 of each string; total also with the pointers */
};

struct program_size program_measure(const struct strv *argv, const struct strv *env);

/* What to tell about a failed start: the reason and the exit code that shells give.  Pure. */
enum reason program_explain(const struct program *program, const struct program_failure *failure,
                            int *ret_exit_code, char ret_detail[PROGRAM_DETAIL]);
