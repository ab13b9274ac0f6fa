/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - what gets into an archive, what is left out and counted, and what stops it. */
#include <sys/resource.h>
#include <time.h>

#include "archive.h"

static const char *const nothing[] = { NULL };

static void check_packed(int dirfd, const struct pack_options *options, const char *want,
                         struct pack_report *ret_report)
{
	CLEANUP(buf_done) struct buf packed = { 0 };
	struct pack_report report;
	struct resoluto_err err;
	int r = pack_buf(dirfd, options, &packed, &report, &err);

	if (r < 0)
		printf("# %s\n", err.text);
	CHECK(r == 0);
	check_listing(&packed, want);
	if (ret_report)
		*ret_report = report;
}

static void check_refused(int dirfd, const struct pack_options *options, int want, const char *text)
{
	CLEANUP(buf_done) struct buf packed = { 0 };
	struct pack_report report;
	struct resoluto_err err;

	CHECK(pack_buf(dirfd, options, &packed, &report, &err) == want);
	CHECK_STR(err.text, text);
}

static void packs_all_in_byte_order(void)
{
	struct pack_report report;
	struct place place;

	place_open(&place);
	put_file(place.in, "b", "bee");
	put_file(place.in, "a/z", "zed");
	put_file(place.in, "a-b", "dash");
	put_file(place.in, "a/B", "");
	put_file(place.in, "\xff\xfe", "bytes");
	put_file(place.in, "caf\xc3\xa9", "composed");
	put_file(place.in, "cafe\xcc\x81", "decomposed");
	CHECK(mkdirat(place.in, "empty", 0700) == 0);
	check_packed(place.in, &(struct pack_options){ 0 },
	             "d a/\nf a/B\nf a/z zed\nf a-b dash\nf b bee\nf cafe\xcc\x81 decomposed\n"
	             "f caf\xc3\xa9 composed\nd empty/\nf \xff\xfe bytes\n",
	             &report);
	CHECK(report.entries == 9 && report.bytes == 3 + 3 + 4 + 5 + 8 + 10);
	place_close(&place);
}

