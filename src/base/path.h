/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * path.h - names that cannot escape.
 *
 * A "beneath" path is relative, without empty, "." or ".." components.  Opening
 * beneath a descriptor goes through openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
 * RESOLVE_NO_MAGICLINKS), so that not even a hostile writer in the same directory can
 * lead it out.  Kernels without openat2 (before 5.6) get -ENOSYS: nothing weaker is tried.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "resoluto/err.h"

bool path_is_beneath(const char *path); /* pure: relative, and no empty, "." or ".." component */

/* One component of a path; not terminated. */
struct path_part {
	const char *at;
	size_t len; /* bytes */
};

/* Pure: take the next component that says something (empty ones and "." do not) and move *path
 * behind it; false at the end. */
bool path_next_part(const char **path, struct path_part *ret_part);

/* Pure: "a/b" of "./a//b/", "." of "./", and of "" still "": one spelling for each path.  ".." and a leading '/'
 * stay.  free(); NULL: no memory. */
char *path_plain(const char *path);

/* openat2 with these RESOLVE_ flags; O_CLOEXEC is added.  mode counts with O_CREAT only.  -EAGAIN: with O_NONBLOCK the file is under
 * somebody's lease; else names change all the time. */
int open_resolving(int dirfd, const char *path, int flags, mode_t mode, uint64_t resolve);
/* The same beneath dirfd, through no link. */
int open_beneath(int dirfd, const char *path, int flags, mode_t mode);
/* Make path and its parents beneath dirfd; what exists as a directory is fine. */
int mkdirs_beneath(int dirfd, const char *path, mode_t mode);
/* Open the directory that holds path beneath dirfd, making it if asked; *ret_name points into path. */
int open_parent_beneath(int dirfd, const char *path, bool make, mode_t mode, const char **ret_name);
/* Make an ordinary absolute or relative path with its parents, like mkdir -p. */
int mkdirs(const char *path, mode_t mode);
/* Remove name and all beneath it, never following a link, however deep and whatever its modes.
 * What is not there is fine. */
int remove_tree_at(int dirfd, const char *name);
