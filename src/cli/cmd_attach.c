/* SPDX-License-Identifier: Apache-2.0 */

/* cmd_attach.c - `attach` and `wait`: follow a run to its end, and end with its program's code. */

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/egress_report.h"
#include "cli/exit_code.h"
#include "cli/failure.h"
#include "cli/runs.h"
#include "cli/timings.h"

struct attach_args {
	struct option_count from;
	uint64_t max_output;
	bool json, quiet, timings;
};

#define FIELD(member) .offset = offsetof(struct attach_args, member)

#define RESULT_ROWS \
	{ OPTION_FLAG, .name = "json", FIELD(json), \
	  .help = "print the result as JSON, as run --json does" }, \
		{ OPTION_BYTES, .name = "max-output", .value = "SIZE", FIELD(max_output), \
		  .help = "how much of each stream is kept, its head and its tail; the middle of " \
		          "more is left out and counted (default: all of it, with --json 1Mi)" }, \
		{ OPTION_FLAG, .name = "timings", FIELD(timings), \
		  .help = "print how long each step took to standard error" }, \
		{ OPTION_FLAG, .name = "quiet", FIELD(quiet), .help = "no remarks, only errors" }, \
	{ \
		OPTION_HELP, 'h', .name = "help", .help = "print this text" \
	}

static const struct option attach_options[] = {
	{ OPTION_COUNT, .name = "from", .value = "SEQ", FIELD(from),
	  .help = "begin with this piece of output; logs --json numbers them (default: all of "
	          "it)" },
	RESULT_ROWS,
	{ .kind = OPTION_END },
};

static const struct option wait_options[] = {
	RESULT_ROWS,
	{ .kind = OPTION_END },
};

/* Of type resoluto_stream_fn. */
static int show_output(void *ctx, bool is_stderr, const char *bytes, size_t len)
{
	struct reader *reader = ctx;

	return limit_write(&reader->limit, is_stderr, bytes, len);
}

/* It has ended. */
static int report(struct reader *reader, const struct attach_args *args,
                  const struct resoluto_result *result)
{
	const struct exit_facts facts = { .result = result };

	if (args->json)
		(void) output_write_result(&reader->output, result);
	failure_print_result(stderr, result, 0);
	failure_print_warnings(stderr, result, !args->quiet && isatty(STDERR_FILENO));
	if (!args->quiet)
		egress_report_print(stderr, result->egress_json);
	if (args->timings) {
		CLEANUP(text_done) struct text text = TEXT_INIT;

		timings_add(&text, &result->timings_ms);
		fputs(text_string(&text), stderr);
	}
	return exit_code_of(&facts);
}

/* We go, it stays. */
static int leave(const struct reader *reader, const struct attach_args *args,
                 const struct invocation *invocation, const struct resoluto_run *run)
{
	if (!args->quiet && isatty(STDERR_FILENO) && reader->output.code == 0)
		fprintf(stderr, "%s: run %s goes on; attach %s --from %" PRIu64 " reads on\n",
		        PROGRAM_NAME, resoluto_run_id(run), resoluto_run_id(run),
		        resoluto_run_cursor(run));
	return reader_code(reader, invocation);
}

static int follow(const struct invocation *invocation, const struct attach_args *args,
                  struct resoluto_follow_options *options, struct resoluto_run *run)
{
	CLEANUP(reader_close) struct reader reader;
	struct resoluto_result *result = NULL;
	struct resoluto_err err = { 0 };
	int code, r;

	if (reader_open(&reader, args->json ? 0 : args->max_output, &err) < 0)
		return command_failed(invocation, &err);
	options->struct_size = sizeof(*options);
	options->max_output = (size_t) args->max_output;
	options->ctx = &reader;
	options->stop_fd = reader.signals.wake_fd;
	r = resoluto_run_drive(run, options, &result, &err);
	(void) limit_end(&reader.limit);
	if (r == 1 || r == -ECANCELED)
		return leave(&reader, args, invocation, run);
	if (r < 0)
		return runs_failed(invocation, &err);
	code = report(&reader, args, result);
	resoluto_result_free(result);
	return reader.output.code < 0 ? reader_code(&reader, invocation) : code;
}

static int run_attach(const struct invocation *invocation, void *args)
{
	const struct attach_args *given = args;
	struct resoluto_follow_options options = { .from_seq = given->from.value };
	CLEANUP(runs_close) struct resoluto_run *run = NULL;
	int code;

	if (!given->json)
		options.stream = show_output;
	run = runs_open(invocation, invocation->words.items[0], &code);
	return run ? follow(invocation, given, &options, run) : code;
}

static int run_wait(const struct invocation *invocation, void *args)
{
	const struct attach_args *given = args;
	struct resoluto_follow_options options = { 0 };
	CLEANUP(runs_close) struct resoluto_run *run = NULL;
	struct resoluto_err err = { 0 };
	int code;

	if (given->max_output && !given->json) {
		(void) resoluto_fail(
			&err, -EINVAL,
			"--max-output without --json: wait prints no output; attach does");
		return command_misuse(invocation, &err);
	}
	/* Without --json nothing of the output is wanted, so nothing of it is read. */
	if (!given->json)
		options.from_seq = RESOLUTO_SEQ_END;
	run = runs_open(invocation, invocation->words.items[0], &code);
	return run ? follow(invocation, given, &options, run) : code;
}

const struct command command_attach = {
	.name = "attach",
	.summary = "Follow a run: its output so far, then as it comes",
	.synopsis = "[OPTION]... ID",
	.description =
		"Works for every run of this user that is there: detached, in the foreground of "
		"another terminal, or ended and kept. Any number may attach at once. Ctrl-C leaves "
		"the run alone; see kill. The exit status is that of run: the program's own.",
	.options = attach_options,
	.words_min = 1,
	.words_max = 1,
	.args_size = sizeof(struct attach_args),
	.run = run_attach,
};

const struct command command_wait = {
	.name = "wait",
	.summary = "Wait for the end of a run",
	.synopsis = "[OPTION]... ID",
	.description = "The exit status is that of run: the program's own. Its output is not "
		       "printed, but for --json.",
	.options = wait_options,
	.words_min = 1,
	.words_max = 1,
	.args_size = sizeof(struct attach_args),
	.run = run_wait,
};
