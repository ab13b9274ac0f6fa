/* SPDX-License-Identifier: Apache-2.0 */
/* early.c - the file between PID 1 and what was started before it: who was first, who waits, and what is believed. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "check.h"
#include "guest/early.h"

static char path[64];

static void begin_test(void)
{
	char folder[] = "/tmp/early-XXXXXX";

	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/state", folder);
}

static void end_test(void)
{
	CHECK(unlink(path) == 0);
	*strrchr(path, '/') = '\0';
	CHECK(rmdir(path) == 0);
}

/* A process that begins, says so, waits for a word and goes on with fn. */
static pid_t start_early(void (*fn)(int fd), int *ret_go)
{
	int began[2], go[2];
	char byte;
	pid_t pid;

	CHECK(pipe(began) == 0 && pipe(go) == 0);
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		int fd = early_begin(path);

		(void) close(go[1]);
		if (fd < 0 || write(began[1], "b", 1) != 1 || read(go[0], &byte, 1) != 0)
			_exit(1);
		fn(fd);
		_exit(0);
	}
	CHECK(close(began[1]) == 0 && close(go[0]) == 0);
	CHECK(read(began[0], &byte, 1) == 1 && close(began[0]) == 0);
	*ret_go = go[1];
	return pid;
}

static void finish(int fd)
{
	struct early early = { .has_scratch = true, .inbox = "/dev/vdb" };

	early_end(fd, &early);
}

static void finish_with_an_error(int fd)
{
	struct early early = { .err = { -EIO, "mount /rootfs as squashfs" } };

	early_end(fd, &early);
}

static void die(int fd)
{
	(void) fd;
	(void) raise(SIGKILL);
}

/* Waiting begins before the other one's end, or after it: the same comes of it. */
static struct early await_end_of(void (*fn)(int fd))
{
	struct early early = { .has_scratch = false };
	int go, lock;
	pid_t pid;

	begin_test();
	pid = start_early(fn, &go);
	CHECK(close(go) == 0);
	CHECK(early_await(path, &early, &lock) == 1 && close(lock) == 0);
	CHECK(waitpid(pid, NULL, 0) == pid);
	end_test();
	return early;
}

static void what_was_made_is_taken_over(void)
{
	struct early early = await_end_of(finish);

	CHECK(early.err.code == 0 && early.has_scratch);
	CHECK_STR(early.inbox, "/dev/vdb");
}

static void its_failure_is_told_in_its_words(void)
{
	struct early early = await_end_of(finish_with_an_error);

	CHECK(early.err.code == -EIO);
	CHECK_STR(early.err.text, "mount /rootfs as squashfs");
}

static void one_that_was_killed_left_no_whole_root(void)
{
	struct early early = await_end_of(die);

	CHECK(early.err.code == -ECHILD);
	CHECK_STR(early.err.text, EARLY_BROKE_OFF);
}

static void without_one_there_will_be_none(void)
{
	struct early early;
	int lock;

	begin_test();
	CHECK(early_await(path, &early, &lock) == 0 && lock == -1);
	/* The kernel's came late: PID 1 is at it. */
	CHECK(early_begin(path) == -EWOULDBLOCK);
	end_test();
}

static int taken[2]; /* a pipe; closed when PID 1 has the lock */

/* Says that it is done, and stays. */
static void finish_and_stay(int fd)
{
	int again = open(path, O_RDWR | O_CLOEXEC);
	char byte;

	finish(fd);
	if (close(taken[1]) < 0 || read(taken[0], &byte, 1) != 0)
		_exit(1);
	early_stay(again);
}

/* Is this process one that waits for a lock? */
static bool waits_for_a_lock(pid_t pid)
{
	FILE *locks = fopen("/proc/locks", "re");
	bool does_wait = false;
	char line[256];
	int other;

	CHECK(locks);
	while (fgets(line, sizeof(line), locks)) {
		if (sscanf(line, "%*d: -> FLOCK ADVISORY READ %d", &other) == 1 && other == pid)
			does_wait = true;
	}
	CHECK(fclose(locks) == 0);
	return does_wait;
}

static void it_stays_until_it_is_let_go(void)
{
	struct early early;
	int go, lock, status;
	pid_t pid;

	begin_test();
	CHECK(pipe(taken) == 0);
	pid = start_early(finish_and_stay, &go);
	CHECK(close(go) == 0);
	CHECK(early_await(path, &early, &lock) == 1);
	CHECK(close(taken[1]) == 0 && close(taken[0]) == 0);
	while (!waits_for_a_lock(pid))
		CHECK(waitpid(pid, &status, WNOHANG) == 0 && poll(NULL, 0, 1) == 0);
	CHECK(close(lock) == 0);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	end_test();
}

static void half_a_word_is_not_believed(void)
{
	struct early early;
	CLEANUP(fd_close) int fd = -1;
	int lock;

	begin_test();
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, "half", 4) == 4);
	CHECK(early_await(path, &early, &lock) == -EIO && lock == -1);
	end_test();
}

static void only_the_kernels_own_start_is_meant(void)
{
	/* /proc is mounted here. */
	CHECK(!early_is_meant("/early") && !early_is_meant("resoluto-runner"));
}

int main(void)
{
	RUN(what_was_made_is_taken_over);
	RUN(its_failure_is_told_in_its_words);
	RUN(one_that_was_killed_left_no_whole_root);
	RUN(without_one_there_will_be_none);
	RUN(it_stays_until_it_is_let_go);
	RUN(half_a_word_is_not_believed);
	RUN(only_the_kernels_own_start_is_meant);
	return check_done();
}
