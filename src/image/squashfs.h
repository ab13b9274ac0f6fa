/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * squashfs.h - a tar stream into a squashfs file, by tar2sqfs (squashfs-tools-ng), and whether such a
 * file is whole.
 */

#include <stdint.h>

#include "base/buf.h"
#include "base/proc.h"
#include "image/caller.h"
#include "resoluto/err.h"

/* -EBADMSG and a text unless fd is a squashfs 4.0 of which no byte is missing. */
int squashfs_check(int fd, struct resoluto_err *err);

struct squashfs_writer {
	struct proc proc;
	int to_program; /* owned: a socket, since a pipe would raise SIGPIPE in the caller */
	int file;       /* owned: what it writes */
	int log;        /* owned: what the program says */
	const struct caller *caller; /* borrowed: may stop the writing */
	struct buf pending; /* bytes that are not sent yet: members are small, calls are not */
};

enum { SQUASHFS_PENDING_MAX = 256 * 1024 }; /* bytes */

#define SQUASHFS_WRITER_NONE \
	((struct squashfs_writer){ .proc = PROC_NONE, \
	                           .to_program = -1, \
	                           .file = -1, \
	                           .log = -1, \
	                           .pending = BUF_INIT(SQUASHFS_PENDING_MAX) })

/* Start writing path, a file that is not there.  -ENOPKG: the program is not installed. */
int squashfs_begin(const char *path, const struct caller *caller,
                   struct squashfs_writer *ret_writer, struct resoluto_err *err);
/* A sink for flatten.h: ctx is the writer. */
int squashfs_write(void *ctx, const void *bytes, size_t len, struct resoluto_err *err);
/* Wait for the program; 0 when the file is complete and on the disk. */
int squashfs_end(struct squashfs_writer *writer, struct resoluto_err *err);
void squashfs_writer_done(
	struct squashfs_writer *writer); /* a cleanup function: kills what still runs */
