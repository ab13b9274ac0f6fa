/* SPDX-License-Identifier: Apache-2.0 */
/* inode_map.c - open addressing with linear probing, at most half full. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/inode_map.h"

enum { FIRST_SLOTS = 64 };

static const uint64_t SPREAD = 0x9e3779b97f4a7c15; /* odd, bits well mixed (the golden ratio) */

/* Inode numbers are far below 2^40, devices are spread over all bits: no two meet. */
static uint64_t key_of(const struct stat *st)
{
	uint64_t key = (uint64_t) st->st_ino ^ ((uint64_t) st->st_dev * SPREAD);

	return key ? key : 1;
}

/* The slot that holds key, or the free one where it belongs. */
static size_t slot_of(const uint64_t *keys, size_t slots, uint64_t key)
{
	size_t at = (size_t) ((key * SPREAD) >> 20) & (slots - 1);

	while (keys[at] && keys[at] != key)
		at = (at + 1) & (slots - 1);
	return at;
}

static int grow(struct inode_map *map, bool with_paths)
{
	size_t slots = map->slots ? map->slots * 2 : FIRST_SLOTS;
	uint64_t *keys = calloc(slots, sizeof(*keys));
	char **paths = with_paths ? calloc(slots, sizeof(*paths)) : NULL;

	if (!keys || (with_paths && !paths)) {
		free(keys);
		free(paths);
		return -ENOMEM;
	}
	for (size_t i = 0; i < map->slots; i++) {
		size_t at;

		if (!map->keys[i])
			continue;
		at = slot_of(keys, slots, map->keys[i]);
		keys[at] = map->keys[i];
		if (with_paths)
			paths[at] = map->paths[i];
	}
	free(map->keys);
	free(map->paths);
	map->keys = keys;
	map->paths = paths;
	map->slots = slots;
	return 0;
}

int inode_map_add(struct inode_map *map, const struct stat *st, const char *path)
{
	char *copy = path ? strdup(path) : NULL;
	int r = path && !copy ? -ENOMEM : 0;
	size_t at;

	if (r == 0 && map->count >= map->slots / 2)
		r = grow(map, path != NULL);
	if (r < 0) {
		free(copy);
		return r;
	}
	at = slot_of(map->keys, map->slots, key_of(st));
	if (!map->keys[at])
		map->count++;
	map->keys[at] = key_of(st);
	if (path) {
		free(map->paths[at]);
		map->paths[at] = copy;
	}
	return 0;
}

bool inode_map_has(const struct inode_map *map, const struct stat *st)
{
	return map->slots > 0 && map->keys[slot_of(map->keys, map->slots, key_of(st))] != 0;
}

const char *inode_map_path(const struct inode_map *map, const struct stat *st)
{
	if (!map->paths)
		return NULL;
	return map->paths[slot_of(map->keys, map->slots, key_of(st))];
}

void inode_map_done(struct inode_map *map)
{
	for (size_t i = 0; map->paths && i < map->slots; i++)
		free(map->paths[i]);
	free(map->keys);
	free(map->paths);
	*map = (struct inode_map){ 0 };
}
