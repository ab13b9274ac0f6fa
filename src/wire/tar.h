/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * tar.h - tar streams: a reader that trusts nothing and a maker of headers.  No file is touched here.
 *
 * Read: ustar, PAX (POSIX.1-2001, with GNU.sparse 0.0, 0.1 and 1.0) and GNU (long names, old sparse
 * headers).  Written: ustar with PAX records where they are needed, sparse files as GNU.sparse 1.0.
 * Why not libarchive: docs/design/archives.md.
 *
 * Names are bytes without NUL, exactly as they stand in the archive; what they may be is the caller's
 * business.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "resoluto/conduit.h"
#include "resoluto/err.h"

enum {
	TAR_BLOCK = 512,              /* bytes; everything is a multiple of it */
	TAR_END = 2 * TAR_BLOCK,      /* bytes of zeros at the end of an archive */
	TAR_PATH_MAX = 256 * 1024,    /* bytes of a path or link target */
	TAR_EXTRA_MAX = 1024 * 1024,  /* bytes of one PAX or GNU long-name header */
	TAR_EXTENTS_MAX = 128 * 1024, /* pieces of a sparse file */
};

enum tar_type {
	TAR_FILE,
	TAR_DIRECTORY,
	TAR_SYMLINK,
	TAR_HARDLINK,
	TAR_DEVICE,
	TAR_FIFO,
	TAR_OTHER,
};

/* A piece of a sparse file that is not a hole. */
struct tar_extent {
	uint64_t offset, len; /* bytes */
};

struct tar_entry {
	enum tar_type type;
	const char *path;
	const char *target; /* of a link; else "" */
	uint64_t size;      /* bytes of a file, holes included; 0 for all else */
	uint64_t stored;    /* bytes of its content that are in the archive */
	mode_t mode;        /* 07777 */
	struct timespec mtime;
	bool is_sparse;
	const struct tar_extent *extents; /* of a sparse file: ascending, apart, within size */
	size_t extent_count;
};

/*
 * Append the headers of entry: ustar, PAX before it where needed, the sparse map behind it.  `stored` is
 * not looked at: it follows from size and extents.  Owner and group are 0 and nameless.  The caller lets
 * exactly the stored bytes follow, then tar_padding() of them.
 */
int tar_header_add(struct buf *out, const struct tar_entry *entry);
/* Bytes of zeros that fill up the last block of this many stored bytes. */
size_t tar_padding(uint64_t stored);

struct tar_reader;

int tar_reader_new(const struct resoluto_source *source, struct tar_reader **ret_reader);
void tar_reader_free(struct tar_reader **reader);
/*
 * The next member.  1: *ret_entry is valid until the next call.  0: the end of the archive, and of the
 * source, was met.  -EBADMSG: the archive is damaged, cut short or lies.  Content that was not fetched is
 * passed over.
 */
int tar_reader_next(struct tar_reader *reader, struct tar_entry *ret_entry,
                    struct resoluto_err *err);
/*
 * The next piece of the member's content: 1 with at least one byte for this offset in the file, valid
 * until the next call, or 0 at the end of the member.
 */
int tar_reader_data(struct tar_reader *reader, const void **ret_bytes, size_t *ret_len,
                    uint64_t *ret_offset, struct resoluto_err *err);
