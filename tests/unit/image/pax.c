/* SPDX-License-Identifier: Apache-2.0 */
/* pax.c - headers we write, read back by libarchive; and that their bytes never change. */
#include <archive.h>
#include <archive_entry.h>

#include "base/cleanup.h"
#include "check.h"
#include "image/digest.h"
#include "image/layer.h"
#include "image/pax.h"

static void add(struct buf *out, const struct pax_member *member)
{
	static const char zeros[PAX_BLOCK];

	CHECK(pax_add_header(out, member) == 0);
	for (uint64_t i = 0; i < member->size; i++)
		CHECK(buf_add(out, "x", 1) == 0);
	CHECK(buf_add(out, zeros, pax_padding(member->size)) == 0);
	CHECK(out->len % PAX_BLOCK == 0);
}

static struct archive *open_stream(struct buf *out)
{
	static const char zeros[PAX_END];
	struct archive *archive = archive_read_new();

	CHECK(buf_add(out, zeros, sizeof(zeros)) == 0);
	archive_read_support_format_tar(archive);
	CHECK(archive_read_open_memory(archive, out->data, out->len) == ARCHIVE_OK);
	return archive;
}

static void comes_back_as_it_was(void)
{
	CLEANUP(layer_locale_end)
	struct layer_locale locale __attribute__((unused)) = layer_locale_begin();
	struct buf out = BUF_INIT(1024 * 1024);
	char path[3000], target[3000];
	struct archive *archive;
	struct archive_entry *entry;
	const char *name;
	const void *value;
	size_t len;

	memset(path, 'p', sizeof(path));
	path[1000] = '/';
	path[2999] = '\0';
	memset(target, 't', sizeof(target));
	target[2999] = '\0';
	struct tree_xattr *xattr = tree_xattr_new("user.bin", "a\n\0b=", 5);
	xattr->next = tree_xattr_new("security.capability", "\1\0\0\2\0\4\0\0", 8);
	add(&out, &(struct pax_member){ .path = "", .type = TREE_DIR, .mode = 01777 });
	add(&out, &(struct pax_member){ .path = path,
	                                .type = TREE_FILE,
	                                .mode = 04755,
	                                .uid = 3000000000u,
	                                .gid = 7,
	                                .mtime = 4000000000u,
	                                .size = 3,
	                                .xattrs = xattr });
	add(&out, &(struct pax_member){ .path = "l", .type = TREE_SYMLINK, .target = target });
	add(&out, &(struct pax_member){ .path = "h", .type = TREE_HARDLINK, .target = path });
	add(&out,
	    &(struct pax_member){ .path = "caf\xc3\xa9 \xff\n", .type = TREE_FIFO, .mode = 0600 });
	archive = open_stream(&out);

	CHECK(archive_read_next_header(archive, &entry) == ARCHIVE_OK);
	CHECK_STR(archive_entry_pathname(entry), "./");
	CHECK(archive_entry_mode(entry) == (AE_IFDIR | 01777));
	CHECK(archive_read_next_header(archive, &entry) == ARCHIVE_OK);
	CHECK_STR(archive_entry_pathname(entry), path);
	CHECK(archive_entry_mode(entry) == (AE_IFREG | 04755) && archive_entry_size(entry) == 3);
	CHECK(archive_entry_uid(entry) == 3000000000 && archive_entry_gid(entry) == 7);
	CHECK(archive_entry_mtime(entry) == 4000000000);
	CHECK(archive_entry_xattr_reset(entry) == 2);
	while (archive_entry_xattr_next(entry, &name, &value, &len) == ARCHIVE_OK)
		CHECK(strcmp(name, "user.bin") == 0
		              ? len == 5 && memcmp(value, "a\n\0b=", 5) == 0
		              : len == 8 && memcmp(value, "\1\0\0\2\0\4\0\0", 8) == 0);
	CHECK(archive_read_next_header(archive, &entry) == ARCHIVE_OK);
	CHECK_STR(archive_entry_symlink(entry), target);
	CHECK(archive_read_next_header(archive, &entry) == ARCHIVE_OK);
	CHECK_STR(archive_entry_hardlink(entry), path);
	CHECK(archive_read_next_header(archive, &entry) == ARCHIVE_OK);
	CHECK_STR(archive_entry_pathname(entry), "caf\xc3\xa9 \xff\n");
	CHECK(archive_entry_filetype(entry) == AE_IFIFO);
	CHECK(archive_read_next_header(archive, &entry) == ARCHIVE_EOF);
	archive_read_free(archive);
	tree_xattrs_free(&xattr);
	buf_done(&out);
}

static void a_record_counts_its_own_digits(void)
{
	/* Lengths around the steps from 2 to 3 and from 3 to 4 digits. */
	for (size_t len = 100; len < 1050; len += len < 115 || len > 980 ? 1 : 100) {
		struct buf out = BUF_INIT(64 * 1024);
		char path[1100];
		struct archive_entry *entry;
		struct archive *archive;

		memset(path, 'p', len);
		path[len] = '\0';
		for (size_t i = 200; i < len; i += 200)
			path[i] = '/';
		add(&out, &(struct pax_member){ .path = path, .type = TREE_DIR });
		archive = open_stream(&out);
		CHECK(archive_read_next_header(archive, &entry) == ARCHIVE_OK);
		CHECK_STR(archive_entry_pathname(entry), path);
		archive_read_free(archive);
		buf_done(&out);
	}
}

/* The digest of a plain root file system is that of these bytes: a change would import all again. */
static void bytes_stay_the_same(void)
{
	struct buf out = BUF_INIT(64 * 1024);
	char digest[DIGEST_SIZE];

	add(&out, &(struct pax_member){ .path = "", .type = TREE_DIR, .mode = 0755 });
	add(&out, &(struct pax_member){ .path = "bin/sh",
	                                .type = TREE_FILE,
	                                .mode = 0755,
	                                .size = 10,
	                                .mtime = 1700000000,
	                                .uid = 5000000 });
	digest_of(out.data, out.len, digest);
	CHECK_STR(digest,
	          "sha256:912dda821d56d93f55c23b1297d9bfd2282f504389cd85148503afdaba6fe050");
	buf_done(&out);
}

int main(void)
{
	RUN(comes_back_as_it_was);
	RUN(a_record_counts_its_own_digits);
	RUN(bytes_stay_the_same);
	return check_done();
}
