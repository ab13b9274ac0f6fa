/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * inbox_index.h - the first 4 KiB of the inbox disk: which archives lie where (docs/design/channel.md).
 * Pure; nothing in it is believed before it was checked.
 */

#include <stddef.h>
#include <stdint.h>

#include "resoluto/err.h"

enum {
	INBOX_INDEX_SIZE = 4096, /* bytes; archives start at multiples of it */
	INBOX_ARCHIVES_MAX = 32,
	INBOX_NAME_SIZE = 104, /* bytes of a name on the disk, padded with 0 */
};

struct inbox_archive {
	char name[INBOX_NAME_SIZE]; /* "workspace.tar.gz" */
	uint64_t offset, length;    /* bytes on the disk */
};

struct inbox_index {
	struct inbox_archive archives[INBOX_ARCHIVES_MAX];
	uint32_t count;
};

/* disk_size: bytes of the whole disk.  -EBADMSG with what is wrong. */
int inbox_index_parse(const uint8_t bytes[static INBOX_INDEX_SIZE], uint64_t disk_size,
                      struct inbox_index *ret_index, struct resoluto_err *err);
