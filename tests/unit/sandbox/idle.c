/* SPDX-License-Identifier: Apache-2.0 */
/* idle.c - standard input with flow control, and signals on their way to the program. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "check.h"
#include "sandbox/idle.h"
#include "scripted.h"

static struct resoluto_handle handle;

static void open_with(struct idle *idle, struct resoluto_stdin input)
{
	CHECK(idle_open(idle, &input, -1, 0, NULL) == 0);
}

static bool is_woken(const struct idle *idle)
{
	struct pollfd watched = { .fd = idle->epoll_fd, .events = POLLIN };

	return poll(&watched, 1, 0) == 1;
}

static uint32_t sum_of(const void *bytes, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum = sum * 31 + ((const unsigned char *) bytes)[i];
	return sum;
}

static void nothing_to_feed(void)
{
	struct scripted scripted;
	struct idle idle;

	scripted_init(&scripted);
	open_with(&idle, (struct resoluto_stdin){ .kind = RESOLUTO_STDIN_NONE });
	CHECK(idle_run(&idle, &scripted.base, &handle, NULL) == 0);
	CHECK(scripted.stdin_bytes == 0 && scripted.closes == 0);
	idle_close(&idle);
	scripted_done(&scripted);
}

static void bytes_are_fed_within_the_room_there_is(void)
{
	static unsigned char bytes[300000];
	struct scripted scripted;
	struct idle idle;
	unsigned turns = 0;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char) (i * 7 + i / 251);
	scripted_init(&scripted);
	open_with(&idle, (struct resoluto_stdin){ .kind = RESOLUTO_STDIN_BYTES,
	                                          .bytes = bytes,
	                                          .len = sizeof(bytes) });
	while (scripted.closes == 0) {
		scripted.room = 1000;
		CHECK(idle_run(&idle, &scripted.base, &handle, NULL) == 0);
		turns++;
	}
	CHECK(turns == 300 || turns == 301);
	CHECK(scripted.stdin_bytes == sizeof(bytes) &&
	      scripted.stdin_sum == sum_of(bytes, sizeof(bytes)));
	CHECK(scripted.closes == 1);
	CHECK(idle_run(&idle, &scripted.base, &handle, NULL) == 0 && scripted.closes == 1);
	idle_close(&idle);
	scripted_done(&scripted);
}

static void no_bytes_are_an_end(void)
{
	struct scripted scripted;
	struct idle idle;

	scripted_init(&scripted);
	open_with(&idle, (struct resoluto_stdin){ .kind = RESOLUTO_STDIN_BYTES });
	CHECK(idle_run(&idle, &scripted.base, &handle, NULL) == 0);
	CHECK(scripted.stdin_bytes == 0 && scripted.closes == 1);
	idle_close(&idle);
	scripted_done(&scripted);
}

static void a_pipe_is_read_as_it_fills(void)
{
	struct scripted scripted;
	struct idle idle;
	int ends[2];

	CHECK(pipe(ends) == 0);
	scripted_init(&scripted);
	open_with(&idle, (struct resoluto_stdin){ .kind = RESOLUTO_STDIN_FD, .fd = ends[0] });
	CHECK(write(ends[1], "early", 5) == 5);
	CHECK(!is_woken(&idle)); /* before the launch nobody looks */
	CHECK(idle_run(&idle, &scripted.base, &handle, NULL) == 0 && scripted.stdin_bytes == 5);
	CHECK(!is_woken(&idle));
	CHECK(write(ends[1], "later", 5) == 5);
	CHECK(is_woken(&idle));
	scripted.room = 2;
	CHECK(idle_run(&idle, &scripted.base, &handle, NULL) == 0 && scripted.stdin_bytes == 7);
	/* full: more to read, and yet no reason to wake */
	CHECK(write(ends[1], "more", 4) == 4);
	CHECK(!is_woken(&idle));
	scripted.room = SIZE_MAX;
	CHECK(idle_run(&idle, &scripted.base, &handle, NULL) == 0);
	CHECK(scripted.stdin_bytes == 14 && scripted.stdin_sum == sum_of("earlylatermore", 14));
	close(ends[1]);
	CHECK(is_woken(&idle));
	CHECK(idle_run(&idle, &scripted.base, &handle, NULL) == 0 && scripted.closes == 1);
	CHECK(!is_woken(&idle));
	idle_close(&idle);
	CHECK(fcntl(ends[0], F_GETFD) >= 0); /* borrowed */
	CHECK(!(fcntl(ends[0], F_GETFL) & O_NONBLOCK));
	close(ends[0]);
	scripted_done(&scripted);
}

