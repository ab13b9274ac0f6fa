/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * inode_map.h - which files were met before, by device and inode; with a path for each or as a plain set
 * (8 bytes per slot then: a million files must fit in little memory).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct inode_map {
	uint64_t *keys; /* 0: free */
	char **paths;   /* owned strings; NULL: a plain set */
	size_t slots, count;
};

/* Remember a file; path is copied, NULL in a plain set.  One map takes paths always or never. */
int inode_map_add(struct inode_map *map, const struct stat *st, const char *path);
bool inode_map_has(const struct inode_map *map, const struct stat *st);
const char *inode_map_path(const struct inode_map *map, const struct stat *st); /* NULL: unknown */
void inode_map_done(struct inode_map *map);
