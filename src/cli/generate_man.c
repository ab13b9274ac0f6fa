/* SPDX-License-Identifier: Apache-2.0 */

/* generate_man.c - the man page: prose from here, everything else from the tables. */

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/environment.h"
#include "cli/generate.h"
#include "resoluto/version.h"

struct entry {
	const char *term, *words; /* term is NULL behind the last one */
};

static const struct entry exit_statuses[] = {
	{ "0 to 123",
	  "The program's own exit status. (The other codes of a program are passed on as well; "
	  "use --json to tell them from ours.)" },
	{ "128+N",
	  "The program was killed by signal N. 141 also when whoever read our output went away." },
	{ "2", "Misuse: the command line makes no sense. Nothing was started." },
	{ "124", "The deadline was reached." },
	{ "125",
	  "The sandbox failed, not the program; the message and --json give the reason. Other "
	  "commands than run use it for every failure." },
	{ "126",
	  "The program was found but cannot be executed, or its arguments are larger than a kernel "
	  "takes." },
	{ "127", "The program was not found in the sandbox." },
	{ "1", "doctor: something that every run needs is missing." },
	{ NULL, NULL },
};

static const struct entry files[] = {
	{ "$XDG_CONFIG_HOME/resoluto-sandbox/local.env",
	  "Configuration, KEY=VALUE lines that "
	  "scripts/local-backend-up.sh writes. The first of "
	  "the file that RESOLUTO_LOCAL_ENV names, this one, "
	  "and the next one is read; the environment wins." },
	{ "/etc/resoluto-sandbox/local.env", "Configuration for everybody." },
	{ "$XDG_STATE_HOME/resoluto-sandbox, /var/lib/resoluto-sandbox",
	  "Runs, while they last (RESOLUTO_STATE_DIR); the second is root's." },
	{ "$XDG_CACHE_HOME/resoluto-sandbox, /var/cache/resoluto-sandbox",
	  "Kernels and images (RESOLUTO_CACHE_DIR); the second is root's, which others read "
	  "besides their own." },
	{ NULL, NULL },
};

static const struct entry examples[] = {
	{ "resoluto-sandbox run -- python3 -c \"print('hello')\"", "The base image has python3." },
	{ "resoluto-sandbox run --workspace . --output report.txt -- python3 report.py",
	  "Copy this directory in, bring one file back." },
	{ "generate | resoluto-sandbox run -i --workspace . --memory 1Gi --deadline 5m -- ./filter",
	  "As a filter in a pipeline, with limits." },
	{ "resoluto-sandbox run --image docker.io/library/gcc:13 --workspace . --output main -- "
	  "gcc -o main "
	  "main.c",
	  "Any OCI image, unmodified." },
	{ "resoluto-sandbox run --json --workspace . -- ./job | jq .isolation",
	  "For programs: one JSON object." },
	{ "resoluto-sandbox run --setup 'tar -xzf input.tar.gz' --workspace . -- "
	  "python3 job.py",
	  "Prepare the sandbox first." },
	{ NULL, NULL },
};

static const char signals_words[] =
	"SIGINT and SIGTERM are passed on to the program, which has five seconds to end; after "
	"that, or at the second signal, the sandbox is destroyed. Behind its end one of them ends "
	"the writing of outputs. SIGQUIT, SIGUSR1, SIGUSR2 and "
	"SIGWINCH are passed on. After SIGHUP, the terminal having gone, the run goes on by "
	"itself, as with --detach. If this process is killed outright, the sandbox dies with it.";

static const char security_words[] = "Every run has a Linux kernel of its own, which is verified "
				     "before the program starts: with KVM or, "
				     "where that does not work, under emulation (tcg). The result "
				     "says which. Emulation gives the program "
				     "a kernel of its own too, but the emulator is not a hardened "
				     "boundary. Nothing is reachable from a "
				     "sandbox but what --egress names.";

/* Text for roff: '-' is a minus, a line must not begin with a control character. */
static void add_roff(struct text *out, const char *words)
{
	bool is_start = true;

	for (; *words; words++) {
		if (is_start && (*words == '.' || *words == '\''))
			text_add(out, "\\&");
		is_start = *words == '\n';
		switch (*words) {
		case '\\':
			text_add(out, "\\e");
			break;
		case '-':
			text_add(out, "\\-");
			break;
		case '\'':
			text_add(out, "\\(aq");
			break;
		case '`':
			text_add(out, "\\(ga");
			break;
		case '~':
			text_add(out, "\\(ti");
			break;
		case '^':
			text_add(out, "\\(ha");
			break;
		default:
			text_add_bytes(out, words, 1);
		}
	}
}

static void add_paragraph(struct text *out, const char *words)
{
	for (;;) {
		const char *next = strstr(words, "\n\n");
		CLEANUP(text_done) struct text part = TEXT_INIT;

		text_add_bytes(&part, words, next ? (size_t) (next - words) : strlen(words));
		text_add(out, ".PP\n");
		add_roff(out, text_string(&part));
		text_add(out, "\n");
		if (!next)
			return;
		words = next + 2;
	}
}

static void add_entry(struct text *out, const char *term, const char *words)
{
	text_add(out, ".TP\n\\fB");
	add_roff(out, term);
	text_add(out, "\\fR\n");
	add_roff(out, words);
	text_add(out, "\n");
}

static void add_section(struct text *out, const char *name, const struct entry *entries)
{
	text_addf(out, ".SH %s\n", name);
	for (; entries->term; entries++)
		add_entry(out, entries->term, entries->words);
}