static void what_nobody_took_goes_to_the_next(void)
{
	struct scripted scripted;
	struct idle idle;

	scripted_init(&scripted);
	scripted.is_deaf = true;
	open_with(
		&idle,
		(struct resoluto_stdin){ .kind = RESOLUTO_STDIN_BYTES, .bytes = "all", .len = 3 });
	CHECK(idle_run(&idle, &scripted.base, &handle, NULL) == 0 && idle_has_fed(&idle));
	scripted.is_deaf = false;
	feed_again(&idle.feed);
	CHECK(idle_run(&idle, &scripted.base, &handle, NULL) == 0);
	CHECK(scripted.stdin_bytes == 3 && scripted.closes == 1 && idle_has_fed(&idle));
	/* Once somebody took something of it, it is gone. */
	feed_again(&idle.feed);
	CHECK(idle_has_fed(&idle));
	idle_close(&idle);
	/* Only its end. */
	open_with(&idle, (struct resoluto_stdin){ .kind = RESOLUTO_STDIN_BYTES });
	CHECK(idle_run(&idle, &scripted.base, &handle, NULL) == 0 && scripted.closes == 2);
	feed_again(&idle.feed);
	CHECK(idle_run(&idle, &scripted.base, &handle, NULL) == 0 && scripted.closes == 3);
	idle_close(&idle);
	/* Where there is none, there is none. */
	open_with(&idle, (struct resoluto_stdin){ .kind = RESOLUTO_STDIN_NONE });
	feed_again(&idle.feed);
	CHECK(idle_has_fed(&idle));
	idle_close(&idle);
	scripted_done(&scripted);
}

static void a_program_that_does_not_read_ends_the_feeding(void)
{
	struct scripted scripted;
	struct idle idle;
	int ends[2];

	CHECK(pipe(ends) == 0);
	scripted_init(&scripted);
	scripted.is_deaf = true;
	open_with(&idle, (struct resoluto_stdin){ .kind = RESOLUTO_STDIN_FD, .fd = ends[0] });
	CHECK(write(ends[1], "x", 1) == 1);
	CHECK(idle_run(&idle, &scripted.base, &handle, NULL) == 0);
	CHECK(write(ends[1], "x", 1) == 1);
	CHECK(!is_woken(&idle) && idle_run(&idle, &scripted.base, &handle, NULL) == 0);
	CHECK(scripted.stdin_bytes == 0 && scripted.closes == 0);
	idle_close(&idle);
	close(ends[0]);
	close(ends[1]);
	scripted_done(&scripted);
}

static void sockets_work_too(void)
{
	struct scripted scripted;
	struct idle idle;
	int ends[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	scripted_init(&scripted);
	open_with(&idle, (struct resoluto_stdin){ .kind = RESOLUTO_STDIN_FD, .fd = ends[0] });
	CHECK(write(ends[1], "hello", 5) == 5);
	close(ends[1]);
	CHECK(idle_run(&idle, &scripted.base, &handle, NULL) == 0);
	CHECK(scripted.stdin_bytes == 5 && scripted.closes == 1);
	idle_close(&idle);
	close(ends[0]);
	scripted_done(&scripted);
}

static void a_gibibyte_goes_through_in_bounded_memory(void)
{
	char path[] = "/tmp/resoluto-stdin-XXXXXX";
	const off_t size = (off_t) 1 << 30;
	struct rusage before, after;
	struct scripted scripted;
	struct idle idle;
	int fd = mkstemp(path), r;

	CHECK(fd >= 0 && ftruncate(fd, size) == 0);
	close(fd);
	scripted_init(&scripted);
	scripted.only_counts = true;
	open_with(&idle, (struct resoluto_stdin){ .kind = RESOLUTO_STDIN_FILE, .path = path });
	unlink(path);
	getrusage(RUSAGE_SELF, &before);
	do
		r = idle_run(&idle, &scripted.base, &handle, NULL);
	while (r == 1);
	getrusage(RUSAGE_SELF, &after);
	CHECK(r == 0 && scripted.closes == 1 && scripted.stdin_bytes == (size_t) size);
	CHECK(after.ru_maxrss - before.ru_maxrss < 4096); /* KiB */
	idle_close(&idle);
	scripted_done(&scripted);
}

/* Waits for a timer; returns what came first. */
static int await_timer(struct stops *stops, int ms)
{
	const struct itimerspec when = { .it_value.tv_nsec = ms * 1000000L };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), r;

	CHECK(fd >= 0 && timerfd_settime(fd, 0, &when, NULL) == 0);
	r = stops_await(stops, fd);
	close(fd);
	return r;
}

