/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "check.h"
#include "child.h"
#include "guest/program.h"

static struct strv list(const char *const *items)
{
	struct strv strv = { 0 };

	CHECK(strv_add_all(&strv, items) == 0);
	return strv;
}

static void sizes_are_the_kernels(void)
{
	CLEANUP(strv_done) struct strv argv = list((const char *const[]){ "echo", "hello", NULL });
	CLEANUP(strv_done) struct strv env = list((const char *const[]){ "PATH=/bin", NULL });
	struct program_size size = program_measure(&argv, &env);

	CHECK(size.total == 5 + 6 + 10 + 3 * sizeof(char *) && size.largest == 10);
}

struct expectation {
	const char *name;
	enum program_step step;
	int error;
	enum reason reason;
	int exit_code;
	const char *words;
};

static void failures_are_told_as_shells_do(void)
{
	static const struct expectation table[] = {
		{ "ls", STEP_FIND, ENOENT, REASON_NOT_FOUND, 127, "ls: no such program in PATH" },
		{ "/ls", STEP_FIND, ENOENT, REASON_NOT_FOUND, 127, "/ls: no such program" },
		{ "ls", STEP_EXEC, EACCES, REASON_NOT_EXECUTABLE, 126, "Permission denied" },
		{ "ls", STEP_EXEC, EISDIR, REASON_NOT_EXECUTABLE, 126, "is a directory" },
		{ "ls", STEP_EXEC, ENOEXEC, REASON_NOT_EXECUTABLE, 126, "not in a format" },
		{ "ls", STEP_EXEC, ENOENT, REASON_NOT_EXECUTABLE, 126, "interpreter" },
		{ "ls", STEP_EXEC, E2BIG, REASON_ARGUMENTS_TOO_LARGE, 126, "the longest string 3" },
		{ "ls", STEP_CWD, ENOENT, REASON_NOT_EXECUTABLE, 126, "/where" },
		{ "ls", STEP_CONFINE, EPERM, REASON_NOT_EXECUTABLE, 126, "rights" },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		CLEANUP(strv_done)
		struct strv argv = list((const char *const[]){ table[i].name, NULL });
		CLEANUP(strv_done) struct strv env = { 0 };
		struct program program = { .argv = &argv, .env = &env, .cwd = "/where" };
		struct program_failure failure = { table[i].step, table[i].error };
		char detail[PROGRAM_DETAIL];
		int exit_code;

		CHECK(program_explain(&program, &failure, &exit_code, detail) == table[i].reason);
		CHECK(exit_code == table[i].exit_code && strstr(detail, table[i].words));
	}
}

enum {
	NOBODY = 65534,
	EXIT_CODE = 7,
	STATUS_MAX = 8192,
	GIVE_UP_MS = 60 * 1000,
	LOOK_AGAIN_MS = 2
};

/* One start, by a thread that waits at the gate with its program. */
struct start {
	struct program program;
	struct program_child child;
	struct program_failure failure;
	int result;
};

/* Not every root may raise a limit. */
int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
	return 0;
}

static void *begin(void *ctx)
{
	struct start *start = ctx;

	start->result = program_empty_bounding_set(NULL);
	if (start->result == 0)
		start->result = program_start(&start->program, &start->child, &start->failure,
		                              NULL);
	return NULL;
}

static const struct {
	const char *file;
	bool is_opened_first, is_dropped;
	int result;
	enum program_step step;
} gates[] = {
	{ "/bin/sh", false, false, 0, STEP_NONE },
	{ "/bin/sh", true, false, 0, STEP_NONE },
	{ "/bin/sh", false, true, -ECHILD, STEP_DROPPED },
	{ "/bin/sh", true, true, -ECHILD, STEP_DROPPED },
	{ "/nowhere/sh", false, false, -ECHILD, STEP_FIND },
	{ "/etc/passwd", false, false, -ECHILD, STEP_EXEC },
};
static size_t current;

