/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * glob.h - patterns of output paths (interfaces section 8).  Pure; time grows with pattern times path, never
 * faster.
 *
 * A pattern is relative.  '*', '?' and [a-z] ([!a-z]) stay within a component and take whole UTF-8 characters;
 * '**' as a whole component is any number of components, at the end at least one (not the
 * directory before it).  Wildcards skip a leading dot.  A pattern that matches a directory means its whole tree.  Components
 * .git .hg .envrc .vscode .idea are never matched by a wildcard nor meant by the tree of a directory above:
 * they must stand literally in the pattern.
 */

#include <stdbool.h>

#include "resoluto/err.h"

enum { GLOB_PATTERN_MAX = 1024 }; /* bytes */

/* -EINVAL with the reason: absolute, "..", empty, too long, an open '['.  "./" at the start and "/" at the
 * end are fine. */
int glob_check(const char *pattern, struct resoluto_err *err);
/* Does path, or a directory above it, match?  path is relative, without "." and "..". */
bool glob_match(const char *pattern, const char *path);
/* patterns: NULL-terminated, may be NULL (nothing matches). */
bool glob_match_any(const char *const *patterns, const char *path);
/* Could something beneath the directory path match?  (So that a walk can leave out the rest.) */
bool glob_may_match_beneath(const char *pattern, const char *path);