static void what_is_waited_for_comes_whatever_signals_come(void)
{
	struct stops stops = STOPS_NONE;
	int epoll = epoll_create1(EPOLL_CLOEXEC), ends[2];

	CHECK(await_timer(&stops, 1) == 0);
	CHECK(epoll >= 0 && pipe(ends) == 0);
	CHECK(stops_open(&stops, ends[0], epoll, 1000, NULL) == 0);
	CHECK(write(ends[1], "\x1c", 1) == 1); /* SIGWINCH */
	CHECK(await_timer(&stops, 20) == 0);
	CHECK(write(ends[1], "\x02", 1) == 1); /* SIGINT */
	CHECK(await_timer(&stops, 900) == -ECANCELED && stops.signo == SIGINT);
	stops_close(&stops);
	CHECK(stops_open(&stops, ends[0], epoll, 1000, NULL) == 0);
	close(ends[1]); /* nobody can send any more */
	CHECK(await_timer(&stops, 20) == 0 && stops.fd == -1);
	stops_close(&stops);
	close(ends[0]);
	close(epoll);
}

static void a_fifo_is_waited_for(void)
{
	char dir[] = "/tmp/resoluto-fifo-XXXXXX", path[64];
	struct scripted scripted;
	struct idle idle;
	int fd;

	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/fifo", dir);
	CHECK(mkfifo(path, 0600) == 0);
	scripted_init(&scripted);
	open_with(&idle, (struct resoluto_stdin){ .kind = RESOLUTO_STDIN_FILE, .path = path });
	/* no writer yet is no end */
	CHECK(idle_run(&idle, &scripted.base, &handle, NULL) == 0 && scripted.closes == 0);
	fd = open(path, O_WRONLY);
	CHECK(fd >= 0 && write(fd, "x", 1) == 1);
	CHECK(idle_run(&idle, &scripted.base, &handle, NULL) == 0 && scripted.stdin_bytes == 1);
	close(fd);
	CHECK(idle_run(&idle, &scripted.base, &handle, NULL) == 0 && scripted.closes == 1);
	idle_close(&idle);
	unlink(path);
	rmdir(dir);
	scripted_done(&scripted);
}

static void what_cannot_be_read_is_refused(void)
{
	struct idle idle;
	struct resoluto_err err = { 0 };
	int ends[2];

	CHECK(idle_open(&idle,
	                &(struct resoluto_stdin){ .kind = RESOLUTO_STDIN_FILE,
	                                          .path = "/nonexistent" },
	                -1, 0, &err) == -EINVAL);
	CHECK(strstr(err.text, "/nonexistent") && strstr(err.text, "No such file"));
	idle_close(&idle);
	CHECK(idle_open(&idle, &(struct resoluto_stdin){ .kind = RESOLUTO_STDIN_FILE, .path = "/" },
	                -1, 0, &err) == -EINVAL);
	idle_close(&idle);
	CHECK(idle_open(&idle, &(struct resoluto_stdin){ .kind = RESOLUTO_STDIN_FD, .fd = 999 }, -1,
	                0, &err) == -EINVAL);
	idle_close(&idle);
	CHECK(pipe(ends) == 0);
	CHECK(idle_open(&idle, &(struct resoluto_stdin){ .kind = RESOLUTO_STDIN_FD, .fd = ends[1] },
	                -1, 0, &err) == -EINVAL);
	idle_close(&idle);
	CHECK(idle_open(&idle, &(struct resoluto_stdin){ .kind = RESOLUTO_STDIN_NONE }, 999, 0,
	                &err) == -EINVAL);
	idle_close(&idle);
	close(ends[0]);
	close(ends[1]);
}

static void send_signal(int fd, int signo)
{
	unsigned char byte = (unsigned char) signo;

	CHECK(write(fd, &byte, 1) == 1);
}

static void open_signals(struct idle *idle, int ends[2], uint64_t grace_ms)
{
	CHECK(pipe(ends) == 0);
	CHECK(idle_open(idle, &(struct resoluto_stdin){ .kind = RESOLUTO_STDIN_NONE }, ends[0],
	                grace_ms, NULL) == 0);
}

static void close_signals(struct idle *idle, int ends[2])
{
	idle_close(idle);
	close(ends[0]);
	close(ends[1]);
}

