/* SPDX-License-Identifier: Apache-2.0 */
/* tar.c - headers that lie, in every format; what real programs write is in tests/interop. */
#include "archive.h"

/* A whole archive through the reader.  Content goes to *ret_content as "OFFSET:bytes;". */
struct seen {
	int members, result;
	struct tar_entry last;
	char path[600], target[600];
	struct buf content;
	struct resoluto_err err;
};

static void read_all(const struct buf *plain, size_t piece, struct seen *ret_seen)
{
	struct reading reading = { plain, 0, piece };
	const struct resoluto_source source = { from_buf, &reading };
	struct tar_reader *reader;
	struct tar_entry entry;
	int r;

	*ret_seen = (struct seen){ .content = BUF_INIT(ARCHIVE_MAX) };
	CHECK(tar_reader_new(&source, &reader) == 0);
	while ((r = tar_reader_next(reader, &entry, &ret_seen->err)) > 0) {
		const void *bytes;
		uint64_t offset;
		size_t len;

		ret_seen->members++;
		ret_seen->last = entry;
		snprintf(ret_seen->path, sizeof(ret_seen->path), "%s", entry.path);
		snprintf(ret_seen->target, sizeof(ret_seen->target), "%s", entry.target);
		buf_clear(&ret_seen->content);
		while ((r = tar_reader_data(reader, &bytes, &len, &offset, &ret_seen->err)) > 0) {
			CHECK(len > 0 && (entry.type == TAR_OTHER || offset + len <= entry.size));
			CHECK(buf_addf(&ret_seen->content, "%llu:%.*s;",
			               (unsigned long long) offset, (int) (len < 20 ? len : 20),
			               (const char *) bytes) == 0);
		}
		if (r < 0)
			break;
	}
	ret_seen->result = r;
	CHECK(r == 0 || (ret_seen->err.code == r && ret_seen->err.text[0]));
	tar_reader_free(&reader);
}

static void read_and_check(struct buf *tar, int want, struct seen *ret_seen)
{
	add_end(tar);
	read_all(tar, 0, ret_seen);
	if (ret_seen->result != want)
		printf("# result %d: %s\n", ret_seen->result, ret_seen->err.text);
	CHECK(ret_seen->result == want);
	buf_done(tar);
}

static void refused(struct buf *tar)
{
	struct seen seen;

	read_and_check(tar, -EBADMSG, &seen);
	buf_done(&seen.content);
}

/* A PAX header with these records as they are, then a file. */
static void add_pax(struct buf *tar, const char *records, size_t len, char type)
{
	size_t at = tar->len;

	add_entry(tar, &(struct tar_entry){ .type = TAR_FILE, .path = "PaxHeaders/x" }, NULL);
	snprintf(tar->data + at + 124, 12, "%011zo", len);
	tar->data[at + 156] = type;
	mend(tar, at);
	add_content(tar, records, len);
}

static void add_record(struct buf *records, const char *key, const char *value)
{
	size_t rest = strlen(key) + strlen(value) + 3, len = rest + 1;

	while (snprintf(NULL, 0, "%zu", len) + (int) rest != (int) len)
		len++;
	CHECK(buf_addf(records, "%zu %s=%s\n", len, key, value) == 0);
}

static void set_field(struct buf *tar, size_t block, size_t at, const char *bytes, size_t len)
{
	memcpy(tar->data + block + at, bytes, len);
	mend(tar, block);
}

