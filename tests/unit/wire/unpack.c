/* SPDX-License-Identifier: Apache-2.0 */
/* unpack.c - hostile archives: nothing outside the directory is touched, and each refusal says why. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "archive.h"

static void check_unpacked(const struct place *place, struct buf *tar)
{
	struct resoluto_err err;
	int r = unpack_made(place->in, tar, NULL, &err);

	if (r < 0)
		printf("# %s\n", err.text);
	CHECK(r == 0);
}

/* ... and nothing but `in`, and what the test put there, is in the outer directory. */
static void check_refused(const struct place *place, struct buf *tar, int want, const char *text)
{
	struct resoluto_err err;
	int r = unpack_made(place->in, tar, NULL, &err);

	if (r != want || strcmp(err.text, text) != 0)
		printf("# result %d: %s\n", r, err.text);
	CHECK(r == want);
	CHECK_STR(err.text, text);
	CHECK(!is_there(place->outer, "escaped") && !is_there(AT_FDCWD, "/escaped"));
}

static struct buf new_tar(void)
{
	return BUF_INIT(ARCHIVE_MAX);
}

static void unpacks_what_was_packed(void)
{
	CLEANUP(buf_done) struct buf packed = { 0 };
	struct timespec times[2] = { { 1, 0 }, { 1600000000, 987654321 } };
	struct unpack_report report;
	struct pack_report packed_report;
	struct resoluto_err err;
	struct place from, to;
	struct stat st;

	place_open(&from);
	place_open(&to);
	put_file(from.in, "d/run.sh", "#!/bin/sh\n");
	put_file(from.in, "d/caf\xc3\xa9", "composed");
	put_file(from.in, "d/cafe\xcc\x81", "decomposed");
	put_file(from.in, "\xff\n", "bytes");
	CHECK(fchmodat(from.in, "d/run.sh", 0755, 0) == 0);
	CHECK(utimensat(from.in, "d/run.sh", times, 0) == 0);
	CHECK(symlinkat("../\xff\n", from.in, "d/link") == 0);
	CHECK(linkat(from.in, "d/run.sh", from.in, "z", 0) == 0);
	CHECK(pack_buf(from.in, &(struct pack_options){ 0 }, &packed, &packed_report, &err) == 0);
	CHECK(unpack_buf(to.in, &packed, &(struct unpack_options){ 0 }, &report, &err) == 0);
	CHECK(report.members == packed_report.entries && report.members == 7);
	CHECK(report.bytes == packed_report.bytes);
	check_file(to.in, "d/run.sh", "#!/bin/sh\n");
	check_file(to.in, "d/caf\xc3\xa9", "composed");
	check_file(to.in, "d/cafe\xcc\x81", "decomposed");
	check_file(to.in, "d/link", "bytes");
	CHECK(fstatat(to.in, "z", &st, 0) == 0 && st.st_nlink == 2 && (st.st_mode & 07777) == 0755);
	CHECK(st.st_mtim.tv_sec == times[1].tv_sec && st.st_mtim.tv_nsec == times[1].tv_nsec);
	place_close(&from);
	place_close(&to);
}

static void refuses_names_that_lead_out(void)
{
	static const struct {
		const char *name, *text;
	} bad[] = {
		{ "/escaped", "/escaped: the name is absolute" },
		{ "../escaped", "../escaped: the name climbs with \"..\"" },
		{ "a/../../escaped", "a/../../escaped: the name climbs with \"..\"" },
		{ "a/..", "a/..: the name climbs with \"..\"" },
		{ "./", "./: it has no name" },
	};
	struct buf tar = new_tar();
	struct place place;

	place_open(&place);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		add_file(&tar, bad[i].name, "x");
		check_refused(&place, &tar, -EBADMSG, bad[i].text);
	}
	CHECK(!is_there(place.in, "a"));
	buf_done(&tar);
	place_close(&place);
}

