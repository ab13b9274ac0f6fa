/* SPDX-License-Identifier: Apache-2.0 */
/* dotenv.c - from the text of an env file to a list of variables, in one pass and one sort. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/span.h"
#include "secrets/dotenv.h"

/* A stretch of the text. */
struct variable {
	struct span name, value;
	size_t line;
	bool is_overridden; /* a later line has the same name */
};

struct variables {
	struct variable *list; /* owned; in the order of the lines */
	size_t count, cap;
};

static void variables_done(struct variables *variables)
{
	free(variables->list);
}

static int variables_add(struct variables *variables, const struct variable *variable)
{
	if (variables->count == variables->cap) {
		size_t cap = variables->cap ? variables->cap * 2 : 32;
		struct variable *list = realloc(variables->list, cap * sizeof(*list));

		if (!list)
			return -ENOMEM;
		variables->list = list;
		variables->cap = cap;
	}
	variables->list[variables->count++] = *variable;
	return 0;
}

static bool has_byte_order_mark(struct span text)
{
	return text.len >= 3 && memcmp(text.at, "\xef\xbb\xbf", 3) == 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

bool dotenv_is_name(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char) text[i];

		if (c <= ' ' || c == 0x7f || c == '=')
			return false;
	}
	return len > 0;
}

static struct span without_export(struct span line)
{
	static const char word[] = "export";
	const size_t len = sizeof(word) - 1;

	if (line.len <= len || memcmp(line.at, word, len) != 0 || !is_blank(line.at[len]))
		return line;
	return span_trim((struct span){ line.at + len, line.len - len }, " \t");
}

/* Take one pair of quotes off.  False: the value begins with a quote and does not end with it. */
static bool unquote(struct span *value)
{
	char quote = value->len > 0 ? value->at[0] : '\0';

	if (quote != '\'' && quote != '"')
		return true;
	if (value->len < 2 || value->at[value->len - 1] != quote)
		return false;
	value->at++;
	value->len -= 2;
	return true;
}

static int parse_line(struct span line, size_t number, struct variables *variables,
                      struct resoluto_err *err)
{
	struct variable variable = { .line = number };
	const char *equals;
	int r;

	if (memchr(line.at, '\0', line.len))
		return resoluto_fail(err, -EINVAL, "line %zu has a NUL byte", number);
	/* Of a file that was put behind another: nobody sees it, and it would be part of the name. */
	if (has_byte_order_mark(line))
		return resoluto_fail(err, -EINVAL,
		                     "line %zu: a byte order mark is only for the first line",
		                     number);
	line = span_trim(line, " \t");
	if (line.len == 0 || line.at[0] == '#')
		return 0;
	line = without_export(line);
	equals = memchr(line.at, '=', line.len);
	if (!equals)
		return resoluto_fail(err, -EINVAL, "line %zu has no '='", number);
	variable.name = (struct span){ line.at, (size_t) (equals - line.at) };
	if (!dotenv_is_name(variable.name.at, variable.name.len))
		return resoluto_fail(err, -EINVAL,
		                     "line %zu: what is before '=' is no name of a variable: it is "
		                     "empty, or has a blank or control character",
		                     number);
	variable.value = span_trim((struct span){ equals + 1, line.len - variable.name.len - 1 },
	                           " \t");
	if (!unquote(&variable.value))
		return resoluto_fail(err, -EINVAL,
		                     "line %zu: the quote that begins the value does not end it",
		                     number);
	r = variables_add(variables, &variable);
	return r < 0 ? resoluto_fail(err, r, "line %zu", number) : 0;
}

static int parse_lines(struct span text, struct variables *variables, struct resoluto_err *err)
{
	for (size_t number = 1; text.len > 0; number++) {
		const char *end = memchr(text.at, '\n', text.len);
		struct span line = { text.at, end ? (size_t) (end - text.at) : text.len };
		size_t used = line.len + (end ? 1 : 0);
		int r;

		if (line.len > 0 && line.at[line.len - 1] == '\r')
			line.len--;
		r = parse_line(line, number, variables, err);
		if (r < 0)
			return r;
		text.at += used;
		text.len -= used;
	}
	return 0;
}

/* By name, of equal ones the later line first. */
static int by_name(const void *a, const void *b)
{
	const struct variable *one = *(struct variable *const *) a;
	const struct variable *other = *(struct variable *const *) b;
	const size_t shorter = one->name.len < other->name.len ? one->name.len : other->name.len;
	int order = memcmp(one->name.at, other->name.at, shorter);

	if (order == 0 && one->name.len != other->name.len)
		order = one->name.len < other->name.len ? -1 : 1;
	if (order == 0)
		order = one->name.at > other->name.at ? -1 : one->name.at < other->name.at;
	return order;
}

static bool is_same_name(const struct variable *a, const struct variable *b)
{
	return a->name.len == b->name.len && memcmp(a->name.at, b->name.at, a->name.len) == 0;
}

static int mark_overridden(struct variables *variables)
{
	CLEANUP(mem_free) struct variable **sorted = NULL;

	if (variables->count == 0)
		return 0;
	sorted = malloc(variables->count * sizeof(struct variable *));
	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < variables->count; i++)
		sorted[i] = &variables->list[i];
	qsort(sorted, variables->count, sizeof(struct variable *), by_name);
	for (size_t i = 1; i < variables->count; i++)
		sorted[i]->is_overridden = is_same_name(sorted[i], sorted[i - 1]);
	return 0;
}

static void forget_from(struct strv *env, size_t count)
{
	while (env->count > count) {
		free(env->items[--env->count]);
		env->items[env->count] = NULL;
	}
}

static int append_one(const struct variable *variable, dotenv_check_fn *check, struct strv *env,
                      struct resoluto_err *err)
{
	int r = strv_addf(env, "%.*s=%.*s", (int) variable->name.len, variable->name.at,
	                  (int) variable->value.len, variable->value.at);

	if (r < 0)
		return resoluto_fail(err, r, "read the variables");
	r = check ? check(env->items[env->count - 1], err) : 0;
	return r < 0 ? resoluto_fail_in(err, r, "line %zu", variable->line) : 0;
}

static int append(const struct variables *variables, dotenv_check_fn *check, struct strv *env,
                  struct resoluto_err *err)
{
	const size_t before = env->count;
	int r = 0;

	for (size_t i = 0; i < variables->count && r == 0; i++) {
		if (!variables->list[i].is_overridden)
			r = append_one(&variables->list[i], check, env, err);
	}
	if (r < 0)
		forget_from(env, before);
	return r;
}

int dotenv_parse(const char *text, size_t len, dotenv_check_fn *check, struct strv *ret_env,
                 struct resoluto_err *err)
{
	CLEANUP(variables_done) struct variables variables = { 0 };
	struct span rest = { text, len };
	int r;

	if (len > DOTENV_MAX)
		return resoluto_fail(err, -E2BIG, "larger than %d bytes", DOTENV_MAX);
	if (has_byte_order_mark(rest))
		rest = (struct span){ text + 3, len - 3 };
	r = parse_lines(rest, &variables, err);
	if (r < 0)
		return r;
	r = mark_overridden(&variables);
	if (r < 0)
		return resoluto_fail(err, r, "read the variables");
	return append(&variables, check, ret_env, err);
}
