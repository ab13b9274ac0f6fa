/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "runtime/microvm/kernel.h"

#define VERSION_BYTES "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-+_~"

enum {
	VERSION_MAX = 128, /* bytes of the version alone */
	HASH_HEX = 16,
};

/* "VERSION HASH\n", and nothing that a terminal could mind; a line without a hash gives the version alone. */
static bool parse_version(const char *text, char ret[KERNEL_NAME_MAX])
{
	const size_t version = strspn(text, VERSION_BYTES);
	const char *hash = text + version + (text[version] == ' ');
	const bool has_hash = strspn(hash, "0123456789abcdef") == HASH_HEX;

	if (version == 0 || version > VERSION_MAX || text[0] < '0' || text[0] > '9')
		return false;
	snprintf(ret, KERNEL_NAME_MAX, "%.*s%s%.*s", (int) version, text, has_hash ? " " : "",
	         has_hash ? HASH_HEX : 0, hash);
	return true;
}

/* In real, which is changed to the folder; the name of the file. */
static const char *split(char real[PATH_MAX], const char *path)
{
	char *slash;

	if (!realpath(path, real))
		snprintf(real, PATH_MAX, "%s", path);
	slash = strrchr(real, '/');
	if (!slash)
		return NULL;
	*slash = '\0';
	return slash + 1;
}

int kernel_read_beside(const char *path, const char *name, struct buf *text)
{
	CLEANUP(fd_close) int folder = -1, fd = -1;
	char real[PATH_MAX];

	if (!split(real, path))
		return -ENOENT;
	folder = open(real[0] ? real : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return -errno;
	fd = open_beneath(folder, name, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0)
		return fd;
	return read_rest(fd, text);
}

/* Its version, else its own name, cut so that the kind still fits behind it. */
static void name_file(const char *path, char ret[KERNEL_NAME_MAX])
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(KERNEL_NAME_MAX);
	char real[PATH_MAX];
	const char *name;

	if (kernel_read_beside(path, "VERSION", &text) == 0 && text.data &&
	    parse_version(text.data, ret))
		return;
	name = split(real, path);
	snprintf(ret, KERNEL_NAME_MAX, "%.*s", VERSION_MAX, name ? name : path);
}

void kernel_describe(const char *path, const struct machine_row *row, char ret[KERNEL_NAME_MAX])
{
	char name[KERNEL_NAME_MAX];

	name_file(path, name);
	snprintf(ret, KERNEL_NAME_MAX, "%.*s (%s)", VERSION_MAX + HASH_HEX + 1, name,
	         machine_kernel_kind(row));
}

static const struct machine_row *row_beside(const char *path)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(KERNEL_NAME_MAX);

	if (!path || kernel_read_beside(path, "MACHINE", &text) < 0 || !text.data)
		return NULL;
	text.data[strcspn(text.data, "\n")] = '\0';
	return machine_find(text.data);
}

int kernel_row(const char *path, const char *name, const struct machine_row **ret_row,
               struct resoluto_err *err)
{
	const bool is_named = name && *name;
	const struct machine_row *row = is_named ? machine_find(name) : row_beside(path);

	if (!row && !is_named)
		row = machine_default();
	if (!row)
		return resoluto_fail(err, -EOPNOTSUPP, "there is no machine %s",
		                     is_named ? name : "for this CPU");
	*ret_row = row;
	return 0;
}