static void takes_names_as_other_programs_write_them(void)
{
	struct buf tar = new_tar();
	struct place place;

	place_open(&place);
	add_dir(&tar, ".", 0700);
	add_dir(&tar, "./", 0700);
	add_file(&tar, "./a//b/./c", "1");
	add_dir(&tar, "d///", 0755);
	check_unpacked(&place, &tar);
	check_file(place.in, "a/b/c", "1");
	CHECK(is_there(place.in, "d"));
	CHECK(mode_of(place.outer, "in") == 0755); /* the top is the caller's */
	buf_done(&tar);
	place_close(&place);
}

static void refuses_what_is_no_file(void)
{
	static const struct {
		char type;
		const char *text;
	} bad[] = {
		{ '3', "x: it is a device" },
		{ '4', "x: it is a device" },
		{ '6', "x: it is a fifo" },
		{ 'V', "x: it is of a kind that is not known" },
	};
	struct buf tar = new_tar();
	struct place place;

	place_open(&place);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		add_file(&tar, "x", "");
		tar.data[156] = bad[i].type;
		mend(&tar, 0);
		check_refused(&place, &tar, -EBADMSG, bad[i].text);
		CHECK(!is_there(place.in, "x"));
	}
	buf_done(&tar);
	place_close(&place);
}

static void refuses_links_that_lead_out(void)
{
	static const struct {
		const char *path, *target;
	} bad[] = {
		{ "l", "/etc/passwd" }, { "l", ".." }, { "d/l", "../../escaped" },
		{ "l", "d/../../x" },   { "l", "" },
	};
	struct buf tar = new_tar();
	struct place place;

	place_open(&place);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[100];

		snprintf(text, sizeof(text), "%s: the link leads out", bad[i].path);
		add_link(&tar, TAR_SYMLINK, bad[i].path, bad[i].target);
		check_refused(&place, &tar, -EBADMSG, text);
		CHECK(!is_there(place.in, bad[i].path));
	}
	buf_done(&tar);
	place_close(&place);
}

/* "dot" is ".", so "dot/.." is the outer directory, though no name says so. */
static void sees_through_links_over_links(void)
{
	static const char why[] = "the link may lead out: it climbs through what is no directory";
	struct buf tar = new_tar();
	struct place place;
	char text[200];

	place_open(&place);
	add_link(&tar, TAR_SYMLINK, "dot", ".");
	add_link(&tar, TAR_SYMLINK, "out", "dot/../escaped");
	snprintf(text, sizeof(text), "out: %s", why);
	check_refused(&place, &tar, -EBADMSG, text);
	CHECK(!is_there(place.in, "out"));
	add_link(&tar, TAR_SYMLINK, "out", "later/../x");
	add_link(&tar, TAR_SYMLINK, "later", ".");
	check_refused(&place, &tar, -EBADMSG, text);
	add_link(&tar, TAR_SYMLINK, "out", "nothing/../x");
	check_refused(&place, &tar, -EBADMSG, text);
	/* Where there is a real directory, in whatever order, it is a link like any other. */
	add_link(&tar, TAR_SYMLINK, "fine", "real/deep/../../f");
	add_file(&tar, "real/deep/x", "");
	add_file(&tar, "f", "reached");
	check_unpacked(&place, &tar);
	check_file(place.in, "fine", "reached");
	buf_done(&tar);
	place_close(&place);
}

