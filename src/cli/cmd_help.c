/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

static const struct option options[] = {
	{ OPTION_HELP, 'h', .name = "help", .help = "print this text" },
	{ .kind = OPTION_END },
};

/* `help image rm` is `image rm --help`. */
static int run(const struct invocation *invocation, void *args)
{
	const struct option_words *words = &invocation->words;
	const char *argv[] = { PROGRAM_NAME, NULL, NULL, NULL, NULL };
	size_t count = 1;

	if (words->count == 0)
		return command_print_program_help(invocation);
	for (size_t i = 0; i < words->count; i++)
		argv[count++] = words->items[i];
	argv[count] = "--help";
	return command_main(invocation->commands, argv);
}

const struct command command_help = {
	.name = "help",
	.summary = "Explain a command",
	.synopsis = "[COMMAND [SUBCOMMAND]]",
	.options = options,
	.words_max = 2,
	.run = run,
};
