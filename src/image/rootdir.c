/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "image/bounds.h"
#include "image/rootdir.h"
#include "image/text.h"
#include "image/tree.h"

enum {
	COPY_SIZE = 256 * 1024, /* bytes of contents moved at once */
	CHECK_STEP = 256,       /* entries of a directory between two looks whether to go on */
};

/* A file met on the way: name in the open directory dirfd, path from the root. */
struct found {
	int dirfd;
	const char *name, *path;
	const struct stat *stat;
};

struct scan {
	int root;
	dev_t device;
	int (*visit)(void *ctx, const struct found *found, struct resoluto_err *err);
	void *ctx;
	const struct caller *caller;
};

static int not_dots(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

struct names {
	struct dirent **items;
	int count;
};

static void names_free(struct names *names)
{
	for (int i = 0; i < names->count; i++)
		free(names->items[i]);
	free(names->items);
}

static int unreadable(const char *path, int code, struct resoluto_err *err)
{
	return resoluto_fail(err, code, "'%s' cannot be read",
	                     text_clean(path[0] ? path : ".").text);
}

static int visit_one(struct scan *scan, int dirfd, const char *name, const char *path,
                     struct strv *subdirs, struct resoluto_err *err)
{
	struct stat st;
	int r;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return unreadable(path, -errno, err);
	r = scan->visit(scan->ctx, &(struct found){ dirfd, name, path, &st }, err);
	if (r == 0 && S_ISDIR(st.st_mode) && st.st_dev == scan->device)
		r = strv_add(subdirs, path) < 0 ? resoluto_fail(err, -ENOMEM, "list files") : 0;
	return r;
}

/* One directory: all its entries, then (by the caller, with no descriptor held) what is beneath. */
static int scan_entries(struct scan *scan, const char *dir, struct strv *subdirs,
                        struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = -1;
	CLEANUP(names_free) struct names names = { 0 };
	char path[IMAGE_PATH_MAX + 1];
	int r = 0;

	fd = dir[0] ? open_beneath(scan->root, dir, O_RDONLY | O_DIRECTORY, 0)
	            : openat(scan->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return unreadable(dir, dir[0] ? fd : -errno, err);
	names.count = scandirat(fd, ".", &names.items, not_dots, by_bytes);
	if (names.count < 0) {
		names.count = 0;
		return unreadable(dir, -errno, err);
	}
	for (int i = 0; r == 0 && i < names.count; i++) {
		const char *name = names.items[i]->d_name;
		int n = snprintf(path, sizeof(path), "%s%s%s", dir, dir[0] ? "/" : "", name);

		if (n >= (int) sizeof(path))
			return resoluto_fail(err, -ENAMETOOLONG,
			                     "'%s' has a path over IMAGE_PATH_MAX (4095 bytes)",
			                     text_clean(path).text);
		r = i % CHECK_STEP == 0 ? caller_check(scan->caller, err) : 0;
		if (r == 0)
			r = visit_one(scan, fd, name, path, subdirs, err);
	}
	return r;
}

static int scan_dir(struct scan *scan, const char *dir, unsigned depth, struct resoluto_err *err)
{
	CLEANUP(strv_done) struct strv subdirs = { 0 };
	int r;

	if (depth > IMAGE_DEPTH_MAX)
		return resoluto_fail(err, -EBADMSG, "'%s' lies deeper than IMAGE_DEPTH_MAX (1024)",
		                     text_clean(dir).text);
	r = scan_entries(scan, dir, &subdirs, err);
	for (size_t i = 0; r == 0 && i < subdirs.count; i++)
		r = scan_dir(scan, subdirs.items[i], depth + 1, err);
	return r;
}

static int open_root(const char *path, struct stat *ret_stat, struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return resoluto_fail(err, -errno, "open the directory %s", path);
	if (fstat(fd, ret_stat) < 0)
		return resoluto_fail(err, -errno, "stat %s", path);
	return fd_take(&fd);
}

/* -- fingerprint -- */

static int add_to_fingerprint(void *ctx, const struct found *found, struct resoluto_err *err)
{
	const struct stat *st = found->stat;
	struct digest_state *state = ctx;
	char line[256];
	int n;

	n = snprintf(line, sizeof(line), "%o %u %u %lld %llu %llu %lld.%09ld %lld.%09ld",
	             st->st_mode, st->st_uid, st->st_gid, (long long) st->st_size,
	             (unsigned long long) st->st_ino, (unsigned long long) st->st_dev,
	             (long long) st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
	             (long long) st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
	digest_add(state, found->path, strlen(found->path) + 1);
	digest_add(state, line, (size_t) n + 1);
	return 0;
}

int rootdir_fingerprint(const char *path, const struct caller *caller, char ret_digest[DIGEST_SIZE],
                        struct resoluto_err *err)
{
	CLEANUP(fd_close) int root = -1;
	struct digest_state state;
	struct stat st;
	struct scan scan;
	int r;

	digest_begin(&state);
	root = open_root(path, &st, err);
	if (root < 0)
		return root;
	scan = (struct scan){ root, st.st_dev, add_to_fingerprint, &state, caller };
	r = add_to_fingerprint(&state, &(struct found){ root, ".", "", &st }, err);
	if (r == 0)
		r = scan_dir(&scan, "", 0, err);
	if (r < 0)
		return resoluto_fail_in(err, r, "%s", path);
	digest_end(&state, ret_digest);
	return 0;
}

/* -- contents -- */

/* The first name of a file with several, to find the others by. */
struct linked {
	dev_t dev;
	ino_t ino;
	struct tree_inode *inode;
};

struct import {
	int root;
	struct tree tree;
	void *linked; /* struct linked by (dev, ino), tsearch */
	uint32_t ordinal;
	bool is_root; /* the caller: owners are kept */
};

static int by_inode(const void *a, const void *b)
{
	const struct linked *one = a, *two = b;

	if (one->dev != two->dev)
		return one->dev < two->dev ? -1 : 1;
	return one->ino < two->ino ? -1 : one->ino > two->ino;
}

static void import_done(struct import *import)
{
	while (import->linked) {
		struct linked *linked = *(struct linked **) import->linked;

		(void) tdelete(linked, &import->linked, by_inode);
		free(linked);
	}
	tree_done(&import->tree);
}

static int add_xattr(struct import *import, const char *place, const char *name,
                     struct tree_xattr **xattrs, size_t *total)
{
	char value[IMAGE_XATTR_BYTES_MAX];
	struct tree_xattr *xattr;
	ssize_t n;

	if (!tree_xattr_is_kept(name)) {
		import->tree.skipped_xattrs++;
		return 0;
	}
	n = lgetxattr(place, name, value, sizeof(value));
	if (n < 0)
		return -errno;
	*total += strlen(name) + (size_t) n;
	if (*total > IMAGE_XATTR_BYTES_MAX)
		return -E2BIG;
	xattr = tree_xattr_new(name, value, (size_t) n);
	if (!xattr)
		return -ENOMEM;
	xattr->next = *xattrs;
	*xattrs = xattr;
	return 0;
}

static int read_xattrs(struct import *import, const struct found *found,
                       struct tree_xattr **ret_xattrs, struct resoluto_err *err)
{
	CLEANUP(tree_xattrs_free) struct tree_xattr *xattrs = NULL;
	char place[64 + IMAGE_NAME_MAX], names[IMAGE_XATTR_BYTES_MAX];
	size_t total = 0;
	ssize_t n;

	if (!S_ISREG(found->stat->st_mode) && !S_ISDIR(found->stat->st_mode))
		return 0;
	snprintf(place, sizeof(place), "/proc/self/fd/%d/%s", found->dirfd, found->name);
	n = llistxattr(place, names, sizeof(names));
	if (n < 0 && errno != ENOTSUP)
		return resoluto_fail(err, -errno, "list the extended attributes of '%s'",
		                     text_clean(found->path).text);
	for (const char *at = names; n > 0 && at < names + n; at += strlen(at) + 1) {
		int r = add_xattr(import, place, at, &xattrs, &total);

		if (r < 0)
			return resoluto_fail(err, r, "read the extended attributes of '%s'",
			                     text_clean(found->path).text);
	}
	*ret_xattrs = mem_take(&xattrs);
	return 0;
}

static enum tree_type type_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return TREE_DIR;
	case S_IFLNK:
		return TREE_SYMLINK;
	case S_IFIFO:
		return TREE_FIFO;
	case S_IFREG:
		return TREE_FILE;
	}
	return TREE_DEVICE;
}

static struct tree_node *node_at(const struct tree *tree, const char *path)
{
	struct tree_node *node = tree->root;
	char name[IMAGE_NAME_MAX + 1];

	while (node && *path) {
		size_t n = strcspn(path, "/");

		snprintf(name, sizeof(name), "%.*s", (int) n, path);
		node = tree_child(node, name);
		path += n + (path[n] == '/');
	}
	return node;
}

/* 1 if found is a further name of a file that is in the tree. */
static int add_further_link(struct import *import, const struct found *found,
                            struct resoluto_err *err)
{
	struct linked key = { found->stat->st_dev, found->stat->st_ino, NULL };
	struct linked **known = tfind(&key, &import->linked, by_inode);
	char parent[IMAGE_PATH_MAX + 1];
	char *slash;
	int r;

	if (!known)
		return 0;
	snprintf(parent, sizeof(parent), "%s", found->path);
	slash = strrchr(parent, '/');
	*(slash ? slash : parent) = '\0';
	r = tree_link(&import->tree, node_at(&import->tree, parent), found->name, (*known)->inode,
	              err);
	return r < 0 ? r : 1;
}

static int remember_link(struct import *import, const struct found *found, struct resoluto_err *err)
{
	struct linked *linked = calloc(1, sizeof(*linked));

	if (linked)
		*linked = (struct linked){ found->stat->st_dev, found->stat->st_ino,
			                   node_at(&import->tree, found->path)->inode };
	if (!linked || !tsearch(linked, &import->linked, by_inode)) {
		free(linked);
		return resoluto_fail(err, -ENOMEM, "keep hard links");
	}
	return 0;
}

static int add_member(struct import *import, const struct found *found, struct resoluto_err *err)
{
	const struct stat *st = found->stat;
	bool as_root = !import->is_root && st->st_uid == geteuid();
	char target[IMAGE_PATH_MAX + 1] = "";
	struct tree_member member = { .path = found->path,
		                      .type = type_of(st->st_mode),
		                      .mode = (uint16_t) (st->st_mode & 07777),
		                      .uid = as_root ? 0 : st->st_uid,
		                      .gid = as_root ? 0 : st->st_gid,
		                      .mtime = st->st_mtim.tv_sec,
		                      .size = (uint64_t) st->st_size,
		                      .target = target,
		                      .ordinal = import->ordinal++ };
	int r;

	if (member.type == TREE_SYMLINK) {
		ssize_t n = readlinkat(found->dirfd, found->name, target, sizeof(target) - 1);

		if (n < 0)
			return unreadable(found->path, -errno, err);
		target[n] = '\0';
	}
	r = read_xattrs(import, found, &member.xattrs, err);
	return r < 0 ? r : tree_add(&import->tree, &member, false, err);
}

static int add_to_tree(void *ctx, const struct found *found, struct resoluto_err *err)
{
	struct import *import = ctx;
	bool is_linked = !S_ISDIR(found->stat->st_mode) && found->stat->st_nlink > 1;
	enum tree_type type = type_of(found->stat->st_mode);
	int r = 0;

	if (S_ISSOCK(found->stat->st_mode))
		return 0;
	if (is_linked && type != TREE_DEVICE)
		r = add_further_link(import, found, err);
	if (r != 0)
		return r < 0 ? r : 0;
	r = add_member(import, found, err);
	if (r == 0 && is_linked && type != TREE_DEVICE)
		r = remember_link(import, found, err);
	return r;
}

static int copy_file(struct import *import, struct flatten_writer *writer,
                     const struct tree_inode *inode, char *bytes, struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = -1;
	char path[IMAGE_PATH_MAX + 1];
	uint64_t left = inode->size;
	struct stat st;
	int r;

	tree_path(inode->first, path);
	fd = open_beneath(import->root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return unreadable(path, fd, err);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t) st.st_size != inode->size)
		return resoluto_fail(err, -EBADMSG, "'%s' changed while it was read",
		                     text_clean(path).text);
	r = flatten_write_header(writer, inode, err);
	while (r == 0 && left > 0) {
		ssize_t n = read_up_to(fd, bytes, left < COPY_SIZE ? (size_t) left : COPY_SIZE);

		if (n < 0)
			return unreadable(path, (int) n, err);
		if (n == 0)
			return resoluto_fail(err, -EBADMSG, "'%s' changed while it was read",
			                     text_clean(path).text);
		left -= (uint64_t) n;
		r = flatten_write_bytes(writer, bytes, (size_t) n, err);
	}
	return r < 0 ? r : flatten_write_padding(writer, inode->size, err);
}

