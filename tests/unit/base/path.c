/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "child.h"

#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"

/* base/tree is where the tests work, base/outside what they must not reach. */
static struct {
	char base[64];
	int base_fd, tree, outside;
} place = { .base_fd = -1, .tree = -1, .outside = -1 };

static void end(void)
{
	fd_close(&place.tree);
	fd_close(&place.outside);
	fd_close(&place.base_fd);
	if (place.base[0])
		(void) remove_tree_at(AT_FDCWD, place.base);
	place.base[0] = '\0';
}

static int open_dir(int dirfd, const char *name)
{
	return openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void make_file(int dirfd, const char *name, const char *text)
{
	CLEANUP(fd_close) int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && write_all(fd, text, strlen(text)) == 0);
}

static void begin(void)
{
	end();
	snprintf(place.base, sizeof(place.base), "/tmp/path-XXXXXX");
	CHECK(mkdtemp(place.base));
	place.base_fd = open_dir(AT_FDCWD, place.base);
	CHECK(mkdirat(place.base_fd, "tree", 0755) == 0);
	CHECK(mkdirat(place.base_fd, "outside", 0755) == 0);
	place.tree = open_dir(place.base_fd, "tree");
	place.outside = open_dir(place.base_fd, "outside");
	CHECK(place.tree >= 0 && place.outside >= 0);
	make_file(place.outside, "secret", "secret");
}

static bool is_there(int dirfd, const char *name)
{
	struct stat st;

	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void expect_outside_untouched(void)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(0);
	CLEANUP(dir_close) DIR *dir = NULL;
	struct stat st;
	int count = 0;

	CHECK(read_file_at(place.outside, "secret", 100, &text, NULL) == 0);
	CHECK_STR(text.data, "secret");
	CHECK(fstat(place.outside, &st) == 0 && (st.st_mode & 07777) == 0755);
	dir = fdopendir(open_dir(place.base_fd, "outside"));
	CHECK(dir);
	while (readdir(dir))
		count++;
	CHECK(count == 3);
}

