/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "guest/image_path.h"
#include "guest/program.h"
#include "guest/spawn.h"

enum {
	LARGE_ARGUMENTS = 1024 * 1024, /* bytes from which on the stack limit is raised */
	PIPE_BYTES = 256 * 1024,       /* of each pipe of output */
	CAP_FIRST_WORD = 31,           /* every kernel has at least so many capabilities */
};

struct program_size program_measure(const struct strv *argv, const struct strv *env)
{
	const struct strv *lists[] = { argv, env };
	struct program_size size = { 0 };

	for (int list = 0; list < 2; list++) {
		for (size_t i = 0; i < lists[list]->count; i++) {
			uint64_t len = strlen(lists[list]->items[i]) + 1;

			size.total += len + sizeof(char *);
			if (len > size.largest)
				size.largest = len;
		}
	}
	return size;
}

static const char *name_of_error(int error)
{
	const char *text = strerrordesc_np(error);

	return text ? text : "unknown error";
}

static enum reason explain_exec(const struct program *program, int error, char *detail)
{
	const char *name = program->argv->items[0];
	struct program_size size;

	switch (error) {
	case E2BIG:
		size = program_measure(program->argv, program->env);
		snprintf(detail, PROGRAM_DETAIL,
		         "arguments and environment have %llu bytes, the longest string %llu: "
		         "Linux takes %d for one "
		         "string and some 6 MiB in all",
		         (unsigned long long) size.total, (unsigned long long) size.largest,
		         PROGRAM_STRING_MAX);
		return REASON_ARGUMENTS_TOO_LARGE;
	case ENOEXEC:
		snprintf(detail, PROGRAM_DETAIL,
		         "%.200s: not in a format this kernel executes (a script needs a #! line, "
		         "a binary must be for "
		         "this processor)",
		         name);
		return REASON_NOT_EXECUTABLE;
	case ENOENT:
		snprintf(detail, PROGRAM_DETAIL,
		         "%.200s: is there, but its interpreter or loader is not", name);
		return REASON_NOT_EXECUTABLE;
	case EISDIR:
		snprintf(detail, PROGRAM_DETAIL, "%.200s: is a directory", name);
		return REASON_NOT_EXECUTABLE;
	default:
		snprintf(detail, PROGRAM_DETAIL, "%.200s: %s", name, name_of_error(error));
		return REASON_NOT_EXECUTABLE;
	}
}

enum reason program_explain(const struct program *program, const struct program_failure *failure,
                            int *ret_exit_code, char ret_detail[PROGRAM_DETAIL])
{
	*ret_exit_code = 126;
	switch (failure->step) {
	case STEP_FIND:
		*ret_exit_code = 127;
		snprintf(ret_detail, PROGRAM_DETAIL, "%.200s: no such program%s",
		         program->argv->items[0],
		         strchr(program->argv->items[0], '/') ? "" : " in PATH");
		return REASON_NOT_FOUND;
	case STEP_CWD:
		snprintf(ret_detail, PROGRAM_DETAIL, "enter the working directory %.200s: %s",
		         program->cwd, name_of_error(failure->error));
		return REASON_NOT_EXECUTABLE;
	case STEP_CONFINE:
		snprintf(ret_detail, PROGRAM_DETAIL, "take the program's rights away: %s",
		         name_of_error(failure->error));
		return REASON_NOT_EXECUTABLE;
	default:
		return explain_exec(program, failure->error, ret_detail);
	}
}

/* An empty part of PATH is the working directory. */
bool program_next_candidate(const char **path, const char *name, char ret[PROGRAM_PATH_MAX])
{
	while (*path && *name) {
		size_t len = strcspn(*path, ":");
		const char *part = len ? *path : ".";
		int n = snprintf(ret, PROGRAM_PATH_MAX, "%.*s/%s", len ? (int) len : 1, part, name);

		*path = (*path)[len] ? *path + len + 1 : NULL;
		if (n < PROGRAM_PATH_MAX)
			return true;
	}
	return false;
}

/* --- the gate --- */

enum { GATE_SHUT, GATE_OPEN, GATE_DROPPED };

