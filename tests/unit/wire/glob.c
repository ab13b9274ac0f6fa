/* SPDX-License-Identifier: Apache-2.0 */
/* glob.c - patterns of outputs: a table, and a slow matcher written from the header as the judge. */
#include <errno.h>
#include <stdint.h>

#include "check.h"
#include "wire/glob.h"

static const struct {
	const char *pattern, *path;
	bool matches;
} cases[] = {
	{ "a", "a", true },
	{ "a", "b", false },
	{ "a", "a/b/c", true },
	{ "a/b", "a", false },
	{ "./a/", "a/x", true },
	{ "*.txt", "a.txt", true },
	{ "*.txt", "d/a.txt", false },
	{ "*.txt", "a.txt/x", true },
	{ "*", ".hidden", false },
	{ ".*", ".hidden", true },
	{ "*", "d/.hidden", true },
	{ "?x", ".x", false },
	{ "[.]x", ".x", false },
	{ "*x", "x", true },
	{ "a*b*c", "aXbYc", true },
	{ "a*b*c", "aXbY", false },
	{ "a?c", "abc", true },
	{ "a?c", "ac", false },
	{ "a?c", "a/c", false },
	{ "a*c", "a/c", false },
	{ "[a-c]x", "bx", true },
	{ "[a-c]x", "dx", false },
	{ "[!a-c]x", "dx", true },
	{ "[^a-c]x", "bx", false },
	{ "[]]x", "]x", true },
	{ "[a-]x", "-x", true },
	{ "x[/]y", "x/y", false },
	{ "**", "a", true },
	{ "**", "a/b", true },
	{ "**", ".a", false },
	{ "**/x", "x", true },
	{ "**/x", "a/b/x", true },
	{ "**/x", "a/.b/x", false },
	{ "a/**/x", "a/x", true },
	{ "a/**/x", "a/b/c/x", true },
	{ "a/**", "a", false },
	{ "a/**", "a/b", true },
	{ "a/**", "a/.b", false },
	{ "a/**", "a/b/.c", true },
	{ "a**b", "aXXb", true },
	{ "a**b", "a/b", false },
	{ "*", ".git", false },
	{ ".*", ".git", false },
	{ ".gi[t]", ".git", false },
	{ ".g*", ".git/config", false },
	{ ".git", ".git/config", true },
	{ ".git/config", ".git/config", true },
	{ "a", "a/.git/config", false },
	{ "**", "a/.git", false },
	{ "a/**", "a/b/.vscode/tasks.json", false },
	{ "**/.vscode", "a/.vscode/tasks.json", true },
	{ "a", "a/.envrc", false },
	{ "a", "a/.idea/x", false },
	{ "a", "a/.hg/hgrc", false },
	{ "a", "a/.github/x", true },
	{ "?", "\xc3\xa9", true },
	{ "??", "\xc3\xa9", false },
	{ "[\xc3\xa0-\xc3\xbf]", "\xc3\xa9", true },
	{ "?", "\xff", true },
	{ "\xff", "\xff", true },
	{ "\xff", "\xfe", false },
	{ "[!a]", "\xff", true },
	{ "", "a", false },
};

static void matches_what_it_should(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (glob_match(cases[i].pattern, cases[i].path) != cases[i].matches) {
			printf("# %s against %s\n", cases[i].pattern, cases[i].path);
			CHECK(false);
		}
	}
}

static void tells_bad_patterns(void)
{
	static const char *const bad[] = { "",   "/a",   "a/../b", "..",  ".",      "./",
		                           "a[", "a/[b", "[]",     "[!]", "a/[b/c]" };
	static const char *const good[] = { "a", "./a", "a/", "a//b", "**", "[]]", "a]", "..." };
	char long_one[GLOB_PATTERN_MAX + 2];
	struct resoluto_err err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err = (struct resoluto_err){ 0 };
		CHECK(glob_check(bad[i], &err) == -EINVAL && err.text[0]);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CHECK(glob_check(good[i], NULL) == 0);
	memset(long_one, 'a', sizeof(long_one));
	long_one[GLOB_PATTERN_MAX + 1] = '\0';
	CHECK(glob_check(long_one, NULL) == -EINVAL);
	long_one[GLOB_PATTERN_MAX] = '\0';
	CHECK(glob_check(long_one, NULL) == 0);
}

static void any_of_none_is_none(void)
{
	static const char *const two[] = { "x", "a*", NULL };

	CHECK(!glob_match_any(NULL, "a"));
	CHECK(!glob_match_any((const char *const[]){ NULL }, "a"));
	CHECK(glob_match_any(two, "ab") && !glob_match_any(two, "b"));
}

/* The judge: tries everything, for patterns of plain letters, '*', '?', '/' and '.'. */
static bool slow_part(const char *pattern, const char *pattern_end, const char *text,
                      const char *text_end)
{
	if (pattern == pattern_end)
		return text == text_end;
	if (*pattern == '*')
		return slow_part(pattern + 1, pattern_end, text, text_end) ||
		       (text < text_end && slow_part(pattern, pattern_end, text + 1, text_end));
	return text < text_end && (*pattern == '?' || *pattern == *text) &&
	       slow_part(pattern + 1, pattern_end, text + 1, text_end);
}

