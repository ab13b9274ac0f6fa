/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_unpack.c - archives: the input is a tar, which is compressed and unpacked for real.  Whatever it says,
 * nothing appears outside the directory, and no link in it leads out.
 *
 * Checksums of headers are put right first: they would keep the fuzzer from what lies behind.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/path.h"
#include "wire/gzip.h"
#include "wire/pack.h"
#include "wire/tar_block.h"
#include "wire/walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 256 * 1024 }; /* bytes */

static void require(int truth)
{
	if (!truth)
		abort();
}

static void mend_checksums(uint8_t *bytes, size_t size)
{
	for (size_t at = 0; at + sizeof(struct tar_block) <= size; at += sizeof(struct tar_block)) {
		struct tar_block block;

		memcpy(&block, bytes + at, sizeof(block));
		if (memcmp(block.magic, "ustar", 5) != 0)
			continue;
		snprintf(block.checksum, sizeof(block.checksum), "%06o", tar_checksum(&block));
		memcpy(bytes + at, &block, sizeof(block));
	}
}

static int to_buf(void *ctx, const void *bytes, size_t len)
{
	return buf_add(ctx, bytes, len);
}

static void compress_input(const uint8_t *data, size_t size, struct buf *packed)
{
	const struct resoluto_sink sink = { to_buf, packed };
	static const uint8_t end[1024];
	uint8_t *plain = malloc(size + 1);
	struct gzip_writer *writer;

	require(plain != NULL);
	memcpy(plain, data, size);
	mend_checksums(plain, size);
	require(gzip_writer_new(&sink, &writer) == 0);
	require(gzip_writer_write(writer, plain, size) == 0);
	require(gzip_writer_write(writer, end, sizeof(end)) == 0);
	require(gzip_writer_end(writer) == 0);
	gzip_writer_free(&writer);
	free(plain);
}

struct reading {
	const struct buf *buf;
	size_t at;
};

static ssize_t from_buf(void *ctx, void *bytes, size_t cap)
{
	struct reading *reading = ctx;
	size_t len = reading->buf->len - reading->at;

	if (len > cap)
		len = cap;
	memcpy(bytes, reading->buf->data + reading->at, len);
	reading->at += len;
	return (ssize_t) len;
}

/* Follow the link, as a careless program would: does it get out? */
static void check_link(int top, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH };
	long fd = syscall(SYS_openat2, top, path, &how, sizeof(how));

	require(fd >= 0 || errno != EXDEV);
	if (fd >= 0)
		close((int) fd);
}

static void check_tree(int top)
{
	struct walk_entry at;
	struct walk *walk;

	require(walk_new(&(struct walk_options){ .memory = PACK_MEMORY }, &walk) == 0);
	require(walk_start(walk, openat(top, ".", O_RDONLY | O_CLOEXEC), "", NULL, 0) == 0);
	while (walk_next(walk, &at) > 0) {
		struct stat st;
		int fd;

		require(fstatat(at.dirfd, at.name, &st, AT_SYMLINK_NOFOLLOW) == 0);
		require(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode));
		require(!(st.st_mode & 07000) || S_ISLNK(st.st_mode));
		if (S_ISLNK(st.st_mode))
			check_link(top, at.path);
		if (!S_ISDIR(st.st_mode))
			continue;
		fd = openat(at.dirfd, at.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		require(fd < 0 || walk_enter(walk, fd, 0) == 0);
	}
	walk_free(&walk);
}

/* Besides "in" there is nothing but the victim, as it was. */
static void check_outside(int outer)
{
	DIR *dir = fdopendir(openat(outer, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	const struct dirent *entry;
	struct stat st;
	int count = 0;

	require(dir != NULL);
	while ((entry = readdir(dir)))
		count++;
	closedir(dir);
	require(count == 4);
	require(fstatat(outer, "victim", &st, AT_SYMLINK_NOFOLLOW) == 0);
	require(S_ISREG(st.st_mode) && st.st_size == 0 && st.st_nlink == 2 &&
	        (st.st_mode & 07777) == 0400);
}

/* An outer directory with a victim, and `in` with a link to it of each kind. */
static int make_place(char path[], int *ret_in)
{
	int outer, victim;

	require(mkdtemp(path) != NULL);
	outer = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	require(outer >= 0 && mkdirat(outer, "in", 0700) == 0);
	*ret_in = openat(outer, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	victim = openat(outer, "victim", O_WRONLY | O_CREAT | O_CLOEXEC, 0400);
	require(*ret_in >= 0 && victim >= 0);
	close(victim);
	require(linkat(outer, "victim", *ret_in, "hard", 0) == 0);
	return outer;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct unpack_options options = {
		.limits = { .bytes = 1 << 20, .members = 1000, .apparent = 1 << 24 }
	};
	struct buf packed = BUF_INIT(INPUT_MAX * 2);
	struct reading reading = { &packed, 0 };
	const struct resoluto_source source = { from_buf, &reading };
	struct resoluto_err err = { 0 };
	struct unpack_report report;
	const char *temp = getenv("TMPDIR");
	char path[120];
	int outer, in, r;

	if (size > INPUT_MAX)
		return 0;
	snprintf(path, sizeof(path), "%.80s/fuzz-unpack-XXXXXX", temp ? temp : "/tmp");
	outer = make_place(path, &in);
	compress_input(data, size, &packed);
	r = unpack_tree(in, &source, &options, &report, &err);
	require(r == 0 || (r == err.code && err.text[0] && !strchr(err.text, '\n')));
	/* The hard link may have been replaced, never written to: the victim's second name is kept here. */
	require(faccessat(in, "hard", F_OK, AT_SYMLINK_NOFOLLOW) == 0);
	unlinkat(in, "hard", 0);
	if (linkat(outer, "victim", in, "hard", 0) < 0)
		abort();
	check_outside(outer);
	check_tree(in);
	close(in);
	close(outer);
	require(remove_tree_at(AT_FDCWD, path) == 0);
	buf_done(&packed);
	return 0;
}
