/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/output.h"

enum { STOPS_AT_ONCE = 2 }; /* requests to stop that end the waiting without grace */

/* A pipe, terminal or socket that poll() calls writable takes PIPE_BUF bytes without blocking; more
 * may block where no signal can end it.  Files never block. */
static size_t largest_piece(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? SSIZE_MAX : PIPE_BUF;
}

static int time_left(uint64_t until_ms)
{
	uint64_t now = clock_mono_ms();

	return until_ms > now ? (int) (until_ms - now) : 0;
}

/* Until fd takes bytes.  The byte that asks to stop stays in its pipe: once it is there, only the
 * grace time is left, and the pipe is not looked at any more but counted. */
static int wait_writable(struct output *output, int fd)
{
	uint64_t give_up_ms = 0;

	for (;;) {
		struct pollfd polls[2] = { { fd, POLLOUT, 0 }, { output->wake_fd, POLLIN, 0 } };
		bool is_stopping = give_up_ms > 0;
		int n = poll(polls, is_stopping ? 1 : 2, is_stopping ? time_left(give_up_ms) : -1);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (signals_has_hung_up())
			return 0;
		if (n > 0 && polls[0].revents)
			return 0;
		if (signals_stop_count() >= STOPS_AT_ONCE || (n == 0 && is_stopping))
			return -ECANCELED;
		if (n > 0 && polls[1].revents)
			give_up_ms = clock_mono_ms() + output->grace_ms;
	}
}

/* What a terminal says that is not there any more. */
static bool is_hangup(const struct output *output, int fd, int code)
{
	return code == -EIO && output->is_tty[fd == output->fds[1]];
}

static int write_pieces(struct output *output, int fd, const char *bytes, size_t len)
{
	size_t largest = largest_piece(fd);

	while (len > 0 && !signals_has_hung_up()) {
		int r = wait_writable(output, fd);
		ssize_t n;

		if (r < 0)
			return r;
		if (signals_has_hung_up())
			return 0;
		n = write(fd, bytes, len < largest ? len : largest);
		if (n < 0 && is_hangup(output, fd, -errno)) {
			signals_hang_up();
			return 0;
		}
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (n > 0) {
			bytes += n;
			len -= (size_t) n;
		}
	}
	return 0;
}

void output_init(struct output *output, int wake_fd)
{
	*output = (struct output){
		.fds = { STDOUT_FILENO, STDERR_FILENO },
		.is_tty = { isatty(STDOUT_FILENO) != 0, isatty(STDERR_FILENO) != 0 },
		.wake_fd = wake_fd,
		.grace_ms = RESOLUTO_STOP_GRACE_MS,
	};
}

int output_write(struct output *output, bool is_stderr, const char *bytes, size_t len)
{
	if (output->code == 0)
		output->code = write_pieces(output, output->fds[is_stderr], bytes, len);
	return output->code;
}

int output_write_result(struct output *output, const struct resoluto_result *result)
{
	CLEANUP(mem_free) char *json = resoluto_result_to_json(result);

	if (!json) {
		output->code = -ENOMEM;
		return output->code;
	}
	(void) output_write(output, false, json, strlen(json));
	return output_write(output, false, "\n", 1);
}
