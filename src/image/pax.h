/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * pax.h - write members of a PAX tar.  Pure.
 *
 * Not wire/tar.h, which has neither owners nor extended attributes.  Ours rather than libarchive's: the digest of a plain root file system is that of the stream made
 * here, so the same tree must give the same bytes with every version of every library and in every locale.
 */

#include <stdint.h>

#include "base/buf.h"
#include "image/tree.h"

enum {
	PAX_BLOCK = 512, /* bytes */
	PAX_HEADER_MAX = 256 *
	                 1024, /* bytes of one member's headers: two paths, extended attributes */
};

struct pax_member {
	const char *path;    /* "" is the root */
	enum tree_type type; /* DIR, FILE, SYMLINK, FIFO or HARDLINK */
	uint16_t mode;
	uint32_t uid, gid, mtime;
	uint64_t size;      /* of a FILE: so many bytes follow, then pax_padding() zeros */
	const char *target; /* of links */
	const struct tree_xattr *xattrs;
};

/* Append the member's headers to out.  0, -ENOMEM or -E2BIG. */
int pax_add_header(struct buf *out, const struct pax_member *member);
/* Bytes of padding behind a content of size bytes. */
unsigned pax_padding(uint64_t size);
/* The end of the archive: this many zero bytes. */
enum { PAX_END = 2 * PAX_BLOCK };
