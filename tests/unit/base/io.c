/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"

static char dir_path[64];
static int dir = -1;

static void begin(void)
{
	fd_close(&dir);
	if (dir_path[0])
		(void) remove_tree_at(AT_FDCWD, dir_path);
	snprintf(dir_path, sizeof(dir_path), "/tmp/io-XXXXXX");
	CHECK(mkdtemp(dir_path));
	dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(dir >= 0);
}

static void end(void)
{
	fd_close(&dir);
	(void) remove_tree_at(AT_FDCWD, dir_path);
}

static void make_file(const char *name, const char *bytes, size_t len)
{
	CLEANUP(fd_close)
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && write_all(fd, bytes, len) == 0);
}

static int count_entries(void)
{
	CLEANUP(dir_close) DIR *at = opendir(dir_path);
	int count = 0;

	CHECK(at);
	while (readdir(at))
		count++;
	return count - 2;
}

static void closes_once(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), number = fd;

	errno = EDOM;
	fd_close(&fd);
	CHECK(fd == -1 && errno == EDOM && fcntl(number, F_GETFD) < 0);
	fd_close(&fd);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	number = fd_take(&fd);
	CHECK(fd == -1 && number >= 0);
	fd_close(&number);
}

/* A pipe takes and gives less than asked: more than it holds goes through whole. */
static void moves_more_than_a_pipe_holds(void)
{
	enum { SIZE = 1000 * 1000 };
	CLEANUP(mem_free) char *bytes = malloc(SIZE + 1);
	int pair[2], status;
	pid_t pid;

	CHECK(bytes && pipe2(pair, O_CLOEXEC) == 0);
	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = (char) (i * 31 >> 3);
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		close(pair[0]);
		_exit(write_all(pair[1], bytes, SIZE) == 0 ? 0 : 1);
	}
	close(pair[1]);
	memset(bytes, 0, SIZE);
	CHECK(read_up_to(pair[0], bytes, SIZE + 1) == SIZE);
	close(pair[0]);
	for (size_t i = 0; i < SIZE; i++)
		CHECK(bytes[i] == (char) (i * 31 >> 3));
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void tells_what_fails(void)
{
	char bytes[4];

	CHECK(write_all(-1, "x", 1) == -EBADF && write_all(-1, "", 0) == 0);
	CHECK(read_up_to(-1, bytes, 4) == -EBADF);
	CHECK(fd_set_nonblock(-1) == -EBADF && fd_set_cloexec(-1, 1) == -EBADF);
}

static int read_all(size_t max, struct buf *buf)
{
	CLEANUP(fd_close) int fd = openat(dir, "file", O_RDONLY | O_CLOEXEC);

	*buf = BUF_INIT(max);
	return read_rest(fd, buf);
}

static void reads_the_rest_within_bounds(void)
{
	enum { SIZE = 200 * 1024 };
	CLEANUP(mem_free) char *bytes = malloc(SIZE);
	CLEANUP(buf_done) struct buf buf = BUF_INIT(0);

	begin();
	CHECK(bytes);
	memset(bytes, 'r', SIZE);
	make_file("file", bytes, SIZE);
	CHECK(read_all(SIZE, &buf) == 0 && buf.len == SIZE && buf.data[SIZE] == '\0');
	buf_done(&buf);
	CHECK(read_all(SIZE - 1, &buf) == -E2BIG);
	buf_done(&buf);
	CHECK(read_all(2 * SIZE, &buf) == 0 && buf.len == SIZE);
	make_file("file", "", 0);
	buf_done(&buf);
	CHECK(read_all(0, &buf) == 0 && buf.len == 0);
}