static void gives_the_same_archive_for_the_same_tree(void)
{
	struct buf first, second;
	struct pack_report report;
	struct resoluto_err err;
	struct place place;

	place_open(&place);
	for (int i = 0; i < 300; i++) {
		char name[20];

		snprintf(name, sizeof(name), "d%d/f%d", i % 7, i * 37 % 300);
		put_file(place.in, name, name);
	}
	CHECK(pack_buf(place.in, &(struct pack_options){ 0 }, &first, &report, &err) == 0);
	CHECK(pack_buf(place.in, &(struct pack_options){ 0 }, &second, &report, &err) == 0);
	CHECK(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	buf_done(&first);
	buf_done(&second);
	place_close(&place);
}

static void leaves_out_what_is_excluded(void)
{
	static const char *const mine[] = { "x", NULL };
	static const char *const protect[] = { "dist", "build/deep/keep", "src/.venv", NULL };
	struct pack_report report;
	struct place place;

	place_open(&place);
	put_file(place.in, "build/deep/keep/f", "1");
	put_file(place.in, "build/deep/other", "2");
	put_file(place.in, "build/x", "3");
	put_file(place.in, "src/.venv/a", "4");
	put_file(place.in, "src/dist/b", "5");
	put_file(place.in, "src/node_modules/c", "6");
	put_file(place.in, "src/dist.txt", "7");
	check_packed(place.in, &(struct pack_options){ 0 }, "d src/\nf src/dist.txt 7\n", &report);
	CHECK(report.excluded == 4);
	check_packed(
		place.in, &(struct pack_options){ .protect = protect },
		"d build/deep/keep/\nf build/deep/keep/f 1\nd src/\nd src/.venv/\nf src/.venv/a 4\n"
		"d src/dist/\nf src/dist/b 5\nf src/dist.txt 7\n",
		&report);
	CHECK(report.excluded == 3); /* build/deep/other, build/x, node_modules */
	check_packed(place.in,
	             &(struct pack_options){ .excludes = mine,
	                                     .paths = (const char *const[]){ "build", NULL } },
	             "d build/\nd build/deep/\nd build/deep/keep/\nf build/deep/keep/f 1\nf "
	             "build/deep/other 2\n",
	             &report);
	CHECK(report.excluded == 1);
	place_close(&place);
}

static void packs_only_the_paths_asked_for(void)
{
	static const char *const paths[] = { "./b/c/", "a-b", "a", "a/x", "dist", "a", NULL };
	static const char *const all[] = { "b", ".", NULL };
	static const char *const missing[] = { "a", "no\nsuch", NULL };
	static const char *const through_file[] = { "a-b/x", NULL };
	static const char *const outside[] = { "../x", NULL };
	static const char *const absolute[] = { "/etc", NULL };
	static const char *const through_link[] = { "link/x", NULL };
	struct place place;

	place_open(&place);
	put_file(place.in, "a/x", "1");
	put_file(place.in, "a/build/y", "2");
	put_file(place.in, "a-b", "3");
	put_file(place.in, "b/c/d", "4");
	put_file(place.in, "b/e", "5");
	put_file(place.in, "dist/f", "6");
	CHECK(symlinkat("a", place.in, "link") == 0);
	check_packed(place.in, &(struct pack_options){ .paths = paths },
	             "d a/\nf a/x 1\nf a-b 3\nd b/c/\nf b/c/d 4\nd dist/\nf dist/f 6\n", NULL);
	check_packed(place.in, &(struct pack_options){ .paths = all },
	             "d a/\nf a/x 1\nf a-b 3\nd b/\nd b/c/\nf b/c/d 4\nf b/e 5\nl link -> a\n",
	             NULL);
	check_packed(place.in, &(struct pack_options){ .paths = nothing }, "", NULL);
	check_refused(place.in, &(struct pack_options){ .paths = missing }, -ENOENT,
	              "there is no no\\x0asuch");
	check_refused(place.in, &(struct pack_options){ .paths = through_file }, -ENOENT,
	              "there is no a-b/x");
	check_refused(place.in, &(struct pack_options){ .paths = outside }, -EINVAL,
	              "../x does not lie in the directory");
	check_refused(place.in, &(struct pack_options){ .paths = absolute }, -EINVAL,
	              "/etc does not lie in the directory");
	check_refused(place.in, &(struct pack_options){ .paths = through_link }, -ELOOP,
	              "a symbolic link is on the way to link/x");
	place_close(&place);
}

static void packs_outputs_by_globs(void)
{
	static const char *const globs[] = { "out/*.txt", "tree", "**/junit.xml", NULL };
	struct pack_report report;
	struct place place;

	place_open(&place);
	put_file(place.in, "out/a.txt", "1");
	put_file(place.in, "out/a.bin", "2");
	put_file(place.in, "out/deep/b.txt", "3");
	put_file(place.in, "tree/build/.hidden", "4");
	put_file(place.in, "tree/.git/config", "5");
	put_file(place.in, "x/y/junit.xml", "6");
	check_packed(place.in, &(struct pack_options){ .globs = globs },
	             "f out/a.txt 1\nd tree/\nd tree/build/\nf tree/build/.hidden 4\nf "
	             "x/y/junit.xml 6\n",
	             &report);
	CHECK(report.entries == 5 && report.excluded == 0);
	check_packed(place.in, &(struct pack_options){ .globs = nothing }, "", NULL);
	place_close(&place);
}

static void keeps_links_that_stay_inside(void)
{
	static const struct {
		const char *path, *target;
	} links[] = {
		{ "d/inside", "../f" },      { "d/up", ".." },       { "dangling", "nowhere" },
		{ "absolute", "/etc" },      { "d/out", "../../x" }, { "detour", "d/../f" },
		{ "over-link", "dot/../f" }, { "dot", "." },         { "over-nothing", "no/../f" },
	};
	struct pack_report report;
	struct place place;

	place_open(&place);
	put_file(place.in, "f", "1");
	put_file(place.in, "d/g", "2");
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		CHECK(symlinkat(links[i].target, place.in, links[i].path) == 0);
	check_packed(place.in, &(struct pack_options){ 0 },
	             "d d/\nf d/g 2\nl d/inside -> ../f\nl d/up -> ..\nl dangling -> nowhere\nl "
	             "detour -> f\n"
	             "l dot -> .\nf f 1\n",
	             &report);
	CHECK(report.links_out == 4);
	place_close(&place);
}

static void keeps_further_names_as_hard_links(void)
{
	char longer[200];
	struct place place;
	char want[600];

	place_open(&place);
	put_file(place.in, "a", "1");
	CHECK(linkat(place.in, "a", place.in, "b", 0) == 0);
	CHECK(linkat(place.in, "a", place.outer, "elsewhere", 0) == 0);
	memset(longer, 'x', sizeof(longer));
	longer[199] = '\0';
	put_file(place.in, longer, "2");
	CHECK(linkat(place.in, longer, place.in, "y", 0) == 0);
	snprintf(want, sizeof(want), "f a 1\nh b -> a\nf %s 2\nh y -> %s\n", longer, longer);
	check_packed(place.in, &(struct pack_options){ 0 }, want, NULL);
	place_close(&place);
}

/* So many as there is memory for; the rest is there as well, once for each name. */
static void copies_further_names_when_memory_ends(void)
{
	CLEANUP(buf_done) struct buf packed = { 0 };
	struct unpack_report unpacked;
	struct pack_report report;
	struct resoluto_err err;
	struct place place;
	char first[256], second[256];
	struct stat a, b;
	int out, shared = 0;

	place_open(&place);
	for (int i = 0; i < 200; i++) {
		snprintf(first, sizeof(first), "%03d-%0240d", i, 0);
		snprintf(second, sizeof(second), "%03d-%0240d", i, 1);
		put_file(place.in, first, "text");
		CHECK(linkat(place.in, first, place.in, second, 0) == 0);
	}
	CHECK(pack_buf(place.in, &(struct pack_options){ .memory = 128 * 1024 }, &packed, &report,
	               &err) == 0);
	CHECK(report.entries == 400 && mkdirat(place.outer, "out", 0755) == 0);
	out = openat(place.outer, "out", O_RDONLY | O_CLOEXEC);
	CHECK(unpack_buf(out, &packed, &(struct unpack_options){ 0 }, &unpacked, &err) == 0);
	for (int i = 0; i < 200; i++) {
		snprintf(first, sizeof(first), "%03d-%0240d", i, 0);
		snprintf(second, sizeof(second), "%03d-%0240d", i, 1);
		check_file(out, first, "text");
		check_file(out, second, "text");
		CHECK(fstatat(out, first, &a, 0) == 0 && fstatat(out, second, &b, 0) == 0);
		shared += a.st_ino == b.st_ino;
	}
	CHECK(shared > 100 && shared < 200);
	close(out);
	place_close(&place);
}

/* Directories within each other, each with more names than its share of the memory. */
static void says_where_there_are_too_many_names(void)
{
	struct resoluto_err err;
	struct pack_report report;
	CLEANUP(buf_done) struct buf packed = { 0 };
	struct place place;
	char name[256];

	place_open(&place);
	for (int level = 0; level < 4; level++) {
		for (int i = 0; i < 150; i++) {
			snprintf(name, sizeof(name), "%.*s%0240d", 2 * level, "0/0/0/0/", i);
			put_file(place.in, name, "");
		}
	}
	CHECK(pack_buf(place.in, &(struct pack_options){ .memory = 128 * 1024 }, &packed, &report,
	               &err) == -E2BIG);
	CHECK(strncmp(err.text, "list 0/", 7) == 0 && strstr(err.text, "names that wait"));
	place_close(&place);
}

static void count_calls(void *ctx, uint64_t done)
{
	CHECK(done == 0);
	++*(unsigned *) ctx;
}

/* It is a sign of life, also where nothing matches. */
static void tells_that_it_goes_on(void)
{
	static const char *const globs[] = { "no/such", NULL };
	CLEANUP(buf_done) struct buf packed = { 0 };
	const unsigned at_the_end = 2; /* the archive, and an empty directory's list */
	struct pack_report report;
	struct resoluto_err err;
	struct place place;
	unsigned calls = 0;
	char name[32];

	place_open(&place);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "%d", i);
		CHECK(mknodat(place.in, name, S_IFREG | 0644, 0) == 0);
	}
	CHECK(pack_buf(place.in,
	               &(struct pack_options){ .globs = globs,
	                                       .progress = count_calls,
	                                       .ctx = &calls },
	               &packed, &report, &err) == 0);
	CHECK(report.entries == 0 && calls >= 3 + at_the_end);
	place_close(&place);
}

