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
	OPEN_MAX_LEVELS = 32,  /* directories kept open at once */
	LIST_SIZE = 32 * 1024, /* bytes asked of the kernel at once */
	LEVEL_COST = 256,      /* bytes that a directory takes besides its names */
	ROOM_MIN = 16 * 1024,  /* bytes below which no directory is listed */
};

/* Bytes that a name takes besides itself: its place in the order, and another while that is made. */
static const size_t NAME_COST = 2 * sizeof(char *);

struct level {
	int fd; /* -1: closed to save descriptors */
	dev_t dev;
	ino_t ino;
	int tag;
	size_t path_len; /* of the directory itself */
	char *names;     /* each with its 0, in the order of the directory */
	const char **sorted;
	size_t count, next;
	bool has_more; /* than these, behind them: there was no room */
	size_t cost;   /* its part of walk.used */
};

struct walk {
	struct level *levels;
	size_t depth, cap;
	size_t used;     /* bytes of options.memory */
	struct buf path; /* of the entry given last */
	struct walk_options options;
};

int walk_new(const struct walk_options *options, struct walk **ret_walk)
{
	struct walk *walk = calloc(1, sizeof(*walk));

	if (!walk)
		return -ENOMEM;
	walk->options = *options;
	walk->path = BUF_INIT(TAR_PATH_MAX);
	*ret_walk = walk;
	return 0;
}

static void forget_names(struct walk *walk, struct level *level)
{
	free(level->names);
	free(level->sorted);
	level->names = NULL;
	level->sorted = NULL;
	level->count = level->next = 0;
	level->has_more = false;
	walk->used -= level->cost;
	level->cost = 0;
}

static void level_done(struct walk *walk, struct level *level)
{
	fd_close(&level->fd);
	forget_names(walk, level);
}

void walk_free(struct walk **walk)
{
	if (!*walk)
		return;
	while ((*walk)->depth > 0)
		level_done(*walk, &(*walk)->levels[--(*walk)->depth]);
	free((*walk)->levels);
	buf_done(&(*walk)->path);
	free(*walk);
	*walk = NULL;
}

