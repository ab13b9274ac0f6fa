/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/signals.h"
#include "resoluto/sandbox.h"

enum { STOPS_BEFORE_EXIT = 4 }; /* requests to stop that are left to the library */

static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH };

enum { FORWARDED_COUNT = sizeof(forwarded) / sizeof(forwarded[0]) };

/* A handler can reach nothing but what is static. */
static struct {
	volatile sig_atomic_t forward_fd, wake_fd; /* ends to write to */
	volatile sig_atomic_t stop_count, last_stop, has_hung_up;
	struct sigaction before[FORWARDED_COUNT];
} state = { .forward_fd = -1, .wake_fd = -1 };

static bool is_stop(int number)
{
	return number == SIGINT || number == SIGTERM;
}

static void handle(int number)
{
	unsigned char byte = (unsigned char) number;
	int kept = errno;

	if (is_stop(number)) {
		state.last_stop = number;
		if (++state.stop_count > STOPS_BEFORE_EXIT)
			_exit(RESOLUTO_EXIT_SIGNAL + number);
		(void) !write(state.wake_fd, &byte, 1);
	}
	if (number == SIGHUP) {
		state.last_stop = number;
		state.has_hung_up = 1;
		(void) !write(state.wake_fd, &byte, 1);
	}
	(void) !write(state.forward_fd, &byte, 1);
	errno = kept;
}

void signals_hang_up(void)
{
	if (!state.has_hung_up)
		handle(SIGHUP);
}

bool signals_has_hung_up(void)
{
	return state.has_hung_up;
}

static int open_pipe(int *ret_read, volatile sig_atomic_t *ret_write, struct resoluto_err *err)
{
	int pair[2];

	/* Not blocking: a handler must not wait, and a full pipe has signals enough. */
	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
		return resoluto_fail(err, -errno, "make a pipe for signals");
	*ret_read = pair[0];
	*ret_write = pair[1];
	return 0;
}

static void catch_all(void)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };

	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < FORWARDED_COUNT; i++) {
		if (sigaction(forwarded[i], NULL, &state.before[i]) < 0)
			continue;
		if (state.before[i].sa_handler != SIG_IGN)
			(void) sigaction(forwarded[i], &action, NULL);
	}
}

int signals_open(struct signals *signals, struct resoluto_err *err)
{
	int r = open_pipe(&signals->forward_fd, &state.forward_fd, err);

	if (r == 0)
		r = open_pipe(&signals->wake_fd, &state.wake_fd, err);
	if (r < 0) {
		signals_close(signals);
		return r;
	}
	state.stop_count = 0;
	state.last_stop = 0;
	state.has_hung_up = 0;
	catch_all();
	return 0;
}

static void close_write_end(volatile sig_atomic_t *end)
{
	int fd = *end;

	*end = -1;
	fd_close(&fd);
}

void signals_close(struct signals *signals)
{
	if (signals->wake_fd >= 0) {
		for (size_t i = 0; i < FORWARDED_COUNT; i++)
			(void) sigaction(forwarded[i], &state.before[i], NULL);
	}
	close_write_end(&state.forward_fd);
	close_write_end(&state.wake_fd);
	fd_close(&signals->forward_fd);
	fd_close(&signals->wake_fd);
}

unsigned signals_stop_count(void)
{
	return (unsigned) state.stop_count;
}

int signals_last_stop(void)
{
	return state.last_stop;
}
