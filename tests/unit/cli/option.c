/* SPDX-License-Identifier: Apache-2.0 */

/* option.c - the parser of options, on a table of its own and on that of `run`. */

#include <errno.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "check.h"
#include "cli/option.h"
#include "cli/run_options.h"

struct args {
	bool flag, other;
	const char *text, *choice;
	struct strv list;
	uint64_t bytes, duration;
	uint32_t cpus;
};

static const struct option_choice choices[] = {
	{ .name = "red" },
	{ .name = "blue", .later = "the blue version" },
	{ .name = NULL },
};

#define FIELD(member) .offset = offsetof(struct args, member)

static const struct option table[] = {
	{ OPTION_GROUP, .help = "A group" },
	{ OPTION_FLAG, 'f', .name = "flag", FIELD(flag), .help = "flag" },
	{ OPTION_FLAG, 'o', FIELD(other), .help = "only a letter" },
	{ OPTION_TEXT, .name = "text", .value = "TEXT", FIELD(text), .help = "text" },
	{ OPTION_CHOICE, .name = "choice", .value = "COLOUR", FIELD(choice), .choices = choices,
	  .help = "choice" },
	{ OPTION_LIST, .name = "list", .value = "ITEM", FIELD(list), .help = "list" },
	{ OPTION_BYTES, .name = "bytes", .value = "SIZE", FIELD(bytes), .help = "bytes" },
	{ OPTION_CPUS, .name = "cpus", .value = "N", FIELD(cpus), .help = "cpus" },
	{ OPTION_DURATION, .name = "duration", .value = "TIME", FIELD(duration),
	  .help = "duration" },
	{ OPTION_HELP, 'h', .name = "help", .help = "help" },
	{ OPTION_RESERVED, .name = "later", .help = "the later version" },
	{ OPTION_REFUSED, 't', .help = "there is no terminal" },
	{ .kind = OPTION_END },
};

static struct args args;
static struct resoluto_err err;

/* Parse the words given, NULL behind the last. */
#define PARSE(words, ...) parse(words, (const char *const[]){ __VA_ARGS__, NULL })

static int parse(struct option_words *words, const char *const *argv)
{
	options_done(table, &args);
	args = (struct args){ 0 };
	err = (struct resoluto_err){ 0 };
	return options_parse(table, argv, &args, words, &err);
}

static void takes_values_in_both_spellings(void)
{
	CLEANUP(option_words_done) struct option_words words = { 0 };

	CHECK(PARSE(&words, "--text", "a", "--bytes=2Ki", "--cpus", "0.5", "--duration=1.5s",
	            "--flag") == 0);
	CHECK_STR(args.text, "a");
	CHECK(args.bytes == 2048);
	CHECK(args.cpus == 500);
	CHECK(args.duration == 1500);
	CHECK(args.flag && !args.other);
	CHECK(words.count == 0 && !words.program);
}

static void the_last_one_counts_and_lists_collect(void)
{
	CLEANUP(option_words_done) struct option_words words = { 0 };

	CHECK(PARSE(&words, "--text=a", "--list", "x", "--text=b=c", "--list=y") == 0);
	CHECK_STR(args.text, "b=c");
	CHECK(args.list.count == 2);
	CHECK_STR(args.list.items[1], "y");
}

static void letters_may_stand_together(void)
{
	CLEANUP(option_words_done) struct option_words words = { 0 };

	CHECK(PARSE(&words, "-of") == 0);
	CHECK(args.flag && args.other);
}

static void two_dashes_split(void)
{
	CLEANUP(option_words_done) struct option_words words = { 0 };

	CHECK(PARSE(&words, "word", "-", "--", "--flag", "--") == 0);
	CHECK(words.count == 2 && !args.flag);
	CHECK_STR(words.items[1], "-");
	CHECK_STR(words.program[0], "--flag");
	CHECK_STR(words.program[1], "--");
	CHECK(!words.program[2]);
}

static void nothing_behind_the_dashes_is_not_no_dashes(void)
{
	CLEANUP(option_words_done) struct option_words words = { 0 };

	CHECK(PARSE(&words, "--") == 0);
	CHECK(words.program && !words.program[0]);
}

static void help_ends_the_parsing(void)
{
	CLEANUP(option_words_done) struct option_words words = { 0 };

	CHECK(PARSE(&words, "--help", "--nonsense") == 0);
	CHECK(words.wants_help);
	option_words_done(&words);
	CHECK(PARSE(&words, "-fh", "--nonsense") == 0);
	CHECK(words.wants_help);
}

struct refusal {
	const char *argv[4];
	const char *text; /* all of it */
};

