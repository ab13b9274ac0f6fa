/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* archive.h - what the tests of archives share: places to work in, archives made by hand, and looks into them. */

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "check.h"
#include "wire/gzip.h"
#include "wire/pack.h"
#include "wire/tar.h"

enum { ARCHIVE_MAX = 64 * 1024 * 1024 };

/* A directory of our own with `in` to work in, so that what gets out of it is seen. */
struct place {
	char path[80];
	int outer, in;
};

static inline void place_open(struct place *place)
{
	const char *temp = getenv("TMPDIR");

	snprintf(place->path, sizeof(place->path), "%.40s/archive-XXXXXX", temp ? temp : "/tmp");
	CHECK(mkdtemp(place->path));
	CHECK(chmod(place->path, 0755) == 0);
	place->outer = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(place->outer >= 0 && mkdirat(place->outer, "in", 0755) == 0);
	place->in = openat(place->outer, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(place->in >= 0);
}

static inline void place_close(struct place *place)
{
	close(place->in);
	close(place->outer);
	CHECK(remove_tree_at(AT_FDCWD, place->path) == 0);
}

/* Root may read and write everything: be somebody else for a while. */
static inline void be_ordinary(const struct place *place)
{
	if (geteuid() == 0)
		CHECK(fchown(place->in, 65534, 65534) == 0 && seteuid(65534) == 0);
}

static inline void be_oneself(void)
{
	CHECK(seteuid(getuid()) == 0);
}

static inline void put_file(int dirfd, const char *path, const char *text)
{
	const char *name;
	int parent = open_parent_beneath(dirfd, path, true, 0755, &name);
	int fd = parent < 0 ? -1
	                    : openat(parent, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && write_all(fd, text, strlen(text)) == 0);
	close(fd);
	close(parent);
}

static inline bool is_there(int dirfd, const char *path)
{
	struct stat st;

	return fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static inline mode_t mode_of(int dirfd, const char *path)
{
	struct stat st;

	CHECK(fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) == 0);
	return st.st_mode & 07777;
}

static inline void check_file(int dirfd, const char *path, const char *want)
{
	struct buf bytes;
	struct resoluto_err err = { 0 };

	if (read_file_at(dirfd, path, 1 << 20, &bytes, &err) < 0) {
		printf("# %s: %s\n", path, err.text);
		CHECK(false);
	}
	CHECK_STR(bytes.data ? bytes.data : "", want);
	buf_done(&bytes);
}

/* Bytes in memory as sink and as source, the latter at most `piece` bytes at a time. */
static inline int to_buf(void *ctx, const void *bytes, size_t len)
{
	return buf_add(ctx, bytes, len);
}

struct reading {
	const struct buf *buf;
	size_t at, piece;
};

static inline ssize_t from_buf(void *ctx, void *bytes, size_t cap)
{
	struct reading *reading = ctx;
	size_t len = reading->buf->len - reading->at;

	if (len > cap)
		len = cap;
	if (reading->piece > 0 && len > reading->piece)
		len = reading->piece;
	if (len > 0)
		memcpy(bytes, reading->buf->data + reading->at, len);
	reading->at += len;
	return (ssize_t) len;
}

static inline void gzip_whole(const struct buf *plain, struct buf *ret_packed)
{
	const struct resoluto_sink sink = { to_buf, ret_packed };
	struct gzip_writer *writer;

	*ret_packed = BUF_INIT(ARCHIVE_MAX);
	CHECK(gzip_writer_new(&sink, &writer) == 0);
	CHECK(gzip_writer_write(writer, plain->data, plain->len) == 0);
	CHECK(gzip_writer_end(writer) == 0);
	gzip_writer_free(&writer);
}

static inline void add_content(struct buf *tar, const char *bytes, size_t len)
{
	static const char zeros[TAR_BLOCK];

	CHECK(buf_add(tar, bytes, len) == 0);
	CHECK(buf_add(tar, zeros, tar_padding(len)) == 0);
}

static inline void add_entry(struct buf *tar, const struct tar_entry *entry, const char *content)
{
	struct tar_entry whole = *entry;

	whole.size = content ? strlen(content) : 0;
	whole.target = entry->target ? entry->target : "";
	CHECK(tar_header_add(tar, &whole) == 0);
	if (content)
		add_content(tar, content, strlen(content));
}

static inline void add_file(struct buf *tar, const char *path, const char *content)
{
	add_entry(tar, &(struct tar_entry){ .type = TAR_FILE, .path = path, .mode = 0644 },
	          content);
}

static inline void add_dir(struct buf *tar, const char *path, mode_t mode)
{
	add_entry(tar, &(struct tar_entry){ .type = TAR_DIRECTORY, .path = path, .mode = mode },
	          NULL);
}

static inline void add_link(struct buf *tar, enum tar_type type, const char *path,
                            const char *target)
{
	add_entry(tar,
	          &(struct tar_entry){ .type = type, .path = path, .target = target, .mode = 0777 },
	          NULL);
}

/* Make the checksum of the header block at this offset right again after a change. */
static inline void mend(struct buf *tar, size_t at)
{
	unsigned char *block = (unsigned char *) tar->data + at;
	unsigned sum = 0;

	memset(block + 148, ' ', 8);
	for (int i = 0; i < TAR_BLOCK; i++)
		sum += block[i];
	snprintf((char *) block + 148, 7, "%06o", sum);
}

static inline void add_end(struct buf *tar)
{
	static const char zeros[TAR_END];

	CHECK(buf_add(tar, zeros, sizeof(zeros)) == 0);
}

static inline int unpack_buf(int dirfd, const struct buf *packed,
                             const struct unpack_options *options, struct unpack_report *ret_report,
                             struct resoluto_err *err)
{
	struct reading reading = { packed, 0, 0 };
	const struct resoluto_source source = { from_buf, &reading };

	*err = (struct resoluto_err){ 0 };
	return unpack_tree(dirfd, &source, options, ret_report, err);
}

/* End the archive, compress it, unpack it, empty tar for the next. */
static inline int unpack_made(int dirfd, struct buf *tar, const struct unpack_options *options,
                              struct resoluto_err *err)
{
	static const struct unpack_options plain = { 0 };
	CLEANUP(buf_done) struct buf packed = { 0 };
	struct unpack_report report;

	add_end(tar);
	gzip_whole(tar, &packed);
	buf_clear(tar);
	return unpack_buf(dirfd, &packed, options ? options : &plain, &report, err);
}

static inline int pack_buf(int dirfd, const struct pack_options *options, struct buf *ret_packed,
                           struct pack_report *ret_report, struct resoluto_err *err)
{
	const struct resoluto_sink sink = { to_buf, ret_packed };

	*ret_packed = BUF_INIT(ARCHIVE_MAX);
	*err = (struct resoluto_err){ 0 };
	return pack_tree(dirfd, options, &sink, ret_report, err);
}

static inline ssize_t from_gzip(void *ctx, void *bytes, size_t cap)
{
	return gzip_reader_read(ctx, bytes, cap);
}

/* One line for each member, in order: "TYPE PATH [-> TARGET] [CONTENT]". */
static inline void list_archive(const struct buf *packed, struct buf *ret_text)
{
	static const char types[] = { 'f', 'd', 'l', 'h', 'c', 'p', '?' };
	struct reading reading = { packed, 0, 0 };
	const struct resoluto_source source = { from_buf, &reading };
	struct resoluto_err err = { 0 };
	struct gzip_reader *gzip;
	struct tar_reader *tar;
	struct tar_entry entry;
	int r;

	*ret_text = BUF_INIT(ARCHIVE_MAX);
	CHECK(gzip_reader_new(&source, &gzip) == 0);
	CHECK(tar_reader_new(&(struct resoluto_source){ from_gzip, gzip }, &tar) == 0);
	while ((r = tar_reader_next(tar, &entry, &err)) > 0) {
		const void *bytes;
		uint64_t offset;
		size_t len;

		CHECK(buf_addf(ret_text, "%c %s", types[entry.type], entry.path) == 0);
		if (entry.target[0])
			CHECK(buf_addf(ret_text, " -> %s", entry.target) == 0);
		while ((r = tar_reader_data(tar, &bytes, &len, &offset, &err)) > 0)
			CHECK(buf_addf(ret_text, " %.*s", (int) (len < 40 ? len : 40),
			               (const char *) bytes) == 0);
		CHECK(r == 0 && buf_add_str(ret_text, "\n") == 0);
	}
	if (r < 0)
		printf("# %s\n", err.text);
	CHECK(r == 0);
	tar_reader_free(&tar);
	gzip_reader_free(&gzip);
}

static inline void check_listing(const struct buf *packed, const char *want)
{
	CLEANUP(buf_done) struct buf text = { 0 };

	list_archive(packed, &text);
	CHECK_STR(text.data ? text.data : "", want);
}