static void writes_what_it_reads(void)
{
	static const struct timespec times[] = {
		{ 0, 0 },          { 1700000000, 0 }, { 1700000000, 123456789 }, { -1, 0 },
		{ -2, 750000000 }, { -1, 500000000 }, { 1LL << 40, 1 },
	};
	char long_name[400], long_target[300];

	memset(long_target, 't', sizeof(long_target));
	long_target[sizeof(long_target) - 1] = '\0';
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]) * 8; i++) {
		static const size_t lengths[] = { 1, 98, 99, 100, 101, 254, 255, 399 };
		struct buf tar = BUF_INIT(ARCHIVE_MAX);
		struct seen seen;

		memset(long_name, 'n', lengths[i % 8]);
		long_name[lengths[i % 8]] = '\0';
		add_entry(&tar,
		          &(struct tar_entry){ .type = i % 2 ? TAR_SYMLINK : TAR_FILE,
		                               .path = long_name,
		                               .target = i % 2 ? long_target + i % 300 : "",
		                               .mode = 01234,
		                               .mtime = times[i / 8] },
		          NULL);
		read_and_check(&tar, 0, &seen);
		CHECK(seen.members == 1 && seen.last.mode == 01234 &&
		      strcmp(seen.path, long_name) == 0);
		CHECK(seen.last.mtime.tv_sec == times[i / 8].tv_sec &&
		      seen.last.mtime.tv_nsec == times[i / 8].tv_nsec);
		CHECK_STR(seen.target, i % 2 ? long_target + i % 300 : "");
		buf_done(&seen.content);
	}
}

static void reads_in_pieces_of_any_size(void)
{
	static const size_t pieces[] = { 1, 7, 511, 512, 513, 100000 };

	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct buf tar = BUF_INIT(ARCHIVE_MAX);
		struct seen seen;

		add_file(&tar, "a", "first");
		add_file(&tar, "b\xff", "second");
		add_end(&tar);
		read_all(&tar, pieces[i], &seen);
		CHECK(seen.result == 0 && seen.members == 2);
		CHECK_STR(seen.path, "b\xff");
		CHECK(strncmp(seen.content.data, "0:s", 3) == 0);
		buf_done(&seen.content);
		buf_done(&tar);
	}
}

static void refuses_an_archive_that_is_cut(void)
{
	struct buf tar = BUF_INIT(ARCHIVE_MAX);

	add_file(&tar, "a", "content");
	add_dir(&tar, "d\xff", 0755);
	add_end(&tar);
	for (size_t len = 0; len < tar.len; len++) {
		struct buf cut = { .data = tar.data, .len = len, .max = tar.max };
		struct seen seen;

		read_all(&cut, 0, &seen);
		CHECK(seen.result == -EBADMSG);
		buf_done(&seen.content);
	}
	buf_done(&tar);
}

static void refuses_what_follows_the_end(void)
{
	struct buf tar = BUF_INIT(ARCHIVE_MAX);
	struct seen seen;

	add_file(&tar, "a", "");
	add_end(&tar);
	add_end(&tar);
	read_and_check(&tar, 0, &seen); /* zeros are a habit of tapes */
	buf_done(&seen.content);
	tar = BUF_INIT(ARCHIVE_MAX);
	add_end(&tar);
	add_file(&tar, "hidden", "");
	refused(&tar);
	tar = BUF_INIT(ARCHIVE_MAX);
	for (int i = 0; i < 1030; i++)
		add_end(&tar);
	refused(&tar);
}

static void refuses_damaged_headers(void)
{
	for (size_t at = 0; at < TAR_BLOCK; at++) {
		struct buf tar = BUF_INIT(ARCHIVE_MAX);

		add_file(&tar, "a", "x");
		tar.data[at] ^= 1;
		refused(&tar);
	}
}

static void refuses_fields_that_are_no_numbers(void)
{
	static const struct {
		size_t at;
		const char *bytes;
		size_t len;
	} bad[] = {
		{ 124, "0000000000x", 11 },
		{ 124, "-0000000001", 11 },
		{ 124, "12 34      ", 11 },
		{ 124, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12 }, /* minus one */
		{ 124, "\x80\x01\0\0\0\0\0\0\0\0\0\0", 12 },                     /* 2^80 */
		{ 124, "\x80\0\0\0\x80\0\0\0\0\0\0\0", 12 },                     /* 2^63 */
		{ 124, "\x81\0\0\0\0\0\0\0\0\0\0\1", 12 },
		{ 100, "88888888", 8 },
		{ 136, "\xff\0\0\0\0\0\0\0\0\0\0\0", 12 },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct buf tar = BUF_INIT(ARCHIVE_MAX);

		add_file(&tar, "a", "");
		set_field(&tar, 0, bad[i].at, bad[i].bytes, bad[i].len);
		refused(&tar);
	}
}