static void leave_shut(struct program_gate *gate, uint32_t state)
{
	uint32_t shut = GATE_SHUT;

	if (atomic_compare_exchange_strong(&gate->state, &shut, state))
		(void) syscall(SYS_futex, &gate->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void program_gate_open(struct program_gate *gate)
{
	leave_shut(gate, GATE_OPEN);
}

void program_gate_drop(struct program_gate *gate)
{
	leave_shut(gate, GATE_DROPPED);
}

/* Whether to go on. */
static bool pass_gate(struct program_gate *gate)
{
	while (gate && atomic_load(&gate->state) == GATE_SHUT)
		(void) syscall(SYS_futex, &gate->state, FUTEX_WAIT_PRIVATE, GATE_SHUT, NULL, NULL,
		               0);
	return !gate || atomic_load(&gate->state) == GATE_OPEN;
}

/* --- in the child --- */

static int clear_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

static int set_limits(const struct program *program)
{
	struct program_size size = program_measure(program->argv, program->env);
	struct rlimit stack = { PROGRAM_STACK_BYTES, RLIM_INFINITY };
	const struct rlimit files = { PROGRAM_FILES_SOFT, PROGRAM_FILES_HARD };
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };

	/* A quarter of the stack limit is what arguments may take. */
	if (size.total > LARGE_ARGUMENTS)
		stack.rlim_cur = PROGRAM_STACK_LARGE;
	/* Processes are limited by the cgroup; the kernel's own default is half of what fits into the memory. */
	if (setrlimit(RLIMIT_STACK, &stack) < 0 || setrlimit(RLIMIT_NOFILE, &files) < 0 ||
	    setrlimit(RLIMIT_NPROC, &unlimited) < 0)
		return -errno;
	return 0;
}

static int become_user(const struct user *user)
{
	int r;

	/* It is the starting thread's, and must be empty by now. */
	if (prctl(PR_CAPBSET_READ, 0, 0, 0, 0) != 0)
		return -EPERM;
	/* Not the C library's calls, which change all threads of a process: this one's memory is the runner's. */
	if (syscall(SYS_setgroups, 0, NULL) < 0 ||
	    syscall(SYS_setresgid, user->gid, user->gid, user->gid) < 0 ||
	    syscall(SYS_setresuid, user->uid, user->uid, user->uid) < 0)
		return -errno;
	r = clear_capabilities();
	if (r < 0)
		return r;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

static int confine(const struct program *program)
{
	sigset_t none;
	int r;

	if (setsid() < 0)
		return -errno;
	r = set_limits(program);
	if (r == 0)
		r = become_user(program->user);
	if (r < 0)
		return r;
	(void) umask(022);
	sigemptyset(&none);
	if (signal(SIGPIPE, SIG_DFL) == SIG_ERR || sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return -errno;
	return 0;
}

/* Descriptors 0, 1, 2 from the three given; nothing else of the runner is kept, and the wait at a gate may be long. */
static int take_descriptors(const int fds[3])
{
	int high[3];

	for (int i = 0; i < 3; i++) {
		high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 10);
		if (high[i] < 0)
			return -errno;
	}
	for (int i = 0; i < 3; i++) {
		if (dup2(high[i], i) < 0)
			return -errno;
	}
	return syscall(SYS_close_range, 3, ~0U, 0) < 0 ? -errno : 0;
}

/* Execute one candidate; returns why that did not work. */
static struct program_failure try_exec(const char *path, const struct program *program)
{
	struct program_failure failure;
	struct stat st;

	(void) execve(path, program->argv->items, program->env->items);
	failure = (struct program_failure){ STEP_EXEC, errno };
	if (failure.error == ENOENT || failure.error == ENOTDIR || failure.error == ENAMETOOLONG) {
		/* The program is missing, or what it names in its head. */
		if (stat(path, &st) < 0)
			failure.step = STEP_FIND;
	} else if (failure.error == EACCES && stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		failure.error = EISDIR;
	}
	return failure;
}

const char *program_path(const struct program *program)
{
	for (size_t i = 0; i < program->env->count; i++) {
		if (strncmp(program->env->items[i], "PATH=", 5) == 0)
			return program->env->items[i] + 5;
	}
	return PROGRAM_PATH;
}

/* Like a shell: the first that can be executed; one that may not be is remembered, should none be better. */
static struct program_failure search_and_exec(const struct program *program)
{
	const char *name = program->argv->items[0], *path = program_path(program);
	struct program_failure best = { STEP_FIND, ENOENT };
	char candidate[PROGRAM_PATH_MAX];

	if (strchr(name, '/'))
		return try_exec(name, program);
	while (program_next_candidate(&path, name, candidate)) {
		struct program_failure failure = try_exec(candidate, program);

		if (failure.step == STEP_EXEC && failure.error != EACCES && failure.error != EISDIR)
			return failure;
		if (failure.step == STEP_EXEC)
			best = failure;
	}
	return best;
}

struct start {
	const struct program *program;
	const int *fds;                 /* three */
	struct program_failure failure; /* out; none while the program runs */
};

static void run_child(void *ctx)
{
	struct start *start = ctx;
	enum program_step step = STEP_CONFINE;
	int r = take_descriptors(start->fds);

	/* As root, as container runtimes do: many an image says /root, which its user may not enter.  There the program may do
	 * as little as its user may. */
	if (r == 0) {
		r = image_enter(start->program->cwd);
		step = r < 0 ? STEP_CWD : step;
	}
	if (r == 0)
		r = confine(start->program);
	if (r < 0)
		start->failure = (struct program_failure){ step, -r };
	else if (!pass_gate(start->program->gate))
		start->failure = (struct program_failure){ STEP_DROPPED, ECANCELED };
	else
		start->failure = search_and_exec(start->program);
}

/* --- in the runner --- */

struct pipes {
	int child[3]; /* the program's ends */
	int ours[3];
};

static void close_pipes(struct pipes *pipes)
{
	for (int i = 0; i < 3; i++) {
		fd_close(&pipes->child[i]);
		fd_close(&pipes->ours[i]);
	}
}

static int open_output_pipe(struct pipes *pipes, int i)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	pipes->ours[i] = pair[0];
	pipes->child[i] = pair[1];
	/* Larger than usual, so that a burst needs fewer turns; not a fault if it stays small. */
	(void) fcntl(pair[0], F_SETPIPE_SZ, PIPE_BYTES);
	return fd_set_nonblock(pair[0]);
}

static int open_stdin(struct pipes *pipes, bool has_stdin)
{
	int pair[2];

	if (!has_stdin) {
		pipes->child[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		return pipes->child[0] < 0 ? -errno : 0;
	}
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	pipes->child[0] = pair[0];
	pipes->ours[0] = pair[1];
	return fd_set_nonblock(pair[1]);
}

static int open_pipes(struct pipes *pipes, bool has_stdin)
{
	int r = open_stdin(pipes, has_stdin);

	if (r == 0)
		r = open_output_pipe(pipes, 1);
	return r < 0 ? r : open_output_pipe(pipes, 2);
}

int program_empty_bounding_set(struct resoluto_err *err)
{
	for (int cap = 0;; cap++) {
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
			continue;
		/* Behind the last one that this kernel knows. */
		if (errno == EINVAL && cap > CAP_FIRST_WORD)
			return 0;
		return resoluto_fail(err, -errno, "drop capability %d", cap);
	}
}

int program_start(const struct program *program, struct program_child *ret_child,
                  struct program_failure *ret_failure, struct resoluto_err *err)
{
	CLEANUP(close_pipes) struct pipes pipes = { { -1, -1, -1 }, { -1, -1, -1 } };
	struct start start = { .program = program, .fds = pipes.child };
	pid_t pid;
	int r = open_pipes(&pipes, program->has_stdin);

	if (r < 0)
		return resoluto_fail(err, r, "make pipes for %.100s", program->argv->items[0]);
	pid = spawn_child(program->cgroup->dir, run_child, &start, err);
	if (pid < 0)
		return pid;
	if (start.failure.step != STEP_NONE) {
		(void) waitpid(pid, NULL, 0);
		*ret_failure = start.failure;
		return -ECHILD;
	}
	*ret_child = (struct program_child){
		.pid = pid,
		.stdin_fd = fd_take(&pipes.ours[0]),
		.stdout_fd = fd_take(&pipes.ours[1]),
		.stderr_fd = fd_take(&pipes.ours[2]),
	};
	return 0;
}

void program_child_done(struct program_child *child)
{
	fd_close(&child->stdin_fd);
	fd_close(&child->stdout_fd);
	fd_close(&child->stderr_fd);
}