static void counts_what_is_no_file(void)
{
	struct pack_report report;
	struct place place;

	place_open(&place);
	put_file(place.in, "f", "1");
	CHECK(mkfifoat(place.in, "fifo", 0644) == 0);
	CHECK(mknodat(place.in, "socket", S_IFSOCK | 0644, 0) == 0);
	check_packed(place.in, &(struct pack_options){ 0 }, "f f 1\n", &report);
	CHECK(report.special == 2);
	place_close(&place);
}

static void names_the_first_that_cannot_be_read(void)
{
	struct pack_report report;
	struct place place;

	place_open(&place);
	be_ordinary(&place);
	put_file(place.in, "a", "1");
	put_file(place.in, "b\n", "2");
	put_file(place.in, "d/e", "3");
	put_file(place.in, "f", "4");
	CHECK(fchmodat(place.in, "b\n", 0, 0) == 0 && fchmodat(place.in, "d", 0, 0) == 0);
	check_refused(place.in, &(struct pack_options){ 0 }, -EACCES,
	              "cannot read b\\x0a (and 1 more)");
	check_packed(place.in, &(struct pack_options){ .skip_unreadable = true }, "f a 1\nf f 4\n",
	             &report);
	CHECK(report.unreadable == 2);
	CHECK(fchmodat(place.in, "d", 0755, 0) == 0);
	check_refused(place.in, &(struct pack_options){ 0 }, -EACCES, "cannot read b\\x0a");
	be_oneself();
	place_close(&place);
}

