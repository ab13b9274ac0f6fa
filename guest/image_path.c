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

static int make_part(int dir, const struct path_part *part, mode_t mode)
{
	char name[NAME_MAX + 1];
	int made, fd;

	if (part->len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, part->at, part->len);
	name[part->len] = '\0';
	made = mkdirat(dir, name, mode) < 0 ? -errno : 0;
	fd = open_resolving(dir, name, O_PATH | O_DIRECTORY, 0, IN_ITS_ROOT);
	return fd == -ENOENT && made < 0 && made != -EEXIST ? made : fd;
}

int image_make_dir(const char *path, mode_t mode)
{
	CLEANUP(fd_close) int dir = image_open("/", O_PATH | O_DIRECTORY);
	struct path_part part;

	while (dir >= 0 && path_next_part(&path, &part)) {
		int next = make_part(dir, &part, mode);

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
