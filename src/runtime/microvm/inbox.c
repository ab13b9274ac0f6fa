/* SPDX-License-Identifier: Apache-2.0 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "conduit/local.h"
#include "runtime/microvm/files.h"
#include "runtime/microvm/inbox.h"
#include "wire/keys.h"

#define ARCHIVE_SUFFIX ".tar.gz"

_Static_assert(INBOX_HEADER_SIZE + INBOX_ARCHIVES_MAX * INBOX_ENTRY_SIZE <= INBOX_INDEX_SIZE,
               "the index fits its block");

static void put_le64(uint8_t *at, uint64_t value)
{
	value = htole64(value);
	memcpy(at, &value, sizeof(value));
}

static uint64_t get_le64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return le64toh(value);
}

void inbox_index_write(const struct inbox_entry *entries, unsigned count,
                       uint8_t ret_block[INBOX_INDEX_SIZE])
{
	uint32_t number = htole32(count);

	memset(ret_block, 0, INBOX_INDEX_SIZE);
	memcpy(ret_block, INBOX_MAGIC, 8);
	memcpy(ret_block + 8, &number, sizeof(number));
	for (unsigned i = 0; i < count; i++) {
		uint8_t *at = ret_block + INBOX_HEADER_SIZE + i * INBOX_ENTRY_SIZE;

		memcpy(at, entries[i].name, INBOX_NAME_SIZE);
		put_le64(at + INBOX_NAME_SIZE, entries[i].offset);
		put_le64(at + INBOX_NAME_SIZE + 8, entries[i].length);
	}
}

static bool is_archive_file(const char *name)
{
	size_t n = strlen(name), suffix = strlen(ARCHIVE_SUFFIX);

	return n > suffix && strcmp(name + n - suffix, ARCHIVE_SUFFIX) == 0 &&
	       key_is_archive_name(name, n - suffix);
}

int inbox_index_parse(const uint8_t block[INBOX_INDEX_SIZE], struct inbox_entry *ret_entries,
                      unsigned *ret_count)
{
	uint64_t free_from = INBOX_INDEX_SIZE;
	uint32_t count, zero;

	memcpy(&count, block + 8, sizeof(count));
	memcpy(&zero, block + 12, sizeof(zero));
	count = le32toh(count);
	if (memcmp(block, INBOX_MAGIC, 8) != 0 || zero != 0 || count > INBOX_ARCHIVES_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *at = block + INBOX_HEADER_SIZE + i * INBOX_ENTRY_SIZE;
		struct inbox_entry *entry = &ret_entries[i];

		memcpy(entry->name, at, INBOX_NAME_SIZE);
		entry->offset = get_le64(at + INBOX_NAME_SIZE);
		entry->length = get_le64(at + INBOX_NAME_SIZE + 8);
		if (entry->name[INBOX_NAME_SIZE - 1] || !is_archive_file(entry->name))
			return -EBADMSG;
		if (entry->offset % INBOX_ALIGN || entry->offset < free_from ||
		    entry->offset > INBOX_DISK_SIZE ||
		    entry->length > INBOX_DISK_SIZE - entry->offset)
			return -EBADMSG;
		free_from = entry->offset + entry->length;
	}
	*ret_count = count;
	return 0;
}

struct builder {
	const char *inbox_key; /* "<prefix>/inbox/" */
	struct inbox_entry entries[INBOX_ARCHIVES_MAX];
	unsigned count;
	int fd;
	uint64_t at;
	bool is_over; /* more archives than fit */
};

static int note_archive(void *ctx, const struct resoluto_object *object)
{
	struct builder *builder = ctx;
	const char *name = object->key + strlen(builder->inbox_key);

	/* Whatever else lies there is nobody's input: the same rule as a guest with a mounted store. */
	if (!is_archive_file(name))
		return 0;
	if (builder->count == INBOX_ARCHIVES_MAX) {
		builder->is_over = true;
		return 1;
	}
	snprintf(builder->entries[builder->count].name, INBOX_NAME_SIZE, "%s", name);
	builder->entries[builder->count].length = object->size;
	builder->count++;
	return 0;
}

static int write_archive(void *ctx, const void *bytes, size_t len)
{
	struct builder *builder = ctx;

	if (len > INBOX_DISK_SIZE - builder->at)
		return -EFBIG;
	builder->at += len;
	return write_all(builder->fd, bytes, len);
}

/* From a local directory the kernel copies, or only shares blocks. */
static int copy_from_local(int root, const char *key, struct builder *builder,
                           struct resoluto_err *err)
{
	CLEANUP(fd_close) int from = open_beneath(root, key, O_RDONLY | O_NONBLOCK, 0);
	struct stat st;
	uint64_t size;
	int r;

