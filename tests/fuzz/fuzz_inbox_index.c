/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_inbox_index.c - the first block of the inbox disk: archives that lie on the disk behind it, or a refusal. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guest/inbox_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

static void check_archive(const struct inbox_archive *archive, uint64_t disk_size)
{
	size_t len = strnlen(archive->name, INBOX_NAME_SIZE);

	require(len > strlen(".tar.gz") && len < INBOX_NAME_SIZE);
	require(strcmp(archive->name + len - strlen(".tar.gz"), ".tar.gz") == 0);
	require(archive->name[0] != '.' && !strchr(archive->name, '/'));
	require(archive->offset >= INBOX_INDEX_SIZE && archive->offset % INBOX_INDEX_SIZE == 0);
	require(archive->offset <= disk_size && archive->length <= disk_size - archive->offset);
}

/* The last eight bytes of the input are the size of the disk, the ones before them the block. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t block[INBOX_INDEX_SIZE] = { 0 };
	struct inbox_index index;
	struct resoluto_err err = { 0 };
	uint64_t disk_size;
	int r;

	if (size < sizeof(disk_size) || size - sizeof(disk_size) > sizeof(block))
		return 0;
	size -= sizeof(disk_size);
	memcpy(&disk_size, data + size, sizeof(disk_size));
	memcpy(block, data, size);
	r = inbox_index_parse(block, disk_size, &index, &err);
	require(r == 0 || (r == -EBADMSG && err.code == r && err.text[0]));
	require(index.count <= INBOX_ARCHIVES_MAX);
	for (uint32_t i = 0; i < index.count; i++)
		check_archive(&index.archives[i], disk_size);
	return 0;
}
