/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* child.h - a part of a test in a process of its own: as another user, under another limit. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* Run fn in a process of its own; what it returns is its exit code. */
static inline int in_child(int (*fn)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(fn());
	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
