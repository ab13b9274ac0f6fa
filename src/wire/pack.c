/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.c - a directory tree into a gzip-tar, in three steps: what belongs in (options), what it is (the
 * file system), how it is written (tar.h, gzip.h).
 *
 * An entry that cannot be read does not stop the walk at once: the rest is looked through, without
 * writing, so that the failure can say how many there are.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "wire/glob.h"
#include "wire/gzip.h"
#include "wire/inode_map.h"
#include "wire/link.h"
#include "wire/pack.h"
#include "wire/printable.h"
#include "wire/tar.h"
#include "wire/tar_pax.h"
#include "wire/walk.h"

enum {
	PLAIN_SIZE = 256 * 1024, /* bytes of the archive collected before they are compressed */
	HEADER_MAX = 8 * 1024 * 1024, /* bytes of an entry's headers, the sparse map included */
	HARDLINK_COST = 80,      /* bytes that a file with several names takes besides its path */
	TICK_ENTRIES = 256,      /* looked at between two calls of progress */
	SPARSE_FROM = 64 * 1024, /* bytes; holes of smaller files are not looked for */
	HOLE_MIN = 4096,         /* bytes of a hole that is worth an extent */
};

/* What a directory's entries must be to belong in: the tag of the walk. */
enum {
	BELONGS,      /* all but what is excluded */
	NAMED,        /* as above, but named by the caller: never excluded itself */
	IF_PROTECTED, /* inside something excluded: only what is protected */
};

const char *const pack_default_excludes[] = {
	".venv",         "venv",         "node_modules", "__pycache__", ".mypy_cache",
	".pytest_cache", ".ruff_cache",  ".tox",         ".hypothesis", "dist",
	"build",         "htmlcov",      ".coverage",    ".next",       ".turbo",
	".cache",        "resoluto.old", ".claude",      NULL,
};

struct packer {
	const struct pack_options *options;
	const char *const *excludes;
	int top; /* borrowed */
	struct pack_report report;
	struct resoluto_err *err;
	struct gzip_writer *gzip;
	struct walk *walk;
	struct inode_map hardlinks; /* to the path each was packed under */
	size_t hardlinks_left;      /* bytes that they may still take; beyond: copies */
	unsigned since_tick;        /* entries */
	struct tar_extents extents;
	struct buf header;
	char first_unreadable[PRINTABLE_SIZE];
	size_t plain_len;
	char plain[PLAIN_SIZE];
	char target[PATH_MAX];
};

static void tick(void *ctx)
{
	struct packer *packer = ctx;

	packer->since_tick = 0;
	if (packer->options->progress)
		packer->options->progress(packer->options->ctx, packer->report.bytes);
}

static int flush_plain(struct packer *packer)
{
	int r = packer->plain_len > 0
	                ? gzip_writer_write(packer->gzip, packer->plain, packer->plain_len)
	                : 0;

	packer->plain_len = 0;
	if (r < 0)
		return resoluto_fail(packer->err, r, "write the archive");
	tick(packer);
	return 0;
}

/* Bytes free behind plain_len, at least one. */
static int make_room(struct packer *packer, size_t *ret_room)
{
	int r = packer->plain_len == PLAIN_SIZE ? flush_plain(packer) : 0;

	*ret_room = PLAIN_SIZE - packer->plain_len;
	return r;
}

/* Append bytes, or as many zeros if bytes is NULL. */
static int put(struct packer *packer, const char *bytes, uint64_t len)
{
	while (len > 0) {
		size_t room;
		int r = make_room(packer, &room);

		if (r < 0)
			return r;
		if (room > len)
			room = (size_t) len;
		if (bytes)
			memcpy(packer->plain + packer->plain_len, bytes, room);
		else
			memset(packer->plain + packer->plain_len, 0, room);
		bytes = bytes ? bytes + room : NULL;
		packer->plain_len += room;
		len -= room;
	}
	return 0;
}

