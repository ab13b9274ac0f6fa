/* SPDX-License-Identifier: Apache-2.0 */
/* ports.c - waiting for the host's end of a port, with a terminal in its place: it hangs up in the same way. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "check.h"
#include "guest/ports.h"

static int open_host(const char *path)
{
	return open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

/* The guest's end; what leads to the host's goes to ret_path. */
static int open_port(char *ret_path, size_t size)
{
	int port = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	CHECK(port >= 0 && grantpt(port) == 0 && unlockpt(port) == 0);
	CHECK(ptsname_r(port, ret_path, size) == 0);
	return port;
}

/* A terminal hangs up only after somebody was there. */
static int open_hung_up(char *ret_path, size_t size)
{
	int port = open_port(ret_path, size), host = open_host(ret_path);

	CHECK(host >= 0);
	fd_close(&host);
	return port;
}

static void a_host_that_is_there_is_not_waited_for(void)
{
	char path[64];
	CLEANUP(fd_close) int port = open_port(path, sizeof(path));
	CLEANUP(fd_close) int host = open_host(path);

	CHECK(host >= 0 && port_await_host(port, 0) == 0);
}

static void a_host_that_never_comes_is_told(void)
{
	char path[64];
	CLEANUP(fd_close) int port = open_hung_up(path, sizeof(path));

	CHECK(port_await_host(port, clock_mono_ms()) == -ENOTCONN);
}

static void a_host_that_comes_later_is_waited_for(void)
{
	char path[64];
	CLEANUP(fd_close) int port = open_hung_up(path, sizeof(path));
	pid_t host = fork();

	CHECK(host >= 0);
	if (host == 0) {
		if (open_host(path) >= 0)
			pause();
		_exit(1);
	}
	CHECK(port_await_host(port, clock_mono_ms() + PORT_WAIT_MS) == 0);
	CHECK(kill(host, SIGKILL) == 0 && waitpid(host, NULL, 0) == host);
}

int main(void)
{
	RUN(a_host_that_is_there_is_not_waited_for);
	RUN(a_host_that_never_comes_is_told);
	RUN(a_host_that_comes_later_is_waited_for);
	return check_done();
}
