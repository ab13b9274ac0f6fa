/* SPDX-License-Identifier: Apache-2.0 */

/* cmd_kill.c - `kill`: a signal to the program of a run. */

#include <signal.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/runs.h"
#include "cli/signal_name.h"

struct kill_args {
	const char *signal;
};

static const struct option options[] = {
	{ OPTION_TEXT, .name = "signal", .value = "SIGNAL",
	  .offset = offsetof(struct kill_args, signal),
	  .help = "its name or number (default: TERM)" },
	{ OPTION_HELP, 'h', .name = "help", .help = "print this text" },
	{ .kind = OPTION_END },
};

static int kill_one(const struct invocation *invocation, const char *id, int signo)
{
	CLEANUP(runs_close) struct resoluto_run *run = NULL;
	struct resoluto_err err = { 0 };
	int code;

	run = runs_open(invocation, id, &code);
	if (!run)
		return code;
	return resoluto_run_signal(run, signo, &err) < 0 ? runs_failed(invocation, &err) : 0;
}

static int run_kill(const struct invocation *invocation, void *args)
{
	const struct kill_args *given = args;
	struct resoluto_err err = { 0 };
	int signo = SIGTERM, code = 0;

	if (given->signal && signal_from_name(given->signal, &signo, &err) < 0)
		return command_misuse(invocation, &err);
	for (size_t i = 0; i < invocation->words.count; i++) {
		int one = kill_one(invocation, invocation->words.items[i], signo);

		code = code ? code : one;
	}
	return code;
}

const struct command command_kill = {
	.name = "kill",
	.summary = "Send a signal to the program of a run",
	.synopsis = "[OPTION]... ID...",
	.description = "It goes to the program, not to the sandbox; one that has not started yet "
		       "gets it when it does. To end a sandbox whatever is in it: rm --force.",
	.options = options,
	.words_min = 1,
	.words_max = WORDS_ANY,
	.args_size = sizeof(struct kill_args),
	.run = run_kill,
};