static void reads_numbers_in_base_256(void)
{
	struct buf tar = BUF_INIT(ARCHIVE_MAX);
	struct seen seen;

	add_file(&tar, "a", "abc");
	set_field(&tar, 0, 124, "\x80\0\0\0\0\0\0\0\0\0\0\3", 12);
	set_field(&tar, 0, 136, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe", 12);
	read_and_check(&tar, 0, &seen);
	CHECK(seen.last.size == 3 && seen.last.mtime.tv_sec == -2);
	buf_done(&seen.content);
}

static void joins_the_prefix_of_posix_only(void)
{
	struct buf tar = BUF_INIT(ARCHIVE_MAX);
	struct seen seen;

	add_file(&tar, "name", "");
	set_field(&tar, 0, 345, "some/prefix", 11);
	read_and_check(&tar, 0, &seen);
	CHECK_STR(seen.path, "some/prefix/name");
	buf_done(&seen.content);
	tar = BUF_INIT(ARCHIVE_MAX);
	add_file(&tar, "name", "");
	set_field(&tar, 0, 257, "ustar  ", 8);
	set_field(&tar, 0, 345, "some/prefix", 11);
	read_and_check(&tar, 0, &seen);
	CHECK_STR(seen.path, "name");
	buf_done(&seen.content);
}

static void tells_kinds(void)
{
	static const char flags[] = { '0', '7', '1', '2', '3', '4', '5', '6', 'V', 'D', 'Z' };
	static const enum tar_type types[] = { TAR_FILE,   TAR_FILE,   TAR_HARDLINK,  TAR_SYMLINK,
		                               TAR_DEVICE, TAR_DEVICE, TAR_DIRECTORY, TAR_FIFO,
		                               TAR_OTHER,  TAR_OTHER,  TAR_OTHER };

	for (size_t i = 0; i < sizeof(flags); i++) {
		struct buf tar = BUF_INIT(ARCHIVE_MAX);
		struct seen seen;

		add_file(&tar, "a", NULL);
		set_field(&tar, 0, 156, &flags[i], 1);
		read_and_check(&tar, 0, &seen);
		CHECK(seen.members == 1 && seen.last.type == types[i]);
		buf_done(&seen.content);
	}
}

static void refuses_links_with_content(void)
{
	for (const char *flag = "123456"; *flag; flag++) {
		struct buf tar = BUF_INIT(ARCHIVE_MAX);

		add_file(&tar, "a", "content");
		set_field(&tar, 0, 156, flag, 1);
		refused(&tar);
	}
}

static void takes_pax_records(void)
{
	CLEANUP(buf_done) struct buf records = BUF_INIT(ARCHIVE_MAX);
	struct buf tar = BUF_INIT(ARCHIVE_MAX);
	struct seen seen;

	add_record(&records, "comment", "of no matter");
	add_record(&records, "path", "the/real name");
	add_record(&records, "mtime", "12.5");
	add_record(&records, "size", "3");
	add_pax(&tar, records.data, records.len, 'x');
	add_file(&tar, "short", "abc");
	set_field(&tar, tar.len - 1024, 124, "00000000000", 11);
	read_and_check(&tar, 0, &seen);
	CHECK_STR(seen.path, "the/real name");
	CHECK_STR(seen.content.data, "0:abc;");
	CHECK(seen.last.mtime.tv_sec == 12 && seen.last.mtime.tv_nsec == 500000000);
	buf_done(&seen.content);
	/* They hold for one member only, and global ones for none. */
	tar = BUF_INIT(ARCHIVE_MAX);
	add_pax(&tar, records.data, records.len, 'x');
	add_file(&tar, "one", "abc");
	add_pax(&tar, records.data, records.len, 'g');
	add_file(&tar, "two", "content");
	read_and_check(&tar, 0, &seen);
	CHECK_STR(seen.path, "two");
	CHECK_STR(seen.content.data, "0:content;");
	buf_done(&seen.content);
}

static void refuses_pax_that_lies(void)
{
	static const char *const bad[] = {
		"99 path=x\n",    "9 path=x\nx",
		"path=x\n",       "8 path=x",
		"4 x\n",          "0 \n",
		"6 a=b\n\n",      "18446744073709551625 path=x\n",
		"7 path=\n",      "9 size=-1\n",
		"11 size=1x\n",   "30 size=99999999999999999999\n",
		"11 mtime=x\n",   "13 mtime=1.x\n",
		"12 mtime=--1\n", "10 mtime=\n",
		"9 path=ab",      "6 =abc\n",
	};
	struct buf tar;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		tar = BUF_INIT(ARCHIVE_MAX);
		add_pax(&tar, bad[i], strlen(bad[i]), 'x');
		add_file(&tar, "a", "");
		refused(&tar);
	}
	tar = BUF_INIT(ARCHIVE_MAX);
	add_pax(&tar, "12 path=a\0b\n", 12, 'x');
	add_file(&tar, "a", "");
	refused(&tar);
	/* A size that is not there. */
	tar = BUF_INIT(ARCHIVE_MAX);
	add_pax(&tar, "24 size=100000000000000\n", 24, 'x');
	add_file(&tar, "a", "");
	refused(&tar);
	/* A header with nothing behind it. */
	tar = BUF_INIT(ARCHIVE_MAX);
	add_pax(&tar, "8 a=bcd\n", 8, 'x');
	refused(&tar);
}