static int put_header(struct packer *packer, const struct tar_entry *entry)
{
	int r;

	buf_clear(&packer->header);
	r = tar_header_add(&packer->header, entry);
	if (r < 0)
		return resoluto_fail(packer->err, r, "make a header for %s",
		                     printable(entry->path, (char[PRINTABLE_SIZE]){ 0 }));
	packer->report.entries++;
	return put(packer, packer->header.data, packer->header.len);
}

/* A file may have shrunk since its size was promised: what is missing becomes zeros. */
static int put_extent(struct packer *packer, int fd, const struct tar_extent *extent,
                      const char *path)
{
	uint64_t done = 0;

	while (done < extent->len) {
		uint64_t left = extent->len - done;
		size_t room;
		ssize_t n;
		int r = make_room(packer, &room);

		if (r < 0)
			return r;
		n = pread(fd, packer->plain + packer->plain_len, left < room ? (size_t) left : room,
		          (off_t) (extent->offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return resoluto_fail(packer->err, -errno, "read %s",
			                     printable(path, (char[PRINTABLE_SIZE]){ 0 }));
		if (n == 0)
			return put(packer, NULL, left);
		packer->plain_len += (size_t) n;
		packer->report.bytes += (uint64_t) n;
		done += (uint64_t) n;
	}
	return 0;
}

/* The parts of a file that are not holes.  Holes under hole_min count as content.  -E2BIG: too many. */
static int find_extents(int fd, off_t size, off_t hole_min, struct tar_extents *extents)
{
	off_t end = 0;

	extents->count = 0;
	while (end < size) {
		off_t start = lseek(fd, end, SEEK_DATA);
		struct tar_extent *last = extents->count > 0 ? &extents->items[extents->count - 1]
		                                             : NULL;
		int r = 0;

		if (start < 0 && errno == ENXIO)
			return 0;
		if (start < 0)
			return -errno;
		if (start >= size)
			return 0;
		end = lseek(fd, start, SEEK_HOLE);
		if (end < 0)
			return -errno;
		end = end < size ? end : size;
		if (last && start - (off_t) (last->offset + last->len) < hole_min)
			last->len = (uint64_t) end - last->offset;
		else
			r = tar_extents_add(extents, (uint64_t) start, (uint64_t) (end - start));
		if (r < 0)
			return r;
	}
	return 0;
}

/* Mark entry as sparse if it is; a file system that cannot tell has no sparse files. */
static int look_for_holes(struct packer *packer, int fd, const struct stat *st,
                          struct tar_entry *entry)
{
	struct tar_extents *extents = &packer->extents;
	int r = -E2BIG;

	if (st->st_size < SPARSE_FROM || st->st_blocks >= st->st_size / 512)
		return 0;
	/* One place is kept free for the end. */
	for (off_t hole_min = HOLE_MIN; r == -E2BIG && hole_min < st->st_size; hole_min *= 4) {
		r = find_extents(fd, st->st_size, hole_min, extents);
		if (r == 0 && extents->count == TAR_EXTENTS_MAX)
			r = -E2BIG;
	}
	if (r == -ENOMEM)
		return r;
	if (r < 0 || (extents->count == 1 && extents->items[0].len == entry->size))
		return 0;
	/* A hole at the end is marked by an empty extent, as GNU tar does. */
	if (extents->count == 0 ||
	    extents->items[extents->count - 1].offset + extents->items[extents->count - 1].len <
	            entry->size)
		r = tar_extents_add(extents, entry->size, 0);
	entry->is_sparse = true;
	entry->extents = extents->items;
	entry->extent_count = extents->count;
	return r;
}

static int put_content(struct packer *packer, int fd, const struct tar_entry *entry)
{
	struct tar_extent whole = { 0, entry->size };
	const struct tar_extent *extents = entry->is_sparse ? entry->extents : &whole;
	size_t count = entry->is_sparse ? entry->extent_count : 1;
	uint64_t stored = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		r = put_extent(packer, fd, &extents[i], entry->path);
		stored += extents[i].len;
	}
	return r < 0 ? r : put(packer, NULL, tar_padding(stored));
}

static struct tar_entry describe(const struct walk_entry *at, const struct stat *st,
                                 enum tar_type type)
{
	return (struct tar_entry){
		.type = type,
		.path = at->path,
		.target = "",
		.size = type == TAR_FILE ? (uint64_t) st->st_size : 0,
		.mode = st->st_mode & 0777,
		.mtime = st->st_mtim,
	};
}

/* Count an entry that cannot be read.  From the first on, unless they are to be left out, nothing more is
 * written. */
static void note_unreadable(struct packer *packer, const char *path)
{
	if (packer->report.unreadable++ == 0)
		printable(path, packer->first_unreadable);
}

static bool is_giving_up(const struct packer *packer)
{
	return packer->report.unreadable > 0 && !packer->options->skip_unreadable;
}

/* What became of an entry that was just there: gone and swapped ones are no fault of the tree. */
static int failed_at(struct packer *packer, int code, const char *what, const char *path)
{
	switch (-code) {
	case ENOENT:
	case ENOTDIR:
	case ELOOP:
	case ENXIO:
		return 0;
	case EACCES:
	case EPERM:
		note_unreadable(packer, path);
		return 0;
	default:
		return resoluto_fail(packer->err, code, "%s %s", what,
		                     printable(path, (char[PRINTABLE_SIZE]){ 0 }));
	}
}

static int pack_hardlink(struct packer *packer, const struct walk_entry *at, const struct stat *st,
                         const char *first)
{
	struct tar_entry entry = describe(at, st, TAR_HARDLINK);

	entry.target = first;
	return put_header(packer, &entry);
}

/* As long as there is room: its path may be long, and there may be many. */
static int remember_hardlink(struct packer *packer, const char *path, const struct stat *st)
{
	const size_t cost = HARDLINK_COST + strlen(path);
	int r;

	if (st->st_nlink < 2 || cost > packer->hardlinks_left)
		return 0;
	packer->hardlinks_left -= cost;
	r = inode_map_add(&packer->hardlinks, st, path);
	return r < 0 ? resoluto_fail(packer->err, r, "remember a hard link") : 0;
}

static int pack_content(struct packer *packer, const struct walk_entry *at, int fd)
{
	struct tar_entry entry;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return resoluto_fail(packer->err, -errno, "stat %s",
		                     printable(at->path, (char[PRINTABLE_SIZE]){ 0 }));
	if (!S_ISREG(st.st_mode))
		return 0; /* swapped since it was looked at */
	entry = describe(at, &st, TAR_FILE);
	r = look_for_holes(packer, fd, &st, &entry);
	if (r < 0)
		return resoluto_fail(packer->err, r, "keep the map of a sparse file");
	r = put_header(packer, &entry);
	if (r == 0)
		r = put_content(packer, fd, &entry);
	return r < 0 ? r : remember_hardlink(packer, at->path, &st);
}

static int pack_file(struct packer *packer, const struct walk_entry *at, const struct stat *st)
{
	const char *first = st->st_nlink > 1 && packer->hardlinks.count > 0
	                            ? inode_map_path(&packer->hardlinks, st)
	                            : NULL;
	CLEANUP(fd_close) int fd = -1;

	if (first)
		return is_giving_up(packer) ? 0 : pack_hardlink(packer, at, st, first);
	fd = openat(at->dirfd, at->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return failed_at(packer, -errno, "open", at->path);
	return is_giving_up(packer) ? 0 : pack_content(packer, at, fd);
}

/* 1: keep the link with *ret_target; 0: it leads out. */
static int judge_link(struct packer *packer, const char *path, const char **ret_target,
                      struct buf *straight)
{
	CLEANUP(buf_done) struct buf base = BUF_INIT(TAR_PATH_MAX + PATH_MAX);
	CLEANUP(fd_close) int fd = -1;
	int r;

	*ret_target = packer->target;
	switch (link_classify(path, packer->target)) {
	case LINK_INSIDE:
		return 1;
	case LINK_OUTSIDE:
		return 0;
	case LINK_DEPENDS:
		break;
	}
	r = link_base(path, packer->target, &base);
	if (r < 0)
		return r;
	fd = open_beneath(packer->top, base.data, O_PATH | O_DIRECTORY, 0);
	if (fd < 0)
		return 0;
	r = link_straighten(packer->target, straight);
	*ret_target = straight->data;
	return r < 0 ? r : 1;
}

static int pack_symlink(struct packer *packer, const struct walk_entry *at, const struct stat *st)
{
	CLEANUP(buf_done) struct buf straight = BUF_INIT(PATH_MAX);
	struct tar_entry entry = describe(at, st, TAR_SYMLINK);
	ssize_t len = readlinkat(at->dirfd, at->name, packer->target, sizeof(packer->target) - 1);
	int r;

	if (len < 0)
		return failed_at(packer, errno == EINVAL ? -ENOENT : -errno, "read the link",
		                 at->path);
	packer->target[len] = '\0';
	r = judge_link(packer, at->path, &entry.target, &straight);
	if (r < 0)
		return resoluto_fail(packer->err, r, "follow a link");
	if (r == 0)
		packer->report.links_out++;
	return r == 0 || is_giving_up(packer) ? 0 : put_header(packer, &entry);
}

static bool is_above_protected(const struct packer *packer, const char *path)
{
	size_t len = strlen(path);

	for (const char *const *item = packer->options->protect; item && *item; item++) {
		if (strncmp(*item, path, len) == 0 && (*item)[len] == '/')
			return true;
	}
	return false;
}

enum verdict { PACK, ENTER_ONLY, LEAVE_OUT };

static enum verdict judge_by_globs(const char *const *globs, const char *path)
{
	if (glob_match_any(globs, path))
		return PACK;
	for (; *globs; globs++) {
		if (glob_may_match_beneath(*globs, path))
			return ENTER_ONLY;
	}
	return LEAVE_OUT;
}

/* ENTER_ONLY: not itself, but if it is a directory what is inside may belong in. */
static enum verdict judge_by_excludes(struct packer *packer, const struct walk_entry *at)
{
	const char *const *protect = packer->options->protect;
	bool is_protected = strv_has(protect, at->path);

	if (at->tag == NAMED || is_protected)
		return PACK;
	if (at->tag == BELONGS &&
	    (!strv_has(packer->excludes, at->name) || strv_has(protect, at->name)))
		return PACK;
	if (is_above_protected(packer, at->path))
		return ENTER_ONLY;
	packer->report.excluded++;
	return LEAVE_OUT;
}

static int pack_directory(struct packer *packer, const struct walk_entry *at, const struct stat *st,
                          enum verdict verdict)
{
	bool by_globs = packer->options->globs != NULL;
	struct tar_entry entry = describe(at, st, TAR_DIRECTORY);
	int fd, r = 0;

	fd = openat(at->dirfd, at->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return failed_at(packer, -errno, "open", at->path);
	if (verdict == PACK && !is_giving_up(packer))
		r = put_header(packer, &entry);
	if (r < 0) {
		fd_close(&fd);
		return r;
	}
	r = walk_enter(packer->walk, fd,
	               verdict == ENTER_ONLY && !by_globs ? IF_PROTECTED : BELONGS);
	if (r == -E2BIG)
		return resoluto_fail(packer->err, r,
		                     "list %s: the names that wait in the directories above it "
		                     "have taken the memory there is for them",
		                     printable(at->path, (char[PRINTABLE_SIZE]){ 0 }));
	if (r < 0) /* the walk goes on behind it where that makes sense */
		return failed_at(packer, r, "list", at->path);
	return 0;
}

static int pack_entry(struct packer *packer, const struct walk_entry *at)
{
	enum verdict verdict = packer->options->globs
	                               ? judge_by_globs(packer->options->globs, at->path)
	                               : judge_by_excludes(packer, at);
	struct stat st;

	if (verdict == LEAVE_OUT)
		return 0;
	if (fstatat(at->dirfd, at->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return failed_at(packer, -errno, "stat", at->path);
	if (S_ISDIR(st.st_mode))
		return pack_directory(packer, at, &st, verdict);
	if (verdict == ENTER_ONLY)
		return 0;
	if (S_ISREG(st.st_mode))
		return pack_file(packer, at, &st);
	if (S_ISLNK(st.st_mode))
		return pack_symlink(packer, at, &st);
	packer->report.special++;
	return 0;
}

/* Walk from a directory (taken), or only through one entry of it. */
static int pack_from(struct packer *packer, int fd, const char *path, const char *only_name,
                     int tag)
{
	struct walk_entry at;
	int r = walk_start(packer->walk, fd, path, only_name, tag);

	if (r < 0)
		return resoluto_fail(packer->err, r, "list %s", *path ? path : "the directory");
	while ((r = walk_next(packer->walk, &at)) > 0) {
		if (++packer->since_tick >= TICK_ENTRIES)
			tick(packer);
		r = pack_entry(packer, &at);
		if (r < 0)
			return r;
	}
	if (r == -ESTALE)
		return resoluto_fail(packer->err, r, "a directory was moved while it was packed");
	if (r == -ENAMETOOLONG)
		return resoluto_fail(packer->err, r, "a path is longer than %d bytes",
		                     TAR_PATH_MAX);
	return r < 0 ? resoluto_fail(packer->err, r, "walk the tree") : 0;
}

static int pack_all(struct packer *packer)
{
	int fd = openat(packer->top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return resoluto_fail(packer->err, -errno, "open the directory");
	return pack_from(packer, fd, "", NULL, BELONGS);
}

/* As the walk goes: what is in a directory comes right behind it. */
static int compare_paths(const void *a, const void *b)
{
	const unsigned char *left = *(const unsigned char *const *) a;
	const unsigned char *right = *(const unsigned char *const *) b;

	while (*left && *left == *right) {
		left++;
		right++;
	}
	if (*left && *right && (*left == '/' || *right == '/'))
		return *left == '/' ? -1 : 1;
	return *left - *right;
}

static int open_parent(struct packer *packer, const char *path, const char **ret_name)
{
	struct stat st;
	int fd;

	if (!path_is_beneath(path))
		return resoluto_fail(packer->err, -EINVAL, "%s does not lie in the directory",
		                     printable(path, (char[PRINTABLE_SIZE]){ 0 }));
	fd = open_parent_beneath(packer->top, path, false, 0, ret_name);
	if (fd >= 0 && fstatat(fd, *ret_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		int code = -errno;

		fd_close(&fd);
		fd = code;
	}
	if (fd == -ENOENT || fd == -ENOTDIR)
		return resoluto_fail(packer->err, -ENOENT, "there is no %s",
		                     printable(path, (char[PRINTABLE_SIZE]){ 0 }));
	if (fd == -ELOOP)
		return resoluto_fail(packer->err, fd, "a symbolic link is on the way to %s",
		                     printable(path, (char[PRINTABLE_SIZE]){ 0 }));
	if (fd < 0)
		return resoluto_fail(packer->err, fd, "open the directory of %s",
		                     printable(path, (char[PRINTABLE_SIZE]){ 0 }));
	return fd;
}

static bool is_in(const char *path, const char *directory)
{
	size_t len = strlen(directory);

	return strncmp(path, directory, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

static int pack_path(struct packer *packer, const char *path)
{
	CLEANUP(mem_free) char *parent = NULL;
	const char *name;
	int fd;

	fd = open_parent(packer, path, &name);
	if (fd < 0)
		return fd;
	parent = strndup(path, name > path ? (size_t) (name - path) - 1 : 0);
	if (!parent) {
		fd_close(&fd);
		return resoluto_fail(packer->err, -ENOMEM, "pack a path");
	}
	return pack_from(packer, fd, parent, name, NAMED);
}

static int sort_paths(const char *const *paths, struct strv *ret_sorted)
{
	for (; *paths; paths++) {
		CLEANUP(mem_free) char *path = path_plain(*paths);
		int r = path ? strv_add(ret_sorted, path) : -ENOMEM;

		if (r < 0)
			return r;
	}
	if (ret_sorted->count > 0)
		qsort(ret_sorted->items, ret_sorted->count, sizeof(*ret_sorted->items),
		      compare_paths);
	return 0;
}

/* In order and each entry once, whatever the caller's order; a missing path is told before anything is
 * written. */
static int pack_paths(struct packer *packer)
{
	CLEANUP(strv_done) struct strv sorted = { 0 };
	const char *last = NULL;
	int r = sort_paths(packer->options->paths, &sorted);

	if (r < 0)
		return resoluto_fail(packer->err, r, "sort the paths");
	for (size_t i = 0; i < sorted.count; i++) {
		const char *name;
		int fd;

		if (strcmp(sorted.items[i], ".") == 0)
			return pack_all(packer);
		fd = open_parent(packer, sorted.items[i], &name);
		if (fd < 0)
			return fd;
		fd_close(&fd);
	}
	for (size_t i = 0; i < sorted.count; i++) {
		if (last && is_in(sorted.items[i], last))
			continue;
		last = sorted.items[i];
		r = pack_path(packer, last);
		if (r < 0)
			return r;
	}
	return 0;
}

static int refuse_unreadable(const struct packer *packer)
{
	unsigned long long more = packer->report.unreadable - 1;

	if (more == 0)
		return resoluto_fail(packer->err, -EACCES, "cannot read %s",
		                     packer->first_unreadable);
	return resoluto_fail(packer->err, -EACCES, "cannot read %s (and %llu more)",
	                     packer->first_unreadable, more);
}

static int pack_whole(struct packer *packer)
{
	int r = packer->options->paths ? pack_paths(packer) : pack_all(packer);

	if (r == 0 && is_giving_up(packer))
		r = refuse_unreadable(packer);
	if (r == 0)
		r = put(packer, NULL, TAR_END);
	if (r == 0)
		r = flush_plain(packer);
	if (r < 0)
		return r;
	r = gzip_writer_end(packer->gzip);
	return r < 0 ? resoluto_fail(packer->err, r, "write the archive") : 0;
}

static void packer_free(struct packer **packer)
{
	if (!*packer)
		return;
	gzip_writer_free(&(*packer)->gzip);
	walk_free(&(*packer)->walk);
	inode_map_done(&(*packer)->hardlinks);
	free((*packer)->extents.items);
	buf_done(&(*packer)->header);
	free(*packer);
	*packer = NULL;
}

/* Two thirds for the walk, which cannot do without; links become copies. */
static int divide_memory(struct packer *packer)
{
	const size_t all = packer->options->memory ? packer->options->memory : PACK_MEMORY;
	const struct walk_options walk = { .memory = all / 3 * 2, .tick = tick, .ctx = packer };

	packer->hardlinks_left = all / 3;
	return walk_new(&walk, &packer->walk);
}

int pack_tree(int dirfd, const struct pack_options *options, const struct resoluto_sink *sink,
              struct pack_report *ret_report, struct resoluto_err *err)
{
	CLEANUP(packer_free) struct packer *packer = calloc(1, sizeof(*packer));
	int r;

	if (!packer)
		return resoluto_fail(err, -ENOMEM, "pack");
	packer->options = options;
	packer->excludes = options->excludes ? options->excludes : pack_default_excludes;
	packer->top = dirfd;
	packer->err = err;
	packer->header = BUF_INIT(HEADER_MAX);
	r = gzip_writer_new(sink, &packer->gzip);
	if (r == 0)
		r = divide_memory(packer);
	if (r < 0)
		return resoluto_fail(err, r, "pack");
	r = pack_whole(packer);
	if (r == 0 && ret_report)
		*ret_report = packer->report;
	return r;
}