static void reads_regular_files_only(void)
{
	CLEANUP(buf_done) struct buf buf = BUF_INIT(0);
	struct resoluto_err err = { 0 };

	begin();
	make_file("file", "text", 4);
	CHECK(read_file_at(dir, "file", 4, &buf, NULL) == 0);
	CHECK_STR(buf.data, "text");
	buf_done(&buf);
	CHECK(read_file_at(dir, "file", 3, &buf, &err) == -E2BIG && !buf.data);
	CHECK(strstr(err.text, "file"));
	CHECK(read_file_at(dir, "none", 10, &buf, NULL) == -ENOENT);
	CHECK(read_file_at(dir, ".", 10, &buf, NULL) == -EISDIR);
	CHECK(mkfifoat(dir, "fifo", 0600) == 0);
	CHECK(read_file_at(dir, "fifo", 10, &buf, NULL) == -EINVAL);
	CHECK(read_file_at(AT_FDCWD, "/dev/zero", 10, &buf, NULL) == -EINVAL);
	CHECK(read_file_at(AT_FDCWD, "/proc/self/stat", 4096, &buf, NULL) == 0 && buf.len > 0);
}

static int wait_for_it(void *ctx, int fd)
{
	struct pollfd watched = { fd, POLLIN, 0 };

	return poll(&watched, 1, -1) == 1 ? 0 : -errno;
}

static int give_up(void *ctx, int fd)
{
	return -ECANCELED;
}

/* What a shell makes of <(program). */
static void reads_a_pipe_that_was_given(void)
{
	CLEANUP(buf_done) struct buf buf = BUF_INIT(0);
	struct resoluto_err err = { 0 };
	char path[32];
	int pair[2];

	CHECK(pipe(pair) == 0 && write_all(pair[1], "A=1\n", 4) == 0);
	fd_close(&pair[1]);
	snprintf(path, sizeof(path), "/dev/fd/%d", pair[0]);
	CHECK(read_given_file(path, 4, wait_for_it, NULL, &buf, NULL) == 0);
	CHECK_STR(buf.data, "A=1\n");
	fd_close(&pair[0]);
	buf_done(&buf);
	CHECK(read_given_file("/dev/null", 4, wait_for_it, NULL, &buf, NULL) == 0 && buf.len == 0);
	buf_done(&buf);
	CHECK(read_given_file("/dev/zero", 4, wait_for_it, NULL, &buf, &err) == -E2BIG &&
	      !buf.data);
	CHECK(strstr(err.text, "/dev/zero is larger than 4 bytes"));
	CHECK(read_given_file("/nonexistent", 4, wait_for_it, NULL, &buf, NULL) == -ENOENT);
	CHECK(read_given_file("/", 4, wait_for_it, NULL, &buf, NULL) == -EISDIR);
}

/* Whoever waits for it decides. */
static void stops_waiting_for_a_pipe(void)
{
	CLEANUP(buf_done) struct buf buf = BUF_INIT(0);
	char path[80];

	begin();
	CHECK(mkfifoat(dir, "fifo", 0600) == 0);
	snprintf(path, sizeof(path), "%s/fifo", dir_path);
	CHECK(read_given_file(path, 4, give_up, NULL, &buf, NULL) == -ECANCELED && !buf.data);
}

static void expect_file(const char *name, const char *want, mode_t mode)
{
	CLEANUP(buf_done) struct buf buf = BUF_INIT(0);
	struct stat st;

	CHECK(read_file_at(dir, name, 1 << 20, &buf, NULL) == 0);
	CHECK_STR(buf.data, want);
	CHECK(fstatat(dir, name, &st, 0) == 0 && (st.st_mode & 07777) == mode);
}

static void replaces_files_whole(void)
{
	mode_t before = umask(077);

	begin();
	CHECK(replace_file_at(dir, "file", "one", 3, 0644, NULL) == 0);
	expect_file("file", "one", 0644);
	CHECK(replace_file_at(dir, "file", "two", 3, 0600, NULL) == 0);
	expect_file("file", "two", 0600);
	umask(before);
	CHECK(count_entries() == 1);
}

static void leaves_nothing_of_a_failed_replacement(void)
{
	struct resoluto_err err = { 0 };

	begin();
	CHECK(mkdirat(dir, "taken", 0700) == 0);
	CHECK(replace_file_at(dir, "taken", "x", 1, 0600, &err) == -EISDIR);
	CHECK(err.code == -EISDIR && strstr(err.text, "taken"));
	CHECK(replace_file_at(dir, "no/such", "x", 1, 0600, NULL) == -ENOENT);
	CHECK(replace_file_at(-1, "x", "x", 1, 0600, NULL) == -EBADF);
	CHECK(count_entries() == 1);
}

