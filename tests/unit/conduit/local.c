/* SPDX-License-Identifier: Apache-2.0 */
/* local.c - objects as files, with a hostile writer in the same directory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "check.h"
#include "child.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "conduit/local.h"

enum { TEXT_MAX = 1024 * 1024 };

/* base/store is the conduit, base/outside what nobody may reach through it. */
static struct {
	char base[64];
	int base_fd, store, outside;
	struct resoluto_conduit *conduit;
} place;

static void end(void)
{
	resoluto_conduit_close(place.conduit);
	place.conduit = NULL;
	if (place.base[0]) {
		fd_close(&place.store);
		fd_close(&place.outside);
		fd_close(&place.base_fd);
		(void) remove_tree_at(AT_FDCWD, place.base);
	}
	place.base[0] = '\0';
}

static void begin(void)
{
	char url[128];

	end();
	snprintf(place.base, sizeof(place.base), "/tmp/local-XXXXXX");
	CHECK(mkdtemp(place.base));
	place.base_fd = open(place.base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(place.base_fd >= 0 && mkdirat(place.base_fd, "outside", 0700) == 0);
	snprintf(url, sizeof(url), "localfs://%s/store", place.base);
	CHECK(resoluto_conduit_open_url(url, &place.conduit, NULL) == 0);
	place.store = openat(place.base_fd, "store", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	place.outside = openat(place.base_fd, "outside", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(place.store >= 0 && place.outside >= 0);
}

static int put(const char *key, const char *text)
{
	return resoluto_conduit_put_bytes(place.conduit, key, text, strlen(text), NULL);
}

static int get(const char *key)
{
	char *bytes = NULL;
	size_t len;
	int r = resoluto_conduit_get_bytes(place.conduit, key, TEXT_MAX, &bytes, &len, NULL);

	free(bytes);
	return r;
}

static void expect(const char *key, const char *want)
{
	CLEANUP(mem_free) char *bytes = NULL;
	size_t len;

	CHECK(resoluto_conduit_get_bytes(place.conduit, key, TEXT_MAX, &bytes, &len, NULL) == 0);
	CHECK_STR(bytes, want);
}

static int note_key(void *ctx, const struct resoluto_object *object)
{
	return buf_addf(ctx, "%s ", object->key);
}

static void expect_list(const char *prefix, const char *want)
{
	CLEANUP(buf_done) struct buf keys = BUF_INIT(TEXT_MAX);

	CHECK(resoluto_conduit_list(place.conduit, prefix, note_key, &keys, NULL) == 0);
	CHECK_STR(keys.data ? keys.data : "", want);
}

static void write_file(int dirfd, const char *path, const char *text)
{
	CLEANUP(fd_close) int fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	CHECK(fd >= 0 && write_all(fd, text, strlen(text)) == 0);
}

static void expect_file(int dirfd, const char *path, const char *want)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(0);

	CHECK(read_file_at(dirfd, path, TEXT_MAX, &text, NULL) == 0);
	CHECK_STR(text.data, want);
}

static int count_entries(int dirfd_of_dir, const char *path)
{
	int fd = openat(dirfd_of_dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), count = 0;
	CLEANUP(dir_close) DIR *dir = fdopendir(fd);

	CHECK(dir);
	while (readdir(dir))
		count++;
	return count - 2;
}

/* Exit codes of children. */
enum { CHILD_OK, CHILD_BAD, CHILD_CANNOT = 77 };

/* What any program finds and leaves that writes root/key. */
static void shares_its_layout_with_plain_programs(void)
{
	begin();
	CHECK(put("run/1/events-000001.jsonl", "ours") == 0);
	expect_file(place.store, "run/1/events-000001.jsonl", "ours");
	write_file(place.store, "run/1/result.json", "theirs");
	write_file(place.store, "run/1/.hidden", "theirs too");
	expect("run/1/result.json", "theirs");
	expect_list("run/1/", "run/1/.hidden run/1/events-000001.jsonl run/1/result.json ");
	CHECK(put("run/1/result.json", "replaced") == 0);
	expect_file(place.store, "run/1/result.json", "replaced");
}

static void gives_files_the_modes_of_the_umask(void)
{
	mode_t before = umask(027);
	struct stat file, dir;

	begin();
	CHECK(put("d/f", "") == 0);
	umask(before);
	CHECK(fstatat(place.store, "d/f", &file, 0) == 0 &&
	      fstatat(place.store, "d", &dir, 0) == 0);
	CHECK((file.st_mode & 0777) == 0640 && (dir.st_mode & 0777) == 0750);
}

static void follows_no_link(void)
{
	begin();
	write_file(place.outside, "secret", "secret");
	CHECK(symlinkat("../outside", place.store, "dir") == 0);
	CHECK(symlinkat("../outside/secret", place.store, "file") == 0);
	CHECK(symlinkat("file", place.store, "link-to-link") == 0);
	CHECK(symlinkat("/proc/self/root/etc/passwd", place.store, "magic") == 0);
	CHECK(get("dir/secret") == -ENOENT && get("file") == -ENOENT);
	CHECK(get("link-to-link") == -ENOENT && get("magic") == -ENOENT);
	expect_list("", "");
	expect_list("dir/", "");
	CHECK(put("dir/planted", "x") == -ELOOP);
	CHECK(put("dir/sub/planted", "x") < 0);
	CHECK(count_entries(place.outside, ".") == 1);
	CHECK(resoluto_conduit_delete_prefix(place.conduit, "dir", NULL) == 0);
	expect_file(place.outside, "secret", "secret");
	/* A put replaces the link, not what it leads to. */
	CHECK(put("file", "an object") == 0);
	expect("file", "an object");
	expect_file(place.outside, "secret", "secret");
}

static void neither_waits_for_nor_reads_what_is_no_file(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	begin();
	CHECK(mkfifoat(place.store, "fifo", 0666) == 0);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/store/socket", place.base);
	CHECK(bind(fd, (struct sockaddr *) &address, sizeof(address)) == 0);
	close(fd);
	CHECK(mkdirat(place.store, "dir", 0777) == 0);
	CHECK(get("fifo") == -ENOENT && get("socket") == -ENOENT && get("dir") == -ENOENT);
	expect_list("", "");
	CHECK(put("fifo", "now a file") == 0);
	expect("fifo", "now a file");
	if (mknodat(place.store, "zero", S_IFCHR | 0666, makedev(1, 5)) < 0)
		SKIP("making a device node is not allowed here");
	CHECK(get("zero") == -ENOENT);
	expect_list("", "fifo ");
}

static void hides_names_that_are_no_keys(void)
{
	begin();
	CHECK(put("ok", "") == 0);
	write_file(place.store, ".part-1", "unfinished");
	write_file(place.store, "new\nline", "");
	write_file(place.store, "\x1b[2J", "");
	CHECK(mkdirat(place.store, ".part-dir", 0777) == 0);
	write_file(place.store, ".part-dir/x", "");
	expect_list("", "ok ");
	expect_list(".par", "");
}

/* Deeper and longer than any key: what lies there is no object, and no reason to fail. */
static void lists_around_trees_too_deep_for_keys(void)
{
	char name[41];
	int at;

	begin();
	at = openat(place.store, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	memset(name, 'd', 40);
	name[40] = '\0';
	for (int depth = 0; depth < 600; depth++) {
		const char *part = depth % 2 ? name : "d";
		int next;

		CHECK(mkdirat(at, part, 0777) == 0);
		next = openat(at, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		CHECK(next >= 0);
		write_file(next, "file", "");
		close(at);
		at = next;
	}
	close(at);
	CHECK(put("z", "") == 0);
	expect_list("z", "z ");
	CHECK(resoluto_conduit_delete_prefix(place.conduit, "d", NULL) > 10);
	expect_list("", "z ");
	CHECK(count_entries(place.store, ".") == 1);
}

static void lists_large_directories_in_order(void)
{
	enum { FILES = 3000 };
	CLEANUP(buf_done) struct buf want = BUF_INIT(TEXT_MAX);
	char name[32];

	begin();
	CHECK(mkdirat(place.store, "d", 0777) == 0);
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "d/%06u", i * 7919 % FILES);
		write_file(place.store, name, "");
		CHECK(buf_addf(&want, "d/%06u ", i) == 0);
	}
	expect_list("d/", want.data);
}

struct peek {
	bool was_hidden, was_there;
	int count;
};

static ssize_t peek_read(void *ctx, void *buf, size_t cap)
{
	struct peek *peek = ctx;
	struct resoluto_conduit *other;
	CLEANUP(buf_done) struct buf keys = BUF_INIT(TEXT_MAX);
	char url[128];

	if (peek->count++ > 0)
		return 0;
	snprintf(url, sizeof(url), "file://%s/store", place.base);
	CHECK(resoluto_conduit_open_url(url, &other, NULL) == 0);
	CHECK(resoluto_conduit_list(other, "", note_key, &keys, NULL) == 0);
	resoluto_conduit_close(other);
	peek->was_hidden = keys.len == 0;
	peek->was_there = count_entries(place.store, "d") == 1;
	memcpy(buf, "x", 1);
	return 1;
}

static void hides_what_is_being_written(void)
{
	struct peek peek = { 0 };

	begin();
	CHECK(resoluto_conduit_put(place.conduit, "d/object",
	                           &(struct resoluto_source){ peek_read, &peek }, NULL) == 0);
	CHECK(peek.was_hidden && peek.was_there);
	expect_list("", "d/object ");
	CHECK(count_entries(place.store, "d") == 1);
}

static ssize_t fail_read(void *ctx, void *buf, size_t cap)
{
	return -EPIPE;
}

static void leaves_nothing_of_a_failed_put(void)
{
	begin();
	CHECK(resoluto_conduit_put(place.conduit, "d/object",
	                           &(struct resoluto_source){ fail_read, NULL }, NULL) == -EPIPE);
	CHECK(count_entries(place.store, "d") == 0);
}

struct slow_get {
	struct buf got;
	int calls;
};

/* The object is replaced while it is being fetched. */
static int replace_meanwhile(void *ctx, const void *bytes, size_t len)
{
	struct slow_get *slow = ctx;

	if (slow->calls++ == 0)
		CHECK(conduit_local_put_at(place.store, "object", "new", 3, LOCAL_RENAME_ONLY,
		                           NULL) == 0);
	return buf_add(&slow->got, bytes, len);
}

static void delivers_one_version_whole(void)
{
	enum { SIZE = 300 * 1024 };
	CLEANUP(mem_free) char *old = malloc(SIZE);
	struct slow_get slow = { .got = BUF_INIT(TEXT_MAX) };

	begin();
	CHECK(old);
	memset(old, 'o', SIZE);
	CHECK(resoluto_conduit_put_bytes(place.conduit, "object", old, SIZE, NULL) == 0);
	CHECK(resoluto_conduit_get(place.conduit, "object",
	                           &(struct resoluto_sink){ replace_meanwhile, &slow }, NULL) == 0);
	CHECK(slow.calls > 1 && slow.got.len == SIZE && memcmp(slow.got.data, old, SIZE) == 0);
	buf_done(&slow.got);
	expect("object", "new");
}

static void tells_names_that_are_taken(void)
{
	struct resoluto_err err = { 0 };

	begin();
	CHECK(put("a/b", "an object") == 0);
	CHECK(put("a/b/c", "below an object") == -ENOTDIR);
	CHECK(resoluto_conduit_put_bytes(place.conduit, "a", "a directory", 11, &err) == -EISDIR);
	CHECK(strstr(err.text, "put a"));
	expect_list("", "a/b ");
	CHECK(count_entries(place.store, ".") == 1 && count_entries(place.store, "a") == 1);
}

static void deletes_all_that_lies_beneath(void)
{
	begin();
	write_file(place.outside, "secret", "secret");
	CHECK(put("run/1/a", "") == 0 && put("run/1/b/c", "") == 0 && put("run/2/a", "") == 0);
	write_file(place.store, "run/1/.part-left", "");
	CHECK(mkfifoat(place.store, "run/1/b/fifo", 0666) == 0);
	CHECK(symlinkat("../../../outside", place.store, "run/1/link") == 0);
	CHECK(mkdirat(place.store, "run/1/closed", 0) == 0);
	CHECK(mkdirat(place.store, "run/1/unsearchable", 0700) == 0);
	write_file(place.store, "run/1/unsearchable/x", "");
	CHECK(fchmodat(place.store, "run/1/unsearchable", 0400, 0) == 0);
	CHECK(resoluto_conduit_delete_prefix(place.conduit, "run/1", NULL) >= 2);
	CHECK(count_entries(place.store, "run") == 1);
	expect_file(place.outside, "secret", "secret");
}

/* What a full place leaves: the old object, and no temporary file. */
static int put_over_file_limit(void)
{
	struct rlimit limit = { 4096, 4096 };
	static char bytes[8192];

	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
		return CHILD_CANNOT;
	if (resoluto_conduit_put_bytes(place.conduit, "d/a", bytes, sizeof(bytes), NULL) != -ENOSPC)
		return CHILD_BAD;
	return count_entries(place.store, "d") == 1 ? CHILD_OK : CHILD_BAD;
}

static void tells_a_file_limit_as_full(void)
{
	begin();
	CHECK(put("d/a", "old") == 0);
	CHECK(in_child(put_over_file_limit) == CHILD_OK);
	expect("d/a", "old");
}

static int write_text(const char *path, const char *text)
{
	CLEANUP(fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : write_all(fd, text, strlen(text));
}

/* Become root of a user namespace, unless we are root already. */
static int become_root(void)
{
	char uids[64], gids[64];

	if (geteuid() == 0)
		return unshare(CLONE_NEWNS) < 0 ? -errno : 0;
	snprintf(uids, sizeof(uids), "0 %u 1\n", geteuid());
	snprintf(gids, sizeof(gids), "0 %u 1\n", getegid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return -errno;
	if (write_text("/proc/self/setgroups", "deny") < 0 ||
	    write_text("/proc/self/uid_map", uids) < 0 ||
	    write_text("/proc/self/gid_map", gids) < 0)
		return -EPERM;
	return 0;
}

/* In a mount namespace of its own, so that it works without root where user namespaces do. */
static int mount_small_tmpfs(void)
{
	char path[128];
	int r = become_root();

	if (r < 0)
		return r;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	snprintf(path, sizeof(path), "%s/outside", place.base);
	return mount("tmpfs", path, "tmpfs", 0, "size=256k,mode=0700") < 0 ? -errno : 0;
}

static int fill_tmpfs(void)
{
	enum { SIZE = 512 * 1024 };
	CLEANUP(mem_free) char *bytes = calloc(1, SIZE);
	struct resoluto_conduit *conduit;
	struct resoluto_err err = { 0 };
	char url[128];
	int r;

	if (!bytes || mount_small_tmpfs() < 0)
		return CHILD_CANNOT;
	snprintf(url, sizeof(url), "localfs://%s/outside", place.base);
	if (resoluto_conduit_open_url(url, &conduit, NULL) < 0)
		return CHILD_BAD;
	r = resoluto_conduit_put_bytes(conduit, "d/a", "old", 3, NULL);
	if (r == 0)
		r = resoluto_conduit_put_bytes(conduit, "d/a", bytes, SIZE, &err);
	if (r != -ENOSPC || err.code != -ENOSPC || !strstr(err.text, "put d/a"))
		return CHILD_BAD;
	/* The room is free again. */
	r = resoluto_conduit_put_bytes(conduit, "d/b", bytes, 100 * 1024, NULL);
	resoluto_conduit_close(conduit);
	return r == 0 ? CHILD_OK : CHILD_BAD;
}

static void tells_a_full_file_system(void)
{
	int code;

	begin();
	code = in_child(fill_tmpfs);
	if (code == CHILD_CANNOT)
		SKIP("a file system of its own is not allowed here");
	CHECK(code == CHILD_OK);
}

static int use_without_permission(void)
{
	if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
		return CHILD_CANNOT;
	if (put("d/new", "x") != -EACCES || get("d/closed") != -EACCES)
		return CHILD_BAD;
	return resoluto_conduit_list(place.conduit, "", note_key, NULL, NULL) == -EACCES
	               ? CHILD_OK
	               : CHILD_BAD;
}

static void tells_a_lack_of_permission(void)
{
	begin();
	CHECK(put("d/closed", "x") == 0);
	CHECK(fchmodat(place.store, "d/closed", 0, 0) == 0);
	CHECK(mkdirat(place.store, "a", 0) == 0);
	CHECK(fchmodat(place.store, "d", 0555, 0) == 0);
	CHECK(fchmod(place.base_fd, 0755) == 0);
	CHECK(in_child(use_without_permission) == CHILD_OK);
	CHECK(fchmodat(place.store, "d", 0755, 0) == 0);
}

/* Swap the directory for a link that leads out, again and again, until it is killed. */
static int swap_for_ever(void)
{
	long r = prctl(PR_SET_PDEATHSIG, SIGKILL);

	while (r == 0)
		r = syscall(SYS_renameat2, place.store, "dir", place.store, "link",
		            RENAME_EXCHANGE);
	return CHILD_BAD;
}

static void is_not_led_out_by_a_race(void)
{
	enum { TURNS = 3000 };
	int reached = 0;
	pid_t pid;

	begin();
	CHECK(put("dir/object", "inside") == 0);
	write_file(place.outside, "object", "secret");
	CHECK(symlinkat("../outside", place.store, "link") == 0);
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(swap_for_ever());
	for (int i = 0; i < TURNS; i++) {
		char *bytes = NULL;
		size_t len;

		if (resoluto_conduit_get_bytes(place.conduit, "dir/object", 100, &bytes, &len,
		                               NULL) == 0) {
			reached++;
			if (strcmp(bytes, "inside") != 0)
				reached = -TURNS;
		}
		free(bytes);
		(void) conduit_local_put_at(place.store, "dir/sub/planted", "x", 1,
		                            LOCAL_RENAME_ONLY, NULL);
	}
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK(reached > 0);
	expect_file(place.outside, "object", "secret");
	CHECK(count_entries(place.outside, ".") == 1);
}

static void writes_in_steps(void)
{
	struct local_writer writer = LOCAL_WRITER_NONE;

	begin();
	local_writer_abort(&writer);
	CHECK(local_writer_begin(&writer, place.store, "../x", NULL) == -EINVAL);
	CHECK(local_writer_begin(&writer, place.store, "d/e/object", NULL) == 0);
	CHECK(local_writer_write(&writer, "one ", 4, NULL) == 0);
	CHECK(local_writer_write(&writer, "two", 3, NULL) == 0);
	CHECK(get("d/e/object") == -ENOENT);
	CHECK(local_writer_commit(&writer, LOCAL_FLUSHED, NULL) == 0);
	expect("d/e/object", "one two");
	local_writer_abort(&writer);
	expect("d/e/object", "one two");
	CHECK(local_writer_begin(&writer, place.store, "d/e/object", NULL) == 0);
	CHECK(local_writer_write(&writer, "never", 5, NULL) == 0);
	local_writer_abort(&writer);
	expect("d/e/object", "one two");
	CHECK(count_entries(place.store, "d/e") == 1);
	CHECK(conduit_local_flush_all(place.store, NULL) == 0);
	CHECK(conduit_local_flush_all(-1, NULL) == -EBADF);
}

static void commit_fails_whole(void)
{
	struct local_writer writer = LOCAL_WRITER_NONE;
	struct resoluto_err err = { 0 };

	begin();
	CHECK(mkdirat(place.store, "taken", 0777) == 0);
	CHECK(local_writer_begin(&writer, place.store, "taken", NULL) == 0);
	CHECK(local_writer_commit(&writer, LOCAL_RENAME_ONLY, &err) == -EISDIR);
	CHECK(err.code == -EISDIR && writer.fd == -1);
	CHECK(count_entries(place.store, ".") == 1);
}

static void names_failures_as_the_header_does(void)
{
	CHECK(local_code(-EPERM) == -EACCES && local_code(-EROFS) == -EACCES);
	CHECK(local_code(-EDQUOT) == -ENOSPC && local_code(-EFBIG) == -ENOSPC);
	CHECK(local_code(-EIO) == -EIO && local_code(-ENOSPC) == -ENOSPC);
}

/* The calls local.h promises; memory comes from the stack. */
static int put_with_few_calls(void)
{
	static const int allowed[] = {
		SCMP_SYS(openat2),   SCMP_SYS(openat),        SCMP_SYS(mkdirat),
		SCMP_SYS(write),     SCMP_SYS(fsync),         SCMP_SYS(close),
		SCMP_SYS(renameat),  SCMP_SYS(unlinkat),      SCMP_SYS(syncfs),
		SCMP_SYS(exit),      SCMP_SYS(clock_gettime), SCMP_SYS(exit_group),
		SCMP_SYS(renameat2), /* where the architecture has no renameat */
	};
	struct local_writer writer = LOCAL_WRITER_NONE;
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);

	for (size_t i = 0; filter && i < sizeof(allowed) / sizeof(allowed[0]); i++) {
		if (seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0) < 0)
			return CHILD_CANNOT;
	}
	if (!filter || seccomp_load(filter) < 0)
		return CHILD_CANNOT;
	if (conduit_local_put_at(place.store, "new/dir/a", "x", 1, LOCAL_FLUSHED, NULL) < 0 ||
	    conduit_local_put_at(place.store, "b", "x", 1, LOCAL_RENAME_ONLY, NULL) < 0 ||
	    conduit_local_put_at(place.store, "b/below", "x", 1, LOCAL_FLUSHED, NULL) != -ENOTDIR ||
	    local_writer_begin(&writer, place.store, "c", NULL) < 0)
		return CHILD_BAD;
	local_writer_abort(&writer);
	return conduit_local_flush_all(place.store, NULL) < 0 ? CHILD_BAD : CHILD_OK;
}

#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED true
#elif defined(__has_feature)
#define IS_SANITIZED __has_feature(address_sanitizer)
#else
#define IS_SANITIZED false
#endif

static void needs_no_other_system_calls(void)
{
	int code;

	if (IS_SANITIZED)
		SKIP("the sanitizer makes calls of its own");
	begin();
	code = in_child(put_with_few_calls);
	if (code == CHILD_CANNOT)
		SKIP("a system call filter is not allowed here");
	CHECK(code == CHILD_OK);
	expect_list("", "b new/dir/a ");
}

int main(void)
{
	RUN(shares_its_layout_with_plain_programs);
	RUN(gives_files_the_modes_of_the_umask);
	RUN(follows_no_link);
	RUN(neither_waits_for_nor_reads_what_is_no_file);
	RUN(hides_names_that_are_no_keys);
	RUN(lists_around_trees_too_deep_for_keys);
	RUN(lists_large_directories_in_order);
	RUN(hides_what_is_being_written);
	RUN(leaves_nothing_of_a_failed_put);
	RUN(delivers_one_version_whole);
	RUN(tells_names_that_are_taken);
	RUN(deletes_all_that_lies_beneath);
	RUN(tells_a_file_limit_as_full);
	RUN(tells_a_full_file_system);
	RUN(tells_a_lack_of_permission);
	RUN(is_not_led_out_by_a_race);
	RUN(writes_in_steps);
	RUN(commit_fails_whole);
	RUN(names_failures_as_the_header_does);
	RUN(needs_no_other_system_calls);
	end();
	return check_done();
}
