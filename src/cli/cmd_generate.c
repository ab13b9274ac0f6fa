/* SPDX-License-Identifier: Apache-2.0 */

/* cmd_generate.c - `_generate`: what the build makes of the tables.  Not for people. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/generate.h"

static const struct option options[] = {
	{ OPTION_HELP, 'h', .name = "help", .help = "print this text" },
	{ .kind = OPTION_END },
};

static const struct {
	const char *name;
	generate_fn *generate;
} kinds[] = {
	{ "man", generate_man },
	{ "bash", generate_bash },
	{ "zsh", generate_zsh },
	{ "fish", generate_fish },
};

void generate_each(const struct command *const *commands,
                   void (*each)(struct text *out, const struct command *command, const char *path),
                   struct text *out)
{
	char path[COMMAND_PATH_MAX];

	for (; *commands; commands++) {
		const struct command *const *sub = (*commands)->subcommands;

		if (!command_is_usable(*commands))
			continue;
		if ((*commands)->options)
			each(out, *commands, (*commands)->name);
		for (; sub && *sub; sub++) {
			snprintf(path, sizeof(path), "%s %s", (*commands)->name, (*sub)->name);
			if (command_is_usable(*sub))
				each(out, *sub, path);
		}
	}
}

static int run(const struct invocation *invocation, void *args)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;
	struct resoluto_err err = { 0 };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].name, invocation->words.items[0]) != 0)
			continue;
		kinds[i].generate(&text, invocation->commands);
		if (!text_ok(&text)) {
			(void) resoluto_fail(&err, -ENOMEM, "generate %s", kinds[i].name);
			return command_failed(invocation, &err);
		}
		fputs(text_string(&text), stdout);
		return command_finish_output(invocation);
	}
	(void) resoluto_fail(&err, -EINVAL, "one of man, bash, zsh, fish");
	return command_misuse(invocation, &err);
}

const struct command command_generate = {
	.name = "_generate",
	.summary = "Make the man page or a completion",
	.synopsis = "man|bash|zsh|fish",
	.options = options,
	.is_hidden = true,
	.words_min = 1,
	.words_max = 1,
	.run = run,
};