static bool is_dot(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* The names of a directory, or as many as there is room for: then the first in order. */
struct listing {
	struct buf names; /* each with its 0 */
	size_t count, room;
	const char *after; /* only names behind it; NULL: all */
	bool has_more;
	struct buf last; /* once has_more: only names up to it */
};

static void listing_done(struct listing *listing)
{
	buf_done(&listing->names);
	buf_done(&listing->last);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* NULL: no memory. */
static const char **sort_names(const struct listing *listing)
{
	const char **sorted = malloc(listing->count * sizeof(*sorted));
	const char *name = listing->names.data;

	if (!sorted)
		return NULL;
	for (size_t i = 0; i < listing->count; i++) {
		sorted[i] = name;
		name += strlen(name) + 1;
	}
	qsort(sorted, listing->count, sizeof(*sorted), compare_names);
	return sorted;
}

/* Keep the names up to listing->last. */
static void drop_behind(struct listing *listing)
{
	char *data = listing->names.data;
	size_t kept_len = 0, kept = 0;

	for (size_t at = 0, i = 0; i < listing->count; i++) {
		size_t len = strlen(data + at) + 1;

		if (strcmp(data + at, listing->last.data) <= 0) {
			memmove(data + kept_len, data + at, len);
			kept_len += len;
			kept++;
		}
		at += len;
	}
	listing->names.len = kept_len;
	listing->count = kept;
}

/* Only the first half in order is kept; the rest is listed again later. */
static int halve(struct listing *listing)
{
	const char **sorted;
	int r;

	if (listing->count < 2)
		return -E2BIG;
	sorted = sort_names(listing);
	if (!sorted)
		return -ENOMEM;
	buf_clear(&listing->last);
	r = buf_add_str(&listing->last, sorted[(listing->count - 1) / 2]);
	free(sorted);
	if (r < 0)
		return r;
	drop_behind(listing);
	listing->has_more = true;
	return 0;
}

static bool is_wanted(const struct listing *listing, const char *name)
{
	return (!listing->after || strcmp(name, listing->after) > 0) &&
	       (!listing->has_more || strcmp(name, listing->last.data) <= 0);
}

static bool has_room(const struct listing *listing, size_t len)
{
	return listing->names.len + len + (listing->count + 1) * NAME_COST <= listing->room;
}

static int add_name(struct listing *listing, const char *name)
{
	const size_t len = strlen(name) + 1;
	int r = 0;

	if (!is_wanted(listing, name))
		return 0;
	if (!has_room(listing, len))
		r = halve(listing);
	if (r < 0 || !is_wanted(listing, name))
		return r;
	if (!has_room(listing, len))
		return -E2BIG;
	listing->count++;
	return buf_add(&listing->names, name, len);
}

static int list_names(const struct walk *walk, int fd, struct listing *listing)
{
	CLEANUP(mem_free) char *bytes = malloc(LIST_SIZE);
	ssize_t n;

	if (!bytes)
		return -ENOMEM;
	while ((n = getdents64(fd, bytes, LIST_SIZE)) > 0) {
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *entry = (const struct dirent64 *) (bytes + at);
			int r = is_dot(entry->d_name) ? 0 : add_name(listing, entry->d_name);

			if (r < 0)
				return r;
			at += entry->d_reclen;
		}
		if (walk->options.tick)
			walk->options.tick(walk->options.ctx);
	}
	return n < 0 ? -errno : 0;
}

/* Half of what is left, so that there is some for the directories beneath. */
static size_t room_of(const struct walk *walk)
{
	size_t left = walk->options.memory > walk->used ? walk->options.memory - walk->used : 0;

	return left / 2;
}

/* The first names behind `after`, or only_name. */
static int level_fill(struct walk *walk, struct level *level, const char *only_name,
                      const char *after)
{
	CLEANUP(listing_done)
	struct listing listing = {
		.names = BUF_INIT(walk->options.memory),
		.last = BUF_INIT(LIST_SIZE),
		.room = room_of(walk),
		.after = after,
	};
	int r = -E2BIG;

	if (listing.room >= ROOM_MIN)
		r = only_name ? add_name(&listing, only_name)
		              : list_names(walk, level->fd, &listing);
	if (r < 0)
		return r;
	buf_shrink(&listing.names); /* before there are pointers into it */
	if (listing.count > 0 && !(level->sorted = sort_names(&listing)))
		return -ENOMEM;
	level->cost = LEVEL_COST + listing.names.len + listing.count * sizeof(*level->sorted);
	level->count = listing.count;
	level->has_more = listing.has_more;
	level->names = buf_take(&listing.names);
	walk->used += level->cost;
	return 0;
}

/* One that is gone by now has no more names. */
static int list_on(struct walk *walk, struct level *level)
{
	CLEANUP(mem_free) char *after = strdup(level->sorted[level->count - 1]);
	int r = after ? 0 : -ENOMEM;

	forget_names(walk, level);
	if (r == 0 && lseek(level->fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r == 0)
		r = level_fill(walk, level, NULL, after);
	return r == -ENOENT ? 0 : r;
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
	struct stat st;
	int r = fstat(fd, &st) < 0 ? -errno : level_fill(walk, &level, only_name, NULL);

	if (r == 0) {
		level.dev = st.st_dev;
		level.ino = st.st_ino;
		r = push(walk, &level);
	}
	if (r < 0)
		level_done(walk, &level);
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
		level_done(walk, &walk->levels[--walk->depth]);
	return r;
}

int walk_next(struct walk *walk, struct walk_entry *ret_entry)
{
	struct level *level;
	const char *name;
	int r = 0;

	while (walk->depth > 0) {
		level = &walk->levels[walk->depth - 1];
		if (level->next < level->count)
			break;
		r = level->has_more ? list_on(walk, level) : leave(walk);
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