static void refuses_floods_of_special_headers(void)
{
	CLEANUP(buf_done) struct buf large = BUF_INIT(ARCHIVE_MAX);
	struct buf tar = BUF_INIT(ARCHIVE_MAX);

	for (int i = 0; i < 20; i++)
		add_pax(&tar, "8 a=bcd\n", 8, 'g');
	add_file(&tar, "a", "");
	refused(&tar);
	CHECK(buf_reserve(&large, TAR_EXTRA_MAX + 1) == 0);
	memset(large.data, 'x', TAR_EXTRA_MAX + 1);
	tar = BUF_INIT(ARCHIVE_MAX);
	add_pax(&tar, large.data, TAR_EXTRA_MAX + 1, 'L');
	add_file(&tar, "a", "");
	refused(&tar);
}

static void takes_gnu_long_names(void)
{
	char name[300];
	struct buf tar = BUF_INIT(ARCHIVE_MAX);
	struct seen seen;

	memset(name, 'x', sizeof(name));
	name[299] = '\0';
	add_pax(&tar, name, 300, 'L');
	add_pax(&tar, "target", 7, 'K');
	add_link(&tar, TAR_SYMLINK, "short", "s");
	read_and_check(&tar, 0, &seen);
	CHECK_STR(seen.path, name);
	CHECK_STR(seen.target, "target");
	buf_done(&seen.content);
	tar = BUF_INIT(ARCHIVE_MAX);
	add_pax(&tar, "a\0b", 4, 'L');
	add_file(&tar, "short", "");
	refused(&tar);
	tar = BUF_INIT(ARCHIVE_MAX);
	add_pax(&tar, "", 0, 'L');
	add_file(&tar, "short", "");
	refused(&tar);
}

/* GNU.sparse 1.0 with this map at the start of the content. */
static void add_sparse(struct buf *tar, const char *map, const char *stored, const char *real_size)
{
	CLEANUP(buf_done) struct buf records = BUF_INIT(4096), content = BUF_INIT(4096);
	size_t at;

	add_record(&records, "GNU.sparse.major", "1");
	add_record(&records, "GNU.sparse.minor", "0");
	add_record(&records, "GNU.sparse.name", "sparse");
	if (real_size)
		add_record(&records, "GNU.sparse.realsize", real_size);
	add_pax(tar, records.data, records.len, 'x');
	add_content(&content, map, strlen(map));
	CHECK(buf_add_str(&content, stored) == 0);
	at = tar->len;
	add_file(tar, "GNUSparseFile.0/x", "");
	snprintf(tar->data + at + 124, 12, "%011zo", content.len);
	mend(tar, at);
	add_content(tar, content.data, content.len);
}