static void never_goes_through_a_link(void)
{
	struct buf tar = new_tar();
	struct place place;

	place_open(&place);
	put_file(place.outer, "victim/f", "untouched");
	CHECK(symlinkat("../victim", place.in, "planted") == 0);
	add_file(&tar, "planted/escaped", "x");
	check_refused(&place, &tar, -EBADMSG,
	              "planted/escaped: a symbolic link is on the way to it");
	add_dir(&tar, "planted", 0777);
	check_refused(&place, &tar, -EBADMSG, "planted/: a symbolic link has its name");
	add_dir(&tar, "planted/d", 0777);
	check_refused(&place, &tar, -EBADMSG, "planted/d/: a symbolic link is on the way to it");
	add_link(&tar, TAR_SYMLINK, "planted/l", "x");
	check_refused(&place, &tar, -EBADMSG, "planted/l: a symbolic link is on the way to it");
	add_file(&tar, "a", "");
	add_link(&tar, TAR_HARDLINK, "planted/escaped", "a");
	check_refused(&place, &tar, -EBADMSG,
	              "planted/escaped: a symbolic link is on the way to it");
	/* The same with a link that the archive brings itself. */
	add_dir(&tar, "d", 0755);
	add_link(&tar, TAR_SYMLINK, "own", "d");
	add_file(&tar, "own/x", "");
	check_refused(&place, &tar, -EBADMSG, "own/x: a symbolic link is on the way to it");
	CHECK(!is_there(place.in, "d/x"));
	check_file(place.outer, "victim/f", "untouched");
	CHECK(!is_there(place.outer, "victim/escaped") && !is_there(place.outer, "victim/d"));
	buf_done(&tar);
	place_close(&place);
}

static void replaces_and_never_writes_through(void)
{
	struct buf tar = new_tar();
	struct place place;
	struct stat st;

	place_open(&place);
	put_file(place.outer, "victim", "untouched");
	CHECK(symlinkat("../victim", place.in, "soft") == 0);
	CHECK(linkat(place.outer, "victim", place.in, "hard", 0) == 0);
	put_file(place.in, "read-only", "old");
	CHECK(fchmodat(place.in, "read-only", 0, 0) == 0);
	add_file(&tar, "soft", "new");
	add_file(&tar, "hard", "new");
	add_file(&tar, "read-only", "new");
	check_unpacked(&place, &tar);
	check_file(place.outer, "victim", "untouched");
	check_file(place.in, "soft", "new");
	check_file(place.in, "hard", "new");
	check_file(place.in, "read-only", "new");
	CHECK(fstatat(place.in, "soft", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode));
	/* Links replace as well. */
	add_link(&tar, TAR_SYMLINK, "soft", "hard");
	add_link(&tar, TAR_SYMLINK, "soft", "read-only");
	check_unpacked(&place, &tar);
	CHECK(fstatat(place.in, "soft", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode));
	buf_done(&tar);
	place_close(&place);
}

static void hard_links_lead_only_to_what_came_along(void)
{
	static const char why[] = "l: the hard link leads to no file of this archive";
	struct buf tar = new_tar();
	struct place place;

	place_open(&place);
	put_file(place.in, "old", "the host's");
	put_file(place.outer, "victim", "untouched");
	CHECK(symlinkat("../victim", place.in, "planted") == 0);
	add_link(&tar, TAR_HARDLINK, "l", "old");
	check_refused(&place, &tar, -EBADMSG, why);
	add_link(&tar, TAR_HARDLINK, "l", "planted");
	check_refused(&place, &tar, -EBADMSG, why);
	add_link(&tar, TAR_HARDLINK, "l", "missing");
	check_refused(&place, &tar, -EBADMSG, why);
	add_dir(&tar, "d", 0755);
	add_link(&tar, TAR_HARDLINK, "l", "d");
	check_refused(&place, &tar, -EBADMSG, why);
	/* In another directory the same text would lead out. */
	add_dir(&tar, "e", 0755);
	add_link(&tar, TAR_SYMLINK, "e/up", "../escaped");
	add_link(&tar, TAR_HARDLINK, "l", "e/up");
	check_refused(&place, &tar, -EBADMSG, why);
	add_link(&tar, TAR_HARDLINK, "l", "../victim");
	check_refused(&place, &tar, -EBADMSG, "l: what it links to: the name climbs with \"..\"");
	add_link(&tar, TAR_HARDLINK, "l", "/etc/passwd");
	check_refused(&place, &tar, -EBADMSG, "l: what it links to: the name is absolute");
	CHECK(!is_there(place.in, "l"));
	add_file(&tar, "new", "mine");
	add_link(&tar, TAR_HARDLINK, "old", "./new");
	add_link(&tar, TAR_HARDLINK, "new", "new");
	check_unpacked(&place, &tar);
	check_file(place.in, "old", "mine");
	check_file(place.in, "new", "mine");
	buf_done(&tar);
	place_close(&place);
}

