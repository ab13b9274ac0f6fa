/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glob.c - patterns over paths, as two small automata without backtracking.
 *
 * A pattern is a list of components.  Walking along a path keeps the set of places in that list where a match
 * may stand (a bit each), so "**" costs a bit, not a branch.  Within a component only the last '*' is ever
 * taken up again.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/path.h"
#include "wire/glob.h"
#include "wire/utf8.h"

enum {
	PARTS_MAX = GLOB_PATTERN_MAX / 2 + 1, /* components of the longest pattern */
	SET_WORDS = PARTS_MAX / 64 + 1,
	BROKEN_BYTE = 0x200000, /* added to a byte that is no UTF-8: beyond all characters */
};

struct pattern {
	struct path_part parts[PARTS_MAX];
	size_t count;
};

/* Places in a pattern: bit i says that the next component of the path is for parts[i]; bit count, that
 * all have been met. */
struct places {
	uint64_t words[SET_WORDS];
};

static void place_add(struct places *places, size_t at)
{
	places->words[at / 64] |= UINT64_C(1) << (at % 64);
}

static bool place_has(const struct places *places, size_t at)
{
	return places->words[at / 64] >> (at % 64) & 1;
}

static bool is_text(struct path_part part, const char *text)
{
	return part.len == strlen(text) && memcmp(part.at, text, part.len) == 0;
}

/* Components that a program of the host may act on; they are meant only where they are named. */
static bool is_sensitive(struct path_part part)
{
	static const char *const names[] = { ".git", ".hg", ".envrc", ".vscode", ".idea" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (is_text(part, names[i]))
			return true;
	}
	return false;
}

static bool is_deep(struct path_part part)
{
	return is_text(part, "**");
}

/* One character of UTF-8, or one byte that is none, told apart by a value beyond Unicode. */
static uint32_t take_char(struct path_part *text)
{
	const uint8_t *at = (const uint8_t *) text->at;
	uint32_t value;
	bool is_valid;
	size_t len = utf8_decode(at, text->len, &value, &is_valid);

	if (!is_valid) {
		len = 1;
		value = BROKEN_BYTE + at[0];
	}
	*text = (struct path_part){ text->at + len, text->len - len };
	return value;
}

/* The part of a pattern behind the ']' that closes the set at its start; NULL: none does.  A ']' that comes
 * first is one of the set. */
static const char *set_end(struct path_part pattern)
{
	size_t i = 1;

	if (i < pattern.len && (pattern.at[i] == '!' || pattern.at[i] == '^'))
		i++;
	if (i < pattern.len && pattern.at[i] == ']')
		i++;
	for (; i < pattern.len; i++) {
		if (pattern.at[i] == ']')
			return pattern.at + i + 1;
	}
	return NULL;
}

/* Is c in the set that pattern starts with and that ends before end? */
static bool set_has(struct path_part pattern, const char *end, uint32_t c)
{
	struct path_part set = { pattern.at + 1, (size_t) (end - 1 - (pattern.at + 1)) };
	bool is_inverted = set.len > 0 && (set.at[0] == '!' || set.at[0] == '^');
	bool is_in = false;

	if (is_inverted)
		set = (struct path_part){ set.at + 1, set.len - 1 };
	while (set.len > 0) {
		uint32_t first = take_char(&set), last = first;

		if (set.len > 1 && set.at[0] == '-') {
			set = (struct path_part){ set.at + 1, set.len - 1 };
			last = take_char(&set);
		}
		is_in |= first <= c && c <= last;
	}
	return is_in != is_inverted;
}

/* Match one character of text against what pattern starts with, which is no '*'. */
static bool match_char(struct path_part *pattern, struct path_part *text)
{
	uint32_t c = take_char(text);
	bool is_any = pattern->at[0] == '?';

	if (pattern->at[0] == '[') {
		const char *end = set_end(*pattern);
		struct path_part set = *pattern;

		if (!end)
			return false;
		*pattern = (struct path_part){ end, pattern->len - (size_t) (end - pattern->at) };
		return set_has(set, end, c);
	}
	return take_char(pattern) == c || is_any;
}

static bool match_wild(struct path_part pattern, struct path_part text)
{
	struct path_part star = { NULL, 0 }, star_text = { NULL, 0 };

	while (text.len > 0) {
		if (pattern.len > 0 && pattern.at[0] == '*') {
			pattern = (struct path_part){ pattern.at + 1, pattern.len - 1 };
			star = pattern;
			star_text = text;
			continue;
		}
		if (pattern.len > 0 && match_char(&pattern, &text))
			continue;
		if (!star.at)
			return false;
		/* The last '*' takes one character more. */
		take_char(&star_text);
		pattern = star;
		text = star_text;
	}
	while (pattern.len > 0 && pattern.at[0] == '*')
		pattern = (struct path_part){ pattern.at + 1, pattern.len - 1 };
	return pattern.len == 0;
}