/* A directory that can be listed but not entered. */
static void counts_each_entry_that_is_out_of_reach(void)
{
	struct pack_report report;
	struct place place;

	place_open(&place);
	be_ordinary(&place);
	put_file(place.in, "d/a", "1");
	put_file(place.in, "d/b", "2");
	CHECK(fchmodat(place.in, "d", 0444, 0) == 0);
	check_refused(place.in, &(struct pack_options){ 0 }, -EACCES,
	              "cannot read d/a (and 1 more)");
	check_packed(place.in, &(struct pack_options){ .skip_unreadable = true }, "d d/\n",
	             &report);
	CHECK(report.unreadable == 2);
	CHECK(fchmodat(place.in, "d", 0755, 0) == 0);
	be_oneself();
	place_close(&place);
}

static void packs_a_sparse_file_by_its_parts(void)
{
	CLEANUP(buf_done) struct buf packed = { 0 };
	struct pack_report report;
	struct resoluto_err err;
	struct place place;
	int fd;

	place_open(&place);
	fd = openat(place.in, "sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	CHECK(fd >= 0 && pwrite(fd, "start", 5, 0) == 5 && pwrite(fd, "middle", 6, 5LL << 30) == 6);
	CHECK(ftruncate(fd, 10LL << 30) == 0);
	close(fd);
	fd = openat(place.in, "void", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	CHECK(fd >= 0 && ftruncate(fd, 10LL << 30) == 0);
	close(fd);
	CHECK(pack_buf(place.in, &(struct pack_options){ 0 }, &packed, &report, &err) == 0);
	/* A file system that finds no holes would have to read 20 GiB here. */
	CHECK(report.bytes < 1 << 20 && packed.len < 1 << 20);
	CHECK(mkdirat(place.in, "out", 0755) == 0);
	fd = openat(place.in, "out", O_RDONLY | O_CLOEXEC);
	CHECK(unpack_buf(fd, &packed, &(struct unpack_options){ 0 }, &(struct unpack_report){ 0 },
	                 &err) == 0);
	for (int i = 0; i < 2; i++) {
		struct stat st;

		CHECK(fstatat(fd, i ? "void" : "sparse", &st, 0) == 0);
		CHECK(st.st_size == 10LL << 30 && st.st_blocks < 1 << 12);
	}
	close(fd);
	fd = openat(place.in, "out/sparse", O_RDONLY | O_CLOEXEC);
	CHECK(pread(fd, err.text, 7, 5LL << 30) == 7 && memcmp(err.text, "middle", 7) == 0);
	CHECK(pread(fd, err.text, 6, 0) == 6 && memcmp(err.text, "start", 6) == 0);
	close(fd);
	place_close(&place);
}

/* Names of 200 bytes: far beyond PATH_MAX; descriptors for 60 levels, not for 1,000. */
static void goes_as_deep_as_a_tree_is(void)
{
	CLEANUP(buf_done) struct buf packed = { 0 };
	struct rlimit kept, few = { 64, 0 };
	struct unpack_report unpacked;
	struct pack_report report;
	struct resoluto_err err;
	struct place place;
	char name[201];
	int at, r;

	place_open(&place);
	memset(name, 'n', sizeof(name));
	name[200] = '\0';
	at = fcntl(place.in, F_DUPFD_CLOEXEC, 3);
	for (int i = 0; i < 1000; i++) {
		int next;

		CHECK(mkdirat(at, name, 0755) == 0);
		next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		CHECK(next >= 0);
		close(at);
		at = next;
		if (i % 100 == 0)
			put_file(at, "z", "file");
	}
	close(at);
	CHECK(getrlimit(RLIMIT_NOFILE, &kept) == 0);
	few.rlim_max = kept.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	r = pack_buf(place.in, &(struct pack_options){ 0 }, &packed, &report, &err);
	if (r == 0) {
		CHECK(mkdirat(place.outer, "out", 0755) == 0);
		at = openat(place.outer, "out", O_RDONLY | O_CLOEXEC);
		r = unpack_buf(at, &packed, &(struct unpack_options){ 0 }, &unpacked, &err);
		close(at);
	}
	CHECK(setrlimit(RLIMIT_NOFILE, &kept) == 0);
	if (r < 0)
		printf("# %s\n", err.text);
	CHECK(r == 0 && report.entries == 1010 && unpacked.members == 1010);
	place_close(&place);
}

struct meddling {
	int fd;
	off_t size; /* to set once the first bytes have been read */
};

static void meddle(void *ctx, uint64_t done)
{
	struct meddling *meddling = ctx;

	if (done > 0)
		(void) !ftruncate(meddling->fd, meddling->size);
}

/* 1 MiB is promised; what comes is what can be had, and the next file is still found. */
static void stands_a_file_that_changes_while_it_is_read(void)
{
	static const off_t sizes[] = { 300 * 1024, 0, 2 * 1024 * 1024 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		CLEANUP(buf_done) struct buf packed = { 0 };
		CLEANUP(buf_done) struct buf text = { 0 };
		struct meddling meddling;
		struct pack_report report;
		struct resoluto_err err;
		struct place place;

		place_open(&place);
		meddling.fd = openat(place.in, "a", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
		meddling.size = sizes[i];
		for (int block = 0; block < 1024; block++)
			CHECK(write_all(meddling.fd, (char[1024]){ "text" }, 1024) == 0);
		put_file(place.in, "b", "next");
		CHECK(pack_buf(place.in,
		               &(struct pack_options){ .progress = meddle, .ctx = &meddling },
		               &packed, &report, &err) == 0);
		list_archive(&packed, &text);
		CHECK(strncmp(text.data, "f a text", 8) == 0 && strstr(text.data, "\nf b next\n"));
		CHECK(sizes[i] > 1 << 20 ? report.bytes == (1 << 20) + 4 : report.bytes < 1 << 20);
		close(meddling.fd);
		place_close(&place);
	}
}

static int refuse_all(void *ctx, const void *bytes, size_t len)
{
	(void) ctx, (void) bytes, (void) len;
	return -ENOSPC;
}

static void passes_on_what_the_sink_says(void)
{
	const struct resoluto_sink sink = { refuse_all, NULL };
	struct pack_report report = { .entries = 77 };
	struct resoluto_err err = { 0 };
	struct place place;

	place_open(&place);
	put_file(place.in, "a", "1");
	CHECK(pack_tree(place.in, &(struct pack_options){ 0 }, &sink, &report, &err) == -ENOSPC);
	CHECK(report.entries == 77 && err.code == -ENOSPC);
	CHECK_STR(err.text, "write the archive");
	place_close(&place);
}

static void packs_many_files(void)
{
	CLEANUP(buf_done) struct buf packed = { 0 };
	struct unpack_report unpacked;
	struct pack_report report;
	struct resoluto_err err;
	struct place place;
	int fd;

	place_open(&place);
	for (int i = 0; i < 3000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "%d", i);
		fd = openat(place.in, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		CHECK(fd >= 0);
		close(fd);
	}
	CHECK(pack_buf(place.in, &(struct pack_options){ 0 }, &packed, &report, &err) == 0);
	CHECK(report.entries == 3000);
	CHECK(mkdirat(place.outer, "out", 0755) == 0);
	fd = openat(place.outer, "out", O_RDONLY | O_CLOEXEC);
	CHECK(unpack_buf(fd, &packed, &(struct unpack_options){ 0 }, &unpacked, &err) == 0);
	CHECK(unpacked.members == 3000);
	close(fd);
	place_close(&place);
}

int main(void)
{
	RUN(packs_all_in_byte_order);
	RUN(gives_the_same_archive_for_the_same_tree);
	RUN(leaves_out_what_is_excluded);
	RUN(packs_only_the_paths_asked_for);
	RUN(packs_outputs_by_globs);
	RUN(keeps_links_that_stay_inside);
	RUN(keeps_further_names_as_hard_links);
	RUN(copies_further_names_when_memory_ends);
	RUN(says_where_there_are_too_many_names);
	RUN(tells_that_it_goes_on);
	RUN(counts_what_is_no_file);
	RUN(names_the_first_that_cannot_be_read);
	RUN(counts_each_entry_that_is_out_of_reach);
	RUN(packs_a_sparse_file_by_its_parts);
	RUN(goes_as_deep_as_a_tree_is);
	RUN(stands_a_file_that_changes_while_it_is_read);
	RUN(passes_on_what_the_sink_says);
	RUN(packs_many_files);
	return check_done();
}
