/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/inbox_index.h"
#include "guest/inputs.h"
#include "wire/pack.h"

/* Where one archive is read. */
struct disk_reader {
	int fd;
	char *block;      /* INPUTS_READ bytes, aligned for O_DIRECT */
	uint64_t at, end; /* bytes on the disk that were not read yet */
	uint64_t disk_size;
	size_t taken, available; /* of block */
	inputs_tick_fn *tick;
	void *ctx;
};

int inputs_open_disk(const char *path, struct resoluto_err *err)
{
	int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);

	return fd < 0 ? resoluto_fail(err, -errno, "open the inbox disk") : fd;
}

/* Read whole sectors; what lies behind the archive's end is not used. */
static int fill_block(struct disk_reader *reader)
{
	uint64_t want = reader->end - reader->at, left = reader->disk_size - reader->at;
	size_t size = INPUTS_READ;
	ssize_t n;

	if (want < size)
		size = (size_t) ((want + INBOX_INDEX_SIZE - 1) &
		                 ~(uint64_t) (INBOX_INDEX_SIZE - 1));
	if (left < size)
		size = (size_t) left;
	do {
		n = pread(reader->fd, reader->block, size, (off_t) reader->at);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : -EIO;
	reader->taken = 0;
	reader->available = (uint64_t) n < want ? (size_t) n : (size_t) want;
	reader->at += reader->available;
	return 0;
}

static ssize_t read_disk(void *ctx, void *buf, size_t cap)
{
	struct disk_reader *reader = ctx;
	size_t n;

	if (reader->taken == reader->available) {
		int r = reader->at == reader->end ? 0 : fill_block(reader);

		reader->tick(reader->ctx);
		if (r < 0)
			return r;
		if (reader->taken == reader->available)
			return 0;
	}
	n = reader->available - reader->taken;
	if (n > cap)
		n = cap;
	memcpy(buf, reader->block + reader->taken, n);
	reader->taken += n;
	return (ssize_t) n;
}

static int read_index(struct disk_reader *reader, struct inbox_index *ret, struct resoluto_err *err)
{
	off_t size = lseek(reader->fd, 0, SEEK_END);
	int r;

	if (size < INBOX_INDEX_SIZE)
		return resoluto_fail(err, -EBADMSG, "the inbox disk is too small");
	reader->disk_size = (uint64_t) size;
	reader->end = INBOX_INDEX_SIZE;
	r = fill_block(reader);
	if (r < 0 || reader->available < INBOX_INDEX_SIZE)
		return resoluto_fail(err, r < 0 ? r : -EIO, "read the inbox disk");
	return inbox_index_parse((const uint8_t *) reader->block, reader->disk_size, ret, err);
}

static int unpack_archive(struct disk_reader *reader, const struct inbox_archive *archive,
                          int workspace_fd, const struct user *user, struct inputs_report *report,
                          struct resoluto_err *err)
{
	const struct unpack_options options = { .set_owner = true,
		                                .uid = user->uid,
		                                .gid = user->gid };
	const struct resoluto_source source = { .read = read_disk, .ctx = reader };
	struct unpack_report unpacked = { 0 };
	int r;

	reader->at = archive->offset;
	reader->end = archive->offset + archive->length;
	reader->taken = reader->available = 0;
	r = unpack_tree(workspace_fd, &source, &options, &unpacked, err);
	report->archives++;
	report->members += unpacked.members;
	report->bytes += unpacked.bytes;
	return r < 0 ? resoluto_fail_in(err, r, "unpack %s", archive->name) : 0;
}

int inputs_unpack(int disk_fd, int workspace_fd, const struct user *user, inputs_tick_fn *tick,
                  void *ctx, struct inputs_report *ret_report, struct resoluto_err *err)
{
	struct disk_reader reader = { .fd = disk_fd, .tick = tick, .ctx = ctx };
	CLEANUP(mem_free) char *block = NULL;
	struct inbox_index index;
	int r;

	*ret_report = (struct inputs_report){ 0 };
	if (posix_memalign((void **) &block, INBOX_INDEX_SIZE, INPUTS_READ) != 0)
		return resoluto_fail(err, -ENOMEM, "make room for the inbox");
	reader.block = block;
	r = read_index(&reader, &index, err);
	for (uint32_t i = 0; r == 0 && i < index.count; i++)
		r = unpack_archive(&reader, &index.archives[i], workspace_fd, user, ret_report,
		                   err);
	return r;
}
