/* SPDX-License-Identifier: Apache-2.0 */

/* cmd_run.c - `run`: from the command line to the library, and from the result to the exit code. */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/egress_report.h"
#include "cli/exit_code.h"
#include "cli/failure.h"
#include "cli/limit.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/run_options.h"
#include "cli/signals.h"
#include "cli/timings.h"

/* What lives while the sandbox does. */
struct session {
	const struct invocation *invocation;
	const struct run_args *args;
	struct signals signals;
	struct output output;
	struct limit limit; /* on output */
	struct progress progress;
	bool has_remarks; /* a person reads our standard error: say more than errors */
};

/* Of type resoluto_stream_fn. */
static int show_output(void *ctx, bool is_stderr, const char *bytes, size_t len)
{
	struct session *session = ctx;

	progress_erase(&session->progress);
	session->progress.style = PROGRESS_NONE; /* the line is the program's from now on */
	return limit_write(&session->limit, is_stderr, bytes, len);
}

/* Of type resoluto_progress_fn. */
static void show_progress(void *ctx, const char *step, uint64_t done, uint64_t total)
{
	struct session *session = ctx;

	progress_show(&session->progress, step, done, total);
}

static int session_open(struct session *session, struct resoluto_err *err)
{
	int r = signals_open(&session->signals, err);

	if (r < 0)
		return r;
	output_init(&session->output, session->signals.wake_fd);
	limit_init(&session->limit, &session->output, session->args->max_output);
	progress_init(&session->progress, session->args->quiet, false);
	session->has_remarks = !session->args->quiet && isatty(STDERR_FILENO);
	return 0;
}

static void session_close(struct session *session)
{
	limit_done(&session->limit);
	signals_close(&session->signals);
}

/* What a person at a terminal wants to know beside the output. */
static void print_remarks(const struct resoluto_result *result, const struct run_args *args)
{
	if (result->staging.left_out > 0)
		fprintf(stderr, "%s: not copied to the sandbox: %s\n", PROGRAM_NAME,
		        result->staging.why);
	if (args->json && result->output_dropped_bytes > 0)
		fprintf(stderr, "%s: left out of the output: %llu bytes (--max-output)\n",
		        PROGRAM_NAME, (unsigned long long) result->output_dropped_bytes);
	if (result->redactions > 0)
		fprintf(stderr, "%s: credentials taken out of the output: %llu\n", PROGRAM_NAME,
		        (unsigned long long) result->redactions);
	if (args->keep && !args->detach)
		fprintf(stderr, "%s: run %s was kept; see attach, collect and rm\n", PROGRAM_NAME,
		        result->run_id);
}

static void print_timings(const struct resoluto_result *result)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;

	timings_add(&text, &result->timings_ms);
	fputs(text_string(&text), stderr);
}

static void print_output_failure(const struct session *session)
{
	struct resoluto_err err = { 0 };

	/* A reader that has gone, or a request to stop: the exit code says it. */
	if (session->output.code == -EPIPE || session->output.code == -ECANCELED)
		return;
	(void) resoluto_fail(&err, session->output.code,
	                     "write the program's output; the run was stopped");
	failure_print(stderr, session->invocation->path, &err);
}

static void report(struct session *session, const struct resoluto_result *result)
{
	if (session->args->json)
		(void) output_write_result(&session->output, result);
	if (session->output.code < 0)
		print_output_failure(session);
	else
		failure_print_result(stderr, result, signals_last_stop());
	if (session->output.code == 0 && !session->args->workspace)
		failure_print_no_workspace(stderr, result, session->invocation->words.program[0]);
	failure_print_warnings(stderr, result, session->has_remarks);
	if (!session->args->quiet)
		egress_report_print(stderr, result->egress_json);
	if (session->has_remarks)
		print_remarks(result, session->args);
	if (session->args->timings)
		print_timings(result);
}

/* It could not be claimed: our words, and with --json the result that says that it was refused. */
static void report_unclaimed(struct session *session, const struct resoluto_result *result,
                             const struct resoluto_err *err)
{
	if (session->args->json && result)
		(void) output_write_result(&session->output, result);
	if (session->output.code < 0)
		print_output_failure(session);
	failure_print(stderr, session->invocation->path, err);
}

