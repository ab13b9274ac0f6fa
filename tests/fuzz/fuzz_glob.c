/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_glob.c - patterns: the input is a pattern, a newline, a path.  A walk that prunes loses nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "wire/glob.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PATH_LEN_MAX = 4096 };

static void require(int truth)
{
	if (!truth)
		abort();
}

static void check_match(const char *pattern, char *path)
{
	static const char *const sensitive[] = { ".git", ".hg", ".envrc", ".vscode", ".idea" };

	for (size_t i = 0; i < sizeof(sensitive) / sizeof(sensitive[0]); i++) {
		const char *at = strstr(path, sensitive[i]);
		size_t len = strlen(sensitive[i]);

		/* As a whole component of the path it must stand in the pattern. */
		if (at && (at == path || at[-1] == '/') && (at[len] == '/' || !at[len]))
			require(strstr(pattern, sensitive[i]) != NULL);
	}
	for (char *slash = strrchr(path, '/'); slash; slash = strrchr(path, '/')) {
		*slash = '\0';
		require(glob_may_match_beneath(pattern, path));
	}
	require(glob_may_match_beneath(pattern, ""));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *newline = size > 0 ? memchr(data, '\n', size) : NULL;
	struct resoluto_err err = { 0 };
	char *pattern, *path;
	size_t pattern_len;

	if (!newline || size > PATH_LEN_MAX)
		return 0;
	pattern_len = (size_t) (newline - data);
	pattern = strndup((const char *) data, pattern_len);
	path = strndup((const char *) newline + 1, size - pattern_len - 1);
	require(pattern && path);
	if (glob_check(pattern, &err) < 0) {
		require(err.text[0] && !strchr(err.text, '\n'));
	} else if (path_is_beneath(path)) {
		(void) glob_may_match_beneath(pattern, path);
		if (glob_match(pattern, path))
			check_match(pattern, path);
	}
	free(pattern);
	free(path);
	return 0;
}
