/* SPDX-License-Identifier: Apache-2.0 */

/* generate.c - man page and completions have everything the tables have, and their readers accept
 * them. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/proc.h"
#include "check.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/generate.h"
#include "cli/run_options.h"

enum { COMPLAINT_MAX = 16 * 1024 };

static size_t count_of(const char *text, const char *word)
{
	size_t count = 0;

	for (; (text = strstr(text, word)); text++)
		count++;
	return count;
}

/* How the formats spell the options: what stands before and behind the name, and a dash within
 * it. */
struct spelling {
	const char *before, *behind, *dash;
};

static void spell(const struct spelling *spelling, const char *name, struct text *out)
{
	text_add(out, spelling->before);
	for (; *name; name++) {
		if (*name == '-')
			text_add(out, spelling->dash);
		else
			text_add_bytes(out, name, 1);
	}
	text_add(out, spelling->behind);
}

/* Every option that works is there; what is reserved is not offered. */
static void check_options(const char *text, struct spelling spelling, bool tells_reserved)
{
	for (const struct option *at = run_option_table; at->kind != OPTION_END; at++) {
		CLEANUP(text_done) struct text word = TEXT_INIT;
		bool is_there;

		if (!at->name)
			continue;
		spell(&spelling, at->name, &word);
		is_there = strstr(text, text_string(&word)) != NULL;
		if (is_there != (option_is_usable(at) || tells_reserved))
			printf("# %s\n", text_string(&word));
		CHECK(is_there == (option_is_usable(at) || tells_reserved));
	}
}

/* Give text to a program as a file; it must be content and say nothing. */
static void check_accepted(const char *const *words, const struct text *text)
{
	char path[] = "/tmp/resoluto-generated-XXXXXX";
	CLEANUP(fd_close) int fd = mkstemp(path);
	CLEANUP(buf_done)
	struct buf out = BUF_INIT(COMPLAINT_MAX), complaint = BUF_INIT(COMPLAINT_MAX);
	const char *argv[8] = { 0 };
	size_t count = 0;
	int r;

	CHECK(fd >= 0 && write_all(fd, text_string(text), strlen(text_string(text))) == 0);
	for (; words[count]; count++)
		argv[count] = words[count];
	argv[count] = path;
	r = proc_run(argv, &out, &complaint, NULL);
	CHECK(unlink(path) == 0);
	if (r == -ENOENT)
		SKIP("the program that reads it is not installed");
	if (r != 0 || complaint.len)
		printf("# %d %s\n", r, complaint.data ? complaint.data : "");
	CHECK(r == 0 && complaint.len == 0);
}

#define ACCEPTED(text, ...) check_accepted((const char *const[]){ __VA_ARGS__, NULL }, text)

static void bash_has_everything(void)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;

	generate_bash(&text, cli_commands);
	CHECK(text_ok(&text));
	check_options(text_string(&text), (struct spelling){ "--", "", "-" }, false);
	ACCEPTED(&text, "bash", "-n");
}

static void zsh_has_everything(void)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;

	generate_zsh(&text, cli_commands);
	CHECK(text_ok(&text));
	check_options(text_string(&text), (struct spelling){ "--", "", "-" }, false);
	ACCEPTED(&text, "zsh", "-n");
}

static void fish_has_everything(void)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;

	generate_fish(&text, cli_commands);
	CHECK(text_ok(&text));
	check_options(text_string(&text), (struct spelling){ " -l ", " ", "-" }, false);
	ACCEPTED(&text, "fish", "-n");
}

static void the_man_page_has_everything(void)
{
	static const char *const sections[] = { "NAME",        "SYNOPSIS", "DESCRIPTION",
		                                "COMMANDS",    "SIGNALS",  "EXIT STATUS",
		                                "ENVIRONMENT", "FILES",    "EXAMPLES",
		                                "SEE ALSO",    NULL };
	CLEANUP(text_done) struct text text = TEXT_INIT;

	generate_man(&text, cli_commands);
	CHECK(text_ok(&text));
	check_options(text_string(&text), (struct spelling){ "\\-\\-", "\\f", "\\-" }, true);
	for (size_t i = 0; sections[i]; i++) {
		char heading[64];

		snprintf(heading, sizeof(heading), "\n.SH %s\n", sections[i]);
		CHECK(count_of(text_string(&text), heading) == 1);
	}
	for (const struct variable *at = environment_table; at->name; at++)
		CHECK(strstr(text_string(&text), at->name));
}

/* Without --workspace no file of the caller's is in the sandbox, and such an example ends with 127. */
static void the_examples_hand_over_the_files_they_name(void)
{
	static const char *const files[] = { "\\-\\- ./", ".py\n", "main.c\n" };
	CLEANUP(text_done) struct text text = TEXT_INIT;
	const char *examples, *line;
	size_t found = 0;

	generate_man(&text, cli_commands);
	examples = strstr(text_string(&text), "\n.SH EXAMPLES\n");
	CHECK(examples);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		for (const char *at = examples; (at = strstr(at, files[i])); at++) {
			for (line = at; line[-1] != '\n';)
				line--;
			CHECK(strstr(line, "\\-\\-workspace ") &&
			      strstr(line, "\\-\\-workspace ") < at);
			found++;
		}
	}
	CHECK(found >= sizeof(files) / sizeof(files[0]));
}

static void groff_has_nothing_to_say_against_it(void)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;

	generate_man(&text, cli_commands);
	ACCEPTED(&text, "groff", "-man", "-Tutf8", "-ww");
}

int main(void)
{
	RUN(bash_has_everything);
	RUN(zsh_has_everything);
	RUN(fish_has_everything);
	RUN(the_man_page_has_everything);
	RUN(the_examples_hand_over_the_files_they_name);
	RUN(groff_has_nothing_to_say_against_it);
	return check_done();
}
