/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * layer.h - read one layer, or a plain tar: decompress, hash, and walk its members.
 *
 *	blob -> decompression -> (sha256, count, ratio) -> tar -> members
 *
 * Two libarchive readers, one behind the other, so that the bytes between them can be hashed: the
 * configuration's diff_ids name the unpacked layer, and only they tie an image's contents to its name.
 *
 * Failures: -EBADMSG for what is corrupt, hostile or over a limit, -EIO when the blob cannot be read,
 * -ECANCELED when the caller asked to stop.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "image/caller.h"
#include "image/digest.h"
#include "image/tree.h"
#include "resoluto/err.h"

struct layer_source {
	int fd; /* read from its current offset; borrowed.  -1: the bytes below */
	const void *bytes;
	size_t len;
	bool any_filter; /* xz and bzip2 too, for tars of people; OCI has gzip and zstd */
	bool hash;       /* compute the digest of the unpacked bytes */
	const struct caller *caller; /* may stop the reading */
	uint32_t number;             /* of the layer, from 0 */
};

struct layer;

int layer_open(const struct layer_source *source, struct layer **ret_layer,
               struct resoluto_err *err);
void layer_close(struct layer **layer); /* a cleanup function */
/* 1 and the next member, whose strings are valid until the next call; 0 behind the last.  The
 * caller owns member->xattrs.  dropped counts extended attributes that are not kept. */
int layer_next(struct layer *layer, struct tree_member *ret_member, uint64_t *dropped,
               struct resoluto_err *err);
/* Contents of the member, holes as zeros.  Bytes read, 0 at the end. */
ssize_t layer_read(struct layer *layer, void *bytes, size_t cap, struct resoluto_err *err);
/* Read what is behind the last member.  ret_digest may be NULL. */
int layer_finish(struct layer *layer, char ret_digest[DIGEST_SIZE], struct resoluto_err *err);
/* Packed bytes read so far. */
uint64_t layer_packed_bytes(const struct layer *layer);

/*
 * libarchive converts names between UTF-8 and the thread's locale, and loses what the locale cannot
 * hold.  Between begin and end names are bytes; only the calling thread is touched.
 */
struct layer_locale {
	void *before, *own;
};

struct layer_locale layer_locale_begin(void);
void layer_locale_end(struct layer_locale *locale); /* a cleanup function */
