/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.c - a hostile archive into a directory.
 *
 * Every name is taken apart into components and walked by openat2 without links, one directory at a time,
 * from a descriptor: the one of the last member's directory is kept, since the next member is mostly in or
 * near it.  A file is created exclusively, so that there is nothing to write through; an inode map knows
 * what this archive has brought, so that nothing else is linked to or gets a new mode.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "wire/glob.h"
#include "wire/gzip.h"
#include "wire/inode_map.h"
#include "wire/link.h"
#include "wire/pack.h"
#include "wire/printable.h"
#include "wire/quota.h"
#include "wire/tar.h"

enum {
	PARENT_MODE = 0755,             /* of directories that have no member of their own */
	PENDING_MAX = 16 * 1024 * 1024, /* bytes of names that wait for the end */
	PART_TRIES = 10000,             /* names tried for an unfinished file */
	RATIO_FROM = 64 * 1024 * 1024,  /* bytes unpacked before the ratio counts */
	APPARENT_TIMES = 16,            /* a hole costs nothing here, but whoever copies the file */
	HEADERS_PER_MEMBER = 2048,      /* bytes; on average, beyond RATIO_FROM for all together */
};

static const struct unpack_limits default_limits = {
	.bytes = 64ULL << 30,
	.members = 1000 * 1000,
	.ratio = 2000,
};

/* What can only be done when all members are in place. */
struct pending {
	char *path;
	char *target; /* of a link; NULL: a directory gets its mode */
	mode_t mode;
	size_t order;
};

struct unpacker {
	const struct unpack_options *options;
	struct unpack_limits limits;
	int top; /* borrowed */
	struct unpack_report report;
	struct resoluto_err *err;
	struct gzip_reader *gzip;
	struct tar_reader *tar;
	uint64_t seen;         /* members, also those left out */
	uint64_t plain;        /* bytes of the archive after decompression */
	uint64_t cost;         /* bytes on the disk, of what was announced so far */
	uint64_t apparent;     /* bytes of files announced so far, holes included */
	bool is_over;          /* the stream itself went over a limit */
	struct inode_map made; /* files and directories of this archive */
	struct buf path;       /* of the member at hand, made plain */
	struct buf target;
	struct buf directory; /* path of directory_fd */
	int directory_fd;     /* O_PATH or better; -1: none is kept */
	struct pending *pending;
	size_t pending_count, pending_cap, pending_bytes;
};

/* The decompressed stream, for the tar reader; a bomb is stopped here whatever it consists of. */
static ssize_t read_plain(void *ctx, void *bytes, size_t cap)
{
	struct unpacker *unpacker = ctx;
	const struct unpack_limits *limits = &unpacker->limits;
	ssize_t n = gzip_reader_read(unpacker->gzip, bytes, cap);
	uint64_t beyond;

	if (n <= 0)
		return n;
	unpacker->plain += (uint64_t) n;
	if (unpacker->plain <= RATIO_FROM)
		return n;
	beyond = unpacker->plain - RATIO_FROM;
	if (unpacker->plain / limits->ratio > gzip_reader_consumed(unpacker->gzip))
		unpacker->report.over = QUOTA_RATIO;
	else if (beyond > limits->bytes &&
	         (beyond - limits->bytes) / HEADERS_PER_MEMBER > limits->members)
		unpacker->report.over = QUOTA_ARCHIVE_BYTES;
	unpacker->is_over = unpacker->report.over != QUOTA_NONE;
	return unpacker->is_over ? -EFBIG : n;
}

static int exceed(struct unpacker *unpacker, enum quota quota)
{
	unpacker->report.over = quota;
	return -EFBIG;
}

/* Names */

static int refuse(struct unpacker *unpacker, const char *why)
{
	return resoluto_fail(unpacker->err, -EBADMSG, "%s", why);
}

