/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"

enum { TREE_DEPTH_MAX = 100000 }; /* directories; more than a path of PATH_MAX bytes can name */

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

int open_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (uint64_t) (flags | O_CLOEXEC),
		.mode = (flags & (O_CREAT | O_TMPFILE)) ? mode : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	do {
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	} while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	return fd < 0 ? -errno : (int) fd;
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
	at = fcntl(dirfd, F_DUPFD_CLOEXEC, 3);
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

	if (n == 0 || n >= sizeof(at))
		return -ENAMETOOLONG;
	for (size_t i = 1; i <= n; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(at, path, i);
		at[i] = '\0';
		if (mkdir(at, mode) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static DIR *open_dir_at(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir;

	/* A directory without permissions is emptied all the same: it is ours. */
	if (fd < 0 && errno == EACCES && fchmodat(dirfd, name, 0700, 0) == 0)
		fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	dir = fdopendir(fd);
	if (!dir)
		fd_close(&fd);
	return dir;
}

/* Remove what is not a directory in dir; the name of the first directory met goes to subdir. */
static int remove_plain(DIR *dir, char subdir[NAME_MAX + 1])
{
	struct dirent *entry;

	subdir[0] = '\0';
	for (;;) {
		errno = 0;
		entry = readdir(dir);
		if (!entry)
			return -errno;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(dir), entry->d_name, 0) == 0 || errno == ENOENT)
			continue;
		if (errno == EACCES && fchmod(dirfd(dir), 0700) == 0 &&
		    unlinkat(dirfd(dir), entry->d_name, 0) == 0)
			continue;
		if (errno != EISDIR && errno != EPERM)
			return -errno;
		snprintf(subdir, NAME_MAX + 1, "%s", entry->d_name);
		return 0;
	}
}

/* One directory deep at a time, by renaming the contents of a subdirectory up?  No: names may
 * clash.  Instead walk down to a leaf, remove it, start again from the top: depth costs time,
 * never stack or descriptors. */
static int remove_one_leaf(int top, const char *name, bool *ret_gone)
{
	CLEANUP(dir_close) DIR *dir = open_dir_at(top, name);
	CLEANUP(fd_close) int parent = fcntl(top, F_DUPFD_CLOEXEC, 3);
	char at[NAME_MAX + 1], sub[NAME_MAX + 1];

	*ret_gone = false;
	if (!dir || parent < 0)
		return -errno;
	snprintf(at, sizeof(at), "%s", name);
	for (int depth = 0; depth < TREE_DEPTH_MAX; depth++) {
		int r = remove_plain(dir, sub);
		DIR *next;

		if (r < 0)
			return r;
		if (!sub[0]) {
			if (unlinkat(parent, at, AT_REMOVEDIR) < 0 && errno != ENOENT)
				return -errno;
			*ret_gone = depth == 0;
			return 0;
		}
		next = open_dir_at(dirfd(dir), sub);
		if (!next)
			return -errno;
		fd_close(&parent);
		parent = fcntl(dirfd(dir), F_DUPFD_CLOEXEC, 3);
		closedir(dir);
		dir = next;
		memcpy(at, sub, sizeof(at));
		if (parent < 0)
			return -errno;
	}
	return -ELOOP;
}

int remove_tree_at(int dirfd, const char *name)
{
	bool gone = false;
	int r = 0;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	while (r == 0 && !gone)
		r = remove_one_leaf(dirfd, name, &gone);
	return r == -ENOENT ? 0 : r;
}
