/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * option.h - one table per command: parsing, --help, the man page and the completions come from it.
 *
 * A table is an array of struct option that ends with a row of kind OPTION_END.  Each row says
 * where its value lands: the offset of a field in the command's own struct of arguments, whose
 * type goes with the kind.  Fields of options that were not given stay as they were.
 *
 * Spelling: --name VALUE, --name=VALUE, -i, -ih (several letters at once); "--" ends the options.
 * Given twice, the last one counts, but lists collect.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "resoluto/err.h"

enum option_kind {
	OPTION_END,      /* behind the last row */
	OPTION_GROUP,    /* a heading for the rows below it: help is its text */
	OPTION_FLAG,     /* bool */
	OPTION_TEXT,     /* const char * */
	OPTION_LIST,     /* struct strv; may be given several times */
	OPTION_BYTES,    /* uint64_t */
	OPTION_CPUS,     /* uint32_t, thousandths */
	OPTION_DURATION, /* uint64_t, milliseconds */
	OPTION_COUNT,    /* struct option_count: a whole number, 0 too */
	OPTION_CHOICE,   /* const char *, one of choices */
	OPTION_HELP,     /* no field: ends the parsing with wants_help */
	OPTION_RESERVED, /* refused: a later version brings it; help is the name of that version */
	OPTION_REFUSED,  /* refused for good; help says why and what to do instead */
};

struct option_count {
	bool is_set;
	uint64_t value;
};

enum option_hint {
	HINT_NONE,
	HINT_FILE, /* completion offers files */
	HINT_DIRECTORY,
};

struct option_choice {
	const char *name;  /* NULL behind the last one */
	const char *later; /* the version that brings it; NULL: this one */
};

struct option {
	enum option_kind kind;
	char letter; /* 0: none; letters take no value */
	enum option_hint hint;
	const char *name;  /* without the dashes; NULL: only a letter */
	const char *value; /* what help calls the value; NULL: it takes none */
	size_t offset;
	const struct option_choice *choices;
	const char *help; /* one or two sentences, lower case, no final stop */
};

/* The words of a command line that are no options.  They point into argv. */
struct option_words {
	const char **items; /* owned array, NULL-terminated; before "--" */
	size_t count;
	const char *const *program; /* what follows "--"; NULL: there was no "--" */
	bool wants_help;            /* --help was seen; what follows it was not looked at */
};

void option_words_done(struct option_words *words); /* a cleanup function */

/**
 * Parse argv (NULL-terminated, without the command's name) by a table.
 *
 * -EINVAL with a sentence that names the option, what is wrong, and what is meant.  Lists that were
 * filled belong to the caller also then: options_done().
 */
int options_parse(const struct option *options, const char *const *argv, void *args,
                  struct option_words *ret_words, struct resoluto_err *err);

/* Release the lists in args. */
void options_done(const struct option *options, void *args);

/* The name of candidates nearest to word, NULL if none is near. */
const char *nearest_name(const char *word, const char *const *candidates);

/* A row that help, man page and completion show as something one can use. */
bool option_is_usable(const struct option *option);

/* The text every refusal of something reserved has behind the name of the thing. */
int fail_reserved(struct resoluto_err *err, const char *thing, const char *later);
