/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * command.h - a command: its words, its options, what it does.
 *
 * To add one: write cmd_<name>.c with a const struct command, declare it in commands.h, and add it
 * to the table in commands.c.  Help, man page and completions follow by themselves; renew the
 * golden files with `ninja golden`.
 */

#include <stdbool.h>
#include <stddef.h>

#include "cli/option.h"

enum {
	COMMAND_PATH_MAX = 32, /* bytes of "image prune" */
	WORDS_ANY = 1000,      /* words_max of a command that takes a list */
};

#define PROGRAM_NAME "resoluto-sandbox"

struct invocation;

struct command {
	const char *name;        /* NULL behind the last one of a table */
	const char *summary;     /* one line, capital letter, no final stop */
	const char *synopsis;    /* what follows the name in the usage line; "" for nothing */
	const char *description; /* paragraphs parted by an empty line; NULL: only the summary */
	const struct option *options;             /* NULL: it has subcommands, or is reserved */
	const struct command *const *subcommands; /* NULL: none */
	const char *later; /* reserved: the version that brings it; NULL: it works */
	bool is_hidden;
	bool takes_program; /* "-- PROGRAM [ARGUMENT]..." */
	size_t words_min, words_max;
	size_t args_size; /* bytes of its struct of arguments, which starts as zeros */
	int (*run)(const struct invocation *invocation, void *args); /* returns the exit code */
};

struct invocation {
	const struct command *command;
	char path[COMMAND_PATH_MAX]; /* "run", "image prune" */
	struct option_words words;
	const struct command *const *commands; /* all of the program, for help and completion */
};

/* Find the command that argv names, parse its options, run it.  Returns the exit code of the
 * process. */
int command_main(const struct command *const *commands, const char *const *argv);

/* Say what is wrong and how the command is used; returns RESOLUTO_EXIT_MISUSE. */
int command_misuse(const struct invocation *invocation, const struct resoluto_err *err);
/* Say what failed; returns RESOLUTO_EXIT_SANDBOX, or RESOLUTO_EXIT_MISUSE for -EINVAL. */
int command_failed(const struct invocation *invocation, const struct resoluto_err *err);
/* Flush standard output; 0 or the exit code for what could not be written. */
int command_finish_output(const struct invocation *invocation);

/* What `help` and --help without a command print; returns the exit code. */
int command_print_program_help(const struct invocation *invocation);

/* The commands one can see, for completion and help: neither hidden nor reserved. */
bool command_is_usable(const struct command *command);
