/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/quantity.h"
#include "cli/option.h"
#include "resoluto/version.h"

enum {
	SHOWN = 80,        /* bytes of a user's word that a message repeats */
	NEAR_MAX = 32,     /* longer words have no neighbours */
	NAMES_MAX = 96,    /* options of one command */
	NAMES_SHOWN = 256, /* bytes of the values of a choice */
};

struct parser {
	const struct option *options;
	const char *const *argv; /* the word that is looked at next */
	char *args;
	struct option_words *words;
	struct resoluto_err *err;
};

void option_words_done(struct option_words *words)
{
	free(words->items);
	*words = (struct option_words){ 0 };
}

bool option_is_usable(const struct option *option)
{
	return option->kind > OPTION_GROUP && option->kind < OPTION_RESERVED;
}

int fail_reserved(struct resoluto_err *err, const char *thing, const char *later)
{
	return resoluto_fail(err, -EINVAL, "%s is not yet in this version (%s); it comes with %s",
	                     thing, RESOLUTO_VERSION, later);
}

static size_t smallest(size_t a, size_t b, size_t c)
{
	size_t least = a < b ? a : b;

	return least < c ? least : c;
}

/* How many letters must be put in, taken out, changed or swapped with their neighbour to make b
 * of a.  rows: of the table of distances between beginnings of a and b, the last three. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t rows[3][NEAR_MAX + 1], m = strlen(a), n = strlen(b);

	if (m > NEAR_MAX || n > NEAR_MAX)
		return NEAR_MAX;
	for (size_t j = 0; j <= n; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= m; i++) {
		size_t *row = rows[i % 3];
		const size_t *above = rows[(i + 2) % 3], *above_that = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			row[j] = smallest(above[j] + 1, row[j - 1] + 1,
			                  above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    above_that[j - 2] + 1 < row[j])
				row[j] = above_that[j - 2] + 1;
		}
	}
	return rows[m % 3][n];
}

const char *nearest_name(const char *word, const char *const *candidates)
{
	size_t best = 1 + (strlen(word) + 1) / 3;
	const char *found = NULL;

	for (; *candidates; candidates++) {
		size_t distance = edit_distance(word, *candidates);

		if (distance < best) {
			best = distance;
			found = *candidates;
		}
	}
	return found;
}

static const struct option *find_name(const struct option *options, const char *name, size_t len)
{
	for (; options->kind != OPTION_END; options++) {
		if (options->name && strncmp(options->name, name, len) == 0 &&
		    options->name[len] == '\0')
			return options;
	}
	return NULL;
}

static const struct option *find_letter(const struct option *options, char letter)
{
	for (; options->kind != OPTION_END; options++) {
		if (options->letter && options->letter == letter)
			return options;
	}
	return NULL;
}

static int fail_unknown(struct parser *parser, const char *name, size_t len)
{
	const char *names[NAMES_MAX + 1];
	const char *near;
	char word[SHOWN + 1];
	size_t count = 0;

	for (const struct option *at = parser->options; at->kind != OPTION_END; at++) {
		if (at->name && option_is_usable(at) && count < NAMES_MAX)
			names[count++] = at->name;
	}
	names[count] = NULL;
	snprintf(word, sizeof(word), "%.*s", len > SHOWN ? SHOWN : (int) len, name);
	near = nearest_name(word, names);
	if (near)
		return resoluto_fail(parser->err, -EINVAL,
		                     "unknown option --%s; did you mean --%s?", word, near);
	return resoluto_fail(parser->err, -EINVAL, "unknown option --%s; --help lists them", word);
}

/* Says the option's name itself: what is reserved is the option with this value. */
static int store_choice(const struct option *option, const char *value, const char **field,
                        struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf names = BUF_INIT(NAMES_SHOWN);
	char thing[SHOWN * 2];

	for (const struct option_choice *choice = option->choices; choice->name; choice++) {
		if (strcmp(choice->name, value) == 0 && choice->later) {
			snprintf(thing, sizeof(thing), "--%s %s", option->name, value);
			return fail_reserved(err, thing, choice->later);
		}
		if (strcmp(choice->name, value) == 0) {
			*field = choice->name;
			return 0;
		}
		if (!choice->later)
			(void) buf_addf(&names, "%s%s", names.len ? ", " : "", choice->name);
	}
	return resoluto_fail(err, -EINVAL, "--%s: '%.*s' is none of: %s", option->name, SHOWN,
	                     value, names.data ? names.data : "");
}

/* A limit of 0 would mean "the default" further down: say so instead of doing something else. */
static int refuse_zero(int r, uint64_t amount, struct resoluto_err *err)
{
	if (r == 0 && amount == 0)
		return resoluto_fail(err, -EINVAL,
		                     "0 is no limit one can work with; leave the option out for "
		                     "the default");
	return r;
}

static int store_quantity(const struct option *option, const char *value, void *field,
                          struct resoluto_err *err)
{
	uint32_t milli = 0;
	uint64_t amount = 0;
	int r;

