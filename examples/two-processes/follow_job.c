/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow_job.c - show the output of a run that launch_job has started, fetch its outputs, remove it.
 *
 *	follow_job ID DIRECTORY CURSOR-FILE
 *
 * Kill it and start it again, as often as you like: the cursor file says how far it had come, and each
 * piece of output is shown once.  It ends with the program's exit code.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <resoluto/sandbox.h>

struct follower {
	const char *cursor_file;
};

static uint64_t load_cursor(const char *path)
{
	FILE *file = fopen(path, "r");
	uint64_t cursor = 0;

	if (file && fscanf(file, "%" SCNu64, &cursor) != 1)
		cursor = 0;
	if (file)
		fclose(file);
	return cursor;
}

/* In place of the old one at once, so that there is always a whole one. */
static int save_cursor(const char *path, uint64_t cursor)
{
	char next[4096];
	FILE *file;

	snprintf(next, sizeof(next), "%s.next", path);
	file = fopen(next, "w");
	if (!file)
		return -1;
	fprintf(file, "%" PRIu64 "\n", cursor);
	return fclose(file) == 0 ? rename(next, path) : -1;
}

/* One piece of output: shown, then noted. */
static int show(void *ctx, const struct resoluto_event *event)
{
	const struct follower *follower = ctx;
	FILE *to = event->is_stderr ? stderr : stdout;

	if (!event->is_output)
		return 0;
	if (fwrite(event->bytes, 1, event->len, to) < event->len || fflush(to) != 0)
		return -1; /* nobody reads: leave, the run goes on */
	return save_cursor(follower->cursor_file, event->seq + 1);
}

static int fetch(struct resoluto_run *run, const char *directory)
{
	struct resoluto_outputs outputs = { 0 };
	struct resoluto_err err = { 0 };

	if (resoluto_run_collect(run, directory, &outputs, &err) < 0) {
		fprintf(stderr, "follow_job: %s\n", err.text);
		return -1;
	}
	for (char **artifact = outputs.artifacts; *artifact; artifact++)
		fprintf(stderr, "came back: %s\n", *artifact);
	resoluto_outputs_done(&outputs);
	return 0;
}

static int follow(struct resoluto_run *run, const char *directory, struct follower *follower)
{
	const struct resoluto_follow_options options = {
		.struct_size = sizeof(options),
		.from_seq = load_cursor(follower->cursor_file),
		.on_event = show,
		.ctx = follower,
	};
	struct resoluto_result *result = NULL;
	struct resoluto_err err = { 0 };
	int code;

	if (resoluto_run_drive(run, &options, &result, &err) < 0) {
		fprintf(stderr, "follow_job: %s\n", err.text);
		return RESOLUTO_EXIT_SANDBOX;
	}
	if (result->reason[0])
		fprintf(stderr, "%s: %s\n", result->reason, result->detail);
	code = result->exit_code;
	resoluto_result_free(result);
	if (fetch(run, directory) < 0 || resoluto_run_destroy(run, &err) < 0)
		return RESOLUTO_EXIT_SANDBOX;
	remove(follower->cursor_file);
	return code;
}

int main(int argc, char **argv)
{
	struct resoluto_attach_options options = { .struct_size = sizeof(options) };
	struct follower follower;
	struct resoluto_run *run = NULL;
	struct resoluto_err err = { 0 };
	int code;

	if (argc != 4) {
		fprintf(stderr, "usage: follow_job ID DIRECTORY CURSOR-FILE\n");
		return RESOLUTO_EXIT_MISUSE;
	}
	options.id = argv[1];
	follower.cursor_file = argv[3];
	if (resoluto_run_attach(&options, &run, &err) < 0) {
		fprintf(stderr, "follow_job: %s\n", err.text);
		return RESOLUTO_EXIT_SANDBOX;
	}
	code = follow(run, argv[2], &follower);
	resoluto_run_close(run);
	return code;
}