/* Whether the process of this status file is a child of ours that has become the program's user and sleeps. */
static bool waits(const char *path)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(0);
	char parent[32];

	snprintf(parent, sizeof(parent), "\nPPid:\t%d\n", (int) getpid());
	return read_file_at(AT_FDCWD, path, STATUS_MAX, &text, NULL) == 0 &&
	       strstr(text.data, parent) && strstr(text.data, "\nUid:\t65534\t") &&
	       strstr(text.data, "\nState:\tS");
}

static bool await_child_at_gate(void)
{
	const uint64_t give_up = clock_mono_ms() + GIVE_UP_MS;
	glob_t found = { 0 };
	bool is_there = false;

	while (!is_there && clock_mono_ms() < give_up) {
		(void) poll(NULL, 0, LOOK_AGAIN_MS);
		if (glob("/proc/[0-9]*/status", 0, NULL, &found) != 0)
			return false;
		for (size_t i = 0; i < found.gl_pathc && !is_there; i++)
			is_there = waits(found.gl_pathv[i]);
		globfree(&found);
	}
	return is_there;
}

static void decide(struct program_gate *gate)
{
	if (gates[current].is_dropped)
		program_gate_drop(gate);
	else
		program_gate_open(gate);
	program_gate_drop(gate); /* what is decided stays */
}

static void pass_current(void)
{
	const char *const words[] = { gates[current].file, "-c", "exit 7", NULL };
	CLEANUP(strv_done) struct strv argv = list(words);
	CLEANUP(strv_done) struct strv env = list((const char *const[]){ "PATH=/bin", NULL });
	const struct cgroup cgroup = CGROUP_NONE;
	const struct user user = { .uid = NOBODY, .gid = NOBODY };
	struct program_gate gate = { 0 };
	struct start start = { .program = { &argv, &env, "/", &user, &cgroup, false, &gate },
		               .child = PROGRAM_CHILD_NONE };
	bool stood = true, ended = false;
	pthread_t thread;
	int status = 0;

	if (gates[current].is_opened_first)
		decide(&gate);
	CHECK(pthread_create(&thread, NULL, begin, &start) == 0);
	if (!gates[current].is_opened_first) {
		stood = await_child_at_gate();
		ended = pthread_tryjoin_np(thread, NULL) == 0;
		decide(&gate); /* in any case: else it would stand there for ever */
	}
	CHECK(ended || pthread_join(thread, NULL) == 0);
	CHECK(stood && !ended);
	CHECK(start.result == gates[current].result);
	CHECK(start.result == 0 || start.failure.step == gates[current].step);
	if (start.result == 0)
		CHECK(waitpid(start.child.pid, &status, 0) == start.child.pid &&
		      WEXITSTATUS(status) == EXIT_CODE);
	/* Nothing is left, neither a process nor a descriptor. */
	CHECK(waitpid(-1, &status, WNOHANG) < 0 && errno == ECHILD);
	program_child_done(&start.child);
	CHECK(dup(0) == 3);
}

/* Fails where even root may not become somebody else, as in a user namespace of one user. */
static int become_nobody(void)
{
	return syscall(SYS_setgroups, 0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
	       prctl(PR_CAPBSET_DROP, 0, 0, 0, 0) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0;
}

static int run_current(void)
{
	check_state.failed = 0;
	if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0 || close_range(3, ~0U, 0) < 0)
		return 1;
	check_run(gates[current].file, pass_current);
	return check_state.failed ? 1 : 0;
}

static void a_gate_decides_once(void)
{
	if (in_child(become_nobody) != 0)
		SKIP("there are no rights to take away here");
	for (current = 0; current < sizeof(gates) / sizeof(gates[0]); current++)
		CHECK(in_child(run_current) == 0);
}

int main(void)
{
	RUN(sizes_are_the_kernels);
	RUN(failures_are_told_as_shells_do);
	RUN(a_gate_decides_once);
	return check_done();
}
