/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_writer.c - a file that appears whole under its name, or not at all.
 *
 * Apart from local.c, so that the shim and the runner link this and nothing else of the conduits.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/path.h"
#include "conduit/local.h"

enum { PART_TRIES = 100 }; /* names tried for a temporary file */

int local_code(int code)
{
	switch (code) {
	case -EPERM:
	case -EROFS:
		return -EACCES;
	case -EDQUOT:
	case -EFBIG: /* RLIMIT_FSIZE, or more than the file system can hold in a file */
		return -ENOSPC;
	default:
		return code;
	}
}

static int check_component(const char *at, size_t len, struct resoluto_err *err)
{
	if (len > LOCAL_NAME_MAX)
		return resoluto_fail(err, -EINVAL, "key has a component over %d bytes",
		                     LOCAL_NAME_MAX);
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char) at[i] < 0x20 || at[i] == 0x7f)
			return resoluto_fail(err, -EINVAL, "key has a control character");
	}
	if (strncmp(at, LOCAL_PART_PREFIX, strlen(LOCAL_PART_PREFIX)) == 0)
		return resoluto_fail(err, -EINVAL, "key has a component that begins with %s",
		                     LOCAL_PART_PREFIX);
	return 0;
}

int local_check_key(const char *key, struct resoluto_err *err)
{
	if (strnlen(key, RESOLUTO_KEY_MAX + 1) > RESOLUTO_KEY_MAX)
		return resoluto_fail(err, -EINVAL, "key is longer than %d bytes", RESOLUTO_KEY_MAX);
	if (!path_is_beneath(key))
		return resoluto_fail(err, -EINVAL,
		                     "key '%s' is absolute or has an empty, '.' or '..' component",
		                     key);
	for (;;) {
		size_t len = strcspn(key, "/");
		int r = check_component(key, len, err);

		if (r < 0 || !key[len])
			return r;
		key += len + 1;
	}
}

/* Open the directory of the key, making it if need be; root itself where the key has none. */
static int open_dir(struct local_writer *writer)
{
	char *slash = strrchr(writer->key, '/');
	int r;

	writer->dirfd = writer->root;
	if (!slash)
		return 0;
	*slash = '\0';
	r = open_beneath(writer->root, writer->key, O_RDONLY | O_DIRECTORY, 0);
	if (r == -ENOENT) {
		writer->made_dirs = true;
		r = mkdirs_beneath(writer->root, writer->key, 0777);
		if (r == 0)
			r = open_beneath(writer->root, writer->key, O_RDONLY | O_DIRECTORY, 0);
	}
	*slash = '/';
	if (r < 0)
		return r;
	writer->dirfd = r;
	return 0;
}

/* The name is a guess that need not be secret: with O_EXCL no file or link of others is opened. */
static int create_part(struct local_writer *writer)
{
	unsigned long long id = clock_wall_ns();

	for (int i = 0; i < PART_TRIES; i++) {
		snprintf(writer->part, sizeof(writer->part),
		         LOCAL_PART_PREFIX "%016llx" LOCAL_PART_SUFFIX, id++);
		writer->fd = openat(writer->dirfd, writer->part,
		                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
		if (writer->fd >= 0)
			return 0;
		if (errno != EEXIST && errno != EINTR)
			break;
	}
	writer->part[0] = '\0';
	return -errno;
}

int local_writer_begin(struct local_writer *writer, int root, const char *key,
                       struct resoluto_err *err)
{
	int r = local_check_key(key, err);

	if (r < 0)
		return r;
	*writer = LOCAL_WRITER_NONE;
	writer->root = root;
	memcpy(writer->key, key, strlen(key) + 1);
	r = open_dir(writer);
	if (r < 0) {
		*writer = LOCAL_WRITER_NONE;
		return resoluto_fail(err, local_code(r), "open the directory of the object");
	}
	r = create_part(writer);
	if (r < 0) {
		local_writer_abort(writer);
		return resoluto_fail(err, local_code(r), "create a temporary file");
	}
	return 0;
}

int local_writer_write(struct local_writer *writer, const void *bytes, size_t len,
                       struct resoluto_err *err)
{
	int r = write_all(writer->fd, bytes, len);

	return r < 0 ? resoluto_fail(err, local_code(r), "write") : 0;
}

/* Some file systems tell only here that they are full. */
static int close_part(struct local_writer *writer)
{
	int fd = fd_take(&writer->fd);

	return close(fd) < 0 && errno != EINTR ? -errno : 0;
}

static int flush_dir(int root, const char *path)
{
	CLEANUP(fd_close) int fd = open_beneath(root, path, O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0)
		return fd;
	return fsync(fd) < 0 ? -errno : 0;
}

/* New directories are entries of the ones above, up to root. */
static int flush_dirs_above(const struct local_writer *writer)
{
	char path[RESOLUTO_KEY_MAX + 1];
	char *slash;
	int r = 0;

	memcpy(path, writer->key, strlen(writer->key) + 1);
	*strrchr(path, '/') = '\0'; /* the directory of the object is flushed already */
	while (r == 0 && (slash = strrchr(path, '/'))) {
		*slash = '\0';
		r = flush_dir(writer->root, path);
	}
	if (r < 0)
		return r;
	return fsync(writer->root) < 0 ? -errno : 0;
}

static int flush_place(const struct local_writer *writer)
{
	if (fsync(writer->dirfd) < 0)
		return -errno;
	return writer->made_dirs ? flush_dirs_above(writer) : 0;
}

static int put_in_place(struct local_writer *writer)
{
	const char *slash = strrchr(writer->key, '/');
	const char *name = slash ? slash + 1 : writer->key;

	if (renameat(writer->dirfd, writer->part, writer->dirfd, name) < 0)
		return -errno;
	writer->part[0] = '\0';
	return 0;
}

int local_writer_commit(struct local_writer *writer, enum local_durability durability,
                        struct resoluto_err *err)
{
	const char *step = "flush";
	int r = 0;

	/* Before the rename: else a power cut can leave an empty file under the final name. */
	if (durability == LOCAL_FLUSHED && fsync(writer->fd) < 0)
		r = -errno;
	if (r == 0) {
		step = "write";
		r = close_part(writer);
	}
	if (r == 0) {
		step = "rename into place";
		r = put_in_place(writer);
	}
	if (r == 0 && durability == LOCAL_FLUSHED) {
		step = "flush the directory";
		r = flush_place(writer);
	}
	local_writer_abort(writer);
	return r < 0 ? resoluto_fail(err, local_code(r), "%s", step) : 0;
}

void local_writer_abort(struct local_writer *writer)
{
	fd_close(&writer->fd);
	if (writer->dirfd >= 0 && writer->part[0])
		(void) unlinkat(writer->dirfd, writer->part, 0);
	if (writer->dirfd != writer->root)
		fd_close(&writer->dirfd);
	*writer = LOCAL_WRITER_NONE;
}

int conduit_local_put_at(int root, const char *key, const void *bytes, size_t len,
                         enum local_durability durability, struct resoluto_err *err)
{
	CLEANUP(local_writer_abort) struct local_writer writer = LOCAL_WRITER_NONE;
	int r = local_writer_begin(&writer, root, key, err);

	if (r == 0)
		r = local_writer_write(&writer, bytes, len, err);
	if (r == 0)
		r = local_writer_commit(&writer, durability, err);
	return r;
}

int conduit_local_flush_all(int root, struct resoluto_err *err)
{
	return syncfs(root) < 0 ? resoluto_fail(err, local_code(-errno), "flush") : 0;
}
