/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * pack.h - directory trees to gzip-tar and back (seed 000: "gzip-tar for file archives").
 *
 * tar.h does the tar (PAX, sparse as GNU.sparse 1.0, names as bytes); gzip is isa-l on the host and zlib in
 * the static runner (gzip.h).  Memory is bounded whatever the size of the tree, and whoever made it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "resoluto/conduit.h"
#include "resoluto/err.h"
#include "wire/quota.h"

/* Names left out of a workspace anywhere in the tree (seed 002 / contract section 5);
 * NULL-terminated. */
extern const char *const pack_default_excludes[];

enum {
	PACK_MEMORY =
		24 * 1024 *
		1024, /* bytes for names that wait to be packed, and for paths of files with several names */
};

struct pack_options {
	/* Beneath paths to pack, and all in them; NULL or ".": everything.  Named here, an entry is never excluded
	 * itself.  -ENOENT names the missing one. */
	const char *const *paths;
	const char *const *excludes; /* names; NULL: pack_default_excludes, an empty list: none */
	/* Names, or beneath paths (also inside something excluded), kept despite excludes; may be NULL. */
	const char *const *protect;
	const char *const
		*globs; /* only what matches (outputs); NULL: all, and no excludes apply with it */
	bool skip_unreadable; /* false: an entry that cannot be read fails the whole and is named */
	size_t memory;        /* 0: PACK_MEMORY; else 128 KiB at least */
	/* Called now and then with the bytes of file content done, also where nothing is packed for a while. */
	void (*progress)(void *ctx, uint64_t done);
	void *ctx;
};

struct pack_report {
	uint64_t entries, bytes; /* packed */
	uint64_t excluded;       /* by name; a directory counts once */
	uint64_t special;        /* fifos, sockets, devices */
	uint64_t links_out;      /* links that are absolute or climb out */
	uint64_t unreadable;     /* with skip_unreadable */
};

/*
 * Pack the content of dirfd into sink.  Entries are in byte order: the same tree gives the same archive.
 * Nothing outside dirfd is opened, no link is followed.
 *
 * Written are files, directories, symbolic links that stay inside, and further names of a file as hard
 * links; owner 0:0, modes without setuid, setgid and sticky; times to the nanosecond.  A link "a/../b" is
 * written as "b" if "a" is a directory, and counted in links_out otherwise (link.h).  A file that changes
 * its size while it is read is cut or filled with zeros.  With globs, directories count only where they
 * match themselves.  Of files with several names so many are kept in mind as there is memory for; further
 * ones are packed once for each name.
 *
 * -E2BIG: some ten directories within each other have more names than there is memory for, or tens of
 * thousands any.
 * -EACCES: an entry cannot be read; the text names the first and says how many more there are.  The sink
 * may then have received the start of an archive.
 */
int pack_tree(int dirfd, const struct pack_options *options, const struct resoluto_sink *sink,
              struct pack_report *ret_report, struct resoluto_err *err);

/* Over one of the first three the report says which quota that was (quota.h). */
struct unpack_limits {
	uint64_t bytes;   /* that what is unpacked costs (quota_cost()); 0: 64 GiB */
	uint64_t members; /* 0: 1,000,000 */
	/* Unpacked to packed bytes, looked at beyond 64 MiB; 0: 2,000, more than gzip can. */
	uint64_t ratio;
	uint64_t apparent; /* sum of the sizes of all files, holes included; 0: 16 times bytes */
};

struct unpack_options {
	const char *const *globs; /* only members that match; NULL: all */
	struct unpack_limits limits;
	bool set_owner; /* the guest: all becomes uid:gid; the host: the caller's, as files are made */
	uid_t uid;
	gid_t gid;
	/* Each file or link that was put into place, path relative to dirfd. */
	int (*member)(void *ctx, const char *path);
	void *ctx;
};

struct unpack_report {
	uint64_t members, bytes;
	uint64_t left_out; /* not matched by globs */
	enum quota over;   /* the one that ended it */
};

/*
 * Unpack a hostile archive beneath dirfd.
 *
 * All goes through openat2 beneath and without following any link: nothing outside dirfd is touched.
 * Existing files and links are replaced, never written through; a file gets its name only when it is whole, so
 * that nothing is left of one that could not be written, even by a process that was killed (in the guest, and on file
 * systems without O_TMPFILE, only where there was something before).  Existing
 * directories stay as they are, with their modes.  New ones get theirs at the end, deepest first; their times
 * are not restored.  Without set_owner the caller's umask holds.  Setuid, setgid and sticky are dropped.
 *
 * Symbolic links are made where their text says that they stay inside (link.h), those that can only be
 * judged by looking last; hard links only to files that this archive brought.
 *
 * Refused, naming the member: -EBADMSG absolute names, "..", devices, fifos, hard links to anything else,
 * links out, links on the way to a member; -EISDIR a directory where a file is to be; -ENOTDIR the reverse;
 * -EFBIG over a limit.  What was unpacked before a failure stays, and is in the report (may be NULL).
 */
int unpack_tree(int dirfd, const struct resoluto_source *source,
                const struct unpack_options *options, struct unpack_report *ret_report,
                struct resoluto_err *err);