static int copy_files(struct import *import, struct flatten_writer *writer,
                      struct resoluto_err *err)
{
	CLEANUP(mem_free) struct tree_inode **files = NULL;
	CLEANUP(mem_free) char *bytes = malloc(COPY_SIZE);
	size_t count = 0;
	int r = flatten_sorted_files(&import->tree, &files, &count);

	if (r < 0 || !bytes)
		return resoluto_fail(err, -ENOMEM, "copy files");
	for (size_t i = 0; r == 0 && i < count; i++)
		r = copy_file(import, writer, files[i], bytes, err);
	return r;
}

static int import_tree(struct import *import, const struct stat *root, const struct caller *caller,
                       struct resoluto_err *err)
{
	struct scan scan = { import->root, root->st_dev, add_to_tree, import, caller };
	int r;

	r = add_member(import, &(struct found){ import->root, ".", "", root }, err);
	if (r == 0)
		r = scan_dir(&scan, "", 0, err);
	return r < 0 ? r : flatten_check_root(&import->tree, err);
}

int rootdir_flatten(const char *path, const struct flatten_sink *sink, const struct caller *caller,
                    struct resoluto_err *err)
{
	CLEANUP(fd_close) int root = -1;
	CLEANUP(import_done) struct import import = { 0 };
	struct flatten_writer writer = { .sink = sink, .caller = caller };
	struct stat st;
	int r;

	root = open_root(path, &st, err);
	if (root < 0)
		return root;
	import.root = root;
	import.is_root = geteuid() == 0;
	r = tree_init(&import.tree) < 0 ? resoluto_fail(err, -ENOMEM, "keep the tree") : 0;
	if (r == 0)
		r = import_tree(&import, &st, caller, err);
	if (r == 0)
		r = flatten_write_tree(&writer, &import.tree, err);
	if (r == 0)
		r = copy_files(&import, &writer, err);
	if (r == 0)
		r = flatten_write_end(&writer, &import.tree, err);
	return r < 0 ? resoluto_fail_in(err, r, "%s", path) : 0;
}