static void says_when_kinds_clash(void)
{
	struct buf tar = new_tar();
	struct place place;

	place_open(&place);
	put_file(place.in, "file", "old");
	put_file(place.in, "dir/kept", "old");
	add_file(&tar, "dir", "new");
	check_refused(&place, &tar, -EISDIR, "dir: put the file into its place");
	add_link(&tar, TAR_SYMLINK, "dir", "x");
	check_refused(&place, &tar, -EISDIR, "dir: remove what is in its place");
	add_dir(&tar, "file", 0755);
	check_refused(&place, &tar, -ENOTDIR, "file/: something that is no directory has its name");
	add_file(&tar, "file/x", "new");
	check_refused(&place, &tar, -ENOTDIR,
	              "file/x: something that is no directory is in its way");
	check_file(place.in, "file", "old");
	check_file(place.in, "dir/kept", "old");
	CHECK(!is_there(place.in, ".unpack-0.part"));
	buf_done(&tar);
	place_close(&place);
}

static void the_last_of_a_name_wins(void)
{
	struct buf tar = new_tar();
	struct place place;
	struct stat st;

	place_open(&place);
	add_file(&tar, "a", "first");
	add_file(&tar, "a", "second");
	add_link(&tar, TAR_SYMLINK, "b", "a");
	add_file(&tar, "b", "file");
	add_file(&tar, "c", "file");
	add_link(&tar, TAR_SYMLINK, "c", "a");
	add_dir(&tar, "d", 0);
	add_dir(&tar, "d", 0750);
	add_file(&tar, "A", "other case");
	check_unpacked(&place, &tar);
	check_file(place.in, "a", "second");
	check_file(place.in, "b", "file");
	CHECK(fstatat(place.in, "b", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode));
	CHECK(fstatat(place.in, "c", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode));
	CHECK((mode_of(place.in, "d") & 0700) == 0700);
	check_file(place.in, "A", "other case");
	buf_done(&tar);
	place_close(&place);
}

static void sets_modes_at_the_end_and_never_special_ones(void)
{
	struct buf tar = new_tar();
	mode_t kept = umask(027);
	struct place place;

	place_open(&place);
	be_ordinary(&place);
	CHECK(mkdirat(place.in, "mine", 0750) == 0);
	add_dir(&tar, "closed", 0);
	add_dir(&tar, "closed/inner", 0500);
	add_entry(&tar,
	          &(struct tar_entry){ .type = TAR_FILE, .path = "closed/inner/f", .mode = 06777 },
	          "1");
	add_link(&tar, TAR_SYMLINK, "closed/inner/l", "f");
	add_dir(&tar, "open", 01777);
	add_dir(&tar, "mine", 0777);
	add_file(&tar, "implied/f", "2");
	add_entry(&tar, &(struct tar_entry){ .type = TAR_FILE, .path = "locked", .mode = 0 }, "3");
	check_unpacked(&place, &tar);
	CHECK(mode_of(place.in, "closed") == 0);
	CHECK(mode_of(place.in, "open") == 0750);
	CHECK(mode_of(place.in, "mine") == 0750); /* was there: not the archive's to change */
	CHECK(mode_of(place.in, "implied") == 0750);
	CHECK(mode_of(place.in, "locked") == 0);
	CHECK(fchmodat(place.in, "closed", 0700, 0) == 0);
	CHECK(mode_of(place.in, "closed/inner") == 0500);
	CHECK(mode_of(place.in, "closed/inner/f") == 0750);
	check_file(place.in, "closed/inner/l", "1");
	be_oneself();
	umask(kept);
	buf_done(&tar);
	place_close(&place);
}

