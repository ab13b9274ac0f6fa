/* SPDX-License-Identifier: Apache-2.0 */

/* output.c - bytes to slow, absent and ordinary readers, and signals as bytes. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "check.h"
#include "cli/output.h"

enum {
	MUCH = 1024 * 1024, /* more than a pipe takes */
	GRACE_MS = 50,
};

struct reader {
	int fd;
	struct buf got;
};

static void *read_all(void *arg)
{
	struct reader *reader = arg;

	(void) read_rest(reader->fd, &reader->got);
	return NULL;
}

/* A pipe whose reader takes everything. */
static void write_through_pipe(const char *bytes, size_t len, int flags, struct reader *reader)
{
	struct output output = { .wake_fd = -1 };
	pthread_t thread;
	int pair[2];

	CHECK(pipe2(pair, O_CLOEXEC | flags) == 0);
	if (flags & O_NONBLOCK) /* only our end */
		CHECK(fcntl(pair[0], F_SETFL, 0) == 0);
	reader->fd = pair[0];
	reader->got = BUF_INIT(2 * MUCH);
	output.fds[0] = output.fds[1] = pair[1];
	CHECK(pthread_create(&thread, NULL, read_all, reader) == 0);
	CHECK(output_write(&output, true, bytes, len) == 0);
	close(pair[1]);
	CHECK(pthread_join(thread, NULL) == 0);
	close(pair[0]);
}

static void check_much(int flags)
{
	CLEANUP(mem_free) char *bytes = malloc(MUCH);
	struct reader reader;

	for (size_t i = 0; i < MUCH; i++)
		bytes[i] = (char) (i * 7 + i / 256);
	write_through_pipe(bytes, MUCH, flags, &reader);
	CHECK(reader.got.len == MUCH && memcmp(reader.got.data, bytes, MUCH) == 0);
	buf_done(&reader.got);
}

static void more_than_a_pipe_takes_arrives_exactly(void)
{
	check_much(0);
}

static void a_pipe_that_does_not_block_is_waited_for(void)
{
	check_much(O_NONBLOCK);
}

static void a_reader_that_has_gone_is_told_once_and_for_all(void)
{
	struct output output = { .wake_fd = -1 };
	int pair[2];

	CHECK(pipe2(pair, O_CLOEXEC) == 0);
	output.fds[0] = pair[1];
	close(pair[0]);
	CHECK(output_write(&output, false, "x", 1) == -EPIPE);
	output.fds[0] = -1; /* not looked at any more */
	CHECK(output_write(&output, false, "x", 1) == -EPIPE);
	close(pair[1]);
}

static void a_full_disk_is_told(void)
{
	struct output output = { .wake_fd = -1 };
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	output.fds[0] = fd;
	CHECK(output_write(&output, false, "x", 1) == -ENOSPC);
	close(fd);
}

static unsigned char next_signal(int fd)
{
	unsigned char byte = 0;

	(void) !read(fd, &byte, 1);
	return byte;
}

static void signals_become_bytes(void)
{
	struct signals signals = SIGNALS_NONE;

	CHECK(signals_open(&signals, NULL) == 0);
	raise(SIGUSR1);
	raise(SIGWINCH);
	CHECK(signals_stop_count() == 0 && signals_last_stop() == 0);
	raise(SIGTERM);
	CHECK(next_signal(signals.forward_fd) == SIGUSR1);
	CHECK(next_signal(signals.forward_fd) == SIGWINCH);
	CHECK(next_signal(signals.forward_fd) == SIGTERM);
	CHECK(next_signal(signals.forward_fd) == 0);
	CHECK(next_signal(signals.wake_fd) == SIGTERM);
	CHECK(signals_stop_count() == 1 && signals_last_stop() == SIGTERM);
	signals_close(&signals);
	CHECK(signals.forward_fd == -1);
}

static void what_was_ignored_stays_ignored(void)
{
	struct signals signals = SIGNALS_NONE;
	struct sigaction action;

	CHECK(signal(SIGHUP, SIG_IGN) != SIG_ERR);
	CHECK(signals_open(&signals, NULL) == 0);
	raise(SIGHUP);
	CHECK(signals_stop_count() == 0);
	signals_close(&signals);
	CHECK(sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler == SIG_IGN);
	CHECK(signal(SIGHUP, SIG_DFL) != SIG_ERR);
}

