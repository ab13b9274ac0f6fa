/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/help.h"

enum {
	COLUMNS = 80,
	TERM_INDENT = 2,
	OPTION_INDENT = 28, /* column of what an option does */
	LIST_INDENT = 12,   /* column of what a command does */
	TERM_MAX = 128,     /* bytes of "    --name VALUE" */
};

#define NOT_YET "\nNot yet in this version and refused; it comes with:\n"

void help_usage(struct text *out, const struct command *command, const char *path)
{
	const char *synopsis = command->synopsis ? command->synopsis : "";

	text_addf(out, "usage: %s%s%s%s%s\n", PROGRAM_NAME, path[0] ? " " : "", path,
	          synopsis[0] ? " " : "", synopsis);
}

/* words at column `indent`, beginning on the next line if the term is too long. */
static void add_entry(struct text *out, const char *term, const char *words, size_t indent)
{
	size_t used = TERM_INDENT + strlen(term);

	text_add_blanks(out, TERM_INDENT);
	text_add(out, term);
	if (used + 2 > indent) {
		text_add(out, "\n");
		used = 0;
	}
	text_add_blanks(out, indent - used);
	text_fill(out, words, indent, indent, COLUMNS);
}

/* "-h, --help", "    --image REF" */
static void option_term(const struct option *option, char ret_term[TERM_MAX])
{
	char letter[8] = "    ";

	if (option->letter)
		snprintf(letter, sizeof(letter), "-%c%s", option->letter, option->name ? ", " : "");
	snprintf(ret_term, TERM_MAX, "%s%s%s%s%s", letter, option->name ? "--" : "",
	         option->name ? option->name : "", option->value ? " " : "",
	         option->value ? option->value : "");
}

/* What the option does; for a choice also its values, but for those that are reserved. */
static void add_option(struct text *out, const struct option *option)
{
	CLEANUP(text_done) struct text words = TEXT_INIT;
	const char *before = "; one of: ";
	char term[TERM_MAX];

	option_term(option, term);
	text_add(&words, option->help);
	for (const struct option_choice *at = option->choices; at && at->name; at++) {
		if (at->later)
			continue;
		text_addf(&words, "%s%s", before, at->name);
		before = ", ";
	}
	add_entry(out, term, text_string(&words), OPTION_INDENT);
}

static void add_options(struct text *out, const struct option *options)
{
	if (options->kind != OPTION_GROUP)
		text_add(out, "\nOptions:\n");
	for (; options->kind != OPTION_END; options++) {
		if (options->kind == OPTION_GROUP)
			text_addf(out, "\n%s:\n", options->help);
		else if (option_is_usable(options))
			add_option(out, options);
	}
}

static void add_reserved_choices(struct text *out, const struct option *option)
{
	char term[TERM_MAX];

	for (const struct option_choice *at = option->choices; at && at->name; at++) {
		snprintf(term, sizeof(term), "    --%s %s", option->name, at->name);
		if (at->later)
			add_entry(out, term, at->later, OPTION_INDENT);
	}
}

/* What is in the table but not in this version: options, and single values of a choice. */
static void add_reserved(struct text *out, const struct option *options)
{
	CLEANUP(text_done) struct text list = TEXT_INIT;
	char term[TERM_MAX];

	for (; options->kind != OPTION_END; options++) {
		option_term(options, term);
		if (options->kind == OPTION_RESERVED)
			add_entry(&list, term, options->help, OPTION_INDENT);
		add_reserved_choices(&list, options);
	}
	if (list.buf.len)
		text_addf(out, "%s%s", NOT_YET, text_string(&list));
}

static void add_commands(struct text *out, const struct command *const *commands)
{
	CLEANUP(text_done) struct text list = TEXT_INIT;

	text_add(out, "\nCommands:\n");
	for (; *commands; commands++) {
		if (command_is_usable(*commands))
			add_entry(out, (*commands)->name, (*commands)->summary, LIST_INDENT);
		else if ((*commands)->later)
			add_entry(&list, (*commands)->name, (*commands)->later, LIST_INDENT);
	}
	if (list.buf.len)
		text_addf(out, "%s%s", NOT_YET, text_string(&list));
}

void help_command(struct text *out, const struct command *command, const char *path)
{
	help_usage(out, command, path);
	text_addf(out, "\n%s.\n", command->summary);
	if (command->description) {
		text_add(out, "\n");
		text_fill(out, command->description, 0, 0, COLUMNS);
	}
	if (command->subcommands)
		add_commands(out, command->subcommands);
	if (command->options) {
		add_options(out, command->options);
		add_reserved(out, command->options);
	}
}

void help_program(struct text *out, const struct command *const *commands)
{
	text_addf(out,
	          "usage: %s COMMAND [OPTION]... [ARGUMENT]...\n\n"
	          "Run any program, assumed hostile, with a Linux kernel of its own.\n",
	          PROGRAM_NAME);
	add_commands(out, commands);
	text_addf(out, "\n%s COMMAND --help tells more, and so does the man page.\n", PROGRAM_NAME);
}