	if (option->kind == OPTION_CPUS) {
		r = quantity_parse_cpus(value, &milli, err);
		r = refuse_zero(r, milli, err);
		if (r == 0)
			*(uint32_t *) field = milli;
		return r;
	}
	if (option->kind == OPTION_BYTES)
		r = quantity_parse_bytes(value, &amount, err);
	else
		r = quantity_parse_duration(value, &amount, err);
	r = refuse_zero(r, amount, err);
	if (r == 0)
		*(uint64_t *) field = amount;
	return r;
}

static int store_count(const char *value, struct option_count *count, struct resoluto_err *err)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(value, &end, 10);
	if (errno || *end || value[strspn(value, "0123456789")])
		return resoluto_fail(err, -EINVAL, "'%.*s' is not a whole number", SHOWN, value);
	*count = (struct option_count){ .is_set = true, .value = number };
	return 0;
}

static int store_value(const struct option *option, const char *value, void *field,
                       struct resoluto_err *err)
{
	switch (option->kind) {
	case OPTION_TEXT:
		*(const char **) field = value;
		return 0;
	case OPTION_LIST:
		if (strv_add(field, value) < 0)
			return resoluto_fail(err, -ENOMEM, "out of memory");
		return 0;
	case OPTION_CHOICE:
		return store_choice(option, value, field, err);
	case OPTION_COUNT:
		return store_count(value, field, err);
	case OPTION_BYTES:
	case OPTION_CPUS:
	case OPTION_DURATION:
		return store_quantity(option, value, field, err);
	default:
		return resoluto_fail(err, -EINVAL, "takes no value");
	}
}

/* How the user wrote it: "--name" or "-i". */
static void spell(const struct option *option, char *ret_text, size_t cap)
{
	if (option->name)
		snprintf(ret_text, cap, "--%s", option->name);
	else
		snprintf(ret_text, cap, "-%c", option->letter);
}

/* value: behind '=', NULL if there was none; then the next word of argv is it.  1: stop here. */
static int take_option(struct parser *parser, const struct option *option, const char *value)
{
	void *field = parser->args + option->offset;
	char name[SHOWN];
	int r;

	spell(option, name, sizeof(name));
	if (option->kind == OPTION_HELP && !value) {
		parser->words->wants_help = true;
		return 1;
	}
	if (option->kind == OPTION_RESERVED)
		return fail_reserved(parser->err, name, option->help);
	if (option->kind == OPTION_REFUSED)
		return resoluto_fail(parser->err, -EINVAL, "%s: %s", name, option->help);
	if (!option->value) {
		if (value)
			return resoluto_fail(parser->err, -EINVAL, "%s takes no value", name);
		*(bool *) field = true;
		return 0;
	}
	/* A word that begins with two dashes is far more often the next option than a value. */
	if (!value && *parser->argv && strncmp(*parser->argv, "--", 2) != 0)
		value = *parser->argv++;
	if (!value || value[0] == '\0')
		return resoluto_fail(parser->err, -EINVAL, "%s needs a value: %s=%s", name, name,
		                     option->value);
	r = store_value(option, value, field, parser->err);
	if (r < 0 && option->kind != OPTION_CHOICE)
		return resoluto_fail_in(parser->err, r == -ENOMEM ? r : -EINVAL, "%s", name);
	return r;
}

static int take_long(struct parser *parser, const char *name)
{
	size_t len = strcspn(name, "=");
	const struct option *option = find_name(parser->options, name, len);

	if (!option)
		return fail_unknown(parser, name, len);
	return take_option(parser, option, name[len] ? name + len + 1 : NULL);
}

static int take_letters(struct parser *parser, const char *letters)
{
	for (; *letters; letters++) {
		const struct option *option = find_letter(parser->options, *letters);
		int r;

		if (!option)
			return resoluto_fail(parser->err, -EINVAL,
			                     "unknown option -%c; --help lists them", *letters);
		r = take_option(parser, option, NULL);
		if (r != 0)
			return r;
	}
	return 0;
}

/* Returns 1 at the end of the options: "--", --help, or no word left. */
static int take_word(struct parser *parser)
{
	const char *word = *parser->argv;

	if (!word)
		return 1;
	parser->argv++;
	if (strcmp(word, "--") == 0) {
		parser->words->program = parser->argv;
		return 1;
	}
	if (strncmp(word, "--", 2) == 0)
		return take_long(parser, word + 2);
	if (word[0] == '-' && word[1])
		return take_letters(parser, word + 1);
	parser->words->items[parser->words->count++] = word;
	return 0;
}

int options_parse(const struct option *options, const char *const *argv, void *args,
                  struct option_words *ret_words, struct resoluto_err *err)
{
	CLEANUP(option_words_done) struct option_words words = { 0 };
	struct parser parser = { options, argv, args, &words, err };
	int r;

	words.items = calloc(strv_count(argv) + 1, sizeof(*words.items));
	if (!words.items)
		return resoluto_fail(err, -ENOMEM, "out of memory");
	do {
		r = take_word(&parser);
	} while (r == 0);
	if (r < 0)
		return r;
	*ret_words = words;
	words = (struct option_words){ 0 };
	return 0;
}

void options_done(const struct option *options, void *args)
{
	for (; options->kind != OPTION_END; options++) {
		if (options->kind == OPTION_LIST)
			strv_done((struct strv *) ((char *) args + options->offset));
	}
}