	if (from < 0)
		return resoluto_fail(err, from, "open");
	if (fstat(from, &st) < 0)
		return resoluto_fail(err, -errno, "look at its size");
	if (!S_ISREG(st.st_mode))
		return resoluto_fail(err, -EINVAL, "it is not a file");
	if ((uint64_t) st.st_size > INBOX_DISK_SIZE - builder->at)
		return -EFBIG;
	r = copy_fd(from, builder->fd, &size, err);
	if (r == 0)
		builder->at += size;
	return r;
}

static int copy_object(struct resoluto_conduit *conduit, const char *key, struct builder *builder,
                       struct resoluto_err *err)
{
	const struct resoluto_sink sink = { .write = write_archive, .ctx = builder };
	int root = conduit_local_root(conduit);

	if (root >= 0)
		return copy_from_local(root, key, builder, err);
	return resoluto_conduit_get(conduit, key, &sink, err);
}

static int copy_archive(struct resoluto_conduit *conduit, struct builder *builder,
                        struct inbox_entry *entry, struct resoluto_err *err)
{
	char key[RESOLUTO_KEY_MAX + 1];
	int r;

	builder->at = (builder->at + INBOX_ALIGN - 1) / INBOX_ALIGN * INBOX_ALIGN;
	if (lseek(builder->fd, (off_t) builder->at, SEEK_SET) < 0)
		return resoluto_fail(err, -errno, "seek in the inbox disk");
	entry->offset = builder->at;
	snprintf(key, sizeof(key), "%s%s", builder->inbox_key, entry->name);
	r = copy_object(conduit, key, builder, err);
	if (r == -EFBIG)
		return resoluto_fail(err, r, "the input archives are larger than %llu GiB together",
		                     INBOX_DISK_SIZE >> 30);
	if (r < 0)
		return resoluto_fail_in(err, r, "copy %s to the inbox disk", key);
	entry->length = builder->at - entry->offset;
	return 0;
}

/* The key of the archives' directory, with room for the longest archive name behind it. */
static int make_key(const char *prefix, char ret_key[RESOLUTO_KEY_MAX + 1],
                    struct resoluto_err *err)
{
	if (strlen(prefix) + INBOX_NAME_SIZE + sizeof("/inbox/") > RESOLUTO_KEY_MAX + 1)
		return resoluto_fail(err, -EINVAL, "the store prefix is too long");
	snprintf(ret_key, RESOLUTO_KEY_MAX + 1, "%s/inbox/", prefix);
	return 0;
}

static int list_archives(struct resoluto_conduit *conduit, struct builder *builder,
                         struct resoluto_err *err)
{
	int r = resoluto_conduit_list(conduit, builder->inbox_key, note_archive, builder, err);

	return r < 0 ? resoluto_fail_in(err, r, "list the input archives") : 0;
}

int inbox_has_archives(struct resoluto_conduit *conduit, const char *prefix, bool *ret,
                       struct resoluto_err *err)
{
	char inbox_key[RESOLUTO_KEY_MAX + 1];
	struct builder builder = { .inbox_key = inbox_key };
	int r = make_key(prefix, inbox_key, err);

	if (r == 0)
		r = list_archives(conduit, &builder, err);
	*ret = builder.count > 0;
	return r;
}

static int fill(struct resoluto_conduit *conduit, struct builder *builder, struct resoluto_err *err)
{
	uint8_t block[INBOX_INDEX_SIZE];
	int r = list_archives(conduit, builder, err);

	if (r < 0)
		return r;
	if (builder->is_over)
		return resoluto_fail(err, -E2BIG, "more than %d archives beneath %s",
		                     INBOX_ARCHIVES_MAX, builder->inbox_key);
	builder->at = INBOX_INDEX_SIZE;
	for (unsigned i = 0; i < builder->count; i++) {
		r = copy_archive(conduit, builder, &builder->entries[i], err);
		if (r < 0)
			return r;
	}
	inbox_index_write(builder->entries, builder->count, block);
	r = write_all_at(builder->fd, block, sizeof(block), 0);
	return r < 0 ? resoluto_fail(err, r, "write the index of the inbox disk") : 0;
}

int inbox_build(struct resoluto_conduit *conduit, const char *prefix, int dirfd, int *ret_fd,
                struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = -1;
	char inbox_key[RESOLUTO_KEY_MAX + 1];
	struct builder builder = { .inbox_key = inbox_key };
	int r = make_key(prefix, inbox_key, err);

	if (r < 0)
		return r;
	fd = file_without_name(dirfd, INBOX_DISK_SIZE, err);
	if (fd < 0)
		return resoluto_fail_in(err, fd, "make the inbox disk");
	builder.fd = fd;
	r = fill(conduit, &builder, err);
	if (r < 0)
		return r;
	r = reopen_fd(fd, O_RDONLY);
	if (r < 0)
		return resoluto_fail(err, r, "open the inbox disk for reading");
	*ret_fd = r;
	return 0;
}
