/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * walk.h - a directory tree in byte order, by descriptors.
 *
 * Depth costs memory for the names that wait, never stack, and never more than a few descriptors: those
 * of directories far above are closed, reached again by "..", and must then be the same directory.
 *
 * Memory is bounded.  A directory gets half of what is left of it; one with more names is listed again and
 * again, for the next of them in order.
 */

#include <stdbool.h>
#include <stddef.h>

struct walk;

struct walk_options {
	size_t memory; /* bytes for the names that wait, in all open directories; 64 KiB at least */
	void (*tick)(void *ctx); /* now and then while a directory is listed; may be NULL */
	void *ctx;
};

struct walk_entry {
	int dirfd; /* of the directory it is in */
	const char *name;
	const char *path; /* beneath the top; valid until the next call */
	int tag;          /* what walk_enter or walk_start was given */
};

int walk_new(const struct walk_options *options, struct walk **ret_walk);
void walk_free(struct walk **walk);
/*
 * Begin with everything in the directory fd, or with only_name in it.  fd is taken, even on failure; path is
 * where it lies beneath the top, "" for the top itself.  The walk before must have ended.
 */
int walk_start(struct walk *walk, int fd, const char *path, const char *only_name, int tag);
/* 1 and the next entry, 0 at the end.  -ENAMETOOLONG: a path over TAR_PATH_MAX.  -ESTALE: a directory was
 * moved meanwhile. */
int walk_next(struct walk *walk, struct walk_entry *ret_entry);
/* The entry that walk_next gave last is a directory, opened as fd (taken, even on failure): its entries come
 * next, with this tag.  -E2BIG: the directories above it have taken the memory; the walk can go on behind it. */
int walk_enter(struct walk *walk, int fd, int tag);
