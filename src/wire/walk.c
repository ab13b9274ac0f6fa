/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "wire/tar.h"
#include "wire/walk.h"

enum {
	OPEN_MAX_LEVELS = 32,          /* directories kept open at once */
	LIST_SIZE = 32 * 1024,         /* bytes asked of the kernel at once */
	NAMES_MAX = 256 * 1024 * 1024, /* bytes of the names of one directory */
};

struct level {
	int fd; /* -1: closed to save descriptors */
	dev_t dev;
	ino_t ino;
	int tag;
	size_t path_len; /* of the directory itself */
	char *names;     /* each with its 0, in the order of the directory */
	const char **sorted;
	size_t count, next;
};

struct walk {
	struct level *levels;
	size_t depth, cap;
	struct buf path; /* of the entry given last */
};

int walk_new(struct walk **ret_walk)
{
	struct walk *walk = calloc(1, sizeof(*walk));

	if (!walk)
		return -ENOMEM;
	walk->path = BUF_INIT(TAR_PATH_MAX);
	*ret_walk = walk;
	return 0;
}

static void level_done(struct level *level)
{
	fd_close(&level->fd);
	free(level->names);
	free(level->sorted);
}

void walk_free(struct walk **walk)
{
	if (!*walk)
		return;
	while ((*walk)->depth > 0)
		level_done(&(*walk)->levels[--(*walk)->depth]);
	free((*walk)->levels);
	buf_done(&(*walk)->path);
	free(*walk);
	*walk = NULL;
}

static bool is_dot(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

static int list_names(int fd, struct buf *names, size_t *ret_count)
{
	CLEANUP(mem_free) char *bytes = malloc(LIST_SIZE);
	ssize_t n;

	if (!bytes)
		return -ENOMEM;
	*ret_count = 0;
	while ((n = getdents64(fd, bytes, LIST_SIZE)) > 0) {
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *entry = (const struct dirent64 *) (bytes + at);
			int r = 0;

			at += entry->d_reclen;
			if (is_dot(entry->d_name))
				continue;
			r = buf_add(names, entry->d_name, strlen(entry->d_name) + 1);
			if (r < 0)
				return r;
			(*ret_count)++;
		}
	}
	return n < 0 ? -errno : 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static int sort_names(struct level *level)
{
	const char *name = level->names;

	level->sorted = malloc(level->count * sizeof(*level->sorted));
	if (!level->sorted)
		return -ENOMEM;
	for (size_t i = 0; i < level->count; i++) {
		level->sorted[i] = name;
		name += strlen(name) + 1;
	}
	qsort(level->sorted, level->count, sizeof(*level->sorted), compare_names);
	return 0;
}

static int level_fill(struct level *level, const char *only_name)
{
	CLEANUP(buf_done) struct buf names = BUF_INIT(NAMES_MAX);
	struct stat st;
	int r;

	if (fstat(level->fd, &st) < 0)
		return -errno;
	level->dev = st.st_dev;
	level->ino = st.st_ino;
	level->count = 1;
	if (only_name)
		r = buf_add(&names, only_name, strlen(only_name) + 1);
	else
		r = list_names(level->fd, &names, &level->count);
	if (r < 0 || level->count == 0)
		return r;
	level->names = buf_take(&names);
	return sort_names(level);
}

static int push(struct walk *walk, const struct level *level)
{
	if (walk->depth == walk->cap) {
		size_t cap = walk->cap ? walk->cap * 2 : 16;
		struct level *levels = realloc(walk->levels, cap * sizeof(*levels));

		if (!levels)
			return -ENOMEM;
		walk->levels = levels;
		walk->cap = cap;
	}
	walk->levels[walk->depth++] = *level;
	/* The first level stays open: its ".." may be out of reach. */
	if (walk->depth > OPEN_MAX_LEVELS + 1)
		fd_close(&walk->levels[walk->depth - 1 - OPEN_MAX_LEVELS].fd);
	return 0;
}

static int add_level(struct walk *walk, int fd, const char *only_name, int tag)
{
	struct level level = { .fd = fd, .tag = tag, .path_len = walk->path.len };
	int r = level_fill(&level, only_name);

	if (r == 0)
		r = push(walk, &level);
	if (r < 0)
		level_done(&level);
	return r;
}

int walk_start(struct walk *walk, int fd, const char *path, const char *only_name, int tag)
{
	int r;

	buf_clear(&walk->path);
	r = buf_add_str(&walk->path, path);
	if (r < 0) {
		fd_close(&fd);
		return r;
	}
	return add_level(walk, fd, only_name, tag);
}

int walk_enter(struct walk *walk, int fd, int tag)
{
	return add_level(walk, fd, NULL, tag);
}

/* Open the directory above, and make sure that it is the one that was left. */
static int reopen_above(struct walk *walk)
{
	struct level *level = &walk->levels[walk->depth - 1], *above = level - 1;
	CLEANUP(fd_close) int fd = -1;
	struct stat st;

	fd = openat(level->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != above->dev || st.st_ino != above->ino)
		return -ESTALE;
	above->fd = fd_take(&fd);
	return 0;
}

static int leave(struct walk *walk)
{
	int r = 0;

	if (walk->depth > 1 && walk->levels[walk->depth - 2].fd < 0)
		r = reopen_above(walk);
	if (r == 0)
		level_done(&walk->levels[--walk->depth]);
	return r;
}

int walk_next(struct walk *walk, struct walk_entry *ret_entry)
{
	struct level *level;
	const char *name;
	int r = 0;

	while (walk->depth > 0 &&
	       walk->levels[walk->depth - 1].next == walk->levels[walk->depth - 1].count) {
		r = leave(walk);
		if (r < 0)
			return r;
	}
	if (walk->depth == 0)
		return 0;
	level = &walk->levels[walk->depth - 1];
	name = level->sorted[level->next++];
	walk->path.len = level->path_len;
	if (level->path_len > 0)
		r = buf_add(&walk->path, "/", 1);
	if (r == 0)
		r = buf_add_str(&walk->path, name);
	if (r < 0)
		return r == -E2BIG ? -ENAMETOOLONG : r;
	*ret_entry = (struct walk_entry){ .dirfd = level->fd,
		                          .name = name,
		                          .path = walk->path.data,
		                          .tag = level->tag };
	return 1;
}
