/* SPDX-License-Identifier: Apache-2.0 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "image/program.h"
#include "image/squashfs.h"
#include "image/text.h"

enum {
	SQUASHFS_MAGIC = 0x73717368,
	SUPERBLOCK_SIZE = 96,  /* bytes */
	AT_VERSION_MAJOR = 28, /* offsets in the superblock */
	AT_BYTES_USED = 40,
	SOCKET_BUFFER = 1024 * 1024, /* bytes between us and the program */
	PROBE_SIZE = 256 * 1024,     /* bytes written to tell whether the disk is full */
};

int squashfs_check(int fd, struct resoluto_err *err)
{
	unsigned char block[SUPERBLOCK_SIZE];
	struct stat st;
	uint32_t magic;
	uint16_t version;
	uint64_t used;

	if (fstat(fd, &st) < 0)
		return resoluto_fail(err, -errno, "stat the squashfs");
	if (pread(fd, block, sizeof(block), 0) != (ssize_t) sizeof(block))
		return resoluto_fail(err, -EBADMSG, "the squashfs has no superblock");
	memcpy(&magic, block, sizeof(magic));
	memcpy(&version, block + AT_VERSION_MAJOR, sizeof(version));
	memcpy(&used, block + AT_BYTES_USED, sizeof(used));
	if (le32toh(magic) != SQUASHFS_MAGIC || le16toh(version) != 4)
		return resoluto_fail(err, -EBADMSG, "it is no squashfs 4.0");
	if (le64toh(used) > (uint64_t) st.st_size || le64toh(used) < SUPERBLOCK_SIZE)
		return resoluto_fail(err, -EBADMSG,
		                     "the squashfs is truncated: %lld of %llu bytes are there",
		                     (long long) st.st_size, (unsigned long long) le64toh(used));
	return 0;
}

int squashfs_begin(const char *path, const struct caller *caller,
                   struct squashfs_writer *ret_writer, struct resoluto_err *err)
{
	CLEANUP(squashfs_writer_done) struct squashfs_writer writer = SQUASHFS_WRITER_NONE;
	CLEANUP(fd_close) int to_us = -1;
	/* lz4: quick to write, and quickest to read in a guest without KVM (docs/design/image.md). */
	const char *const argv[] = { "tar2sqfs", "--quiet", "--no-skip",       "--compressor",
		                     "lz4",      "--force", "/proc/self/fd/3", NULL };
	const struct timeval step = { .tv_usec = CALLER_STEP_MS * 1000 };
	int pair[2], size = SOCKET_BUFFER, r;

	writer.caller = caller;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return resoluto_fail(err, -errno, "make a socket pair");
	writer.to_program = pair[0];
	to_us = pair[1];
	(void) setsockopt(writer.to_program, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (caller_can_stop(caller))
		(void) setsockopt(writer.to_program, SOL_SOCKET, SO_SNDTIMEO, &step, sizeof(step));
	writer.log = memfd_create("tar2sqfs-log", MFD_CLOEXEC);
	if (writer.log < 0)
		return resoluto_fail(err, -errno, "make a log");
	/* By descriptor: so it cannot unlink the file when it fails, and we can ask why. */
	writer.file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (writer.file < 0)
		return resoluto_fail(err, -errno, "create %s", path);
	r = program_start("squashfs-tools-ng", argv,
	                  (struct proc_fd[]){ { to_us, 0 },
	                                      { writer.log, 1 },
	                                      { writer.log, 2 },
	                                      { writer.file, 3 } },
	                  4, &writer.proc, err);
	if (r < 0)
		return r;
	*ret_writer = writer;
	writer = SQUASHFS_WRITER_NONE;
	return 0;
}

/* tar2sqfs calls a full disk an I/O error: ask the file system itself. */
static bool disk_is_full(int file)
{
	static const char probe[PROBE_SIZE];
	int r = lseek(file, 0, SEEK_END) < 0 ? 0 : write_all(file, probe, sizeof(probe));

	return r == -ENOSPC || r == -EDQUOT;
}

static int explain_end(struct squashfs_writer *writer, struct resoluto_err *err)
{
	struct program_words words;
	int status = 0, r;

	fd_close(&writer->to_program);
	do {
		r = program_wait("tar2sqfs", &writer->proc, writer->caller, &status, err);
	} while (r == 0);
	if (r < 0)
		return r;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	words = program_last_words(writer->log);
	if (WIFEXITED(status) && disk_is_full(writer->file))
		return resoluto_fail(err, -ENOSPC, "the cache's disk is full");
	if (WIFSIGNALED(status))
		return resoluto_fail(err, -EIO, "tar2sqfs was killed by signal %d",
		                     WTERMSIG(status));
	return resoluto_fail(err, -EIO, "tar2sqfs failed: %s", words.text);
}

static int send_all(struct squashfs_writer *writer, const char *at, size_t len,
                    struct resoluto_err *err)
{
	while (len > 0) {
		ssize_t n = send(writer->to_program, at, len, MSG_NOSIGNAL);
		int r;

		if (n < 0 && errno != EINTR && errno != EAGAIN) {
			r = explain_end(writer, err);
			return r < 0 ? r : resoluto_fail(err, -EIO, "tar2sqfs stopped reading");
		}
		r = caller_check(writer->caller, err);
		if (r < 0)
			return r;
		at += n > 0 ? n : 0;
		len -= n > 0 ? (size_t) n : 0;
	}
	return 0;
}

static int flush(struct squashfs_writer *writer, struct resoluto_err *err)
{
	int r = send_all(writer, writer->pending.data, writer->pending.len, err);

	buf_clear(&writer->pending);
	return r;
}

int squashfs_write(void *ctx, const void *bytes, size_t len, struct resoluto_err *err)
{
	struct squashfs_writer *writer = ctx;
	int r = 0;

	if (len > SQUASHFS_PENDING_MAX - writer->pending.len)
		r = flush(writer, err);
	if (r < 0)
		return r;
	if (len >= SQUASHFS_PENDING_MAX)
		return send_all(writer, bytes, len, err);
	r = buf_add(&writer->pending, bytes, len);
	return r < 0 ? resoluto_fail(err, r, "keep bytes for tar2sqfs") : 0;
}

int squashfs_end(struct squashfs_writer *writer, struct resoluto_err *err)
{
	int r = flush(writer, err);

	if (r == 0)
		r = explain_end(writer, err);
	if (r == 0)
		r = squashfs_check(writer->file, err);
	if (r < 0)
		return r;
	if (fchmod(writer->file, 0644) < 0 || fsync(writer->file) < 0)
		return resoluto_fail(err, -errno, "flush the new squashfs");
	return 0;
}

void squashfs_writer_done(struct squashfs_writer *writer)
{
	fd_close(&writer->to_program);
	proc_done(&writer->proc);
	fd_close(&writer->file);
	fd_close(&writer->log);
	buf_done(&writer->pending);
}