static void gives_all_to_an_owner(void)
{
	const struct unpack_options options = { .set_owner = true, .uid = 1234, .gid = 2345 };
	static const char *const names[] = { "d", "d/f", "d/l", "implied", "implied/g" };
	mode_t kept = umask(077);
	struct buf tar = new_tar();
	struct resoluto_err err;
	struct place place;

	if (geteuid() != 0) {
		umask(kept);
		SKIP("only root can give files away");
	}
	place_open(&place);
	add_dir(&tar, "d", 0775);
	add_entry(&tar, &(struct tar_entry){ .type = TAR_FILE, .path = "d/f", .mode = 04755 }, "1");
	add_link(&tar, TAR_SYMLINK, "d/l", "f");
	add_file(&tar, "implied/g", "2");
	CHECK(unpack_made(place.in, &tar, &options, &err) == 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct stat st;

		CHECK(fstatat(place.in, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0);
		CHECK(st.st_uid == 1234 && st.st_gid == 2345);
	}
	/* Exactly as packed, whatever the umask of the runner. */
	CHECK(mode_of(place.in, "d") == 0775 && mode_of(place.in, "d/f") == 0755);
	CHECK(mode_of(place.in, "implied") == 0755 && mode_of(place.in, "implied/g") == 0644);
	umask(kept);
	buf_done(&tar);
	place_close(&place);
}

static void keeps_to_its_limits(void)
{
	const struct unpack_options few = { .limits = { .members = 3 } };
	/* Four directories, and a file in its block. */
	const struct unpack_options little = { .limits = { .bytes = 4 * 1024 + 5120 } };
	const struct unpack_options flat = { .limits = { .ratio = 100 } };
	struct buf tar = new_tar();
	struct resoluto_err err;
	struct place place;
	size_t at;

	place_open(&place);
	for (int i = 0; i < 4; i++)
		add_dir(&tar, (char[2]){ (char) ('a' + i) }, 0755);
	CHECK(unpack_made(place.in, &tar, &few, &err) == -EFBIG);
	CHECK_STR(err.text, "d/: the archive has more than 3 members");
	add_file(&tar, "f", "12345");
	add_file(&tar, "g", "123456");
	CHECK(unpack_made(place.in, &tar, &little, &err) == -EFBIG);
	CHECK_STR(err.text, "g: what is in the archive takes more than 9216 bytes");
	CHECK(!is_there(place.in, "g"));
	/* What is left out counts too: it has to be read. */
	add_file(&tar, "g", "12345678901");
	CHECK(unpack_made(place.in, &tar,
	                  &(struct unpack_options){ .limits = { .bytes = 5119 },
	                                            .globs = (const char *const[]){ "f", NULL } },
	                  &err) == -EFBIG);
	/* 100 MiB of zeros take 100 KiB. */
	tar.max = 1 << 28;
	at = tar.len;
	add_file(&tar, "zeros", "");
	snprintf(tar.data + at + 124, 12, "%011o", 100 << 20);
	mend(&tar, at);
	CHECK(buf_reserve(&tar, 100 << 20) == 0);
	memset(tar.data + tar.len, 0, 100 << 20);
	tar.len += 100 << 20;
	CHECK(unpack_made(place.in, &tar, &flat, &err) == -EFBIG);
	CHECK(strncmp(err.text, "the archive swells to over ", 27) == 0);
	CHECK(!is_there(place.in, "zeros"));
	buf_done(&tar);
	place_close(&place);
}

/* Whoever asked for a quota is told which one it was, and how far it came. */
static void tells_which_quota_ended_it(void)
{
	static const struct {
		struct unpack_limits limits;
		enum quota over;
		uint64_t members;
	} cases[] = {
		{ { .members = 2 }, QUOTA_MEMBERS, 2 },
		{ { .bytes = 2 * 5120 + 1023 }, QUOTA_ARCHIVE_BYTES, 2 },
		{ { .apparent = 10 }, QUOTA_ARCHIVE_BYTES, 2 },
		{ { .bytes = 4 * 5120, .members = 4 }, QUOTA_NONE, 4 },
	};
	struct buf tar = new_tar(), packed;
	struct unpack_report report;
	struct resoluto_err err;
	struct place place;

	place_open(&place);
	for (int i = 0; i < 4; i++)
		add_file(&tar, (char[2]){ (char) ('a' + i) }, "12345");
	add_end(&tar);
	gzip_whole(&tar, &packed);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct unpack_options options = { .limits = cases[i].limits };
		int r = unpack_buf(place.in, &packed, &options, &report, &err);

		CHECK(r == (cases[i].over == QUOTA_NONE ? 0 : -EFBIG));
		CHECK(report.over == cases[i].over && report.members == cases[i].members);
	}
	check_file(place.in, "a", "12345");
	buf_done(&packed);
	buf_done(&tar);
	place_close(&place);
}

