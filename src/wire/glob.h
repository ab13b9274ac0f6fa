/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * glob.h - patterns of output paths (interfaces section 8).  Pure, no backtracking without bound.
 *
 * A pattern is relative.  '*' and '?' and [a-z] stay within a component, '**' as a whole component
 * matches any number of components.  Wildcards skip a leading dot; components .git .hg .envrc
 * .vscode .idea must stand literally in the pattern.  A pattern that matches a directory means its
 * whole tree.
 */

#include <stdbool.h>

#include "resoluto/err.h"

enum { GLOB_PATTERN_MAX = 1024 }; /* bytes */

/* -EINVAL with the reason: absolute, "..", empty, too long, an open '['. */
int glob_check(const char *pattern, struct resoluto_err *err);
/* Does path, or a directory above it, match?  path is relative, without "." and "..". */
bool glob_match(const char *pattern, const char *path);
bool glob_match_any(const char *const *patterns, const char *path);
/* Could something beneath the directory path match?  (So that a walk can leave out the rest.) */
bool glob_may_match_beneath(const char *pattern, const char *path);
