/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * local.h - objects as files beneath a directory, for those who hold only a descriptor of it: the
 * shim and the runner.  The key "a/b" is the file "a/b"; whoever writes that file by other means
 * has put that object.
 *
 * Another program may write in the same directory and mean ill: every name is looked up beneath
 * the descriptor and through no symbolic link (base/path.h).
 *
 * An object that is being written is a file called LOCAL_PART_PREFIX...LOCAL_PART_SUFFIX in the
 * directory of its key; no key has a component that begins like that.
 *
 * System calls: openat2, openat, mkdirat, write, fsync, renameat, unlinkat, close, clock_gettime
 * where it is one, and for conduit_local_flush_all syncfs.  Keep it so: the shim's filter allows no
 * others.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "resoluto/conduit.h"

#define LOCAL_PART_PREFIX ".part-"
/* By which the Python original knows its own: it passes over what ends like that. */
#define LOCAL_PART_SUFFIX ".tmp-partial"

enum {
	LOCAL_NAME_MAX = 255, /* bytes of a component of a key */
};

enum local_durability {
	LOCAL_RENAME_ONLY, /* whole and in place; outlives every process, not a power cut */
	LOCAL_FLUSHED,     /* outlives a power cut too */
};

/* One object on its way in.  Between begin and commit or abort. */
struct local_writer {
	int root;  /* borrowed */
	int dirfd; /* where the object goes: root itself, or owned */
	int fd;    /* owned; -1: no object on its way */
	bool made_dirs;
	char key[RESOLUTO_KEY_MAX + 1];
	char part[48]; /* name of the temporary file; "" once it is renamed */
};

#define LOCAL_WRITER_NONE ((struct local_writer){ .root = -1, .dirfd = -1, .fd = -1 })

/* root stays open until commit or abort. */
int local_writer_begin(struct local_writer *writer, int root, const char *key,
                       struct resoluto_err *err);
int local_writer_write(struct local_writer *writer, const void *bytes, size_t len,
                       struct resoluto_err *err);
/* Put the object in its place.  Ends the writer, whether it worked or not. */
int local_writer_commit(struct local_writer *writer, enum local_durability durability,
                        struct resoluto_err *err);
/* Remove what was written.  A cleanup function: after commit, or of LOCAL_WRITER_NONE, fine. */
void local_writer_abort(struct local_writer *writer);

int conduit_local_put_at(int root, const char *key, const void *bytes, size_t len,
                         enum local_durability durability, struct resoluto_err *err);
/*
 * Flush everything put so far, whatever its durability.  One syncfs: on ext4 it took 0.8 ms for 30
 * chunks and 5 ms for 300, where reopening and fsyncing each took 5 and 44 ms; the price is that
 * it waits for other programs' unwritten data on that file system too.
 */
int conduit_local_flush_all(int root, struct resoluto_err *err);

/* A system call's failure as conduit.h names it (-EPERM is -EACCES, -EDQUOT is -ENOSPC ...). */
int local_code(int code);
/* -EINVAL unless key keeps the rules of conduit.h.  Pure. */
int local_check_key(const char *key, struct resoluto_err *err);

/* The directory of a conduit opened as localfs://, borrowed; -EOPNOTSUPP for any other. */
int conduit_local_root(const struct resoluto_conduit *conduit);
