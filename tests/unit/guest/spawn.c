/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "guest/spawn.h"

struct seen {
	pid_t pid;
	int failure;
};

static void look(void *ctx)
{
	struct seen *seen = ctx;

	seen->pid = getpid();
	(void) close(STDIN_FILENO);
}

static void execute(void *ctx)
{
	struct seen *seen = ctx;
	char *argv[] = { "sh", "-c", "exit 7", NULL }, *env[] = { NULL };

	(void) execve("/bin/sh", argv, env);
	seen->failure = errno;
}

static void execute_nothing(void *ctx)
{
	struct seen *seen = ctx;
	char *argv[] = { "none", NULL }, *env[] = { NULL };

	(void) execve("/nowhere/none", argv, env);
	seen->failure = errno;
}

static int exit_code_of(pid_t pid)
{
	int status = -1;

	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void a_child_shares_memory_and_nothing_else(void)
{
	struct seen seen = { 0 };
	pid_t pid = spawn_child(-1, look, &seen, NULL);

	CHECK(exit_code_of(pid) == 127);
	CHECK(seen.pid == pid && pid != getpid());
	CHECK(close(dup(STDIN_FILENO)) == 0);
}

static void the_caller_waits_for_the_exec(void)
{
	struct seen seen = { 0 };

	CHECK(exit_code_of(spawn_child(-1, execute, &seen, NULL)) == 7 && seen.failure == 0);
	CHECK(exit_code_of(spawn_child(-1, execute_nothing, &seen, NULL)) == 127);
	CHECK(seen.failure == ENOENT);
}

static void what_is_no_cgroup_starts_nobody(void)
{
	struct resoluto_err err = { .code = 0 };
	struct seen seen = { 0 };
	int pipes[2];

	CHECK(pipe(pipes) == 0);
	CHECK(spawn_child(pipes[0], look, &seen, &err) == -EBADF && err.code == -EBADF);
	CHECK(seen.pid == 0 && waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

int main(void)
{
	RUN(a_child_shares_memory_and_nothing_else);
	RUN(the_caller_waits_for_the_exec);
	RUN(what_is_no_cgroup_starts_nobody);
	return check_done();
}
