/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/help.h"
#include "resoluto/sandbox.h"

enum {
	COMMANDS_MAX = 32, /* in one table */
	WORD_SHOWN = 80,   /* bytes of a user's word that a message repeats */
};

bool command_is_usable(const struct command *command)
{
	return !command->is_hidden && !command->later;
}

static void print_usage(const struct command *command, const char *path)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;

	help_usage(&text, command, path);
	fputs(text_string(&text), stderr);
}

int command_misuse(const struct invocation *invocation, const struct resoluto_err *err)
{
	failure_print(stderr, invocation->path, err);
	print_usage(invocation->command, invocation->path);
	return RESOLUTO_EXIT_MISUSE;
}

int command_failed(const struct invocation *invocation, const struct resoluto_err *err)
{
	failure_print(stderr, invocation->path, err);
	return err->code == -EINVAL ? RESOLUTO_EXIT_MISUSE : RESOLUTO_EXIT_SANDBOX;
}

int command_finish_output(const struct invocation *invocation)
{
	struct resoluto_err err = { 0 };

	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	if (errno == EPIPE) /* the reader has seen enough: end as everybody does then */
		return RESOLUTO_EXIT_SIGNAL + SIGPIPE;
	(void) resoluto_fail(&err, -errno, "write standard output");
	return command_failed(invocation, &err);
}

static int print_text(const struct invocation *invocation, const struct text *text)
{
	struct resoluto_err err = { 0 };

	if (!text_ok(text)) {
		(void) resoluto_fail(&err, -ENOMEM, "write help");
		return command_failed(invocation, &err);
	}
	fputs(text_string(text), stdout);
	return command_finish_output(invocation);
}

static int print_help(const struct invocation *invocation)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;

	help_command(&text, invocation->command, invocation->path);
	return print_text(invocation, &text);
}

static const struct command *find_command(const struct command *const *commands, const char *name)
{
	for (; *commands; commands++) {
		if (strcmp((*commands)->name, name) == 0)
			return *commands;
	}
	return NULL;
}

static const char *nearest_command(const struct command *const *commands, const char *word)
{
	const char *names[COMMANDS_MAX + 1];
	size_t count = 0;

	for (; *commands && count < COMMANDS_MAX; commands++) {
		if (command_is_usable(*commands))
			names[count++] = (*commands)->name;
	}
	names[count] = NULL;
	return nearest_name(word, names);
}

/* For commands without a program "--" only says that no option follows. */
static void join_words(struct option_words *words)
{
	for (const char *const *at = words->program; at && *at; at++)
		words->items[words->count++] = *at;
	words->program = NULL;
}

static int check_program(const struct option_words *words, struct resoluto_err *err)
{
	if (words->count > 0 && !words->program)
		return resoluto_fail(err, -EINVAL,
		                     "stray word '%.*s': put -- before the program: run -- %.*s",
		                     WORD_SHOWN, words->items[0], WORD_SHOWN, words->items[0]);
	if (words->count > 0)
		return resoluto_fail(err, -EINVAL,
		                     "stray word '%.*s' before --: only options stand there",
		                     WORD_SHOWN, words->items[0]);
	if (!words->program || !words->program[0])
		return resoluto_fail(err, -EINVAL,
		                     "no program: name it behind --, as in run -- true");
	return 0;
}

static int check_words(const struct command *command, struct option_words *words,
                       struct resoluto_err *err)
{
	if (command->takes_program)
		return check_program(words, err);
	join_words(words);
	if (words->count > command->words_max)
		return resoluto_fail(err, -EINVAL, "stray word '%.*s'", WORD_SHOWN,
		                     words->items[command->words_max]);
	if (words->count < command->words_min)
		return resoluto_fail(err, -EINVAL, "missing: %s", command->synopsis);
	return 0;
}

static int run_with(struct invocation *invocation, const char *const *argv, void *args)
{
	const struct command *command = invocation->command;
	struct resoluto_err err = { 0 };
	int r = options_parse(command->options, argv, args, &invocation->words, &err);

	if (r == 0 && invocation->words.wants_help)
		return print_help(invocation);
	if (r == 0)
		r = check_words(command, &invocation->words, &err);
	if (r < 0)
		return command_misuse(invocation, &err);
	return command->run(invocation, args);
}

static int run_command(struct invocation *invocation, const char *const *argv)
{
	CLEANUP(mem_free) void *args = calloc(1, invocation->command->args_size + 1);
	int code;

	if (!args)
		return RESOLUTO_EXIT_SANDBOX;
	code = run_with(invocation, argv, args);
	options_done(invocation->command->options, args);
	option_words_done(&invocation->words);
	return code;
}

/* No command where one must stand, or one that is not there. */
static int refuse_word(const struct invocation *invocation, const struct command *const *commands,
                       const char *word)
{
	struct resoluto_err err = { 0 };
	const char *near = word ? nearest_command(commands, word) : NULL;

	if (!word)
		(void) resoluto_fail(&err, -EINVAL, "no command");
	else if (near)
		(void) resoluto_fail(&err, -EINVAL, "unknown command '%.*s'; did you mean %s?",
		                     WORD_SHOWN, word, near);
	else
		(void) resoluto_fail(&err, -EINVAL, "unknown command '%.*s'; --help lists them",
		                     WORD_SHOWN, word);
	return command_misuse(invocation, &err);
}

static int refuse_reserved(const struct invocation *invocation)
{
	struct resoluto_err err = { 0 };

	(void) fail_reserved(&err, "this command", invocation->command->later);
	return command_misuse(invocation, &err);
}

static bool asks_for_help(const char *word)
{
	return word && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0);
}

static int enter(struct invocation *invocation, const char *const *argv);

static int enter_subcommand(struct invocation *invocation, const char *const *argv)
{
	const struct command *parent = invocation->command;
	const struct command *command = *argv ? find_command(parent->subcommands, *argv) : NULL;

	if (asks_for_help(*argv))
		return print_help(invocation);
	if (!command)
		return refuse_word(invocation, parent->subcommands, *argv);
	invocation->command = command;
	snprintf(invocation->path, sizeof(invocation->path), "%s %s", parent->name, command->name);
	return enter(invocation, argv + 1);
}

static int enter(struct invocation *invocation, const char *const *argv)
{
	if (invocation->command->later)
		return refuse_reserved(invocation);
	if (invocation->command->subcommands)
		return enter_subcommand(invocation, argv);
	return run_command(invocation, argv);
}

int command_print_program_help(const struct invocation *invocation)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;

	help_program(&text, invocation->commands);
	return print_text(invocation, &text);
}

/* The program itself, seen as a command: what stands in its usage line. */
static const struct command program = {
	.name = "",
	.synopsis = "COMMAND [OPTION]... [ARGUMENT]...",
};

int command_main(const struct command *const *commands, const char *const *argv)
{
	struct invocation invocation = { .command = &program, .commands = commands };
	const char *word = argv[0] ? argv[1] : NULL;
	const struct command *command;

	if (asks_for_help(word))
		return command_print_program_help(&invocation);
	if (word && strcmp(word, "--version") == 0)
		word = "version";
	command = word ? find_command(commands, word) : NULL;
	if (!command)
		return refuse_word(&invocation, commands, word);
	invocation.command = command;
	snprintf(invocation.path, sizeof(invocation.path), "%s", command->name);
	return enter(&invocation, argv + 2);
}
