/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* tar_block.h - the header block as it lies in the archive; for tar_read.c and tar_write.c only. */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

struct tar_block {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8];
	char type;
	char linkname[100], magic[6], version[2], uname[32], gname[32], devmajor[8], devminor[8];
	char prefix[155];
	char pad[12];
};

static_assert(sizeof(struct tar_block) == 512, "a header is one block");

/* A sparse extent in the GNU way, both numbers as in any other header field. */
struct tar_gnu_extent {
	char offset[12], len[12];
};

/* The part of a GNU header that lies where ustar has its prefix, for members of type 'S'. */
struct tar_gnu_sparse {
	char atime[12], ctime[12], offset[12], longnames[4], unused;
	struct tar_gnu_extent extents[4];
	char is_extended;
	char real_size[12];
	char pad[17];
};

static_assert(sizeof(struct tar_gnu_sparse) == 512 - offsetof(struct tar_block, prefix),
              "it fills the block from there");

/* What follows a header with is_extended, as long as the flag is set again. */
struct tar_gnu_extension {
	struct tar_gnu_extent extents[21];
	char is_extended;
	char pad[7];
};

static_assert(sizeof(struct tar_gnu_extension) == 512, "an extension is one block");

/* The sum of all bytes with the checksum field taken as spaces. */
static inline uint32_t tar_checksum(const struct tar_block *block)
{
	const unsigned char *bytes = (const unsigned char *) block;
	uint32_t sum = 0;

	for (size_t i = 0; i < sizeof(*block); i++)
		sum += bytes[i];
	for (size_t i = 0; i < sizeof(block->checksum); i++)
		sum += (uint32_t) ' ' - (unsigned char) block->checksum[i];
	return sum;
}