static void takes_sparse_files(void)
{
	struct buf tar = BUF_INIT(ARCHIVE_MAX);
	struct seen seen;

	add_sparse(&tar, "3\n10\n3\n100\n2\n1000\n0\n", "abcde", "1000");
	read_and_check(&tar, 0, &seen);
	CHECK(seen.last.is_sparse && seen.last.size == 1000 && seen.last.stored == 5);
	CHECK_STR(seen.path, "sparse");
	CHECK_STR(seen.content.data, "10:abc;100:de;");
	buf_done(&seen.content);
	tar = BUF_INIT(ARCHIVE_MAX);
	add_sparse(&tar, "0\n", "", "9000000000000000000");
	read_and_check(&tar, 0, &seen);
	CHECK(seen.last.size == 9000000000000000000 && seen.last.stored == 0);
	buf_done(&seen.content);
}

static void refuses_sparse_maps_that_lie(void)
{
	static const struct {
		const char *map, *stored, *real_size;
	} bad[] = {
		{ "1\n0\n5\n", "abcde", NULL },         /* no size */
		{ "1\n0\n5\n", "abcde", "4" },          /* beyond the end */
		{ "1\n0\n5\n", "abcd", "100" },         /* more than there is */
		{ "1\n0\n5\n", "abcdef", "100" },       /* less than there is */
		{ "2\n10\n3\n5\n2\n", "abcde", "100" }, /* backwards */
		{ "2\n0\n3\n2\n2\n", "abcde", "100" },  /* overlapping */
		{ "2\n0\n5\n", "abcde", "100" },        /* cut short */
		{ "x\n", "abcde", "100" },
		{ "\n", "abcde", "100" },
		{ "-1\n", "abcde", "100" },
		{ "1\n9223372036854775807\n5\n", "abcde", "9223372036854775807" },
		{ "1\n18446744073709551615\n5\n", "abcde", "100" },
		{ "99999999999\n0\n1\n", "abcde", "100" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct buf tar = BUF_INIT(ARCHIVE_MAX);

		add_sparse(&tar, bad[i].map, bad[i].stored, bad[i].real_size);
		refused(&tar);
	}
}

static void bounds_the_map_of_a_sparse_file(void)
{
	CLEANUP(buf_done) struct buf map = BUF_INIT(ARCHIVE_MAX);
	struct buf tar = BUF_INIT(ARCHIVE_MAX);
	struct seen seen;
	size_t at;

	CHECK(buf_addf(&map, "%d\n", TAR_EXTENTS_MAX + 1) == 0);
	for (int i = 0; i <= TAR_EXTENTS_MAX; i++)
		CHECK(buf_addf(&map, "%d\n0\n", i) == 0);
	add_pax(&tar,
	        "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n31 GNU.sparse.realsize=9999999\n",
	        75, 'x');
	at = tar.len;
	add_file(&tar, "s", "");
	snprintf(tar.data + at + 124, 12, "%011zo", map.len);
	mend(&tar, at);
	add_content(&tar, map.data, map.len);
	read_and_check(&tar, -E2BIG, &seen);
	buf_done(&seen.content);
}

static void takes_the_older_sparse_forms(void)
{
	CLEANUP(buf_done) struct buf records = BUF_INIT(4096);
	struct buf tar = BUF_INIT(ARCHIVE_MAX);
	struct seen seen;

	add_record(&records, "GNU.sparse.size", "1000");
	add_record(&records, "GNU.sparse.numblocks", "2");
	add_record(&records, "GNU.sparse.offset", "10");
	add_record(&records, "GNU.sparse.numbytes", "3");
	add_record(&records, "GNU.sparse.offset", "100");
	add_record(&records, "GNU.sparse.numbytes", "2");
	add_pax(&tar, records.data, records.len, 'x');
	add_file(&tar, "a", "abcde");
	read_and_check(&tar, 0, &seen);
	CHECK_STR(seen.content.data, "10:abc;100:de;");
	buf_done(&seen.content);
	buf_clear(&records);
	tar = BUF_INIT(ARCHIVE_MAX);
	add_record(&records, "GNU.sparse.name", "real");
	add_record(&records, "GNU.sparse.size", "1000");
	add_record(&records, "GNU.sparse.map", "10,3,100,2");
	add_pax(&tar, records.data, records.len, 'x');
	add_file(&tar, "a", "abcde");
	read_and_check(&tar, 0, &seen);
	CHECK_STR(seen.path, "real");
	CHECK_STR(seen.content.data, "10:abc;100:de;");
	buf_done(&seen.content);
	buf_clear(&records);
	tar = BUF_INIT(ARCHIVE_MAX);
	add_record(&records, "GNU.sparse.size", "1000");
	add_record(&records, "GNU.sparse.map", "10,3,100");
	add_pax(&tar, records.data, records.len, 'x');
	add_file(&tar, "a", "abcde");
	refused(&tar);
}

static void takes_gnu_sparse_headers(void)
{
	struct buf tar = BUF_INIT(ARCHIVE_MAX);
	struct seen seen;

	add_file(&tar, "s", "abcde");
	set_field(&tar, 0, 156, "S", 1);
	set_field(&tar, 0, 257, "ustar  ", 8);
	set_field(&tar, 0, 386, "00000000012\00000000000003", 24);
	set_field(&tar, 0, 410, "00000000144\00000000000002", 24);
	set_field(&tar, 0, 483, "00000001750", 12);
	read_and_check(&tar, 0, &seen);
	CHECK(seen.last.size == 1000);
	CHECK_STR(seen.content.data, "10:abc;100:de;");
	buf_done(&seen.content);
	/* More of it is announced, but does not come. */
	tar = BUF_INIT(ARCHIVE_MAX);
	add_file(&tar, "s", "");
	set_field(&tar, 0, 156, "S", 1);
	set_field(&tar, 0, 482, "\1", 1);
	refused(&tar);
}

/* Whatever is changed, the reader comes to an end, and never gives what a member did not announce. */
static void stands_any_change(void)
{
	struct buf tar = BUF_INIT(ARCHIVE_MAX);
	uint32_t state = 1;

	add_sparse(&tar, "2\n10\n3\n100\n2\n", "abcde", "1000");
	add_file(&tar, "long/\xff name", "content");
	add_link(&tar, TAR_SYMLINK, "l", "content");
	add_end(&tar);
	for (int i = 0; i < 20000; i++) {
		size_t at, block;
		struct seen seen;
		char kept[TAR_BLOCK];

		state = state * 1664525 + 1013904223;
		at = (state >> 8) % tar.len;
		block = at - at % TAR_BLOCK;
		memcpy(kept, tar.data + block, TAR_BLOCK);
		tar.data[at] = "0179 \n=xgLKS\0\xff\x80"[(state >> 4) % 15];
		if (i % 2)
			mend(&tar, block);
		read_all(&tar, i % 700, &seen);
		CHECK(seen.result <= 0);
		memcpy(tar.data + block, kept, TAR_BLOCK);
		buf_done(&seen.content);
	}
	buf_done(&tar);
}

int main(void)
{
	RUN(writes_what_it_reads);
	RUN(reads_in_pieces_of_any_size);
	RUN(refuses_an_archive_that_is_cut);
	RUN(refuses_what_follows_the_end);
	RUN(refuses_damaged_headers);
	RUN(refuses_fields_that_are_no_numbers);
	RUN(reads_numbers_in_base_256);
	RUN(joins_the_prefix_of_posix_only);
	RUN(tells_kinds);
	RUN(refuses_links_with_content);
	RUN(takes_pax_records);
	RUN(refuses_pax_that_lies);
	RUN(refuses_floods_of_special_headers);
	RUN(takes_gnu_long_names);
	RUN(takes_sparse_files);
	RUN(refuses_sparse_maps_that_lie);
	RUN(bounds_the_map_of_a_sparse_file);
	RUN(takes_the_older_sparse_forms);
	RUN(takes_gnu_sparse_headers);
	RUN(stands_any_change);
	return check_done();
}
