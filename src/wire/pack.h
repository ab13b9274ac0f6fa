/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * pack.h - directory trees to gzip-tar and back (seed 000: "gzip-tar for file archives").
 *
 * libarchive does the tar (PAX, sparse as GNU.sparse 1.0, names as bytes); gzip is isa-l on the host
 * and zlib in the static runner (gzip.h).  Memory is bounded whatever the size of the tree.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "resoluto/conduit.h"
#include "resoluto/err.h"

/* Names left out of a workspace anywhere in the tree (seed 002 / contract section 5);
 * NULL-terminated. */
extern const char *const pack_default_excludes[];

struct pack_options {
	const char *const *paths;    /* beneath paths to pack; NULL: all.  -ENOENT names the missing one */
	const char *const *excludes; /* names; NULL: pack_default_excludes, an empty list: none */
	const char *const *protect;  /* names or beneath paths kept despite excludes; may be NULL */
	const char *const *globs;    /* only what matches (outputs); NULL: all, and no excludes apply with it */
	bool skip_unreadable;        /* false: an entry that cannot be read fails the whole and is named */
	/* Called now and then with the bytes of file content done. */
	void (*progress)(void *ctx, uint64_t done);
	void *ctx;
};

struct pack_report {
	uint64_t entries, bytes;     /* packed */
	uint64_t excluded;           /* by name; a directory counts once */
	uint64_t special;            /* fifos, sockets, devices */
	uint64_t links_out;          /* links that are absolute or climb out */
	uint64_t unreadable;         /* with skip_unreadable */
};

/* Pack the content of dirfd into sink.  Entries are in byte order: the same tree gives the same
 * archive but for times. Nothing outside dirfd is opened. */
int pack_tree(int dirfd, const struct pack_options *options, const struct resoluto_sink *sink,
	      struct pack_report *ret_report, struct resoluto_err *err);

struct unpack_limits {
	uint64_t bytes;      /* of content unpacked; 0: 64 GiB */
	uint64_t members;    /* 0: 1,000,000 */
	uint64_t ratio;      /* unpacked to packed bytes, looked at beyond 64 MiB; 0: 2,000 (sparse holes do not count) */
};

struct unpack_options {
	const char *const *globs;  /* only members that match; NULL: all */
	struct unpack_limits limits;
	bool set_owner;            /* the guest: all becomes uid:gid; the host: the caller's, as files are made */
	uid_t uid;
	gid_t gid;
	/* Each file or link that was put into place, path relative to dirfd. */
	int (*member)(void *ctx, const char *path);
	void *ctx;
};

struct unpack_report {
	uint64_t members, bytes;
	uint64_t left_out;         /* not matched by globs */
};

/*
 * Unpack a hostile archive beneath dirfd.  All goes through openat2 beneath: nothing outside dirfd is
 * touched, existing files are replaced (never written through), links are made last and only when
 * they stay inside.  Refused with -EBADMSG, naming the member: absolute names, "..", devices, fifos, hard links
 * to outside, links out; over a limit -EFBIG.  Setuid bits are dropped, directories get their modes
 * at the end.  What was unpacked before a failure stays.
 */
int unpack_tree(int dirfd, const struct resoluto_source *source,
		const struct unpack_options *options, struct unpack_report *ret_report,
		struct resoluto_err *err);