static void counts_holes_on_their_own(void)
{
	static const struct tar_extent end = { 1LL << 40, 0 };
	const struct unpack_options options = { .limits = { .apparent = 3LL << 40 } };
	struct resoluto_err err;
	struct buf tar = new_tar();
	struct place place;

	place_open(&place);
	for (int i = 0; i < 4; i++)
		CHECK(tar_header_add(&tar, &(struct tar_entry){ .type = TAR_FILE,
		                                                .path = "sparse",
		                                                .target = "",
		                                                .mode = 0644,
		                                                .size = 1LL << 40,
		                                                .is_sparse = true,
		                                                .extents = &end,
		                                                .extent_count = 1 }) == 0);
	CHECK(unpack_made(place.in, &tar, &options, &err) == -EFBIG);
	CHECK_STR(err.text,
	          "sparse: the files are larger than 3298534883328 bytes together, holes included");
	buf_done(&tar);
	place_close(&place);
}

static void takes_only_what_matches(void)
{
	static const char *const globs[] = { "out/**", "*.xml", NULL };
	const struct unpack_options options = { .globs = globs };
	struct buf tar = new_tar(), packed;
	struct unpack_report report;
	struct resoluto_err err;
	struct place place;

	place_open(&place);
	add_dir(&tar, "out", 0755);
	add_file(&tar, "out/a", "1");
	add_file(&tar, "out/d/.git/hooks/post-checkout", "evil");
	add_file(&tar, ".git/config", "evil");
	add_file(&tar, "junit.xml", "2");
	add_file(&tar, "src/x.c", "3");
	add_link(&tar, TAR_SYMLINK, ".envrc", "out/a");
	add_end(&tar);
	gzip_whole(&tar, &packed);
	CHECK(unpack_buf(place.in, &packed, &options, &report, &err) == 0);
	CHECK(report.members == 2 && report.left_out == 4 && report.bytes == 2);
	check_file(place.in, "out/a", "1");
	check_file(place.in, "junit.xml", "2");
	CHECK(!is_there(place.in, ".git") && !is_there(place.in, "src") &&
	      !is_there(place.in, "out/d"));
	/* A hostile member is refused even if nobody asked for it. */
	buf_clear(&tar);
	add_file(&tar, "../escaped", "x");
	CHECK(unpack_made(place.in, &tar, &options, &err) == -EBADMSG);
	buf_done(&packed);
	buf_done(&tar);
	place_close(&place);
}

static int note_member(void *ctx, const char *path)
{
	struct buf *text = ctx;

	if (strcmp(path, "stop") == 0)
		return -ECANCELED;
	return buf_addf(text, "%s;", path);
}