/* Opens, closes, and says how that went: 0 or a negative errno value. */
static int try_open(const char *path, int flags)
{
	int fd = open_beneath(place.tree, path, flags, 0600);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static void knows_what_lies_beneath(void)
{
	static const char *const good[] = { "a",  "a/b/c",    "...", "..a", "a..",
		                            ".a", "a/.b/..c", " ",   "a b", "\xff" };
	static const char *const bad[] = { "",       "/",   "/a",   "a/",  "a//b", ".",
		                           "..",     "./a", "../a", "a/.", "a/..", "a/./b",
		                           "a/../b", "//",  "a///", "./",  "../",  "/.." };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CHECK(path_is_beneath(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!path_is_beneath(bad[i]));
}

static void takes_a_path_apart(void)
{
	static const char *const paths[] = { "a/bc/d", "/a//bc/./d/", "./a/bc/d/.", "///a/bc/d" };
	const char *nothing = "/./.";
	struct path_part part;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		const char *at = paths[i];

		CHECK(path_next_part(&at, &part) && part.len == 1 && part.at[0] == 'a');
		CHECK(path_next_part(&at, &part) && part.len == 2 && !memcmp(part.at, "bc", 2));
		CHECK(path_next_part(&at, &part) && part.len == 1 && part.at[0] == 'd');
		CHECK(!path_next_part(&at, &part) && *at == '\0');
	}
	CHECK(!path_next_part(&nothing, &part));
	nothing = "../...";
	CHECK(path_next_part(&nothing, &part) && part.len == 2);
	CHECK(path_next_part(&nothing, &part) && part.len == 3);
}

static void spells_a_path_plainly(void)
{
	static const char *const rows[][2] = {
		{ "a/b", "a/b" },       { "./a//b/", "a/b" },   { "a/./b/.", "a/b" },
		{ ".", "." },           { "././/", "." },       { "", "" },
		{ "/", "/" },           { "//a/.", "/a" },      { "..", ".." },
		{ "a/../b", "a/../b" }, { ".a/..b", ".a/..b" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *plain = path_plain(rows[i][0]);

		CHECK_STR(plain, rows[i][1]);
		free(plain);
	}
}

static void opens_beneath(void)
{
	int fd;

	begin();
	fd = open_beneath(place.tree, "file", O_WRONLY | O_CREAT | O_EXCL, 0640);
	CHECK(fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
	close(fd);
	CHECK(try_open("file", O_RDONLY) == 0 && try_open("none", O_RDONLY) == -ENOENT);
	CHECK(try_open("file", O_WRONLY | O_CREAT | O_EXCL) == -EEXIST);
	CHECK(try_open("file/below", O_RDONLY) == -ENOTDIR);
	CHECK(open_beneath(-1, "file", O_RDONLY, 0) == -EBADF);
}

static void opens_nothing_outside(void)
{
	begin();
	CHECK(symlinkat("../outside", place.tree, "dir") == 0);
	CHECK(symlinkat("../outside/secret", place.tree, "file") == 0);
	CHECK(symlinkat("/etc/passwd", place.tree, "absolute") == 0);
	CHECK(symlinkat("inner", place.tree, "harmless") == 0);
	CHECK(symlinkat("loop", place.tree, "loop") == 0);
	make_file(place.tree, "inner", "");
	CHECK(try_open("../outside/secret", O_RDONLY) == -EXDEV);
	CHECK(try_open("/etc/passwd", O_RDONLY) == -EXDEV);
	CHECK(try_open("dir/secret", O_RDONLY) == -ELOOP && try_open("file", O_RDONLY) == -ELOOP);
	CHECK(try_open("absolute", O_RDONLY) == -ELOOP && try_open("harmless", O_RDONLY) == -ELOOP);
	CHECK(try_open("loop", O_RDONLY) == -ELOOP);
	CHECK(try_open("dir/new", O_WRONLY | O_CREAT) == -ELOOP);
	CHECK(try_open("file", O_WRONLY | O_TRUNC) == -ELOOP);
	expect_outside_untouched();
}

static void makes_directories_beneath(void)
{
	struct stat st;
	mode_t before;

	begin();
	before = umask(022);
	CHECK(mkdirs_beneath(place.tree, "a/b/c", 0770) == 0);
	umask(before);
	CHECK(fstatat(place.tree, "a/b/c", &st, 0) == 0 && (st.st_mode & 0777) == 0750);
	CHECK(mkdirs_beneath(place.tree, "a/b/c", 0700) == 0);
	CHECK(mkdirs_beneath(place.tree, "a/b/d", 0700) == 0 && is_there(place.tree, "a/b/d"));
	CHECK(mkdirs_beneath(place.tree, "../x", 0700) == -EINVAL);
	CHECK(mkdirs_beneath(place.tree, "", 0700) == -EINVAL);
	make_file(place.tree, "file", "");
	CHECK(mkdirs_beneath(place.tree, "file", 0700) == -ENOTDIR);
	CHECK(mkdirs_beneath(place.tree, "file/x", 0700) == -ENOTDIR);
	CHECK(symlinkat("../outside", place.tree, "link") == 0);
	CHECK(mkdirs_beneath(place.tree, "link", 0700) == -ELOOP);
	CHECK(mkdirs_beneath(place.tree, "link/x", 0700) == -ELOOP);
	expect_outside_untouched();
}

static void refuses_names_too_long(void)
{
	char path[400];

	begin();
	memset(path, 'n', sizeof(path));
	path[300] = '/';
	path[399] = '\0';
	CHECK(mkdirs_beneath(place.tree, path, 0700) == -ENAMETOOLONG);
	path[300] = '\0';
	CHECK(mkdirs_beneath(place.tree, path, 0700) == -ENAMETOOLONG);
}

static void opens_the_directory_of_a_path(void)
{
	const char *name = NULL, path[] = "a/b/file";
	int fd;

	begin();
	CHECK(open_parent_beneath(place.tree, path, false, 0, &name) == -ENOENT && !name);
	fd = open_parent_beneath(place.tree, path, true, 0755, &name);
	CHECK(fd >= 0 && name == path + 4);
	make_file(fd, name, "");
	close(fd);
	CHECK(is_there(place.tree, path));
	fd = open_parent_beneath(place.tree, "top", false, 0, &name);
	CHECK(fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
	CHECK_STR(name, "top");
	CHECK(is_there(fd, "a"));
	close(fd);
	CHECK(open_parent_beneath(place.tree, "a/../x", true, 0755, &name) == -EINVAL);
	CHECK(open_parent_beneath(place.tree, "a/b/file/x", true, 0755, &name) == -ENOTDIR);
}

static void makes_ordinary_paths(void)
{
	char path[200], many[5000];

	begin();
	snprintf(path, sizeof(path), "%s//tree/x/y//z/", place.base);
	CHECK(mkdirs(path, 0755) == 0 && is_there(place.tree, "x/y/z"));
	CHECK(mkdirs(path, 0755) == 0 && mkdirs("/", 0755) == 0 && mkdirs(".", 0755) == 0);
	snprintf(path, sizeof(path), "%s/outside/secret", place.base);
	CHECK(mkdirs(path, 0755) == -ENOTDIR);
	snprintf(path, sizeof(path), "%s/outside/secret/x", place.base);
	CHECK(mkdirs(path, 0755) == -ENOTDIR);
	CHECK(mkdirs("", 0755) == -ENOENT);
	memset(many, 'a', sizeof(many));
	many[sizeof(many) - 1] = '\0';
	CHECK(mkdirs(many, 0755) == -ENAMETOOLONG);
}

static void removes_what_it_is_told(void)
{
	begin();
	CHECK(remove_tree_at(place.tree, "none") == 0);
	CHECK(remove_tree_at(place.tree, "none/at/all") == 0);
	make_file(place.tree, "file", "");
	CHECK(remove_tree_at(place.tree, "file") == 0 && !is_there(place.tree, "file"));
	CHECK(mkfifoat(place.tree, "fifo", 0600) == 0);
	CHECK(remove_tree_at(place.tree, "fifo") == 0 && !is_there(place.tree, "fifo"));
	CHECK(mkdirs_beneath(place.tree, "d/e/f", 0755) == 0);
	make_file(place.tree, "d/e/file", "");
	make_file(place.tree, "d/\xff \n", "");
	make_file(place.tree, "other", "");
	CHECK(remove_tree_at(place.tree, "d") == 0 && !is_there(place.tree, "d"));
	CHECK(is_there(place.tree, "other"));
	CHECK(remove_tree_at(-1, "x") == -EBADF);
}

static void removes_links_not_what_they_lead_to(void)
{
	begin();
	CHECK(symlinkat("../outside", place.tree, "link") == 0);
	CHECK(remove_tree_at(place.tree, "link") == 0 && !is_there(place.tree, "link"));
	CHECK(mkdirs_beneath(place.tree, "d/e", 0755) == 0);
	CHECK(symlinkat("../../outside", place.tree, "d/link") == 0);
	CHECK(symlinkat("../../../outside/secret", place.tree, "d/e/link") == 0);
	CHECK(symlinkat("nowhere", place.tree, "d/e/dangling") == 0);
	CHECK(linkat(place.outside, "secret", place.tree, "d/e/hard", 0) == 0);
	CHECK(remove_tree_at(place.tree, "d") == 0 && !is_there(place.tree, "d"));
	expect_outside_untouched();
}

/* Deeper than any path can name, wide in places. */
static void removes_very_deep_trees(void)
{
	enum { DEPTH = 1000 };
	int at;

	begin();
	at = open_dir(place.tree, ".");
	for (int depth = 0; depth < DEPTH; depth++) {
		int next;

		CHECK(mkdirat(at, "deeper", 0755) == 0);
		next = open_dir(at, "deeper");
		CHECK(next >= 0);
		if (depth % 100 == 0)
			make_file(next, "file", "");
		close(at);
		at = next;
	}
	close(at);
	CHECK(remove_tree_at(place.tree, "deeper") == 0 && !is_there(place.tree, "deeper"));
}

static void removes_wide_trees(void)
{
	char name[32];

	begin();
	CHECK(mkdirat(place.tree, "d", 0755) == 0);
	for (int i = 0; i < 80; i++) {
		snprintf(name, sizeof(name), "d/%d", i);
		CHECK(mkdirat(place.tree, name, 0755) == 0);
		snprintf(name, sizeof(name), "d/%d/file", i);
		make_file(place.tree, name, "");
		snprintf(name, sizeof(name), "d/%d/empty", i);
		CHECK(mkdirat(place.tree, name, 0755) == 0);
	}
	CHECK(remove_tree_at(place.tree, "d") == 0 && !is_there(place.tree, "d"));
}

static int remove_as_ordinary_user(void)
{
	/* Of modes 000: full ones, empty ones, nested ones; and one that can be read but not searched. */
	static const char *const dirs[] = { "d",           "d/full",         "d/full/in",
		                            "d/empty",     "d/unsearchable", "d/unwritable",
		                            "d/unreadable" };
	static const mode_t modes[] = { 0755, 0, 0, 0, 0444, 0555, 0333 };
	const size_t count = sizeof(dirs) / sizeof(dirs[0]);
	char path[100];

	if (geteuid() == 0 &&
	    (fchown(place.tree, 65534, 65534) < 0 || setresgid(65534, 65534, 65534) < 0 ||
	     setresuid(65534, 65534, 65534) < 0))
		return 1;
	for (size_t i = 0; i < count; i++) {
		if (mkdirat(place.tree, dirs[i], 0755) < 0)
			return 2;
	}
	for (size_t i = 0; i < count; i++) {
		if (strstr(dirs[i], "empty"))
			continue;
		snprintf(path, sizeof(path), "%s/file", dirs[i]);
		if (mknodat(place.tree, path, S_IFREG | 0, 0) < 0)
			return 3;
	}
	for (size_t i = count; i-- > 0;) {
		if (fchmodat(place.tree, dirs[i], modes[i], 0) < 0)
			return 4;
	}
	if (remove_tree_at(place.tree, "d") < 0)
		return 5;
	return is_there(place.tree, "d") ? 6 : 0;
}

static void removes_trees_without_permissions(void)
{
	begin();
	CHECK(fchmod(place.base_fd, 0755) == 0);
	CHECK(in_child(remove_as_ordinary_user) == 0);
}

static int remove_without_permission(void)
{
	if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
		return 1;
	return remove_tree_at(place.tree, "d") == -EACCES ? 0 : 2;
}

static void tells_what_it_may_not_remove(void)
{
	begin();
	CHECK(fchmod(place.base_fd, 0755) == 0);
	CHECK(mkdirs_beneath(place.tree, "d/e", 0755) == 0);
	CHECK(fchmod(place.tree, 0555) == 0);
	CHECK(in_child(remove_without_permission) == 0);
	CHECK(fchmod(place.tree, 0755) == 0);
}

enum { CANNOT_MOUNT = 77 };

static int remove_around_a_mount(void)
{
	char from[100], to[100];

	snprintf(from, sizeof(from), "%s/outside", place.base);
	snprintf(to, sizeof(to), "%s/tree/d/mount", place.base);
	if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(from, to, NULL, MS_BIND, NULL) < 0)
		return CANNOT_MOUNT;
	/* A descriptor from before the new namespace would not see the mount. */
	fd_close(&place.tree);
	snprintf(from, sizeof(from), "%s/tree", place.base);
	place.tree = open_dir(AT_FDCWD, from);
	if (!is_there(place.tree, "d/mount/secret"))
		return 1;
	return remove_tree_at(place.tree, "d") == -EBUSY ? 0 : 2;
}

static void enters_no_mount(void)
{
	int code;

	begin();
	CHECK(mkdirs_beneath(place.tree, "d/mount", 0755) == 0);
	code = in_child(remove_around_a_mount);
	if (code == CANNOT_MOUNT)
		SKIP("mounting is not allowed here");
	CHECK(code == 0);
	expect_outside_untouched();
}

static int swap_for_ever(void)
{
	long r = prctl(PR_SET_PDEATHSIG, SIGKILL);

	while (r == 0)
		r = syscall(SYS_renameat2, place.tree, "dir", place.tree, "link", RENAME_EXCHANGE);
	return 1;
}

/* A process that swaps tree/dir for a link to outside, for ever. */
static pid_t start_swapping(void)
{
	pid_t pid;

	CHECK(mkdirs_beneath(place.tree, "dir/sub", 0755) == 0);
	CHECK(symlinkat("../outside", place.tree, "link") == 0);
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(swap_for_ever());
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
}

static void opens_nothing_outside_in_a_race(void)
{
	int inside = 0;
	pid_t pid;

	begin();
	pid = start_swapping();
	for (int i = 0; i < 5000; i++) {
		const char *name;
		int fd = open_parent_beneath(place.tree, "dir/sub/new", true, 0755, &name);

		if (fd >= 0) {
			inside++;
			close(fd);
		}
		(void) mkdirs_beneath(place.tree, "dir/made", 0755);
		CHECK(try_open("dir/secret", O_RDONLY) < 0);
	}
	stop(pid);
	CHECK(inside > 0);
	expect_outside_untouched();
}

/* It removes the directory or the link, whichever it meets, and nothing behind the link. */
static void removes_nothing_outside_in_a_race(void)
{
	for (int i = 0; i < 20; i++) {
		int r;
		pid_t pid;

		begin();
		pid = start_swapping();
		/* By the name that the race is about, and as a part of a tree. */
		r = i % 2 ? remove_tree_at(place.tree, "dir")
		          : remove_tree_at(place.base_fd, "tree");
		stop(pid);
		if (r)
			printf("# r %d %s\n", r, strerror(-r));
		CHECK(r == 0);
		expect_outside_untouched();
	}
}

static int remove_tree_in_child(void)
{
	return remove_tree_at(place.tree, "d") == 0 ? 0 : 1;
}

/* Two at once: both say that it is gone, and it is. */
static void shares_the_work_with_another(void)
{
	char name[64];
	int status;
	pid_t pid;

	begin();
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "d/%d/%d", i % 10, i);
		CHECK(mkdirs_beneath(place.tree, name, 0755) == 0);
	}
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(remove_tree_in_child());
	CHECK(remove_tree_at(place.tree, "d") == 0);
	CHECK(!is_there(place.tree, "d"));
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* With O_NONBLOCK a file under a lease says EAGAIN, as names that change do: it is not asked for ever. */
static void a_lease_is_not_waited_for(void)
{
	CLEANUP(fd_close) int holder = -1;

	begin();
	make_file(place.tree, "leased", "");
	CHECK(signal(SIGIO, SIG_IGN) != SIG_ERR);
	holder = openat(place.tree, "leased", O_RDONLY | O_CLOEXEC);
	CHECK(holder >= 0);
	if (fcntl(holder, F_SETLEASE, F_WRLCK) < 0)
		SKIP("leases are not allowed here");
	CHECK(open_beneath(place.tree, "leased", O_RDONLY | O_NONBLOCK, 0) == -EAGAIN);
	fd_close(&holder);
	holder = open_beneath(place.tree, "leased", O_RDONLY | O_NONBLOCK, 0);
	CHECK(holder >= 0);
	CHECK(signal(SIGIO, SIG_DFL) != SIG_ERR);
	end();
}

int main(void)
{
	RUN(knows_what_lies_beneath);
	RUN(takes_a_path_apart);
	RUN(spells_a_path_plainly);
	RUN(opens_beneath);
	RUN(opens_nothing_outside);
	RUN(makes_directories_beneath);
	RUN(refuses_names_too_long);
	RUN(opens_the_directory_of_a_path);
	RUN(makes_ordinary_paths);
	RUN(removes_what_it_is_told);
	RUN(removes_links_not_what_they_lead_to);
	RUN(removes_very_deep_trees);
	RUN(removes_wide_trees);
	RUN(removes_trees_without_permissions);
	RUN(tells_what_it_may_not_remove);
	RUN(enters_no_mount);
	RUN(opens_nothing_outside_in_a_race);
	RUN(removes_nothing_outside_in_a_race);
	RUN(shares_the_work_with_another);
	RUN(a_lease_is_not_waited_for);
	end();
	return check_done();
}
