/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * io.h - whole reads and writes, files put into place, and copies.
 *
 * All return 0 (or a count) or a negative errno value; EINTR is handled here.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "resoluto/err.h"

int write_all(int fd, const void *bytes, size_t len);
/* The same from this byte of the file on. */
int write_all_at(int fd, const void *bytes, size_t len, uint64_t offset);
/* Bytes read, less than cap only at the end of the file. */
ssize_t read_up_to(int fd, void *bytes, size_t cap);
/* Append the rest of fd to buf; -E2BIG when it does not fit buf->max. */
int read_rest(int fd, struct buf *buf);
/* Read a regular file beneath dirfd (AT_FDCWD allowed) whole; -E2BIG over max bytes. */
int read_file_at(int dirfd, const char *path, size_t max, struct buf *ret_buf,
                 struct resoluto_err *err);
/* Until fd can be read (0); any negative value is the end of what wanted to read it. */
typedef int io_wait_fn(void *ctx, int fd);

/* Read what the user named: also a pipe or a terminal, which is waited for.  -E2BIG over max bytes. */
int read_given_file(const char *path, size_t max, io_wait_fn *wait, void *ctx, struct buf *ret_buf,
                    struct resoluto_err *err);
/* Create name in dirfd with these bytes: temporary file, fsync, rename. */
int replace_file_at(int dirfd, const char *name, const void *bytes, size_t len, mode_t mode,
                    struct resoluto_err *err);
/* The same without the fsync: whole for every reader, but a power cut may leave an empty file. */
int replace_file_unflushed_at(int dirfd, const char *name, const void *bytes, size_t len,
                              mode_t mode, struct resoluto_err *err);
/* Copy all of from (from its start) to `to` at its offset: reflink, copy_file_range or read and
 * write, whichever works.  Holes are not kept. */
int copy_fd(int from, int to, uint64_t *ret_size, struct resoluto_err *err);

int fd_set_nonblock(int fd);
int fd_set_cloexec(int fd, int on);
/* flock() with LOCK_SH or LOCK_EX, tried again for so long.  -EWOULDBLOCK: somebody else has it still. */
int lock_within(int fd, int operation, uint64_t limit_ms);