static bool match_part(struct path_part pattern, struct path_part text)
{
	bool is_literal = pattern.len == text.len && memcmp(pattern.at, text.at, text.len) == 0;

	if (is_literal || is_sensitive(text))
		return is_literal;
	if (text.at[0] == '.' && pattern.at[0] != '.')
		return false;
	return match_wild(pattern, text);
}

/* "**" may stand for nothing, unless it comes last: then it means what is in the directory. */
static void place_add_open(struct places *places, const struct pattern *pattern, size_t at)
{
	place_add(places, at);
	while (at + 1 < pattern->count && is_deep(pattern->parts[at]))
		place_add(places, ++at);
}

static void step(const struct pattern *pattern, struct places *places, struct path_part text)
{
	struct places next = { { 0 } };

	for (size_t i = 0; i < pattern->count; i++) {
		struct path_part part = pattern->parts[i];

		if (!place_has(places, i))
			continue;
		if (!is_deep(part)) {
			if (match_part(part, text))
				place_add_open(&next, pattern, i + 1);
			continue;
		}
		if (text.at[0] == '.')
			continue;
		place_add_open(&next, pattern, i);
		if (i + 1 == pattern->count)
			place_add(&next, i + 1);
	}
	*places = next;
}

static void split(const char *text, struct pattern *ret_pattern)
{
	struct path_part part;

	ret_pattern->count = 0;
	while (ret_pattern->count < PARTS_MAX && path_next_part(&text, &part))
		ret_pattern->parts[ret_pattern->count++] = part;
}

static bool has_sensitive(const char *path)
{
	struct path_part part;

	while (path_next_part(&path, &part)) {
		if (is_sensitive(part))
			return true;
	}
	return false;
}

/* Walk the pattern along path.  True: it was met by path or by a directory above it whose tree path
 * belongs to.  *ret_is_open: something beneath path may still meet it. */
static bool walk(const char *text, const char *path, bool *ret_is_open)
{
	struct places places = { { 0 } };
	struct pattern pattern;
	struct path_part part;

	split(text, &pattern);
	*ret_is_open = false;
	if (pattern.count == 0)
		return false;
	place_add_open(&places, &pattern, 0);
	while (path_next_part(&path, &part)) {
		step(&pattern, &places, part);
		if (place_has(&places, pattern.count) && !has_sensitive(path))
			return true;
	}
	for (size_t i = 0; i < pattern.count; i++)
		*ret_is_open |= place_has(&places, i);
	return false;
}

bool glob_match(const char *pattern, const char *path)
{
	bool is_open;

	return walk(pattern, path, &is_open);
}

bool glob_match_any(const char *const *patterns, const char *path)
{
	for (; patterns && *patterns; patterns++) {
		if (glob_match(*patterns, path))
			return true;
	}
	return false;
}

bool glob_may_match_beneath(const char *pattern, const char *path)
{
	bool is_open;

	return walk(pattern, path, &is_open) || is_open;
}

static int check_part(struct path_part part, struct resoluto_err *err)
{
	if (is_text(part, ".."))
		return resoluto_fail(err, -EINVAL, "a pattern must not climb with \"..\"");
	while (part.len > 0) {
		const char *end = part.at[0] == '[' ? set_end(part) : part.at + 1;

		if (!end)
			return resoluto_fail(err, -EINVAL, "a '[' in the pattern is not closed");
		part = (struct path_part){ end, part.len - (size_t) (end - part.at) };
	}
	return 0;
}

int glob_check(const char *pattern, struct resoluto_err *err)
{
	const char *rest = pattern;
	bool is_empty = true;
	struct path_part part;

	if (*pattern == '/')
		return resoluto_fail(err, -EINVAL, "a pattern must be relative to the workspace");
	if (strlen(pattern) > GLOB_PATTERN_MAX)
		return resoluto_fail(err, -EINVAL, "a pattern is longer than %d bytes",
		                     GLOB_PATTERN_MAX);
	while (path_next_part(&rest, &part)) {
		int r = check_part(part, err);

		if (r < 0)
			return r;
		is_empty = false;
	}
	if (is_empty)
		return resoluto_fail(err, -EINVAL, "a pattern must name something");
	return 0;
}
