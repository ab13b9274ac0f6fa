/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar_write.c - headers of an archive.
 *
 * A plain entry is one ustar block.  What does not fit there (names that are long or not ASCII, times with
 * a fraction, sizes over 8 GiB, sparse files) stands in a PAX header before it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/tar.h"
#include "wire/tar_block.h"
#include "wire/utf8.h"

static const uint64_t USTAR_NUMBER_MAX = 077777777777; /* eleven octal digits */

size_t tar_padding(uint64_t stored)
{
	return (size_t) (-stored % TAR_BLOCK);
}

static bool is_ascii(const char *text)
{
	for (; *text; text++) {
		if ((unsigned char) *text >= 0x80)
			return false;
	}
	return true;
}

/* A record is "LENGTH KEY=VALUE\n", and its length counts its own digits. */
static int record_add(struct buf *records, const char *key, const char *value)
{
	size_t rest = strlen(key) + strlen(value) + 3, digits = 1;

	for (size_t bound = 10; rest + digits >= bound; bound *= 10)
		digits++;
	return buf_addf(records, "%zu %s=%s\n", rest + digits, key, value);
}

static int record_add_number(struct buf *records, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return record_add(records, key, text);
}

static int record_add_time(struct buf *records, struct timespec time)
{
	bool is_negative = time.tv_sec < 0;
	int64_t seconds = time.tv_sec;
	long nanoseconds = time.tv_nsec;
	char text[40];

	if (is_negative && nanoseconds > 0) { /* -2 s and 0.75 s are written as -1.25 */
		seconds++;
		nanoseconds = 1000000000 - nanoseconds;
	}
	snprintf(text, sizeof(text), "%s%" PRIu64 ".%09ld", is_negative ? "-" : "",
	         is_negative ? -(uint64_t) seconds : (uint64_t) seconds, nanoseconds);
	return record_add(records, "mtime", text);
}

static bool needs_record(const char *text, size_t room)
{
	return strlen(text) > room || !is_ascii(text);
}

static int add_name_records(struct buf *records, const struct tar_entry *entry)
{
	bool is_binary = !utf8_is_valid(entry->path, strlen(entry->path)) ||
	                 !utf8_is_valid(entry->target, strlen(entry->target));
	int r = 0;

	/* It holds for what follows, so it comes first. */
	if (is_binary)
		r = record_add(records, "hdrcharset", "BINARY");
	if (r == 0 && entry->is_sparse)
		r = record_add(records, "GNU.sparse.name", entry->path);
	else if (r == 0 &&
	         needs_record(entry->path, sizeof(((struct tar_block *) 0)->name) - sizeof("/")))
		r = record_add(records, "path", entry->path);
	if (r == 0 && needs_record(entry->target, sizeof(((struct tar_block *) 0)->linkname)))
		r = record_add(records, "linkpath", entry->target);
	return r;
}

static int add_records(struct buf *records, const struct tar_entry *entry, uint64_t in_archive)
{
	bool has_plain_time = entry->mtime.tv_nsec == 0 && entry->mtime.tv_sec >= 0 &&
	                      (uint64_t) entry->mtime.tv_sec <= USTAR_NUMBER_MAX;
	int r = add_name_records(records, entry);

	if (r == 0 && !has_plain_time)
		r = record_add_time(records, entry->mtime);
	if (r == 0 && in_archive > USTAR_NUMBER_MAX)
		r = record_add_number(records, "size", in_archive);
	if (r < 0 || !entry->is_sparse)
		return r;
	r = record_add_number(records, "GNU.sparse.major", 1);
	if (r == 0)
		r = record_add_number(records, "GNU.sparse.minor", 0);
	if (r == 0)
		r = record_add_number(records, "GNU.sparse.realsize", entry->size);
	return r;
}

/* The count of extents, then offset and length of each, a number a line, filled up with zeros to a
 * whole block. */
static int make_map(struct buf *map, const struct tar_entry *entry)
{
	static const char zeros[TAR_BLOCK];
	int r = buf_addf(map, "%zu\n", entry->extent_count);

	for (size_t i = 0; r == 0 && i < entry->extent_count; i++)
		r = buf_addf(map, "%" PRIu64 "\n%" PRIu64 "\n", entry->extents[i].offset,
		             entry->extents[i].len);
	return r < 0 ? r : buf_add(map, zeros, tar_padding(map->len));
}