static void add_term(struct text *out, const struct option *option)
{
	text_add(out, ".TP\n");
	if (option->letter)
		text_addf(out, "\\fB\\-%c\\fR%s", option->letter, option->name ? ", " : "");
	if (option->name) {
		text_add(out, "\\fB\\-\\-");
		add_roff(out, option->name);
		text_add(out, "\\fR");
	}
	if (option->value) {
		text_add(out, " \\fI");
		add_roff(out, option->value);
		text_add(out, "\\fR");
	}
	text_add(out, "\n");
}

/* A sentence of what the tables hold as a phrase. */
static void add_sentence(struct text *out, const char *phrase)
{
	char first[2] = { phrase[0] >= 'a' && phrase[0] <= 'z' ? (char) (phrase[0] - 'a' + 'A')
		                                               : phrase[0],
		          '\0' };

	add_roff(out, first);
	add_roff(out, phrase + 1);
	text_add(out, ".");
}

static void add_option(struct text *out, const struct option *option)
{
	const char *before = " One of: ";

	add_term(out, option);
	add_sentence(out, option->help);
	for (const struct option_choice *at = option->choices; at && at->name; at++) {
		if (at->later)
			continue;
		text_addf(out, "%s\\fB%s\\fR", before, at->name);
		before = ", ";
	}
	text_add(out, option->choices ? ".\n" : "\n");
}

static void add_reserved(struct text *out, const struct option *options)
{
	const char *before = ".PP\nNot yet in this version, and refused: ";

	for (; options->kind != OPTION_END; options++) {
		if (options->kind != OPTION_RESERVED)
			continue;
		text_addf(out, "%s\\fB\\-\\-", before);
		add_roff(out, options->name);
		text_addf(out, "\\fR (with %s)", options->help);
		before = ", ";
	}
	if (strcmp(before, ", ") == 0)
		text_add(out, ".\n");
}

static void add_command(struct text *out, const struct command *command, const char *path)
{
	text_addf(out, ".SS \"%s %s\"\n", path, command->synopsis);
	add_roff(out, command->summary);
	text_add(out, ".\n");
	if (command->description)
		add_paragraph(out, command->description);
	for (const struct option *at = command->options; at->kind != OPTION_END; at++) {
		if (at->kind == OPTION_GROUP)
			text_addf(out, ".PP\n\\fI%s\\fR\n", at->help);
		else if (option_is_usable(at))
			add_option(out, at);
		else if (at->kind == OPTION_REFUSED)
			add_option(out, at);
	}
	add_reserved(out, command->options);
}

static void add_reserved_command(struct text *out, const struct command *command, const char *path)
{
	if (command->later)
		text_addf(out, ".TP\n\\fB%s\\fR\nComes with %s.\n", path, command->later);
}

static void add_reserved_commands(struct text *out, const struct command *const *commands)
{
	char path[COMMAND_PATH_MAX];

	text_add(out, ".SS \"Not yet in this version, and refused\"\n");
	for (; *commands; commands++) {
		const struct command *const *sub = (*commands)->subcommands;

		add_reserved_command(out, *commands, (*commands)->name);
		for (; sub && *sub; sub++) {
			snprintf(path, sizeof(path), "%s %s", (*commands)->name, (*sub)->name);
			add_reserved_command(out, *sub, path);
		}
	}
}

static void add_environment(struct text *out)
{
	text_add(out, ".SH ENVIRONMENT\n");
	for (const struct variable *at = environment_table; at->name; at++) {
		text_addf(out, ".TP\n\\fB%s\\fR\n", at->name);
		add_sentence(out, at->meaning);
		text_add(out, "\n");
	}
}

static void add_examples(struct text *out)
{
	text_add(out, ".SH EXAMPLES\n");
	for (const struct entry *at = examples; at->term; at++) {
		text_add(out, ".PP\n");
		add_roff(out, at->words);
		text_add(out, "\n.PP\n.RS 4\n.nf\n");
		add_roff(out, at->term);
		text_add(out, "\n.fi\n.RE\n");
	}
}

static void add_head(struct text *out)
{
	text_addf(
		out,
		".\\\" Made by resoluto-sandbox _generate man; change src/cli instead.\n"
		".TH RESOLUTO\\-SANDBOX 1 \"\" \"resoluto\\-sandbox %s\" \"User Commands\"\n"
		".nh\n.ad l\n"
		".SH NAME\nresoluto\\-sandbox \\- run any program in a Linux kernel of its own\n"
		".SH SYNOPSIS\n"
		"\\fBresoluto\\-sandbox run\\fR [\\fIOPTION\\fR]... \\fB\\-\\-\\fR \\fIPROGRAM\\fR "
		"[\\fIARGUMENT\\fR]...\n.br\n"
		"\\fBresoluto\\-sandbox\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]... "
		"[\\fIARGUMENT\\fR]...\n"
		".SH DESCRIPTION\n"
		"Runs a program that may be hostile. It stays plain: arguments in, standard output "
		"and "
		"files out, an exit status. It needs no daemon, no root and no network card.\n",
		RESOLUTO_VERSION);
	add_paragraph(out, security_words);
}

void generate_man(struct text *out, const struct command *const *commands)
{
	add_head(out);
	text_add(out, ".SH COMMANDS\nOptions are written \\fB\\-\\-name\\fR \\fIVALUE\\fR or "
	              "\\fB\\-\\-name=\\fR\\fIVALUE\\fR. Of an option that is given twice the last "
	              "one counts, "
	              "unless it is called repeatable.\n");
	generate_each(commands, add_command, out);
	add_reserved_commands(out, commands);
	text_add(out, ".SH SIGNALS\n");
	add_roff(out, signals_words);
	text_add(out, "\n");
	add_section(out, "EXIT STATUS", exit_statuses);
	add_environment(out);
	add_section(out, "FILES", files);
	add_examples(out);
	text_add(out, ".SH SEE ALSO\n.BR qemu (1),\n.BR skopeo (1)\n");
}