static void tells_each_file_and_link(void)
{
	struct buf tar = new_tar(), text = BUF_INIT(1000);
	const struct unpack_options options = { .member = note_member, .ctx = &text };
	struct resoluto_err err;
	struct place place;

	place_open(&place);
	add_dir(&tar, "d", 0755);
	add_link(&tar, TAR_SYMLINK, "last", "d/../a");
	add_file(&tar, "./a", "1");
	add_link(&tar, TAR_HARDLINK, "d/h", "a");
	add_link(&tar, TAR_SYMLINK, "s", "a");
	CHECK(unpack_made(place.in, &tar, &options, &err) == 0);
	CHECK_STR(text.data, "a;d/h;s;last;");
	add_file(&tar, "stop", "1");
	add_file(&tar, "not-reached", "1");
	CHECK(unpack_made(place.in, &tar, &options, &err) == -ECANCELED);
	CHECK(!is_there(place.in, "not-reached"));
	buf_done(&tar);
	buf_done(&text);
	place_close(&place);
}

/* A file that does not come whole leaves no trace, and what it was to replace stays. */
static void leaves_no_part_of_a_file(void)
{
	struct buf tar = new_tar(), packed;
	struct unpack_report report = { .members = 77 };
	struct resoluto_err err;
	struct place place;

	place_open(&place);
	put_file(place.in, "old", "kept");
	for (int i = 0; i < 2; i++) {
		add_file(&tar, i ? "new" : "old", "some content");
		tar.len -= 505; /* all of the padding and five bytes more */
		gzip_whole(&tar, &packed);
		CHECK(unpack_buf(place.in, &packed, &(struct unpack_options){ 0 }, &report, &err) ==
		      -EBADMSG);
		CHECK_STR(err.text,
		          i ? "new: the archive is cut short" : "old: the archive is cut short");
		buf_done(&packed);
		buf_clear(&tar);
	}
	CHECK(report.members == 0 && report.over == QUOTA_NONE);
	check_file(place.in, "old", "kept");
	CHECK(!is_there(place.in, "new") && !is_there(place.in, ".unpack-0.part"));
	buf_done(&tar);
	place_close(&place);
}

