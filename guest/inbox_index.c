/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "guest/inbox_index.h"
#include "wire/frame.h"
#include "wire/keys.h"

enum {
	HEADER_SIZE = 16, /* magic, count, zero */
	ENTRY_SIZE = INBOX_NAME_SIZE + 8 + 8,
};

static const char magic[8] = { 'R', 'S', 'L', 'I', 'N', 'B', 'X', '1' };
static const char suffix[] = ".tar.gz";

_Static_assert(HEADER_SIZE + INBOX_ARCHIVES_MAX * ENTRY_SIZE <= INBOX_INDEX_SIZE, "the index fits");

static int check_name(const char *name, struct resoluto_err *err)
{
	size_t len = strnlen(name, INBOX_NAME_SIZE), tail = sizeof(suffix) - 1;

	if (len == INBOX_NAME_SIZE || len <= tail || strcmp(name + len - tail, suffix) != 0 ||
	    !key_is_archive_name(name, len - tail))
		return resoluto_fail(err, -EBADMSG, "the inbox holds an archive with a bad name");
	return 0;
}

static int parse_entry(const uint8_t *at, uint64_t disk_size, struct inbox_archive *ret,
                       struct resoluto_err *err)
{
	int r;

	memcpy(ret->name, at, INBOX_NAME_SIZE);
	ret->offset = frame_le64(at + INBOX_NAME_SIZE);
	ret->length = frame_le64(at + INBOX_NAME_SIZE + 8);
	r = check_name(ret->name, err);
	if (r < 0)
		return r;
	if (ret->offset % INBOX_INDEX_SIZE != 0 || ret->offset < INBOX_INDEX_SIZE ||
	    ret->offset > disk_size || ret->length > disk_size - ret->offset)
		return resoluto_fail(err, -EBADMSG, "the archive %s does not lie on the inbox disk",
		                     ret->name);
	return 0;
}

int inbox_index_parse(const uint8_t bytes[static INBOX_INDEX_SIZE], uint64_t disk_size,
                      struct inbox_index *ret_index, struct resoluto_err *err)
{
	ret_index->count = 0;
	if (memcmp(bytes, magic, sizeof(magic)) != 0)
		return resoluto_fail(err, -EBADMSG, "the inbox disk has no index");
	if (frame_le32(bytes + 8) > INBOX_ARCHIVES_MAX || frame_le32(bytes + 12) != 0)
		return resoluto_fail(err, -EBADMSG, "the index of the inbox disk is damaged");
	for (uint32_t i = 0; i < frame_le32(bytes + 8); i++) {
		int r = parse_entry(bytes + HEADER_SIZE + i * ENTRY_SIZE, disk_size,
		                    &ret_index->archives[i], err);

		if (r < 0)
			return r;
		ret_index->count++;
	}
	return 0;
}
