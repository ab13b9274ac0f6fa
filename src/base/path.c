/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"

enum {
	TREE_DEPTH_MAX = 1000000, /* directories */
	TREE_TRIES = 100,
	OPEN_TRIES = 1000, /* of one path, while others rename */
};

bool path_is_beneath(const char *path)
{
	if (!*path)
		return false;
	for (;;) {
		size_t n = strcspn(path, "/");

		if (n == 0 || (n == 1 && path[0] == '.') ||
		    (n == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		if (!path[n])
			return true;
		path += n + 1;
	}
}

bool path_next_part(const char **path, struct path_part *ret_part)
{
	for (;;) {
		struct path_part part;

		*path += strspn(*path, "/");
		part = (struct path_part){ *path, strcspn(*path, "/") };
		if (part.len == 0)
			return false;
		*path += part.len;
		if (part.len == 1 && part.at[0] == '.')
			continue;
		*ret_part = part;
		return true;
	}
}

char *path_plain(const char *path)
{
	char *plain = malloc(strlen(path) + 1), *end = plain;
	const char *rest = path;
	struct path_part part;

	if (!plain)
		return NULL;
	if (path[0] == '/')
		*end++ = '/';
	while (path_next_part(&rest, &part)) {
		if (end > plain && end[-1] != '/')
			*end++ = '/';
		end = mempcpy(end, part.at, part.len);
	}
	if (end == plain && path[0])
		*end++ = '.';
	*end = '\0';
	return plain;
}

int open_resolving(int dirfd, const char *path, int flags, mode_t mode, uint64_t resolve)
{
	struct open_how how = {
		.flags = (uint64_t) (flags | O_CLOEXEC),
		.mode = (flags & (O_CREAT | O_TMPFILE)) ? mode : 0,
		.resolve = resolve,
	};
	long fd;
	int tries = 0;

	do {
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	} while (fd < 0 && (errno == EINTR || (errno == EAGAIN && ++tries < OPEN_TRIES)));
	return fd < 0 ? -errno : (int) fd;
}

int open_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
	return open_resolving(dirfd, path, flags, mode,
	                      RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

/* Open the directory `name` of dirfd, making it first if asked. */
static int step_into(int dirfd, const char *name, bool make, mode_t mode)
{
	int fd = open_beneath(dirfd, name, O_RDONLY | O_DIRECTORY, 0);

	if (fd != -ENOENT || !make)
		return fd;
	if (mkdirat(dirfd, name, mode) < 0 && errno != EEXIST)
		return -errno;
	return open_beneath(dirfd, name, O_RDONLY | O_DIRECTORY, 0);
}

int open_parent_beneath(int dirfd, const char *path, bool make, mode_t mode, const char **ret_name)
{
	CLEANUP(fd_close) int at = -1;
	char name[NAME_MAX + 1];

	if (!path_is_beneath(path))
		return -EINVAL;
	/* Not a dup: the shim's filter knows the calls that open, and no others. */
	at = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return -errno;
	for (;;) {
		size_t n = strcspn(path, "/");
		int next;

		if (!path[n])
			break;
		if (n > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, path, n);
		name[n] = '\0';
		next = step_into(at, name, make, mode);
		if (next < 0)
			return next;
		fd_close(&at);
		at = next;
		path += n + 1;
	}
	*ret_name = path;
	return fd_take(&at);
}

int mkdirs_beneath(int dirfd, const char *path, mode_t mode)
{
	CLEANUP(fd_close) int parent = -1, last = -1;
	const char *name;

	parent = open_parent_beneath(dirfd, path, true, mode, &name);
	if (parent < 0)
		return parent;
	last = step_into(parent, name, true, mode);
	return last < 0 ? last : 0;
}

int mkdirs(const char *path, mode_t mode)
{
	char at[PATH_MAX];
	size_t n = strlen(path);
	struct stat st;

	if (n == 0)
		return -ENOENT;
	if (n >= sizeof(at))
		return -ENAMETOOLONG;
	for (size_t i = 1; i <= n; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(at, path, i);
		at[i] = '\0';
		if (mkdir(at, mode) < 0 && errno != EEXIST)
			return -errno;
	}
	if (stat(path, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

/*
 * Removing a tree.
 *
 * One directory is open at a time: the walk goes down by name and up by "..", and remembers which
 * directory it came from, so that a tree that is moved under it cannot lead it out.  Depth costs
 * 16 bytes a level, never stack or descriptors, and each directory is read once for itself and
 * once for every subdirectory that was not empty.
 */
struct level {
	dev_t dev;
	ino_t ino;
};

struct walk {
	DIR *dir;             /* owned: where it is */
	struct level *levels; /* owned: the directories above, the top one first */
	size_t depth, cap;
};

static void walk_done(struct walk *walk)
{
	dir_close(&walk->dir);
	free(walk->levels);
}

static int open_dir_fd(int dirfd, const char *name, uint64_t resolve)
{
	return open_resolving(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, resolve);
}

/* Go to the directory behind fd, which is taken. */
static int walk_to(struct walk *walk, int fd)
{
	DIR *dir = fdopendir(fd);

	if (!dir) {
		int r = -errno;

		fd_close(&fd);
		return r;
	}
	dir_close(&walk->dir);
	walk->dir = dir;
	return 0;
}

static int walk_down(struct walk *walk, int from, const char *name)
{
	/* The path of the top one is the caller's own, and may lead anywhere. */
	const uint64_t resolve = walk->dir ? RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV
	                                   : 0;
	int fd = open_dir_fd(from, name, resolve);

	/* A directory without permissions is emptied all the same: it is ours. */
	if (fd == -EACCES && fchmodat(from, name, 0700, AT_SYMLINK_NOFOLLOW) == 0)
		fd = open_dir_fd(from, name, resolve);
	return fd < 0 ? fd : walk_to(walk, fd);
}

/* Remember the directory the walk is in, before it goes down. */
static int walk_push(struct walk *walk)
{
	struct stat st;

	if (walk->depth == TREE_DEPTH_MAX)
		return -E2BIG;
	if (walk->depth == walk->cap) {
		size_t cap = walk->cap ? walk->cap * 2 : 64;
		struct level *levels = realloc(walk->levels, cap * sizeof(*levels));

		if (!levels)
			return -ENOMEM;
		walk->levels = levels;
		walk->cap = cap;
	}
	if (fstat(dirfd(walk->dir), &st) < 0)
		return -errno;
	walk->levels[walk->depth++] = (struct level){ st.st_dev, st.st_ino };
	return 0;
}

/* -ESTALE: the directory above is not the one the walk came from. */
static int walk_up(struct walk *walk)
{
	CLEANUP(fd_close) int fd = -1;
	const struct level *above = &walk->levels[walk->depth - 1];
	struct stat st;

	fd = openat(dirfd(walk->dir), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != above->dev || st.st_ino != above->ino)
		return -ESTALE;
	walk->depth--;
	return walk_to(walk, fd_take(&fd));
}

/* 0: gone.  1: a directory that is not empty.  -ESTALE: somebody else is changing it just now. */
static int remove_entry(int dirfd, const char *name)
{
	int first;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	first = -errno;
	if (first != -EISDIR && first != -EPERM)
		return first;
	/* Who swaps a directory and a link for ever comes to do it in step with us, since the calls wait for the
	 * same lock: what was a link at the second call is a directory again at the third. */
	for (int i = 0; i < 2; i++) {
		if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != ENOTDIR)
			break;
	}
	if (errno == ENOTDIR)
		return first == -EISDIR ? -ESTALE : first;
	return errno == ENOTEMPTY || errno == EEXIST ? 1 : -errno;
}

/* Remove all it can of the directory the walk is in.  1: up to a directory that is not empty, whose
 * name goes to ret_name. */
static int remove_entries(struct walk *walk, char ret_name[NAME_MAX + 1])
{
	const int at = dirfd(walk->dir);

	for (;;) {
		struct dirent *entry;
		int r;

		errno = 0;
		entry = readdir(walk->dir);
		if (!entry)
			return -errno;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		r = remove_entry(at, entry->d_name);
		if (r == -EACCES && fchmod(at, 0700) == 0)
			r = remove_entry(at, entry->d_name);
		if (r == 0)
			continue;
		snprintf(ret_name, NAME_MAX + 1, "%s", entry->d_name);
		return r;
	}
}

/* Empty the directory `top` of dirfd. */
static int empty_tree(int dirfd_of_top, const char *top)
{
	CLEANUP(walk_done) struct walk walk = { 0 };
	char name[NAME_MAX + 1];
	int r = walk_down(&walk, dirfd_of_top, top);

	while (r == 0) {
		r = remove_entries(&walk, name);
		if (r == 0 && walk.depth == 0)
			return 0;
		if (r == 0) {
			r = walk_up(&walk);
		} else if (r == 1) {
			r = walk_push(&walk);
			if (r == 0)
				r = walk_down(&walk, dirfd(walk.dir), name);
		}
	}
	return r;
}

/* Whether a failure may come from somebody else's work in the tree, and another try may be better. */
static bool is_race(int code)
{
	return code == -ENOENT || code == -ESTALE || code == -ENOTDIR || code == -ELOOP;
}

int remove_tree_at(int dirfd, const char *name)
{
	int r = -ENOTEMPTY;

	for (int i = 0; i < TREE_TRIES; i++) {
		r = remove_entry(dirfd, name);
		if (r == 0)
			return 0;
		if (r == 1)
			r = empty_tree(dirfd, name);
		if (r < 0 && !is_race(r))
			return r;
	}
	return r < 0 ? r : -ENOTEMPTY;
}
