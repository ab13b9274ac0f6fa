/* SPDX-License-Identifier: Apache-2.0 */

/* generate_completion.c - completions for bash, zsh and fish. */

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/generate.h"

#define ZSH_QUOTE "'\\''"
#define FISH_QUOTE "\\'"

/* The names of commands that can be used, parted by blanks. */
static void add_names(struct text *out, const struct command *const *commands)
{
	const char *before = "";

	for (; *commands; commands++) {
		if (!command_is_usable(*commands))
			continue;
		text_addf(out, "%s%s", before, (*commands)->name);
		before = " ";
	}
}

static void add_option_names(struct text *out, const struct option *options)
{
	const char *before = "";

	for (; options->kind != OPTION_END; options++) {
		if (!option_is_usable(options))
			continue;
		if (options->letter) {
			text_addf(out, "%s-%c", before, options->letter);
			before = " ";
		}
		if (options->name) {
			text_addf(out, "%s--%s", before, options->name);
			before = " ";
		}
	}
}

static void add_choice_names(struct text *out, const struct option *option)
{
	const char *before = "";

	for (const struct option_choice *at = option->choices; at && at->name; at++) {
		if (at->later)
			continue;
		text_addf(out, "%s%s", before, at->name);
		before = " ";
	}
}

/* bash: one case per command and option that takes a value; then one per command. */

static void add_bash_value(struct text *out, const char *path, const struct option *option)
{
	text_addf(out, "\t\"%s --%s\") ", path, option->name);
	if (option->choices) {
		text_add(out, "COMPREPLY=($(compgen -W \"");
		add_choice_names(out, option);
		text_add(out, "\" -- \"$word\")); ");
	} else if (option->hint != HINT_NONE) {
		text_addf(out, "compopt -o filenames; COMPREPLY=($(compgen -%c -- \"$word\")); ",
		          option->hint == HINT_FILE ? 'f' : 'd');
	}
	text_add(out, "return ;;\n");
}

static void add_bash_values(struct text *out, const struct command *command, const char *path)
{
	for (const struct option *at = command->options; at->kind != OPTION_END; at++) {
		if (option_is_usable(at) && at->name && at->value)
			add_bash_value(out, path, at);
	}
}

static void add_bash_command(struct text *out, const struct command *command, const char *path)
{
	text_addf(out, "\t\"%s\") options=\"", path);
	add_option_names(out, command->options);
	text_addf(out, "%s\" ;;\n", command->takes_program ? " --" : "");
}

/* Names of the commands that have commands of their own, as a pattern of `case`. */
static void add_bash_parents(struct text *out, const struct command *const *commands)
{
	text_add(out, "\t\"\"");
	for (; *commands; commands++) {
		if ((*commands)->subcommands)
			text_addf(out, "|\"%s\"", (*commands)->name);
	}
	text_add(out, ") ");
}

static void add_bash_subcommands(struct text *out, const struct command *const *commands)
{
	for (; *commands; commands++) {
		if (!(*commands)->subcommands)
			continue;
		text_addf(out, "\t\"%s\") options=\"", (*commands)->name);
		add_names(out, (*commands)->subcommands);
		text_add(out, " --help\" ;;\n");
	}
}

static void add_bash_head(struct text *out, const struct command *const *commands)
{
	text_addf(out,
	          "# bash completion for %s; made by %s _generate bash\n"
	          "_resoluto_sandbox()\n{\n"
	          "\tlocal word=\"${COMP_WORDS[COMP_CWORD]}\" "
	          "before=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
	          "\tlocal path=\"\" options=\"\" i\n"
	          "\t# bash parts --name=value into three words\n"
	          "\tif [[ $word == = ]]; then word=\"\"\n"
	          "\telif [[ $before == = ]]; then before=\"${COMP_WORDS[COMP_CWORD-2]}\"; fi\n"
	          "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	          "\t\t[[ ${COMP_WORDS[i]} == -- ]] && { compopt -o default; return; }\n"
	          "\tdone\n"
	          "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	          "\t\t[[ ${COMP_WORDS[i]} == -* ]] && break\n"
	          "\t\tcase \"$path\" in\n\t",
	          PROGRAM_NAME, PROGRAM_NAME);
	add_bash_parents(out, commands);
	text_add(out, "path=\"${path:+$path }${COMP_WORDS[i]}\" ;;\n\t\tesac\n\tdone\n");
}