static int replace_over_limit(void)
{
	static const char bytes[8192];
	struct rlimit limit = { 4096, 4096 };

	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
		return 1;
	return replace_file_at(dir, "file", bytes, sizeof(bytes), 0600, NULL) == -EFBIG ? 0 : 1;
}

static void keeps_the_old_file_when_there_is_no_room(void)
{
	int status;
	pid_t pid;

	begin();
	make_file("file", "old", 3);
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(replace_over_limit());
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	expect_file("file", "old", 0644);
	CHECK(count_entries() == 1);
}

static void copies_files_from_their_start(void)
{
	CLEANUP(fd_close) int from = -1;
	CLEANUP(fd_close) int to = -1;
	uint64_t size = 0;
	char byte;

	begin();
	make_file("from", "0123456789", 10);
	from = openat(dir, "from", O_RDONLY | O_CLOEXEC);
	to = openat(dir, "to", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	CHECK(from >= 0 && to >= 0);
	CHECK(read(from, &byte, 1) == 1 && write_all(to, "ab", 2) == 0);
	CHECK(copy_fd(from, to, &size, NULL) == 0 && size == 10);
	expect_file("to", "ab0123456789", 0644);
	CHECK(copy_fd(from, to, NULL, NULL) == 0);
	expect_file("to", "ab01234567890123456789", 0644);
}

/* Where the kernel does not copy by itself: a pipe, a file without a size, one opened to append. */
static void copies_by_hand_where_it_must(void)
{
	CLEANUP(fd_close) int from = -1;
	CLEANUP(fd_close) int proc = -1;
	CLEANUP(fd_close) int to = -1;
	CLEANUP(buf_done) struct buf buf = BUF_INIT(0);
	char bytes[16] = "";
	uint64_t size = 0;
	int pair[2];

	begin();
	make_file("from", "0123456789", 10);
	from = openat(dir, "from", O_RDONLY | O_CLOEXEC);
	CHECK(from >= 0 && pipe2(pair, O_CLOEXEC) == 0);
	CHECK(copy_fd(from, pair[1], &size, NULL) == 0 && size == 10);
	CHECK(read(pair[0], bytes, 16) == 10 && memcmp(bytes, "0123456789", 10) == 0);
	CHECK(copy_fd(pair[0], pair[1], &size, NULL) == -ESPIPE);
	close(pair[0]);
	close(pair[1]);
	proc = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	to = openat(dir, "to", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	CHECK(proc >= 0 && to >= 0);
	CHECK(copy_fd(proc, to, &size, NULL) == 0 && size > 10);
	CHECK(copy_fd(from, to, &size, NULL) == 0 && size == 10);
	CHECK(read_file_at(dir, "to", 1 << 16, &buf, NULL) == 0 && buf.len > 20);
	CHECK_STR(buf.data + buf.len - 10, "0123456789");
}

static void sets_flags(void)
{
	CLEANUP(fd_close) int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	CHECK(fd_set_nonblock(fd) == 0 && (fcntl(fd, F_GETFL) & O_NONBLOCK));
	CHECK(fd_set_cloexec(fd, 0) == 0 && fcntl(fd, F_GETFD) == 0);
	CHECK(fd_set_cloexec(fd, 1) == 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
}

int main(void)
{
	RUN(closes_once);
	RUN(moves_more_than_a_pipe_holds);
	RUN(tells_what_fails);
	RUN(reads_the_rest_within_bounds);
	RUN(reads_regular_files_only);
	RUN(reads_a_pipe_that_was_given);
	RUN(stops_waiting_for_a_pipe);
	RUN(replaces_files_whole);
	RUN(leaves_nothing_of_a_failed_replacement);
	RUN(keeps_the_old_file_when_there_is_no_room);
	RUN(copies_files_from_their_start);
	RUN(copies_by_hand_where_it_must);
	RUN(sets_flags);
	end();
	return check_done();
}
