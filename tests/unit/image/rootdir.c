/* SPDX-License-Identifier: Apache-2.0 */
/* rootdir.c - a directory as a stream: the same bytes for the same tree, and what is left out or refused. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "image/rootdir.h"
#include "layers.h"

struct place {
	char dir[64];
	int fd;
};

static void place_make(struct place *place)
{
	*place = (struct place){ .dir = "/tmp/resoluto-rootdir-XXXXXX" };
	CHECK(mkdtemp(place->dir));
	CHECK(chmod(place->dir, 0755) == 0);
	place->fd = open(place->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void place_done(struct place *place)
{
	(void) remove_tree_at(AT_FDCWD, place->dir);
	close(place->fd);
}

static void put(const struct place *place, const char *name, const char *text, mode_t mode)
{
	CLEANUP(fd_close)
	int fd = openat(place->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text));
	CHECK(fchmod(fd, mode) == 0);
}

static void make_tree(const struct place *place)
{
	CHECK(mkdirat(place->fd, "etc", 0755) == 0 && mkdirat(place->fd, "dev", 0755) == 0);
	put(place, "etc/a", "aaa", 04755);
	put(place, "etc/empty", "", 0644);
	CHECK(linkat(place->fd, "etc/a", place->fd, "z", 0) == 0);
	CHECK(symlinkat("/etc/passwd", place->fd, "etc/link") == 0);
	CHECK(mkfifoat(place->fd, "fifo", 0600) == 0);
}

static int keep(void *ctx, const void *bytes, size_t len, struct resoluto_err *err)
{
	return buf_add(ctx, bytes, len);
}

static int run(const struct place *place, struct buf *ret_stream, struct resoluto_err *err)
{
	*ret_stream = BUF_INIT(64 * 1024 * 1024);
	return rootdir_flatten(place->dir, &(struct flatten_sink){ keep, ret_stream }, NULL, err);
}

static void show(const struct buf *stream, struct buf *ret_text)
{
	struct archive *archive = archive_read_new();
	struct archive_entry *entry;
	char contents[100];

	*ret_text = BUF_INIT(64 * 1024);
	archive_read_support_format_tar(archive);
	CHECK(archive_read_open_memory(archive, stream->data, stream->len) == ARCHIVE_OK);
	while (archive_read_next_header(archive, &entry) == ARCHIVE_OK) {
		la_ssize_t n = archive_read_data(archive, contents, sizeof(contents));

		buf_addf(ret_text, "%s%s", ret_text->len ? " " : "", archive_entry_pathname(entry));
		if (archive_entry_hardlink(entry))
			buf_addf(ret_text, "==%s", archive_entry_hardlink(entry));
		else if (archive_entry_symlink(entry))
			buf_addf(ret_text, "->%s", archive_entry_symlink(entry));
		else
			buf_addf(ret_text, "=%.*s:%o", (int) n, contents,
			         archive_entry_perm(entry));
		CHECK(archive_entry_uid(entry) == 0);
		if (archive_entry_xattr_count(entry))
			buf_addf(ret_text, ":x%d", archive_entry_xattr_count(entry));
	}
	archive_read_free(archive);
}

static void a_tree_becomes_a_stream(void)
{
	CLEANUP(place_done) struct place place;
	CLEANUP(buf_done) struct buf stream = BUF_INIT(0), text = BUF_INIT(0);

	place_make(&place);
	make_tree(&place);
	CHECK(run(&place, &stream, NULL) == 0);
	show(&stream, &text);
	CHECK_STR(text.data,
	          "./=:755 dev=:755 etc=:755 etc/empty=:644 etc/link->/etc/passwd fifo=:600 "
	          "etc/a=aaa:4755 z==etc/a");
}

static void the_same_tree_gives_the_same_bytes(void)
{
	static const struct timespec then[2] = { { 1000, 0 }, { 1000, 0 } };
	static const char *const names[] = { "etc/a", "etc/empty", "etc/link", "etc",
		                             "dev",   "fifo",      "." };
	CLEANUP(place_done) struct place one, two;
	CLEANUP(buf_done) struct buf first = BUF_INIT(0), second = BUF_INIT(0);

	place_make(&one);
	place_make(&two);
	make_tree(&one);
	make_tree(&two);
	for (size_t i = 0; i < 7; i++) {
		CHECK(utimensat(one.fd, names[i], then, AT_SYMLINK_NOFOLLOW) == 0);
		CHECK(utimensat(two.fd, names[i], then, AT_SYMLINK_NOFOLLOW) == 0);
	}
	CHECK(run(&one, &first, NULL) == 0 && run(&two, &second, NULL) == 0);
	CHECK(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
}

static void sockets_are_left_out(void)
{
	CLEANUP(place_done) struct place place;
	CLEANUP(fd_close) int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	CLEANUP(buf_done) struct buf stream = BUF_INIT(0), text = BUF_INIT(0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	place_make(&place);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/sock", place.dir);
	CHECK(bind(fd, (struct sockaddr *) &address, sizeof(address)) == 0);
	CHECK(run(&place, &stream, NULL) == 0);
	show(&stream, &text);
	CHECK_STR(text.data, "./=:755");
}

static void extended_attributes_travel(void)
{
	CLEANUP(place_done) struct place place;
	CLEANUP(buf_done) struct buf stream = BUF_INIT(0), text = BUF_INIT(0);
	char path[100];

	place_make(&place);
	put(&place, "a", "x", 0644);
	snprintf(path, sizeof(path), "%s/a", place.dir);
	if (setxattr(path, "user.test", "v", 1, 0) < 0)
		SKIP("this file system has no user.* attributes");
	CHECK(run(&place, &stream, NULL) == 0);
	show(&stream, &text);
	CHECK_STR(text.data, "./=:755 a=x:644:x1");
}

static void devices_outside_of_dev_are_refused(void)
{
	CLEANUP(place_done) struct place place;
	CLEANUP(buf_done) struct buf stream = BUF_INIT(0), text = BUF_INIT(0);
	struct resoluto_err err = { 0 };

	place_make(&place);
	CHECK(mkdirat(place.fd, "dev", 0755) == 0);
	if (mknodat(place.fd, "dev/null", S_IFCHR | 0666, 0x103) < 0)
		SKIP("only root makes device nodes");
	CHECK(run(&place, &stream, NULL) == 0);
	show(&stream, &text);
	CHECK_STR(text.data, "./=:755 dev=:755");
	buf_done(&stream);
	CHECK(mknodat(place.fd, "null", S_IFCHR | 0666, 0x103) == 0);
	CHECK(run(&place, &stream, &err) == -EBADMSG);
	CHECK(strstr(err.text, "'null' is a device node"));
}

static void what_cannot_be_read_is_named(void)
{
	CLEANUP(place_done) struct place place;
	CLEANUP(buf_done) struct buf stream = BUF_INIT(0);
	struct resoluto_err err = { 0 };

	if (geteuid() == 0)
		SKIP("root reads everything");
	place_make(&place);
	put(&place, "secret", "x", 0);
	CHECK(run(&place, &stream, &err) == -EACCES);
	CHECK(strstr(err.text, "'secret' cannot be read"));
}

static void what_is_no_directory_is_said(void)
{
	struct resoluto_err err = { 0 };
	char digest[DIGEST_SIZE];

	CHECK(rootdir_fingerprint("/nonexistent/x", NULL, digest, &err) == -ENOENT);
	CHECK(rootdir_fingerprint("/dev/null", NULL, digest, &err) == -ENOTDIR);
}

static void the_fingerprint_sees_every_change(void)
{
	CLEANUP(place_done) struct place place;
	char before[DIGEST_SIZE], after[DIGEST_SIZE];
	CLEANUP(fd_close) int fd = -1;

	place_make(&place);
	make_tree(&place);
	CHECK(rootdir_fingerprint(place.dir, NULL, before, NULL) == 0);
	CHECK(rootdir_fingerprint(place.dir, NULL, after, NULL) == 0);
	CHECK_STR(before, after);
	CHECK(fchmodat(place.fd, "etc/a", 0700, 0) == 0);
	CHECK(rootdir_fingerprint(place.dir, NULL, after, NULL) == 0);
	CHECK(strcmp(before, after) != 0);
	CHECK(rootdir_fingerprint(place.dir, NULL, before, NULL) == 0);
	fd = openat(place.fd, "etc/empty", O_WRONLY | O_CLOEXEC);
	CHECK(write(fd, "now it has something", 20) == 20);
	CHECK(rootdir_fingerprint(place.dir, NULL, after, NULL) == 0);
	CHECK(strcmp(before, after) != 0);
}

static bool yes(void *ctx)
{
	return true;
}

static void its_caller_stops_it(void)
{
	CLEANUP(place_done) struct place place;
	CLEANUP(buf_done) struct buf stream = BUF_INIT(1024);
	const struct caller caller = { .is_stopped = yes };
	char digest[DIGEST_SIZE];

	place_make(&place);
	make_tree(&place);
	CHECK(rootdir_fingerprint(place.dir, &caller, digest, NULL) == -ECANCELED);
	CHECK(rootdir_flatten(place.dir, &(struct flatten_sink){ keep, &stream }, &caller, NULL) ==
	      -ECANCELED);
	CHECK(stream.len == 0);
}

int main(void)
{
	RUN(a_tree_becomes_a_stream);
	RUN(the_same_tree_gives_the_same_bytes);
	RUN(sockets_are_left_out);
	RUN(extended_attributes_travel);
	RUN(devices_outside_of_dev_are_refused);
	RUN(what_cannot_be_read_is_named);
	RUN(what_is_no_directory_is_said);
	RUN(the_fingerprint_sees_every_change);
	RUN(its_caller_stops_it);
	return check_done();
}