/* Take a name apart and together again: "./a//b/" is "a/b", "." is "". */
static int make_plain(struct unpacker *unpacker, const char *name, struct buf *ret_path)
{
	buf_clear(ret_path);
	if (*name == '/')
		return refuse(unpacker, "the name is absolute");
	while (*name) {
		size_t len = strcspn(name, "/");
		int r = 0;

		if (len == 2 && name[0] == '.' && name[1] == '.')
			return refuse(unpacker, "the name climbs with \"..\"");
		if (len > 0 && !(len == 1 && name[0] == '.')) {
			if (ret_path->len > 0)
				r = buf_add(ret_path, "/", 1);
			if (r == 0)
				r = buf_add(ret_path, name, len);
		}
		if (r < 0)
			return resoluto_fail(unpacker->err, r, "keep the name");
		name += len;
		name += strspn(name, "/");
	}
	return ret_path->data ? 0 : buf_add(ret_path, "", 0);
}

static bool is_wanted(const struct unpacker *unpacker, const char *path)
{
	return !unpacker->options->globs || glob_match_any(unpacker->options->globs, path);
}

/* Directories */

/* Tell what is in the way instead of a directory. */
static int refuse_step(struct unpacker *unpacker, int code)
{
	if (code == -ELOOP)
		return refuse(unpacker, "a symbolic link is on the way to it");
	if (code == -ENOTDIR)
		return resoluto_fail(unpacker->err, code,
		                     "something that is no directory is in its way");
	return resoluto_fail(unpacker->err, code, "open the directory it is in");
}

/* Make a directory that is not there yet, and open it.  While the archive is unpacked its owner may do
 * everything in it. */