static void signals_are_forwarded(void)
{
	static const int signals[] = { SIGUSR1, SIGUSR2, SIGWINCH, SIGQUIT, SIGCONT };
	struct scripted scripted;
	struct idle idle;
	int ends[2];

	scripted_init(&scripted);
	open_signals(&idle, ends, 60000);
	CHECK(!is_woken(&idle));
	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		send_signal(ends[1], signals[i]);
		CHECK(is_woken(&idle));
		CHECK(idle_run(&idle, &scripted.base, &handle, NULL) == 0);
		CHECK(scripted.signals == i + 1 && scripted.last_signal == signals[i]);
	}
	send_signal(ends[1], 0);
	send_signal(ends[1], 200);
	CHECK(idle_run(&idle, &scripted.base, &handle, NULL) == 0 && scripted.signals == 5);
	CHECK(idle.stops.signo == 0 && !is_woken(&idle));
	close_signals(&idle, ends);
	scripted_done(&scripted);
}

static void the_second_request_to_stop_ends_the_sandbox(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

	for (size_t i = 0; i < 3; i++) {
		struct scripted scripted;
		struct resoluto_err err = { 0 };
		struct idle idle;
		int ends[2];

		scripted_init(&scripted);
		open_signals(&idle, ends, 60000);
		send_signal(ends[1], signals[i]);
		CHECK(idle_run(&idle, &scripted.base, &handle, &err) == 0);
		CHECK(scripted.last_signal == signals[i] && idle.stops.signo == signals[i]);
		send_signal(ends[1], SIGINT);
		CHECK(idle_run(&idle, &scripted.base, &handle, &err) == -ECANCELED);
		CHECK_STR(err.text, "signal");
		CHECK(idle.stops.signo == signals[i]); /* the first counts */
		close_signals(&idle, ends);
		scripted_done(&scripted);
	}
}

static void the_grace_time_ends_the_sandbox(void)
{
	struct scripted scripted;
	struct idle idle;
	struct pollfd watched;
	int ends[2];

	scripted_init(&scripted);
	open_signals(&idle, ends, 1);
	send_signal(ends[1], SIGTERM);
	(void) idle_run(&idle, &scripted.base, &handle, NULL);
	watched = (struct pollfd){ .fd = idle.epoll_fd, .events = POLLIN };
	CHECK(idle.stops.is_over || poll(&watched, 1, 10000) == 1);
	CHECK(idle.stops.is_over || idle_run(&idle, &scripted.base, &handle, NULL) == -ECANCELED);
	CHECK(scripted.signals == 1);
	close_signals(&idle, ends);
	scripted_done(&scripted);
}

static void a_sender_that_has_gone_wakes_nobody(void)
{
	struct scripted scripted;
	struct idle idle;
	int ends[2];

	scripted_init(&scripted);
	open_signals(&idle, ends, 60000);
	close(ends[1]);
	CHECK(is_woken(&idle));
	CHECK(idle_run(&idle, &scripted.base, &handle, NULL) == 0);
	CHECK(!is_woken(&idle));
	idle_close(&idle);
	close(ends[0]);
	scripted_done(&scripted);
}

static void stopped_before_there_is_a_program(void)
{
	struct resoluto_err err = { 0 };
	struct idle idle;
	int ends[2];

	open_signals(&idle, ends, 60000);
	CHECK(idle_asked_to_stop(&idle, &err) == 0);
	send_signal(ends[1], SIGWINCH);
	CHECK(idle_asked_to_stop(&idle, &err) == 0);
	send_signal(ends[1], SIGINT);
	CHECK(idle_asked_to_stop(&idle, &err) == -ECANCELED);
	CHECK_STR(err.text, "signal");
	close_signals(&idle, ends);
}

int main(void)
{
	RUN(nothing_to_feed);
	RUN(bytes_are_fed_within_the_room_there_is);
	RUN(no_bytes_are_an_end);
	RUN(a_pipe_is_read_as_it_fills);
	RUN(what_nobody_took_goes_to_the_next);
	RUN(a_program_that_does_not_read_ends_the_feeding);
	RUN(sockets_work_too);
	RUN(a_gibibyte_goes_through_in_bounded_memory);
	RUN(a_fifo_is_waited_for);
	RUN(what_is_waited_for_comes_whatever_signals_come);
	RUN(what_cannot_be_read_is_refused);
	RUN(signals_are_forwarded);
	RUN(the_second_request_to_stop_ends_the_sandbox);
	RUN(the_grace_time_ends_the_sandbox);
	RUN(a_sender_that_has_gone_wakes_nobody);
	RUN(stopped_before_there_is_a_program);
	return check_done();
}