void generate_bash(struct text *out, const struct command *const *commands)
{
	add_bash_head(out, commands);
	text_add(out, "\tcase \"$path $before\" in\n");
	generate_each(commands, add_bash_values, out);
	text_add(out, "\tesac\n\tcase \"$path\" in\n\t\"\") options=\"");
	add_names(out, commands);
	text_add(out, " --help --version\" ;;\n");
	add_bash_subcommands(out, commands);
	generate_each(commands, add_bash_command, out);
	text_addf(out,
	          "\tesac\n"
	          "\tCOMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
	          "}\ncomplete -F _resoluto_sandbox %s\n",
	          PROGRAM_NAME);
}

/* The first phrase of an explanation, for single quotes; quote: how one is written in them. */
static void add_brief(struct text *out, const char *words, const char *quote)
{
	const char *aside = strstr(words, " (");
	size_t len = strcspn(words, ":;");

	if (aside && (size_t) (aside - words) < len)
		len = (size_t) (aside - words);
	for (; len > 0; len--, words++) {
		if (*words == '\'')
			text_add(out, quote);
		else if (!strchr("[]\\", *words))
			text_add_bytes(out, words, 1);
	}
}

static void add_zsh_option(struct text *out, const struct option *option)
{
	char letter[4] = "";

	if (option->letter)
		snprintf(letter, sizeof(letter), "-%c", option->letter);
	text_addf(out, "\t\t'%s", option->kind == OPTION_LIST ? "*" : "");
	text_addf(out, "%s%s%s", option->name ? "--" : letter, option->name ? option->name : "",
	          option->value ? "=" : "");
	text_add(out, "[");
	add_brief(out, option->help, ZSH_QUOTE);
	text_add(out, "]");
	if (option->value) {
		text_add(out, ":");
		add_brief(out, option->value, ZSH_QUOTE);
		text_add(out, ":");
	}
	if (option->choices) {
		text_add(out, "(");
		add_choice_names(out, option);
		text_add(out, ")");
	} else if (option->hint != HINT_NONE) {
		text_add(out, option->hint == HINT_FILE ? "_files" : "_files -/");
	}
	text_add(out, "' \\\n");
}

static void add_zsh_command(struct text *out, const struct command *command, const char *path)
{
	text_addf(out, "\t(\"%s\")\n\t\t_arguments \\\n", path);
	for (const struct option *at = command->options; at->kind != OPTION_END; at++) {
		if (option_is_usable(at))
			add_zsh_option(out, at);
	}
	text_add(out,
	         command->takes_program ? "\t\t'*::program:_normal' ;;\n" : "\t\t'*:word:' ;;\n");
}

static void add_zsh_descriptions(struct text *out, const struct command *const *commands)
{
	for (; *commands; commands++) {
		if (!command_is_usable(*commands))
			continue;
		text_addf(out, "\t\t\t'%s:", (*commands)->name);
		add_brief(out, (*commands)->summary, ZSH_QUOTE);
		text_add(out, "' \\\n");
	}
}

