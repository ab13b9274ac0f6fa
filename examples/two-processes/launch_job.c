/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch_job.c - start a program in a sandbox, print the id of the run, and leave.
 *
 *	launch_job WORKSPACE OUTPUT-PATTERN PROGRAM [ARGUMENT]...
 *
 * The run needs nobody from here on: follow_job finds it by its id.
 */
#include <stdio.h>
#include <string.h>

#include <resoluto/sandbox.h>

/* The program was never started: the result says why, as resoluto_sandbox_run() would. */
static int tell_why_not(const struct resoluto_result *result)
{
	fprintf(stderr, "launch_job: %s: %s\n", result->reason, result->detail);
	return result->exit_code ? result->exit_code : RESOLUTO_EXIT_SANDBOX;
}

int main(int argc, char **argv)
{
	const char *const outputs[] = { argc > 2 ? argv[2] : NULL, NULL };
	const char *const labels[] = { "example=two-processes", NULL };
	struct resoluto_run_options options = {
		.struct_size = sizeof(options),
		.argv = (const char *const *) argv + 3,
		.workspace = argv[1],
		.output_paths = outputs,
		.labels = labels,
		.deadline_ms = 10 * 60 * 1000, /* nobody may ever look at it again */
	};
	struct resoluto_result *result = NULL;
	struct resoluto_run *run = NULL;
	struct resoluto_err err = { 0 };
	int code = 0;

	if (argc < 4) {
		fprintf(stderr,
		        "usage: launch_job WORKSPACE OUTPUT-PATTERN PROGRAM [ARGUMENT]...\n");
		return RESOLUTO_EXIT_MISUSE;
	}
	if (resoluto_run_launch(&options, &run, &result, &err) < 0) {
		fprintf(stderr, "launch_job: %s: %s\n", err.text, strerror(-err.code));
		return RESOLUTO_EXIT_SANDBOX;
	}
	if (run)
		printf("%s\n", resoluto_run_id(run));
	else
		code = tell_why_not(result);
	resoluto_run_close(run); /* the run goes on */
	resoluto_result_free(result);
	return code;
}