static int make_directory(struct unpacker *unpacker, int parent, const char *name, mode_t mode)
{
	const struct unpack_options *options = unpacker->options;
	CLEANUP(fd_close) int fd = -1;
	struct stat st;
	int r;

	mode = (mode & 0777) | 0700;
	if (mkdirat(parent, name, mode) < 0)
		return -errno;
	fd = open_beneath(parent, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	if (options->set_owner &&
	    (fchown(fd, options->uid, options->gid) < 0 || fchmod(fd, mode) < 0))
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	r = inode_map_add(&unpacker->made, &st, NULL);
	return r < 0 ? r : fd_take(&fd);
}

static int step_into(struct unpacker *unpacker, int parent, const char *name, bool make)
{
	int fd = open_beneath(parent, name, O_PATH | O_DIRECTORY, 0);

	if (fd == -ENOENT && make)
		fd = make_directory(unpacker, parent, name, PARENT_MODE);
	return fd;
}

/* Where to start on the way to path: the kept directory if it is on it, else the top. */
static int start_near(struct unpacker *unpacker, const char *path, size_t len, size_t *ret_done)
{
	size_t kept = unpacker->directory.len;
	int fd;

	*ret_done = 0;
	if (unpacker->directory_fd >= 0 && kept > 0 && kept <= len &&
	    memcmp(path, unpacker->directory.data, kept) == 0 &&
	    (kept == len || path[kept] == '/')) {
		*ret_done = kept;
		return fd_take(&unpacker->directory_fd);
	}
	fd_close(&unpacker->directory_fd);
	fd = fcntl(unpacker->top, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : fd;
}

static void keep_directory(struct unpacker *unpacker, int fd, const char *path, size_t len)
{
	fd_close(&unpacker->directory_fd);
	buf_clear(&unpacker->directory);
	if (buf_add(&unpacker->directory, path, len) == 0)
		unpacker->directory_fd = fd;
	else
		fd_close(&fd);
}

/* The directory at the first len bytes of path as a descriptor that is kept for the next member, and thus
 * borrowed.  Negative without a text. */
static int enter(struct unpacker *unpacker, const char *path, size_t len, bool make)
{
	CLEANUP(fd_close) int at = -1;
	char name[NAME_MAX + 1];
	size_t done;

	at = start_near(unpacker, path, len, &done);
	if (at < 0)
		return at;
	while (done < len) {
		size_t start = done + (path[done] == '/');
		size_t n = strcspn(path + start, "/");
		int next;

		if (n > len - start)
			n = len - start;
		if (n > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, path + start, n);
		name[n] = '\0';
		next = step_into(unpacker, at, name, make);
		if (next < 0)
			return next;
		fd_close(&at);
		at = next;
		done = start + n;
	}
	keep_directory(unpacker, fd_take(&at), path, len);
	return unpacker->directory_fd < 0 ? -ENOMEM : unpacker->directory_fd;
}

static int enter_parent(struct unpacker *unpacker, const char *path, bool make,
                        const char **ret_name)
{
	const char *slash = strrchr(path, '/');

	*ret_name = slash ? slash + 1 : path;
	return enter(unpacker, path, slash ? (size_t) (slash - path) : 0, make);
}

static int remember(struct unpacker *unpacker, const char *path, const char *target, mode_t mode)
{
	size_t bytes = strlen(path) + (target ? strlen(target) : 0) + sizeof(struct pending);
	struct pending *pending;

	if (bytes > PENDING_MAX - unpacker->pending_bytes)
		return resoluto_fail(unpacker->err, exceed(unpacker, QUOTA_MEMBERS),
		                     "too many links and modes wait for the end");
	if (unpacker->pending_count == unpacker->pending_cap) {
		size_t cap = unpacker->pending_cap ? unpacker->pending_cap * 2 : 16;

		pending = realloc(unpacker->pending, cap * sizeof(*pending));
		if (!pending)
			return resoluto_fail(unpacker->err, -ENOMEM, "remember it");
		unpacker->pending = pending;
		unpacker->pending_cap = cap;
	}
	pending = &unpacker->pending[unpacker->pending_count];
	*pending = (struct pending){ .path = strdup(path),
		                     .target = target ? strdup(target) : NULL,
		                     .mode = mode & 0777,
		                     .order = unpacker->pending_count };
	unpacker->pending_count++;
	unpacker->pending_bytes += bytes;
	if (!pending->path || (target && !pending->target))
		return resoluto_fail(unpacker->err, -ENOMEM, "remember it");
	return 0;
}

/* One that is there already gets the member's mode only if this archive made it. */
static int meet_directory(struct unpacker *unpacker, int parent, const char *name,
                          const struct tar_entry *entry)
{
	CLEANUP(fd_close) int fd = open_beneath(parent, name, O_PATH | O_DIRECTORY, 0);
	struct stat st;

	if (fd == -ELOOP)
		return refuse(unpacker, "a symbolic link has its name");
	if (fd < 0)
		return resoluto_fail(unpacker->err, fd,
		                     "something that is no directory has its name");
	if (fstat(fd, &st) < 0)
		return resoluto_fail(unpacker->err, -errno, "stat the directory");
	if (!inode_map_has(&unpacker->made, &st))
		return 0;
	return remember(unpacker, unpacker->path.data, NULL, entry->mode);
}

static int unpack_directory(struct unpacker *unpacker, const struct tar_entry *entry)
{
	const char *path = unpacker->path.data, *name;
	int parent, fd, r = 0;

	if (!*path)
		return 0; /* the top itself stays as it is */
	parent = enter_parent(unpacker, path, true, &name);
	if (parent < 0)
		return refuse_step(unpacker, parent);
	fd = make_directory(unpacker, parent, name, entry->mode);
	if (fd == -EEXIST)
		return meet_directory(unpacker, parent, name, entry);
	if (fd < 0)
		return resoluto_fail(unpacker->err, fd, "make the directory");
	keep_directory(unpacker, fd, path, unpacker->path.len);
	if ((entry->mode & 0700) != 0700)
		r = remember(unpacker, path, NULL, entry->mode);
	unpacker->report.members++;
	return r;
}

/* Files */

/* A file that is being written: without a name, so that nothing of it stays if we are killed; else under its own
 * name where that was free; else beside what it will replace. */
struct part {
	int parent; /* borrowed */
	const char *name;
	bool is_nameless, is_beside;
	char beside[32];
};

/* make() returns a descriptor, or 0, or -1 and errno. */
static int part_try_names(struct part *part, int (*make)(const struct part *, const char *, int),
                          int arg)
{
	int r = make(part, part->name, arg);

	for (int i = 0; r < 0 && errno == EEXIST && i < PART_TRIES; i++) {
		snprintf(part->beside, sizeof(part->beside), ".unpack-%d.part", i);
		r = make(part, part->beside, arg);
		part->is_beside = r >= 0;
	}
	return r < 0 ? -errno : r;
}

static int make_named(const struct part *part, const char *name, int mode)
{
	return openat(part->parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
	              (mode_t) mode);
}

static int give_name(const struct part *part, const char *name, int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, part->parent, name, AT_SYMLINK_FOLLOW);
}

/* Not every file system has files without names. */
static int part_create(struct part *part, mode_t mode, bool nameless)
{
	int fd = nameless ? openat(part->parent, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode) : -1;

	part->is_nameless = fd >= 0;
	return fd < 0 ? part_try_names(part, make_named, (int) mode) : fd;
}

static int part_finish(struct part *part, int fd)
{
	int r = part->is_nameless ? part_try_names(part, give_name, fd) : 0;

	if (r == 0 && part->is_beside &&
	    renameat(part->parent, part->beside, part->parent, part->name) < 0)
		return -errno;
	return r;
}

static void part_remove(struct part *part)
{
	if (part->is_beside)
		(void) unlinkat(part->parent, part->beside, 0);
	else if (!part->is_nameless)
		(void) unlinkat(part->parent, part->name, 0);
}

static int write_content(struct unpacker *unpacker, const struct tar_entry *entry, int fd)
{
	uint64_t end = 0;
	int r;

	for (;;) {
		const void *bytes;
		uint64_t offset;
		size_t len;

		r = tar_reader_data(unpacker->tar, &bytes, &len, &offset, unpacker->err);
		if (r <= 0)
			break;
		r = write_all_at(fd, bytes, len, offset);
		if (r < 0)
			return resoluto_fail(unpacker->err, r, "write the file");
		unpacker->report.bytes += len;
		end = offset + len;
	}
	if (r == 0 && end < entry->size && ftruncate(fd, (off_t) entry->size) < 0)
		return resoluto_fail(unpacker->err, -errno, "set the size of the file");
	return r;
}

static int finish_file(struct unpacker *unpacker, const struct tar_entry *entry, int fd)
{
	const struct unpack_options *options = unpacker->options;
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, entry->mtime };
	struct stat st;
	int r;

	/* Owner first: a change of it would clear bits of the mode. */
	if (options->set_owner &&
	    (fchown(fd, options->uid, options->gid) < 0 || fchmod(fd, entry->mode & 0777) < 0))
		return resoluto_fail(unpacker->err, -errno, "set owner and mode");
	(void) futimens(fd,
	                times); /* a time that the file system cannot hold is no reason to fail */
	if (fstat(fd, &st) < 0)
		return resoluto_fail(unpacker->err, -errno, "stat the file");
	r = inode_map_add(&unpacker->made, &st, NULL);
	return r < 0 ? resoluto_fail(unpacker->err, r, "remember the file") : 0;
}