void generate_zsh(struct text *out, const struct command *const *commands)
{
	text_addf(out,
	          "#compdef %s\n# made by %s _generate zsh\n"
	          "_resoluto_sandbox() {\n"
	          "\tlocal command=\"${words[2]}\"\n"
	          "\tlocal -a list\n"
	          "\tif (( CURRENT == 2 )); then\n"
	          "\t\tlist=( \\\n",
	          PROGRAM_NAME, PROGRAM_NAME);
	add_zsh_descriptions(out, commands);
	text_add(out, "\t\t)\n\t\t_describe command list\n\t\treturn\n\tfi\n");
	for (const struct command *const *at = commands; *at; at++) {
		if (!(*at)->subcommands)
			continue;
		text_addf(out,
		          "\tif [[ \"$command\" == %s ]]; then\n"
		          "\t\tif (( CURRENT == 3 )); then\n\t\t\tlist=( \\\n",
		          (*at)->name);
		add_zsh_descriptions(out, (*at)->subcommands);
		text_add(out, "\t\t\t)\n\t\t\t_describe command list\n\t\t\treturn\n\t\tfi\n"
		              "\t\tcommand+=\" ${words[3]}\"\n\t\tshift words\n\t\t(( CURRENT-- "
		              "))\n\tfi\n");
	}
	text_add(out, "\tshift words\n\t(( CURRENT-- ))\n\tcase \"$command\" in\n");
	generate_each(commands, add_zsh_command, out);
	text_add(out, "\tesac\n}\n_resoluto_sandbox \"$@\"\n");
}

/* fish: one line per option; conditions are the words seen so far. */

static void add_fish_condition(struct text *out, const char *path)
{
	const char *blank = strchr(path, ' ');

	text_addf(out, "complete -c %s -n '__fish_seen_subcommand_from %.*s", PROGRAM_NAME,
	          (int) strcspn(path, " "), path);
	if (blank)
		text_addf(out, "; and __fish_seen_subcommand_from %s", blank + 1);
	text_add(out, "'");
}

static void add_fish_option(struct text *out, const struct option *option, const char *path)
{
	add_fish_condition(out, path);
	if (option->letter)
		text_addf(out, " -s %c", option->letter);
	if (option->name)
		text_addf(out, " -l %s", option->name);
	if (option->choices) {
		text_add(out, " -x -a '");
		add_choice_names(out, option);
		text_add(out, "'");
	} else if (option->hint == HINT_DIRECTORY) {
		text_add(out, " -x -a '(__fish_complete_directories)'");
	} else if (option->value) {
		text_add(out, option->hint == HINT_FILE ? " -r -F" : " -x");
	}
	text_add(out, " -d '");
	add_brief(out, option->help, FISH_QUOTE);
	text_add(out, "'\n");
}

static void add_fish_command(struct text *out, const struct command *command, const char *path)
{
	for (const struct option *at = command->options; at->kind != OPTION_END; at++) {
		if (option_is_usable(at))
			add_fish_option(out, at, path);
	}
}

static void add_fish_names(struct text *out, const struct command *const *commands,
                           const char *condition)
{
	for (; *commands; commands++) {
		if (!command_is_usable(*commands))
			continue;
		text_addf(out, "complete -c %s -f -n '%s' -a %s -d '", PROGRAM_NAME, condition,
		          (*commands)->name);
		add_brief(out, (*commands)->summary, FISH_QUOTE);
		text_add(out, "'\n");
	}
}

void generate_fish(struct text *out, const struct command *const *commands)
{
	text_addf(out, "# fish completion for %s; made by %s _generate fish\n", PROGRAM_NAME,
	          PROGRAM_NAME);
	add_fish_names(out, commands, "__fish_use_subcommand");
	for (const struct command *const *at = commands; *at; at++) {
		CLEANUP(text_done) struct text condition = TEXT_INIT;

		if (!(*at)->subcommands)
			continue;
		text_addf(&condition,
		          "__fish_seen_subcommand_from %s; and not __fish_seen_subcommand_from ",
		          (*at)->name);
		add_names(&condition, (*at)->subcommands);
		add_fish_names(out, (*at)->subcommands, text_string(&condition));
	}
	generate_each(commands, add_fish_command, out);
}
