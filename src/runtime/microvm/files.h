/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* files.h - files that have no name: what everybody alive forgot is gone. */

#include <stddef.h>
#include <stdint.h>

#include "resoluto/err.h"

/* A sparse file of size bytes in the directory dirfd, mode 0600.  A descriptor or a negative errno value;
 * -EFBIG: the file system cannot hold one that large. */
int file_without_name(int dirfd, uint64_t size, struct resoluto_err *err);
/* A file in memory with these bytes, sealed against every change, at its start. */
int file_in_memory(const char *name, const void *bytes, size_t len, struct resoluto_err *err);
/* The same file again with other flags. */
int reopen_fd(int fd, int flags);
/* Can a scratch disk have this size?  -EINVAL says which it can. */
int scratch_check(uint64_t size, struct resoluto_err *err);
/*
 * A scratch disk of size bytes in dirfd, formatted as ext4.  *ret_fd is open for reading and
 * writing.
 */
int scratch_build(int dirfd, uint64_t size, int *ret_fd, struct resoluto_err *err);