static const char *part_end(const char *text)
{
	return text + strcspn(text, "/");
}

static const char *after(const char *end)
{
	return *end ? end + 1 : end;
}

/* Does the pattern match all of path? */
static bool slow_whole(const char *pattern, const char *path)
{
	const char *pattern_end = part_end(pattern), *end = part_end(path);
	bool is_hidden = *path == '.';

	if (!*pattern || !*path)
		return !*pattern && !*path;
	if (strncmp(pattern, "**", 2) == 0 && pattern_end == pattern + 2) {
		if (*pattern_end && slow_whole(pattern_end + 1, path))
			return true;
		return !is_hidden && (slow_whole(pattern, after(end)) || (!*pattern_end && !*end));
	}
	return (!is_hidden || *pattern == '.') && slow_part(pattern, pattern_end, path, end) &&
	       slow_whole(after(pattern_end), after(end));
}

static bool slow_match(const char *pattern, const char *path)
{
	char upper[64];

	for (const char *end = path; *end;) {
		end = part_end(*end == '/' ? end + 1 : end);
		snprintf(upper, sizeof(upper), "%.*s", (int) (end - path), path);
		if (slow_whole(pattern, upper))
			return true;
	}
	return false;
}

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 16;
}

static void make_text(uint32_t *state, const char *const *parts, size_t count, char text[64])
{
	size_t components = 1 + next_random(state) % 4, len = 0;

	for (size_t i = 0; i < components; i++)
		len += (size_t) snprintf(text + len, 64 - len, "%s%s", i ? "/" : "",
		                         parts[next_random(state) % count]);
}

static void agrees_with_the_judge(void)
{
	static const char *const pattern_parts[] = { "a", "b",  "ab",   "*",  "**", "a*", "*b",
		                                     "?", "??", "*a*b", ".*", ".a", "***" };
	static const char *const path_parts[] = { "a", "b", "ab", "ba", "abab", ".a", ".b", "aab" };
	char pattern[64], path[64];
	uint32_t state = 1;
	int matched = 0;

	for (int i = 0; i < 200000; i++) {
		bool want;

		make_text(&state, pattern_parts, 13, pattern);
		make_text(&state, path_parts, 8, path);
		want = slow_match(pattern, path);
		matched += want;
		if (glob_match(pattern, path) != want) {
			printf("# %s against %s\n", pattern, path);
			CHECK(false);
		}
	}
	CHECK(matched > 1000); /* the draw is worth something */
}

/* A walk that prunes must not lose anything. */
static void never_prunes_what_matches(void)
{
	static const char *const pattern_parts[] = { "a", "*", "**", "a*", ".git", "?" };
	static const char *const path_parts[] = { "a", "b", ".git", ".a", "ab" };
	char pattern[64], path[64], upper[64];
	uint32_t state = 7;

	for (int i = 0; i < 100000; i++) {
		make_text(&state, pattern_parts, 6, pattern);
		make_text(&state, path_parts, 5, path);
		if (!glob_match(pattern, path))
			continue;
		for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
			snprintf(upper, sizeof(upper), "%.*s", (int) (slash - path), path);
			CHECK(glob_may_match_beneath(pattern, upper));
		}
		CHECK(glob_may_match_beneath(pattern, ""));
	}
}

static void prunes(void)
{
	CHECK(!glob_may_match_beneath("out/*.txt", "src"));
	CHECK(glob_may_match_beneath("out/*.txt", "out"));
	CHECK(!glob_may_match_beneath("out/*.txt", "out/deeper"));
	CHECK(glob_may_match_beneath("out", "out/deeper"));
	CHECK(!glob_may_match_beneath("out", "out/.git"));
	CHECK(glob_may_match_beneath("**/x", "a/b/c"));
	CHECK(!glob_may_match_beneath("**/x", ".a"));
}

/* Would take ages if either level went back without bound. */
static void stays_fast(void)
{
	char pattern[GLOB_PATTERN_MAX + 1] = "", path[4096] = "";
	size_t len = 0;

	for (int i = 0; i < 200; i++)
		len += (size_t) snprintf(pattern + len, sizeof(pattern) - len, "**/a/");
	snprintf(pattern + len, sizeof(pattern) - len, "b");
	for (len = 0; len + 3 < sizeof(path);)
		len += (size_t) snprintf(path + len, sizeof(path) - len, "a/");
	path[len - 1] = '\0';
	for (int i = 0; i < 20; i++)
		CHECK(!glob_match(pattern, path));
	for (len = 0; len + 3 < sizeof(pattern);)
		len += (size_t) snprintf(pattern + len, sizeof(pattern) - len, "*a");
	pattern[len - 1] = 'b';
	memset(path, 'a', 255);
	path[255] = '\0';
	for (int i = 0; i < 20; i++)
		CHECK(!glob_match(pattern, path));
}

int main(void)
{
	RUN(matches_what_it_should);
	RUN(tells_bad_patterns);
	RUN(any_of_none_is_none);
	RUN(agrees_with_the_judge);
	RUN(never_prunes_what_matches);
	RUN(prunes);
	RUN(stays_fast);
	return check_done();
}