static uint64_t stored_bytes(const struct tar_entry *entry)
{
	uint64_t sum = 0;

	if (entry->type != TAR_FILE)
		return 0;
	if (!entry->is_sparse)
		return entry->size;
	for (size_t i = 0; i < entry->extent_count; i++)
		sum += entry->extents[i].len;
	return sum;
}

/* As many octal digits as the field holds besides its 0; larger numbers stand in a record. */
static void put_octal(char *field, size_t size, uint64_t value)
{
	field[size - 1] = '\0';
	for (size_t i = size - 1; i-- > 0; value >>= 3)
		field[i] = (char) ('0' + (value & 7));
}

static void put_text(char *field, size_t size, const char *text)
{
	size_t len = strnlen(text, size);

	memset(field, 0, size);
	memcpy(field, text, len);
}

static char type_flag(enum tar_type type)
{
	switch (type) {
	case TAR_FILE:
		return '0';
	case TAR_HARDLINK:
		return '1';
	case TAR_SYMLINK:
		return '2';
	case TAR_DIRECTORY:
		return '5';
	case TAR_DEVICE:
	case TAR_FIFO:
	case TAR_OTHER:
		break;
	}
	return 0;
}

static int add_block(struct buf *out, char type, const char *name, const char *target, mode_t mode,
                     uint64_t size, int64_t mtime_s)
{
	struct tar_block block = { .type = type };

	put_text(block.name, sizeof(block.name), name);
	put_octal(block.mode, sizeof(block.mode), mode & 07777);
	put_octal(block.uid, sizeof(block.uid), 0);
	put_octal(block.gid, sizeof(block.gid), 0);
	put_octal(block.size, sizeof(block.size), size > USTAR_NUMBER_MAX ? 0 : size);
	put_octal(block.mtime, sizeof(block.mtime),
	          mtime_s < 0 || (uint64_t) mtime_s > USTAR_NUMBER_MAX ? 0 : (uint64_t) mtime_s);
	put_text(block.linkname, sizeof(block.linkname), target);
	memcpy(block.magic, "ustar", sizeof(block.magic));
	memcpy(block.version, "00", sizeof(block.version));
	put_octal(block.devmajor, sizeof(block.devmajor), 0);
	put_octal(block.devminor, sizeof(block.devminor), 0);
	put_octal(block.checksum, sizeof(block.checksum) - 1, tar_checksum(&block));
	block.checksum[sizeof(block.checksum) - 1] = ' ';
	return buf_add(out, &block, sizeof(block));
}

static int add_extra_header(struct buf *out, const struct buf *records)
{
	static const char zeros[TAR_BLOCK];
	int r = add_block(out, 'x', "PaxHeaders/entry", "", 0644, records->len, 0);

	if (r == 0)
		r = buf_add(out, records->data, records->len);
	return r < 0 ? r : buf_add(out, zeros, tar_padding(records->len));
}

/* The name in the block itself, for readers that know no PAX; a directory's ends in '/'. */
static void block_name(const struct tar_entry *entry,
                       char name[sizeof(((struct tar_block *) 0)->name)])
{
	static const char sparse[] = "GNUSparseFile.0/";
	size_t room = sizeof(((struct tar_block *) 0)->name) - sizeof("/");
	const char *slash = entry->type == TAR_DIRECTORY ? "/" : "";

	if (entry->is_sparse)
		snprintf(name, room, "%s%.*s", sparse, (int) (room - sizeof(sparse)), entry->path);
	else
		snprintf(name, room + sizeof("/"), "%.*s%s", (int) room, entry->path, slash);
}

int tar_header_add(struct buf *out, const struct tar_entry *entry)
{
	CLEANUP(buf_done) struct buf records = BUF_INIT(TAR_EXTRA_MAX);
	CLEANUP(buf_done) struct buf map = BUF_INIT((size_t) TAR_EXTENTS_MAX * 48);
	char name[sizeof(((struct tar_block *) 0)->name)];
	uint64_t in_archive;
	int r = 0;

	if (type_flag(entry->type) == 0)
		return -EINVAL;
	if (entry->is_sparse)
		r = make_map(&map, entry);
	in_archive = map.len + stored_bytes(entry);
	if (r == 0)
		r = add_records(&records, entry, in_archive);
	if (r == 0 && records.len > 0)
		r = add_extra_header(out, &records);
	block_name(entry, name);
	if (r == 0)
		r = add_block(out, type_flag(entry->type), name, entry->target, entry->mode,
		              in_archive, entry->mtime.tv_sec);
	return r < 0 || map.len == 0 ? r : buf_add(out, map.data, map.len);
}
