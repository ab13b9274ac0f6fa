/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/failure.h"
#include "cli/runs.h"

int runs_failed(const struct invocation *invocation, const struct resoluto_err *err)
{
	struct resoluto_err shown = *err;

	if (shown.code == -ENOENT || shown.code == -EAGAIN)
		shown.code = 0;
	failure_print(stderr, invocation->path, &shown);
	return err->code == -EINVAL ? RESOLUTO_EXIT_MISUSE : RESOLUTO_EXIT_SANDBOX;
}

struct resoluto_run *runs_open(const struct invocation *invocation, const char *id, int *ret_code)
{
	const struct resoluto_attach_options options = { .struct_size = sizeof(options), .id = id };
	struct resoluto_run *run = NULL;
	struct resoluto_err err = { 0 };

	if (resoluto_run_attach(&options, &run, &err) == 0)
		return run;
	*ret_code = runs_failed(invocation, &err);
	return NULL;
}

void runs_close(struct resoluto_run **run)
{
	resoluto_run_close(*run);
	*run = NULL;
}

int reader_open(struct reader *reader, uint64_t max_output, struct resoluto_err *err)
{
	*reader = (struct reader){ .signals = SIGNALS_NONE };
	if (signals_open(&reader->signals, err) < 0)
		return -1;
	output_init(&reader->output, reader->signals.wake_fd);
	limit_init(&reader->limit, &reader->output, max_output);
	return 0;
}

void reader_close(struct reader *reader)
{
	limit_done(&reader->limit);
	signals_close(&reader->signals);
}

int reader_code(const struct reader *reader, const struct invocation *invocation)
{
	struct resoluto_err err = { 0 };

	if (reader->output.code == -EPIPE)
		return RESOLUTO_EXIT_SIGNAL + SIGPIPE;
	if (signals_last_stop() > 0)
		return RESOLUTO_EXIT_SIGNAL + signals_last_stop();
	if (reader->output.code == 0)
		return 0;
	(void) resoluto_fail(&err, reader->output.code, "write the output of the program");
	return command_failed(invocation, &err);
}