static int unpack_file(struct unpacker *unpacker, const struct tar_entry *entry)
{
	CLEANUP(fd_close) int fd = -1;
	struct part part = { 0 };
	int r;

	part.parent = enter_parent(unpacker, unpacker->path.data, true, &part.name);
	if (part.parent < 0)
		return refuse_step(unpacker, part.parent);
	/* In the guest nobody is left who would see half a file, and names are cheaper. */
	fd = part_create(&part, unpacker->options->set_owner ? 0600 : entry->mode & 0777,
	                 !unpacker->options->set_owner);
	if (fd < 0)
		return resoluto_fail(unpacker->err, fd, "create the file");
	r = write_content(unpacker, entry, fd);
	if (r == 0)
		r = finish_file(unpacker, entry, fd);
	if (r == 0) {
		r = part_finish(&part, fd);
		if (r < 0)
			resoluto_fail(unpacker->err, r, "put the file into its place");
	}
	if (r < 0)
		part_remove(&part);
	return r;
}

/* Links */

static int clear_place(struct unpacker *unpacker, int parent, const char *name)
{
	if (unlinkat(parent, name, 0) < 0 && errno != ENOENT)
		return resoluto_fail(unpacker->err, -errno, "remove what is in its place");
	return 0;
}

static int make_symlink(struct unpacker *unpacker, const char *path, const char *target)
{
	const struct unpack_options *options = unpacker->options;
	const char *name;
	int parent = enter_parent(unpacker, path, true, &name), r;

	if (parent < 0)
		return refuse_step(unpacker, parent);
	r = symlinkat(target, parent, name);
	if (r < 0 && errno == EEXIST) {
		r = clear_place(unpacker, parent, name);
		if (r < 0)
			return r;
		r = symlinkat(target, parent, name);
	}
	if (r < 0)
		return resoluto_fail(unpacker->err, -errno, "make the link");
	if (options->set_owner &&
	    fchownat(parent, name, options->uid, options->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return resoluto_fail(unpacker->err, -errno, "set the owner of the link");
	return 0;
}

/* 0: made; 1: to be judged at the end. */
static int unpack_symlink(struct unpacker *unpacker, const struct tar_entry *entry)
{
	int r;

	switch (link_classify(unpacker->path.data, entry->target)) {
	case LINK_INSIDE:
		return make_symlink(unpacker, unpacker->path.data, entry->target);
	case LINK_DEPENDS:
		r = remember(unpacker, unpacker->path.data, entry->target, 0);
		return r < 0 ? r : 1;
	case LINK_OUTSIDE:
		break;
	}
	return refuse(unpacker, "the link leads out");
}

/* A file that this archive brought, as a directory (owned) and a name in it. */
static int find_brought(struct unpacker *unpacker, const char *path, const char **ret_name)
{
	CLEANUP(fd_close) int fd = -1;
	struct stat st;
	int parent = enter_parent(unpacker, path, false, ret_name);

	/* The descriptor that is kept will be that of the link's own directory. */
	fd = parent < 0 ? -1 : fcntl(parent, F_DUPFD_CLOEXEC, 3);
	if (parent >= 0 && fd < 0)
		return resoluto_fail(unpacker->err, -errno, "open the directory it links to");
	if (fd < 0 || fstatat(fd, *ret_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode) || !inode_map_has(&unpacker->made, &st))
		return refuse(unpacker, "the hard link leads to no file of this archive");
	return fd_take(&fd);
}

static int unpack_hardlink(struct unpacker *unpacker, const struct tar_entry *entry)
{
	CLEANUP(fd_close) int target_fd = -1;
	const char *target_name, *name;
	int parent, r;

	r = make_plain(unpacker, entry->target, &unpacker->target);
	if (r < 0)
		return resoluto_fail_in(unpacker->err, r, "what it links to");
	target_fd = find_brought(unpacker, unpacker->target.data, &target_name);
	if (target_fd < 0)
		return target_fd;
	if (strcmp(unpacker->path.data, unpacker->target.data) == 0)
		return 0;
	parent = enter_parent(unpacker, unpacker->path.data, true, &name);
	if (parent < 0)
		return refuse_step(unpacker, parent);
	r = linkat(target_fd, target_name, parent, name, 0);
	if (r < 0 && errno == EEXIST) {
		r = clear_place(unpacker, parent, name);
		if (r < 0)
			return r;
		r = linkat(target_fd, target_name, parent, name, 0);
	}
	return r < 0 ? resoluto_fail(unpacker->err, -errno, "make the hard link") : 0;
}

/* Members */

/* Before anything of it is done: what a member announces is all it can deliver. */
static int check_limits(struct unpacker *unpacker, const struct tar_entry *entry)
{
	const struct unpack_limits *limits = &unpacker->limits;

	const uint64_t cost = quota_cost(entry->stored);

	if (++unpacker->seen > limits->members)
		return resoluto_fail(unpacker->err, exceed(unpacker, QUOTA_MEMBERS),
		                     "the archive has more than %llu members",
		                     (unsigned long long) limits->members);
	if (cost > limits->bytes - unpacker->cost)
		return resoluto_fail(unpacker->err, exceed(unpacker, QUOTA_ARCHIVE_BYTES),
		                     "what is in the archive takes more than %llu bytes",
		                     (unsigned long long) limits->bytes);
	if (entry->size > limits->apparent - unpacker->apparent)
		return resoluto_fail(
			unpacker->err, exceed(unpacker, QUOTA_ARCHIVE_BYTES),
			"the files are larger than %llu bytes together, holes included",
			(unsigned long long) limits->apparent);
	unpacker->cost += cost;
	unpacker->apparent += entry->size;
	return 0;
}

static int count_placed(struct unpacker *unpacker, const char *path)
{
	const struct unpack_options *options = unpacker->options;
	int r = options->member ? options->member(options->ctx, path) : 0;

	unpacker->report.members++;
	return r < 0 ? resoluto_fail(unpacker->err, r, "stopped by the caller") : 0;
}

/* 0: in its place; 1: at the end. */
static int place_member(struct unpacker *unpacker, const struct tar_entry *entry)
{
	switch (entry->type) {
	case TAR_FILE:
		return unpack_file(unpacker, entry);
	case TAR_SYMLINK:
		return unpack_symlink(unpacker, entry);
	case TAR_HARDLINK:
		return unpack_hardlink(unpacker, entry);
	case TAR_DIRECTORY:
	case TAR_DEVICE:
	case TAR_FIFO:
	case TAR_OTHER:
		break;
	}
	return -EBADMSG;
}

static const char *refusal_of(const struct unpacker *unpacker, const struct tar_entry *entry)
{
	if (entry->type == TAR_DEVICE)
		return "it is a device";
	if (entry->type == TAR_FIFO)
		return "it is a fifo";
	if (entry->type == TAR_OTHER)
		return "it is of a kind that is not known";
	if (entry->type != TAR_DIRECTORY && unpacker->path.len == 0)
		return "it has no name";
	return NULL;
}

static int unpack_member(struct unpacker *unpacker, const struct tar_entry *entry)
{
	int r = check_limits(unpacker, entry);

	if (r == 0)
		r = make_plain(unpacker, entry->path, &unpacker->path);
	if (r < 0)
		return r;
	if (refusal_of(unpacker, entry))
		return refuse(unpacker, refusal_of(unpacker, entry));
	if (!is_wanted(unpacker, unpacker->path.data)) {
		/* A directory may be just the way to something. */
		unpacker->report.left_out += entry->type != TAR_DIRECTORY;
		return 0;
	}
	if (entry->type == TAR_DIRECTORY)
		return unpack_directory(unpacker, entry);
	r = place_member(unpacker, entry);
	return r == 0 ? count_placed(unpacker, unpacker->path.data) : r < 0 ? r : 0;
}

static int unpack_members(struct unpacker *unpacker)
{
	char text[PRINTABLE_SIZE];
	struct tar_entry entry;
	int r;

	while ((r = tar_reader_next(unpacker->tar, &entry, unpacker->err)) > 0) {
		r = unpack_member(unpacker, &entry);
		if (r < 0 && !unpacker->is_over)
			return resoluto_fail_in(unpacker->err, r, "%s",
			                        printable(entry.path, text));
		if (r < 0)
			break;
	}
	if (r < 0 && unpacker->is_over)
		return resoluto_fail(unpacker->err, -EFBIG,
		                     "the archive swells to over %llu bytes after %llu members",
		                     (unsigned long long) unpacker->plain,
		                     (unsigned long long) unpacker->seen);
	if (r < 0)
		return resoluto_fail_in(unpacker->err, r, "behind %llu members",
		                        (unsigned long long) unpacker->seen);
	return 0;
}

/* The end */

static int finish_link(struct unpacker *unpacker, const struct pending *pending)
{
	CLEANUP(buf_done) struct buf base = BUF_INIT(2 * TAR_PATH_MAX);
	CLEANUP(fd_close) int fd = -1;
	int r = link_base(pending->path, pending->target, &base);

	if (r < 0)
		return resoluto_fail(unpacker->err, r, "judge the link");
	fd = open_beneath(unpacker->top, base.data, O_PATH | O_DIRECTORY, 0);
	if (fd < 0)
		return refuse(unpacker,
		              "the link may lead out: it climbs through what is no directory");
	r = make_symlink(unpacker, pending->path, pending->target);
	return r < 0 ? r : count_placed(unpacker, pending->path);
}

static int finish_directory(struct unpacker *unpacker, const struct pending *pending)
{
	CLEANUP(fd_close) int fd = -1;
	const char *name;
	struct stat st;
	mode_t mode;
	int parent = enter_parent(unpacker, pending->path, false, &name);

	fd = parent < 0 ? parent : open_beneath(parent, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return resoluto_fail(unpacker->err, fd, "open the directory again");
	if (fstat(fd, &st) < 0)
		return resoluto_fail(unpacker->err, -errno, "stat the directory");
	/* What it has now respects the umask; only take away from that. */
	mode = unpacker->options->set_owner ? pending->mode : pending->mode & st.st_mode;
	if (fchmod(fd, mode) < 0)
		return resoluto_fail(unpacker->err, -errno, "set the mode of the directory");
	return 0;
}

/* Links first, then modes from the deepest directory up; what was said last about one comes last. */
static int compare_pending(const void *a, const void *b)
{
	const struct pending *left = a, *right = b;
	int by_path;

	if (!left->target != !right->target)
		return left->target ? -1 : 1;
	by_path = strcmp(right->path, left->path);
	if (by_path != 0)
		return by_path;
	return left->order < right->order ? -1 : 1;
}

/* The next one is about the same directory, and is later. */
static bool is_outdated(const struct unpacker *unpacker, size_t at)
{
	const struct pending *pending = &unpacker->pending[at];

	return !pending->target && at + 1 < unpacker->pending_count &&
	       strcmp(pending->path, pending[1].path) == 0;
}

static int finish(struct unpacker *unpacker)
{
	char text[PRINTABLE_SIZE];

	if (unpacker->pending_count > 0)
		qsort(unpacker->pending, unpacker->pending_count, sizeof(*unpacker->pending),
		      compare_pending);
	for (size_t i = 0; i < unpacker->pending_count; i++) {
		const struct pending *pending = &unpacker->pending[i];
		int r = 0;

		if (pending->target)
			r = finish_link(unpacker, pending);
		else if (!is_outdated(unpacker, i))
			r = finish_directory(unpacker, pending);

		if (r < 0)
			return resoluto_fail_in(unpacker->err, r, "%s",
			                        printable(pending->path, text));
	}
	return 0;
}

static void unpacker_done(struct unpacker *unpacker)
{
	tar_reader_free(&unpacker->tar);
	gzip_reader_free(&unpacker->gzip);
	inode_map_done(&unpacker->made);
	buf_done(&unpacker->path);
	buf_done(&unpacker->target);
	buf_done(&unpacker->directory);
	fd_close(&unpacker->directory_fd);
	for (size_t i = 0; i < unpacker->pending_count; i++) {
		free(unpacker->pending[i].path);
		free(unpacker->pending[i].target);
	}
	free(unpacker->pending);
}

static uint64_t limit_or(uint64_t limit, uint64_t otherwise)
{
	return limit ? limit : otherwise;
}

static struct unpack_limits limits_of(const struct unpack_options *options)
{
	struct unpack_limits limits = {
		.bytes = limit_or(options->limits.bytes, default_limits.bytes),
		.members = limit_or(options->limits.members, default_limits.members),
		.ratio = limit_or(options->limits.ratio, default_limits.ratio),
		.apparent = options->limits.apparent,
	};

	if (limits.apparent == 0 &&
	    __builtin_mul_overflow(limits.bytes, APPARENT_TIMES, &limits.apparent))
		limits.apparent = UINT64_MAX;
	return limits;
}

int unpack_tree(int dirfd, const struct resoluto_source *source,
                const struct unpack_options *options, struct unpack_report *ret_report,
                struct resoluto_err *err)
{
	CLEANUP(unpacker_done)
	struct unpacker unpacker = {
		.options = options,
		.limits = limits_of(options),
		.top = dirfd,
		.err = err,
		.path = BUF_INIT(TAR_PATH_MAX),
		.target = BUF_INIT(TAR_PATH_MAX),
		.directory = BUF_INIT(TAR_PATH_MAX),
		.directory_fd = -1,
	};
	const struct resoluto_source plain = { read_plain, &unpacker };
	int r = gzip_reader_new(source, &unpacker.gzip);

	if (r == 0)
		r = tar_reader_new(&plain, &unpacker.tar);
	if (r < 0)
		return resoluto_fail(err, r, "unpack");
	r = unpack_members(&unpacker);
	if (r == 0)
		r = finish(&unpacker);
	if (ret_report)
		*ret_report = unpacker.report;
	return r;
}