static const struct refusal refusals[] = {
	{ { "--txet=a" }, "unknown option --txet; did you mean --text?" },
	{ { "--lis" }, "unknown option --lis; did you mean --list?" },
	{ { "--frobnicate=yes" }, "unknown option --frobnicate; --help lists them" },
	{ { "--"
	    "=x" },
	  "unknown option --; --help lists them" },
	{ { "-x" }, "unknown option -x; --help lists them" },
	{ { "-fx" }, "unknown option -x; --help lists them" },
	{ { "--text" }, "--text needs a value: --text=TEXT" },
	{ { "--text", "--flag" }, "--text needs a value: --text=TEXT" },
	{ { "--text", "--" }, "--text needs a value: --text=TEXT" },
	{ { "--text=" }, "--text needs a value: --text=TEXT" },
	{ { "--flag=yes" }, "--flag takes no value" },
	{ { "--bytes=lots" }, "--bytes: 'lots' is not a quantity such as 4Gi, 512Mi or 1000000" },
	{ { "--bytes=-1" }, "--bytes: '-1' is not a quantity such as 4Gi, 512Mi or 1000000" },
	{ { "--bytes=99999999Pi" }, "--bytes: '99999999Pi' is too large" },
	{ { "--cpus=two" }, "--cpus: 'two' is not a quantity such as 2, 0.5 or 500m" },
	{ { "--duration=soon" },
	  "--duration: 'soon' is not a quantity such as 90s, 15m, 1.5h or 250ms" },
	{ { "--duration=0" },
	  "--duration: 0 is no limit one can work with; leave the option out for the default" },
	{ { "--choice=green" }, "--choice: 'green' is none of: red" },
	{ { "--choice=blue" },
	  "--choice blue is not yet in this version (0.1.0); it comes with the blue version" },
	{ { "--later" },
	  "--later is not yet in this version (0.1.0); it comes with the later version" },
	{ { "--later=x" },
	  "--later is not yet in this version (0.1.0); it comes with the later version" },
	{ { "-t" }, "-t: there is no terminal" },
	{ { "-ft" }, "-t: there is no terminal" },
};

static void refusals_say_what_and_what_to_do(void)
{
	CLEANUP(option_words_done) struct option_words words = { 0 };

	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		int r = parse(&words, refusals[i].argv);

		if (r != -EINVAL)
			printf("# row %zu\n", i);
		CHECK(r == -EINVAL);
		CHECK_STR(err.text, refusals[i].text);
	}
}

static void a_hostile_word_is_cut(void)
{
	CLEANUP(option_words_done) struct option_words words = { 0 };
	char word[4096] = "--";

	memset(word + 2, 'a', sizeof(word) - 3);
	CHECK(PARSE(&words, word) == -EINVAL);
	CHECK(strlen(err.text) < 200);
}

/* Every row of `run`, with a value of its kind. */
static const char *value_for(const struct option *option)
{
	switch (option->kind) {
	case OPTION_BYTES:
		return "64Mi";
	case OPTION_CPUS:
		return "1";
	case OPTION_DURATION:
		return "9s";
	case OPTION_CHOICE:
		return option->choices[0].name;
	default:
		return "value";
	}
}

static void check_row(const struct option *row)
{
	CLEANUP(option_words_done) struct option_words words = { 0 };
	struct run_args given = { 0 }, none = { 0 };
	char spelt[64];
	const char *argv[3] = { spelt, NULL, NULL };
	int r;

	if (row->name)
		snprintf(spelt, sizeof(spelt), "--%s", row->name);
	else
		snprintf(spelt, sizeof(spelt), "-%c", row->letter);
	if (row->value && option_is_usable(row))
		argv[1] = value_for(row);
	r = options_parse(run_option_table, argv, &given, &words, &err);
	if (!option_is_usable(row)) {
		CHECK(r == -EINVAL);
		CHECK(strstr(err.text, row->help) != NULL);
		CHECK(strncmp(err.text, spelt, strlen(spelt)) == 0);
		return;
	}
	CHECK(r == 0);
	CHECK(words.wants_help == (row->kind == OPTION_HELP));
	CHECK(words.wants_help || memcmp(&given, &none, sizeof(given)) != 0);
	options_done(run_option_table, &given);
}

static void every_option_of_run_is_taken_or_refused(void)
{
	size_t usable = 0, refused = 0;

	for (const struct option *row = run_option_table; row->kind != OPTION_END; row++) {
		if (row->kind == OPTION_GROUP)
			continue;
		check_row(row);
		option_is_usable(row) ? usable++ : refused++;
	}
	CHECK(usable == 43);
	CHECK(refused == 11);
}

static bool fields_differ(const struct option *a, const struct option *b)
{
	return a->kind == OPTION_HELP || b->kind == OPTION_HELP || a->offset != b->offset;
}

/* No name, letter or field is used twice; every row explains itself. */
static void the_table_of_run_is_sound(void)
{
	for (const struct option *a = run_option_table; a->kind != OPTION_END; a++) {
		CHECK(a->help && a->help[0] && a->help[strlen(a->help) - 1] != '.');
		if (a->kind == OPTION_GROUP)
			continue;
		CHECK(a->name || a->letter);
		CHECK(!a->letter || !a->value);
		CHECK(a->kind != OPTION_CHOICE || a->choices);
		for (const struct option *b = a + 1; b->kind != OPTION_END; b++) {
			CHECK(!a->name || !b->name || strcmp(a->name, b->name) != 0);
			CHECK(!a->letter || a->letter != b->letter);
			CHECK(!option_is_usable(a) || !option_is_usable(b) || fields_differ(a, b));
		}
	}
}

int main(void)
{
	RUN(takes_values_in_both_spellings);
	RUN(the_last_one_counts_and_lists_collect);
	RUN(letters_may_stand_together);
	RUN(two_dashes_split);
	RUN(nothing_behind_the_dashes_is_not_no_dashes);
	RUN(help_ends_the_parsing);
	RUN(refusals_say_what_and_what_to_do);
	RUN(a_hostile_word_is_cut);
	RUN(every_option_of_run_is_taken_or_refused);
	RUN(the_table_of_run_is_sound);
	options_done(table, &args);
	return check_done();
}
