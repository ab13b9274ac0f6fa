/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sandbox/stops.h"

static int watch(const struct stops *stops, int fd, struct resoluto_err *err)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (epoll_ctl(stops->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return resoluto_fail(err, errno == EBADF || errno == EPERM ? -EINVAL : -errno,
		                     "signal_fd: descriptor %d cannot be watched", fd);
	return 0;
}

int stops_open(struct stops *stops, int signal_fd, int epoll_fd, uint64_t grace_ms,
               struct resoluto_err *err)
{
	int r;

	*stops = STOPS_NONE;
	if (signal_fd <= 0)
		return 0;
	stops->epoll_fd = epoll_fd;
	stops->grace_ms = grace_ms;
	stops->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (stops->timer_fd < 0)
		return resoluto_fail(err, -errno, "make a timer");
	r = watch(stops, stops->timer_fd, err);
	if (r == 0)
		r = watch(stops, signal_fd, err);
	if (r == 0)
		stops->fd = signal_fd;
	return r;
}

static void unwatch(struct stops *stops)
{
	if (stops->fd >= 0)
		(void) epoll_ctl(stops->epoll_fd, EPOLL_CTL_DEL, stops->fd, NULL);
	stops->fd = -1;
}

void stops_close(struct stops *stops)
{
	unwatch(stops);
	fd_close(&stops->timer_fd);
	*stops = STOPS_NONE;
}

/* How many bytes there are now, without waiting for any. */
static size_t read_now(struct stops *stops, unsigned char *signals, size_t cap)
{
	struct pollfd watched = { .fd = stops->fd, .events = POLLIN };
	ssize_t n;

	if (stops->fd < 0 || poll(&watched, 1, 0) <= 0)
		return 0;
	n = read(stops->fd, signals, cap);
	/* Whoever could send signals has gone: a descriptor at its end is always readable. */
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		unwatch(stops);
	return n > 0 ? (size_t) n : 0;
}

static void start_grace(struct stops *stops)
{
	struct itimerspec when = {
		.it_value.tv_sec = (time_t) (stops->grace_ms / 1000),
		.it_value.tv_nsec = (long) (stops->grace_ms % 1000 * 1000000) + 1,
	};

	if (timerfd_settime(stops->timer_fd, 0, &when, NULL) < 0)
		stops->is_over = true;
}

static bool is_request(int signo)
{
	return signo == SIGINT || signo == SIGTERM || signo == SIGHUP;
}

static void note(struct stops *stops, int signo)
{
	if (!is_request(signo))
		return;
	if (stops->signo != 0) {
		stops->is_over = true;
		return;
	}
	stops->signo = signo;
	start_grace(stops);
}

static bool grace_is_over(const struct stops *stops)
{
	uint64_t expirations;

	return stops->timer_fd >= 0 && stops->signo != 0 &&
	       read(stops->timer_fd, &expirations, sizeof(expirations)) == sizeof(expirations);
}

bool stops_asked(struct stops *stops)
{
	unsigned char signals[64];
	size_t n = read_now(stops, signals, sizeof(signals));

	for (size_t i = 0; i < n; i++)
		note(stops, signals[i]);
	return stops->signo != 0;
}

int stops_asked_anew(struct stops *stops)
{
	unsigned char signals[64];
	int asked = 0;
	size_t n;

	while ((n = read_now(stops, signals, sizeof(signals))) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (is_request(signals[i]) &&
			    !(signals[i] == SIGHUP && stops->leaves_on_hangup))
				asked = signals[i];
		}
	}
	return asked;
}

int stops_await(void *ctx, int fd)
{
	struct stops *stops = ctx;

	for (;;) {
		struct pollfd watched[] = { { fd, POLLIN, 0 }, { stops->fd, POLLIN, 0 } };

		if (poll(watched, 2, -1) < 0) {
			if (errno != EINTR)
				return -errno;
			continue;
		}
		/* What is there already is read; the run is stopped soon enough. */
		if (watched[0].revents)
			return 0;
		if (stops_asked(stops))
			return -ECANCELED;
	}
}

bool stops_forward(struct stops *stops, struct resoluto_runtime *runtime,
                   struct resoluto_handle *handle)
{
	unsigned char signals[64];
	size_t n = read_now(stops, signals, sizeof(signals));

	for (size_t i = 0; i < n; i++) {
		if (signals[i] == 0 || signals[i] > SIGRTMAX)
			continue;
		if (signals[i] == SIGHUP && stops->leaves_on_hangup) {
			stops->has_hung_up = true;
			continue;
		}
		note(stops, signals[i]);
		/* A program that is gone already needs no signal. */
		(void) runtime->ops->signal(runtime, handle, signals[i], NULL);
	}
	if (grace_is_over(stops))
		stops->is_over = true;
	return stops->is_over;
}