/* Our terminal has gone, the run has not.  Whoever reads our standard error elsewhere is told. */
static int report_left(const struct session *session, const struct resoluto_result *result)
{
	if (!session->args->quiet)
		fprintf(stderr, "%s: the terminal hung up; run %s goes on: attach %s\n",
		        PROGRAM_NAME, result->run_id, result->run_id);
	return RESOLUTO_EXIT_SIGNAL + SIGHUP;
}

static int print_id(struct session *session, const char *id)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;

	text_addf(&text, session->args->json ? "{\"schema\":1,\"run_id\":\"%s\"}\n" : "%s\n", id);
	return output_write(&session->output, false, text_string(&text),
	                    strlen(text_string(&text)));
}

/* The library's part of a launch is over; what remains is to say which run it is. */
static int run_detached(struct session *session, struct resoluto_run_options *options)
{
	struct resoluto_result *result = NULL;
	struct resoluto_run *run = NULL;
	struct resoluto_err err = { 0 };
	struct exit_facts facts = { 0 };
	int code;

	facts.run_code = resoluto_run_launch(options, &run, &result, &err);
	progress_erase(&session->progress);
	if (run && print_id(session, resoluto_run_id(run)) < 0)
		print_output_failure(session);
	else if (run && session->has_remarks)
		print_remarks(result, session->args);
	else if (facts.run_code == 0 && !run)
		report(session, result);
	else if (facts.run_code < 0 && facts.run_code != -ECANCELED)
		report_unclaimed(session, result, &err);
	facts.result = result;
	facts.output_code = session->output.code;
	facts.stop_signal = signals_last_stop();
	code = run && facts.output_code == 0 ? 0 : exit_code_of(&facts);
	resoluto_run_close(run);
	resoluto_result_free(result);
	return code;
}

static int run_session(struct session *session, struct resoluto_run_options *options)
{
	struct resoluto_result *result = NULL;
	struct resoluto_err err = { 0 };
	struct exit_facts facts = { 0 };
	int code;

	options->progress = show_progress;
	options->ctx = session;
	options->signal_fd = session->signals.forward_fd;
	if (session->args->detach)
		return run_detached(session, options);
	options->stream = session->args->json ? NULL : show_output;
	facts.run_code = resoluto_sandbox_run(options, &result, &err);
	progress_erase(&session->progress);

	if (facts.run_code == 1) {
		code = report_left(session, result);
		resoluto_result_free(result);
		return code;
	}
	if (!session->args->json)
		(void) limit_end(&session->limit);
	if (facts.run_code == 0)
		report(session, result);
	else if (session->output.code < 0)
		print_output_failure(session);
	else if (facts.run_code != -ECANCELED)
		report_unclaimed(session, result, &err);
	facts.result = result;
	facts.output_code = session->output.code;
	facts.stop_signal = signals_last_stop();
	code = exit_code_of(&facts);
	resoluto_result_free(result);
	return code;
}

static int run(const struct invocation *invocation, void *args)
{
	CLEANUP(run_request_done) struct run_request request = { 0 };
	struct session session = {
		.invocation = invocation,
		.args = args,
		.signals = SIGNALS_NONE,
	};
	struct resoluto_err err = { 0 };
	int code;

	if (run_request_fill(&request, args, invocation->words.program,
	                     (const char *const *) environ, &err) < 0)
		return command_misuse(invocation, &err);
	if (session_open(&session, &err) < 0)
		return command_failed(invocation, &err);
	code = run_session(&session, &request.options);
	session_close(&session);
	return code;
}

const struct command command_run = {
	.name = "run",
	.summary = "Run a program in a Linux kernel of its own",
	.synopsis = "[OPTION]... -- PROGRAM [ARGUMENT]...",
	.description =
		"The program runs as an unprivileged user in a microVM that reaches nothing but "
		"what --egress names and sees "
		"nothing of this machine but what the options hand over. Its output appears here "
		"as "
		"it comes, byte for byte; its exit status is ours. Nothing of the sandbox is left "
		"when the command ends. If the terminal goes away meanwhile, the run goes on by "
		"itself, as with --detach; if this command is killed, its sandbox dies with it.",
	.options = run_option_table,
	.takes_program = true,
	.args_size = sizeof(struct run_args),
	.run = run,
};
