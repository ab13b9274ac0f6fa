/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "guest/image_path.h"

enum { IN_ITS_ROOT = RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };

int image_open(const char *path, int flags)
{
	return open_resolving(AT_FDCWD, path, flags, 0, IN_ITS_ROOT);
}

/* The path as far as it is made, with one part more.  Opened by its whole: from a directory's descriptor an absolute link counts as a
 * way over a mount. */
static int make_part(int dir, const struct path_part *part, mode_t mode, char path[PATH_MAX])
{
	const size_t len = strlen(path);
	int made, fd;

	if (part->len > NAME_MAX || len + 1 + part->len >= PATH_MAX)
		return -ENAMETOOLONG;
	path[len] = '/';
	memcpy(path + len + 1, part->at, part->len);
	path[len + 1 + part->len] = '\0';
	made = mkdirat(dir, path + len + 1, mode) < 0 ? -errno : 0;
	fd = image_open(path, O_PATH | O_DIRECTORY);
	return fd == -ENOENT && made < 0 && made != -EEXIST ? made : fd;
}

int image_make_dir(const char *path, mode_t mode)
{
	CLEANUP(fd_close) int dir = image_open("/", O_PATH | O_DIRECTORY);
	char done[PATH_MAX] = "";
	struct path_part part;

	while (dir >= 0 && path_next_part(&path, &part)) {
		int next = make_part(dir, &part, mode, done);

		fd_close(&dir);
		dir = next;
	}
	return dir < 0 ? dir : open_resolving(dir, ".", O_RDONLY | O_DIRECTORY, 0, IN_ITS_ROOT);
}

int image_enter(const char *path)
{
	CLEANUP(fd_close)
	int fd = open_resolving(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0, RESOLVE_NO_MAGICLINKS);

	if (fd < 0)
		return fd;
	return fchdir(fd) < 0 ? -errno : 0;
}
