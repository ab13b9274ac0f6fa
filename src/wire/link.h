/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * link.h - where a symbolic link in a tree leads, told from its text alone.  Pure.
 *
 * A target that climbs only at its start ("../../lib/x") ends in a real ancestor of the link and goes
 * down from there: it stays inside as long as every other link does.  One that climbs behind a name
 * ("a/../b") is different: if "a" is itself a link, to "." say, it may end anywhere, so it counts only
 * where the names before the ".." are seen to be real directories.
 */

#include "base/buf.h"

enum link_kind {
	LINK_INSIDE,
	LINK_OUTSIDE, /* absolute, or climbs over the top of the tree */
	LINK_DEPENDS, /* inside if link_base() is a real directory */
};

/* path: of the link, beneath the top of the tree; target: what it says. */
enum link_kind link_classify(const char *path, const char *target);
/* For LINK_DEPENDS: the path of what must be a real directory, reached without following any link:
 * the link's own directory and the target up to its last "..".  Never "" (then "."). */
int link_base(const char *path, const char *target, struct buf *ret_base);
/* For LINK_DEPENDS: the same target without its detours ("a/../b" is "b"), for a tree where link_base()
 * is a real directory. */
int link_straighten(const char *target, struct buf *ret_target);
