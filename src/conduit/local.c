/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local.c - the conduit "localfs": objects as files beneath a directory (local.h says how).
 *
 * A listing reads one directory at a time, sorts its names, and goes down into the directories
 * among them.  A directory's name is kept with a '/' behind it, so that names sort as the keys do:
 * "dir.x" < "dir/a" < "dir0".
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "conduit/conduit_backend.h"
#include "conduit/local.h"

enum {
	COPY_SIZE = 64 * 1024,         /* bytes moved per read() */
	NAMES_MAX = 256 * 1024 * 1024, /* bytes of names in one directory */
};

struct local {
	struct resoluto_conduit base; /* first */
	int root;                     /* owned */
};

static int root_of(const struct resoluto_conduit *conduit)
{
	return ((const struct local *) conduit)->root;
}

int conduit_local_root(const struct resoluto_conduit *conduit)
{
	return conduit->ops == &conduit_local ? root_of(conduit) : -EOPNOTSUPP;
}

/* Not an object, or one that is not there: to a reader both are nothing. */
static bool means_nothing(int code)
{
	return code == -ENOENT || code == -ENOTDIR || code == -ELOOP || code == -EXDEV ||
	       code == -ENXIO || code == -ENODEV;
}

/* Returns a descriptor of a regular file.  Never waits for the writer of a fifo. */
static int open_object(int root, const char *key, struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = -1;
	struct stat st;

	fd = open_beneath(root, key, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return resoluto_fail(err, means_nothing(fd) ? -ENOENT : local_code(fd), "open");
	if (fstat(fd, &st) < 0)
		return resoluto_fail(err, -errno, "stat");
	if (!S_ISREG(st.st_mode))
		return resoluto_fail(err, -ENOENT, "it is not a regular file");
	return fd_take(&fd);
}

static int local_put(struct resoluto_conduit *conduit, const char *key,
                     const struct resoluto_source *source, struct resoluto_err *err)
{
	CLEANUP(local_writer_abort) struct local_writer writer = LOCAL_WRITER_NONE;
	char bytes[COPY_SIZE];
	int r = local_writer_begin(&writer, root_of(conduit), key, err);

	while (r == 0) {
		ssize_t n = conduit_read_source(source, bytes, sizeof(bytes), err);

		if (n < 0)
			return (int) n;
		if (n == 0)
			return local_writer_commit(&writer, LOCAL_FLUSHED, err);
		r = local_writer_write(&writer, bytes, (size_t) n, err);
	}
	return r;
}

static int local_get(struct resoluto_conduit *conduit, const char *key,
                     const struct resoluto_sink *sink, struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = open_object(root_of(conduit), key, err);
	char bytes[COPY_SIZE];

	if (fd < 0)
		return fd;
	for (;;) {
		ssize_t n = read_up_to(fd, bytes, sizeof(bytes));
		int r;

		if (n < 0)
			return resoluto_fail(err, (int) n, "read");
		r = conduit_write_sink(sink, bytes, (size_t) n, err);
		if (r < 0 || (size_t) n < sizeof(bytes))
			return r;
	}
}

static int local_copy(struct resoluto_conduit *conduit, const char *from, const char *to,
                      struct resoluto_err *err)
{
	CLEANUP(local_writer_abort) struct local_writer writer = LOCAL_WRITER_NONE;
	CLEANUP(fd_close) int fd = open_object(root_of(conduit), from, err);
	int r;

	if (fd < 0)
		return fd;
	r = local_writer_begin(&writer, root_of(conduit), to, err);
	if (r < 0)
		return r;
	r = copy_fd(fd, writer.fd, NULL, err);
	if (r < 0)
		return local_code(r);
	return local_writer_commit(&writer, LOCAL_FLUSHED, err);
}

/* An entry of a directory. */
struct entry {
	size_t name;   /* where in the names; a directory's ends in '/' */
	uint64_t size; /* bytes, of a file */
};

struct entries {
	struct buf names;   /* owned */
	struct entry *list; /* owned */
	size_t count, cap;
};

static void entries_done(struct entries *entries)
{
	buf_done(&entries->names);
	free(entries->list);
}

static int entries_add(struct entries *entries, const char *name, bool is_dir, uint64_t size)
{
	const size_t at = entries->names.len;
	int r;

	if (entries->count == entries->cap) {
		size_t cap = entries->cap ? entries->cap * 2 : 64;
		struct entry *list = realloc(entries->list, cap * sizeof(*list));

		if (!list)
			return -ENOMEM;
		entries->list = list;
		entries->cap = cap;
	}
	r = buf_add_str(&entries->names, name);
	if (r == 0) /* with its 0 */
		r = buf_add(&entries->names, is_dir ? "/" : "", is_dir ? 2 : 1);
	if (r < 0)
		return r;
	entries->list[entries->count++] = (struct entry){ at, size };
	return 0;
}

static int by_name(const void *a, const void *b, void *names)
{
	return strcmp((const char *) names + ((const struct entry *) a)->name,
	              (const char *) names + ((const struct entry *) b)->name);
}

/* A listing under way. */
struct listing {
	int root;           /* borrowed */
	const char *prefix; /* keys must start with it */
	const char *after;  /* and sort behind it */
	resoluto_object_fn *each;
	void *ctx;
	struct resoluto_err *err;
	bool skips_closed;               /* pass over directories it may not read */
	char path[RESOLUTO_KEY_MAX + 2]; /* of the directory it is in: "" or "a/b/" */
	size_t path_len;
};

/* Whether a key that begins with text (or is it, if a file's) can be asked for. */
static bool is_wanted(const struct listing *listing, const char *text, bool is_dir)
{
	const size_t len = strlen(text), prefix_len = strlen(listing->prefix);
	const size_t common = len < prefix_len ? len : prefix_len;

	if (strncmp(text, listing->prefix, common) != 0 || (!is_dir && len < prefix_len))
		return false;
	if (strcmp(text, listing->after) > 0)
		return true;
	return is_dir && strncmp(listing->after, text, len) == 0;
}

/* Whether an entry is a file or a directory that a key can name; *ret_size of a file. */
static int classify(struct listing *listing, int dirfd, const struct dirent *entry,
                    bool *ret_is_dir, uint64_t *ret_size)
{
	const char *name = entry->d_name;
	struct stat st = { .st_mode = S_IFDIR };

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	if (entry->d_type != DT_REG && entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN)
		return 0;
	if (listing->path_len + strlen(name) > RESOLUTO_KEY_MAX || local_check_key(name, NULL) < 0)
		return 0;
	if (entry->d_type != DT_DIR && fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	*ret_is_dir = S_ISDIR(st.st_mode);
	*ret_size = (uint64_t) st.st_size;
	return S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
}

/* Keep an entry of the listing's directory if it is wanted. */
static int consider(struct listing *listing, int dirfd, const struct dirent *entry,
                    struct entries *entries)
{
	char *end = listing->path + listing->path_len;
	uint64_t size = 0;
	bool is_dir = false;
	int r = classify(listing, dirfd, entry, &is_dir, &size);

	if (r <= 0)
		return r == -EACCES && listing->skips_closed ? 0 : r;
	snprintf(end, sizeof(listing->path) - listing->path_len, "%s%s", entry->d_name,
	         is_dir ? "/" : "");
	if (is_wanted(listing, listing->path, is_dir))
		r = entries_add(entries, entry->d_name, is_dir, size);
	*end = '\0';
	return r < 0 ? r : 0;
}

/* Read and sort the listing's directory.  What is not there, or not a directory, has no entries. */
static int read_entries(struct listing *listing, struct entries *entries)
{
	CLEANUP(dir_close) DIR *dir = NULL;
	int fd = open_beneath(listing->root, listing->path_len > 0 ? listing->path : ".",
	                      O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);

	if (means_nothing(fd) || (fd == -EACCES && listing->skips_closed))
		return 0;
	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (!dir) {
		fd_close(&fd);
		return -errno;
	}
	for (;;) {
		struct dirent *entry;
		int r;

		errno = 0;
		entry = readdir(dir);
		if (!entry && errno != 0)
			return -errno;
		if (!entry)
			break;
		r = consider(listing, fd, entry, entries);
		if (r < 0)
			return r;
	}
	if (entries->count > 1)
		qsort_r(entries->list, entries->count, sizeof(*entries->list), by_name,
		        entries->names.data);
	return 0;
}

static int list_dir(struct listing *listing);

/* name ends in '/' if it is a directory's. */
static int visit(struct listing *listing, const char *name, uint64_t size)
{
	const size_t before = listing->path_len, len = strlen(name);
	int r;

	memcpy(listing->path + before, name, len + 1);
	if (name[len - 1] == '/') {
		listing->path_len += len;
		r = list_dir(listing);
		listing->path_len = before;
	} else {
		r = listing->each(listing->ctx,
		                  &(struct resoluto_object){ .key = listing->path, .size = size });
		if (r < 0)
			resoluto_fail(listing->err, r, "stopped at %s", listing->path);
	}
	listing->path[before] = '\0';
	return r;
}

/* As deep as a key has components.  Returns what each() did when that was not 0. */
static int list_dir(struct listing *listing)
{
	CLEANUP(entries_done) struct entries entries = { .names = BUF_INIT(NAMES_MAX) };
	int r = read_entries(listing, &entries);

	if (r < 0)
		return resoluto_fail(listing->err, local_code(r), "read directory /%s",
		                     listing->path);
	for (size_t i = 0; i < entries.count && r == 0; i++)
		r = visit(listing, entries.names.data + entries.list[i].name, entries.list[i].size);
	return r;
}

/* List what the prefix of listing, whose path is not set yet, asks for. */
static int run_listing(struct listing *listing)
{
	const char *slash = strrchr(listing->prefix, '/');
	int r;

	listing->path_len = slash ? (size_t) (slash - listing->prefix) + 1 : 0;
	memcpy(listing->path, listing->prefix, listing->path_len);
	listing->path[listing->path_len] = '\0';
	r = list_dir(listing);
	return r < 0 ? r : 0;
}

static int local_list(struct resoluto_conduit *conduit, const char *prefix, const char *after,
                      resoluto_object_fn *each, void *ctx, struct resoluto_err *err)
{
	struct listing listing = {
		.root = root_of(conduit),
		.prefix = prefix,
		.after = after,
		.each = each,
		.ctx = ctx,
		.err = err,
	};

	return run_listing(&listing);
}

static int count_object(void *ctx, const struct resoluto_object *object)
{
	++*(int *) ctx;
	return 0;
}

/* The objects beneath a prefix, as far as they can be seen. */
static int count_beneath(int root, const char *prefix, struct resoluto_err *err)
{
	char beneath[RESOLUTO_KEY_MAX + 2];
	int count = 0, r;
	struct listing listing = {
		.root = root,
		.prefix = beneath,
		.after = "",
		.each = count_object,
		.ctx = &count,
		.err = err,
		.skips_closed = true,
	};

	snprintf(beneath, sizeof(beneath), "%s/", prefix);
	r = run_listing(&listing);
	return r < 0 ? r : count;
}

/* The whole directory goes, with unfinished and foreign files in it. */
static int local_delete_beneath(struct resoluto_conduit *conduit, const char *prefix,
                                struct resoluto_err *err)
{
	CLEANUP(fd_close) int parent = -1;
	const char *name;
	struct stat st;
	int count, r;

	parent = open_parent_beneath(root_of(conduit), prefix, false, 0, &name);
	if (means_nothing(parent))
		return 0;
	if (parent < 0)
		return resoluto_fail(err, local_code(parent), "open the directory above");
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : resoluto_fail(err, local_code(-errno), "stat");
	if (!S_ISDIR(st.st_mode))
		return 0;
	count = count_beneath(root_of(conduit), prefix, err);
	if (count < 0)
		return count;
	r = remove_tree_at(parent, name);
	return r < 0 ? resoluto_fail(err, local_code(r), "remove") : count;
}

static int local_open(const char *place, struct resoluto_conduit **ret_conduit,
                      struct resoluto_err *err)
{
	CLEANUP(fd_close) int root = -1;
	struct local *local;

	if (place[0] != '/')
		return resoluto_fail(err, -EINVAL, "'%s' is not an absolute path", place);
	if (mkdir(place, 0777) < 0 && errno != EEXIST)
		return resoluto_fail(err, local_code(-errno), "make the directory");
	root = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return resoluto_fail(err, local_code(-errno), "open the directory");
	local = malloc(sizeof(*local));
	if (!local)
		return resoluto_fail(err, -ENOMEM, "open the directory");
	*local = (struct local){ .base.ops = &conduit_local, .root = fd_take(&root) };
	*ret_conduit = &local->base;
	return 0;
}

static void local_close(struct resoluto_conduit *conduit)
{
	struct local *local = (struct local *) conduit;

	fd_close(&local->root);
	free(local);
}

const struct conduit_ops conduit_local = {
	.open = local_open,
	.close = local_close,
	.put = local_put,
	.get = local_get,
	.list = local_list,
	.copy = local_copy,
	.delete_beneath = local_delete_beneath,
};
