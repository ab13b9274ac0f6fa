/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * inbox.h - the disk that carries the input archives into the guest (docs/design/channel.md).
 *
 *	offset 0     INBOX_MAGIC, u32 LE count, u32 LE 0
 *	offset 16    count times: name[INBOX_NAME_SIZE] NUL-padded, u64 LE offset, u64 LE length
 *	behind       the archives, each at a multiple of INBOX_ALIGN
 *
 * The disk has one fixed size whatever it holds: QEMU's raw driver refuses another one
 * when a template is cloned.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "resoluto/conduit.h"

#define INBOX_MAGIC "RSLINBX1"        /* 8 bytes */
#define INBOX_DISK_SIZE (64ull << 30) /* bytes; sparse */

enum {
	INBOX_ALIGN = 4096,
	INBOX_INDEX_SIZE = 4096,
	INBOX_NAME_SIZE = 104,
	INBOX_ENTRY_SIZE = INBOX_NAME_SIZE + 16,
	INBOX_HEADER_SIZE = 16,
	INBOX_ARCHIVES_MAX = 32,
};

struct inbox_entry {
	char name[INBOX_NAME_SIZE]; /* "workspace.tar.gz" */
	uint64_t offset, length;
};

/* Pure: the index block of these entries. */
void inbox_index_write(const struct inbox_entry *entries, unsigned count,
                       uint8_t ret_block[INBOX_INDEX_SIZE]);
/* Pure: -EBADMSG if this is no index, or an entry is out of order, out of the disk or badly named. */
int inbox_index_parse(const uint8_t block[INBOX_INDEX_SIZE], struct inbox_entry *ret_entries,
                      unsigned *ret_count);

/* *ret: whether <prefix>/inbox/ holds an archive. */
int inbox_has_archives(struct resoluto_conduit *conduit, const char *prefix, bool *ret,
                       struct resoluto_err *err);

/*
 * Make the disk of <prefix>/inbox/ as a file without a name in the directory dirfd.
 * *ret_fd is open for reading only.
 */
int inbox_build(struct resoluto_conduit *conduit, const char *prefix, int dirfd, int *ret_fd,
                struct resoluto_err *err);
