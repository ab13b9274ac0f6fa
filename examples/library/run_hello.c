/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_hello.c - run a program in a sandbox from a C program.
 *
 *	run_hello [WORKSPACE PROGRAM [ARGUMENT]...]
 *
 * Shows the program's output as it comes, then what is known about the run, and ends with the
 * program's exit code.
 */
#include <stdio.h>
#include <string.h>

#include <resoluto/sandbox.h>
#include <resoluto/version.h>

static int show(void *ctx, bool is_stderr, const char *bytes, size_t len)
{
	FILE *to = is_stderr ? stderr : stdout;

	(void) ctx;
	if (fwrite(bytes, 1, len, to) < len || fflush(to) != 0)
		return -1; /* nobody reads: stop the run */
	return 0;
}

static void tell(const struct resoluto_result *result)
{
	fprintf(stderr, "run %s: %s, exit code %d, %llu ms\n", result->run_id,
	        resoluto_disposition_name(result->disposition), result->exit_code,
	        (unsigned long long) result->timings_ms.total);
	fprintf(stderr, "isolation: %s\n", result->isolation_json);
	if (result->reason[0])
		fprintf(stderr, "%s: %s\n", result->reason, result->detail);
	for (char **artifact = result->artifacts; *artifact; artifact++)
		fprintf(stderr, "came back: %s\n", *artifact);
}

int main(int argc, char **argv)
{
	static const char *const hello[] = { "python3", "-c", "print('hello from the sandbox')",
		                             NULL };
	struct resoluto_run_options options = {
		.struct_size = sizeof(options),
		.argv = argc > 2 ? (const char *const *) argv + 2 : hello,
		.workspace = argc > 2 ? argv[1] : NULL,
		.stream = show,
	};
	struct resoluto_result *result = NULL;
	struct resoluto_err err = { 0 };
	int code = RESOLUTO_EXIT_SANDBOX;

	if (resoluto_sandbox_run(&options, &result, &err) < 0) {
		fprintf(stderr, "resoluto-sandbox %s: %s: %s\n", resoluto_version(), err.text,
		        strerror(-err.code));
	} else {
		tell(result);
		code = result->exit_code;
	}
	resoluto_result_free(result);
	return code;
}
