/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* layers.h - layers made in memory by libarchive, as other tools make them. */
#include <archive.h>
#include <archive_entry.h>

#include "base/buf.h"
#include "check.h"

/* Rows of tables leave out what they do not say. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

struct file {
	const char *path;
	mode_t type;          /* AE_IFREG ...; 0 = hard link */
	const char *contents; /* of a file; target of a link */
	mode_t perm;
	uid_t uid;
	const char *xattr; /* value of user.test */
};

static inline la_ssize_t layers_write(struct archive *archive, void *ctx, const void *bytes,
                                      size_t len)
{
	return buf_add(ctx, bytes, len) < 0 ? -1 : (la_ssize_t) len;
}

static inline void layers_add(struct archive *archive, const struct file *file)
{
	struct archive_entry *entry = archive_entry_new();

	archive_entry_set_pathname(entry, file->path);
	archive_entry_set_perm(entry, file->perm);
	archive_entry_set_uid(entry, file->uid);
	archive_entry_set_mtime(entry, 1700000000, 0);
	if (file->type)
		archive_entry_set_filetype(entry, file->type);
	if (!file->type)
		archive_entry_set_hardlink(entry, file->contents);
	else if (file->type == AE_IFLNK)
		archive_entry_set_symlink(entry, file->contents);
	else if (file->type == AE_IFREG)
		archive_entry_set_size(entry, (la_int64_t) strlen(file->contents));
	if (file->xattr)
		archive_entry_xattr_add_entry(entry, "user.test", file->xattr, strlen(file->xattr));
	CHECK(archive_write_header(archive, entry) >= ARCHIVE_WARN);
	if (file->type == AE_IFREG)
		CHECK(archive_write_data(archive, file->contents, strlen(file->contents)) >= 0);
	archive_entry_free(entry);
}

/* filter: "gzip", "zstd", "none". */
static inline struct buf layers_make(const char *filter, const struct file *files, size_t count)
{
	struct buf out = BUF_INIT(64 * 1024 * 1024);
	struct archive *archive = archive_write_new();

	CHECK(archive_write_set_format_pax_restricted(archive) == ARCHIVE_OK);
	if (strcmp(filter, "none") != 0)
		CHECK(archive_write_add_filter_by_name(archive, filter) >= ARCHIVE_WARN);
	CHECK(archive_write_set_bytes_in_last_block(archive, 1) ==
	      ARCHIVE_OK); /* no zeros behind the end */
	CHECK(archive_write_open(archive, &out, NULL, layers_write, NULL) == ARCHIVE_OK);
	for (size_t i = 0; i < count; i++)
		layers_add(archive, &files[i]);
	CHECK(archive_write_close(archive) == ARCHIVE_OK);
	archive_write_free(archive);
	return out;
}