/* In a process of its own, which the kernel kills in the middle of the file. */
static int dies_in_a_file(const struct place *place, struct buf *tar)
{
	const struct rlimit small = { 1000, 1000 };
	struct resoluto_err err;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		(void) signal(SIGXFSZ, SIG_DFL);
		if (setrlimit(RLIMIT_FSIZE, &small) == 0)
			(void) unpack_made(place->in, tar, NULL, &err);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void leaves_no_part_when_it_is_killed(void)
{
	struct buf tar = new_tar();
	char content[2000];
	struct place place;
	int probe;

	place_open(&place);
	probe = openat(place.in, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	memset(content, 'x', sizeof(content));
	content[sizeof(content) - 1] = '\0';
	put_file(place.in, "old", "kept");
	for (int i = 0; i < 2 && probe >= 0; i++) {
		add_file(&tar, i ? "new" : "old", content);
		CHECK(dies_in_a_file(&place, &tar) == SIGXFSZ);
		buf_clear(&tar);
	}
	/* Without files that have no name there is nothing to show. */
	CHECK(probe >= 0 || errno == EOPNOTSUPP || errno == EISDIR);
	check_file(place.in, "old", "kept");
	CHECK(!is_there(place.in, "new") && !is_there(place.in, ".unpack-0.part"));
	fd_close(&probe);
	buf_done(&tar);
	place_close(&place);
}

static void leaves_no_part_when_there_is_no_room(void)
{
	struct rlimit kept, small = { 1000, 0 };
	struct buf tar = new_tar();
	char content[2000];
	struct resoluto_err err;
	struct place place;
	int r;

	place_open(&place);
	memset(content, 'x', sizeof(content));
	content[sizeof(content) - 1] = '\0';
	add_file(&tar, "d/large", content);
	CHECK(getrlimit(RLIMIT_FSIZE, &kept) == 0);
	small.rlim_max = kept.rlim_max;
	(void) signal(SIGXFSZ, SIG_IGN);
	CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
	r = unpack_made(place.in, &tar, NULL, &err);
	CHECK(setrlimit(RLIMIT_FSIZE, &kept) == 0);
	CHECK(r == -EFBIG);
	CHECK_STR(err.text, "d/large: write the file");
	CHECK(!is_there(place.in, "d/large"));
	buf_done(&tar);
	place_close(&place);
}

static void refuses_long_names(void)
{
	char name[400] = "d/";
	struct buf tar = new_tar();
	struct place place;
	struct resoluto_err err;

	place_open(&place);
	memset(name + 2, 'n', 300);
	add_file(&tar, name, "x");
	CHECK(unpack_made(place.in, &tar, NULL, &err) == -ENAMETOOLONG);
	memcpy(name + 302, "/x", 3);
	add_file(&tar, name, "x");
	CHECK(unpack_made(place.in, &tar, NULL, &err) == -ENAMETOOLONG);
	buf_done(&tar);
	place_close(&place);
}

/* Anything but a whole good archive is an error, and never gets out. */
static void stands_damaged_archives(void)
{
	CLEANUP(buf_done) struct buf packed = { 0 };
	struct buf tar = new_tar();
	struct unpack_report report;
	struct resoluto_err err;
	struct place place;

	place_open(&place);
	add_file(&tar, "d/f", "content");
	add_link(&tar, TAR_SYMLINK, "l", "d/f");
	add_end(&tar);
	gzip_whole(&tar, &packed);
	for (size_t len = 0; len < packed.len; len += 3) {
		struct buf cut = { .data = packed.data, .len = len, .max = packed.max };

		CHECK(unpack_buf(place.in, &cut, &(struct unpack_options){ 0 }, &report, &err) ==
		      -EBADMSG);
		CHECK(err.text[0]);
	}
	for (size_t at = 0; at < packed.len; at++) {
		packed.data[at] ^= 0x55;
		(void) unpack_buf(place.in, &packed, &(struct unpack_options){ 0 }, &report, &err);
		packed.data[at] ^= 0x55;
	}
	CHECK(unpack_buf(place.in, &(struct buf){ .data = (char[]){ "no archive" }, .len = 10 },
	                 &(struct unpack_options){ 0 }, &report, &err) == -EBADMSG);
	CHECK(!is_there(place.outer, "escaped"));
	buf_done(&tar);
	place_close(&place);
}

static ssize_t fail_read(void *ctx, void *bytes, size_t cap)
{
	(void) ctx, (void) bytes, (void) cap;
	return -ETIMEDOUT;
}

static void passes_on_what_the_source_says(void)
{
	const struct resoluto_source source = { fail_read, NULL };
	struct resoluto_err err = { 0 };
	struct place place;

	place_open(&place);
	CHECK(unpack_tree(place.in, &source, &(struct unpack_options){ 0 }, NULL, &err) ==
	      -ETIMEDOUT);
	CHECK_STR(err.text, "behind 0 members: read the archive");
	place_close(&place);
}

int main(void)
{
	RUN(unpacks_what_was_packed);
	RUN(refuses_names_that_lead_out);
	RUN(takes_names_as_other_programs_write_them);
	RUN(refuses_what_is_no_file);
	RUN(refuses_links_that_lead_out);
	RUN(sees_through_links_over_links);
	RUN(never_goes_through_a_link);
	RUN(replaces_and_never_writes_through);
	RUN(hard_links_lead_only_to_what_came_along);
	RUN(says_when_kinds_clash);
	RUN(the_last_of_a_name_wins);
	RUN(sets_modes_at_the_end_and_never_special_ones);
	RUN(gives_all_to_an_owner);
	RUN(keeps_to_its_limits);
	RUN(tells_which_quota_ended_it);
	RUN(counts_holes_on_their_own);
	RUN(takes_only_what_matches);
	RUN(tells_each_file_and_link);
	RUN(leaves_no_part_of_a_file);
	RUN(leaves_no_part_when_it_is_killed);
	RUN(leaves_no_part_when_there_is_no_room);
	RUN(refuses_long_names);
	RUN(stands_damaged_archives);
	RUN(passes_on_what_the_source_says);
	return check_done();
}
