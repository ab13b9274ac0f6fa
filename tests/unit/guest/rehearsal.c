/* SPDX-License-Identifier: Apache-2.0 */
/* rehearsal.c - the samples are such as PID 1 gets, and nothing of a rehearsal stays. */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "check.h"
#include "child.h"
#include "guest/job.h"
#include "guest/rehearsal.h"

enum { STEPS = 8 };

static void the_job_is_one_that_is_taken(void)
{
	struct resoluto_err err = { .code = 0 };
	struct job job;

	CHECK(job_parse(rehearsal_job, strlen(rehearsal_job), &job, &err) == 0);
	CHECK(job.argv.count == 1 && job.drain_timeout_ms == JOB_DRAIN_MS && job.redacts_patterns);
	CHECK_STR(job.argv.items[0], "/bin/true");
	CHECK_STR(job.run_id, "rehearsal");
	CHECK_STR(job.workspace_dir, "/workspace");
	job_done(&job);
}

static int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		(void) closedir(dir);
	return count;
}

/* In a network of its own: nobody is asked for a connection.  77: this user may have none. */
static int rehearse_all(void)
{
	struct rehearsal rehearsal = { .cgroup_dir = -1 };
	const int fds = count_entries("/proc/self/fd");
	int steps = 0;

	if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return 77;
	while (rehearsal_step(&rehearsal))
		steps++;
	if (steps != STEPS || rehearsal_step(&rehearsal))
		return 1;
	if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD)
		return 2;
	if (count_entries("/proc/self/fd") != fds)
		return 3;
	/* With "." and "..". */
	return count_entries("/proc/self/task") == 3 ? 0 : 4;
}

static void nothing_of_it_stays(void)
{
	const int r = in_child(rehearse_all);

	if (geteuid() != 0)
		printf("# not root: the program ends before its gate\n");
	if (r == 77)
		printf("# this user may not make a network of its own\n");
	else
		CHECK(r == 0);
}

int main(void)
{
	RUN(the_job_is_one_that_is_taken);
	RUN(nothing_of_it_stays);
	return check_done();
}