/* Nobody reads, and somebody asks twice to stop: no waiting for ever. */
static void two_stops_end_the_wait_for_a_reader(void)
{
	CLEANUP(mem_free) char *bytes = calloc(1, MUCH);
	struct signals signals = SIGNALS_NONE;
	struct output output;
	int pair[2];

	CHECK(pipe2(pair, O_CLOEXEC) == 0);
	CHECK(signals_open(&signals, NULL) == 0);
	raise(SIGINT);
	raise(SIGINT);
	output = (struct output){ .fds = { pair[1], pair[1] },
		                  .wake_fd = signals.wake_fd,
		                  .grace_ms = GRACE_MS };
	CHECK(output_write(&output, false, bytes, MUCH) == -ECANCELED);
	signals_close(&signals);
	close(pair[0]);
	close(pair[1]);
}

static void one_stop_gives_a_reader_the_grace_time(void)
{
	CLEANUP(mem_free) char *bytes = calloc(1, MUCH);
	struct signals signals = SIGNALS_NONE;
	struct output output;
	uint64_t began = clock_mono_ms();
	int pair[2];

	CHECK(pipe2(pair, O_CLOEXEC) == 0);
	CHECK(signals_open(&signals, NULL) == 0);
	raise(SIGINT);
	output = (struct output){ .fds = { pair[1], pair[1] },
		                  .wake_fd = signals.wake_fd,
		                  .grace_ms = GRACE_MS };
	CHECK(output_write(&output, false, bytes, MUCH) == -ECANCELED);
	CHECK(clock_mono_ms() - began >= GRACE_MS);
	signals_close(&signals);
	close(pair[0]);
	close(pair[1]);
}

/* The run keeps its output: what a terminal that has gone cannot show must not stop it. */
static void after_a_hangup_all_is_thrown_away_at_once(void)
{
	CLEANUP(mem_free) char *bytes = calloc(1, MUCH);
	struct signals signals = SIGNALS_NONE;
	struct output output;
	unsigned char byte = 0;
	int pair[2];

	CHECK(pipe2(pair, O_CLOEXEC) == 0);
	CHECK(signals_open(&signals, NULL) == 0);
	CHECK(!signals_has_hung_up());
	output = (struct output){ .fds = { pair[1], pair[1] },
		                  .wake_fd = signals.wake_fd,
		                  .grace_ms = 60000 };
	raise(SIGHUP);
	CHECK(signals_has_hung_up() && signals_last_stop() == SIGHUP && signals_stop_count() == 0);
	CHECK(output_write(&output, false, bytes, MUCH) == 0 && output.code == 0);
	CHECK(read(signals.forward_fd, &byte, 1) == 1 && byte == SIGHUP);
	signals_close(&signals);
	close(pair[0]);
	close(pair[1]);
}

/* Nobody sent SIGHUP; the terminal is gone all the same. */
static void a_terminal_that_is_gone_is_a_hangup(void)
{
	struct signals signals = SIGNALS_NONE;
	struct output output = { .is_tty = { true, true } };
	unsigned char byte = 0;
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;

	CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	CHECK(slave >= 0 && isatty(slave));
	close(master);
	CHECK(signals_open(&signals, NULL) == 0);
	output.fds[0] = output.fds[1] = slave;
	output.wake_fd = signals.wake_fd;
	CHECK(output_write(&output, true, "lost", 4) == 0 && signals_has_hung_up());
	CHECK(read(signals.forward_fd, &byte, 1) == 1 && byte == SIGHUP);
	signals_close(&signals);
	close(slave);
}

int main(void)
{
	(void) signal(SIGPIPE, SIG_IGN);
	RUN(more_than_a_pipe_takes_arrives_exactly);
	RUN(a_pipe_that_does_not_block_is_waited_for);
	RUN(a_reader_that_has_gone_is_told_once_and_for_all);
	RUN(a_full_disk_is_told);
	RUN(signals_become_bytes);
	RUN(what_was_ignored_stays_ignored);
	RUN(two_stops_end_the_wait_for_a_reader);
	RUN(one_stop_gives_a_reader_the_grace_time);
	RUN(after_a_hangup_all_is_thrown_away_at_once);
	RUN(a_terminal_that_is_gone_is_a_hangup);
	return check_done();
}
