/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "guest/attribute.h"
#include "guest/ports.h"

static const struct timespec look_again = { .tv_nsec = 300 * 1000 };

static const char ports_dir[] = "/sys/class/virtio-ports";

bool ports_are_there(void)
{
	CLEANUP(dir_close) DIR *dir = opendir(ports_dir);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			return true;
	}
	return false;
}

static int open_if_there(const char *name)
{
	CLEANUP(dir_close) DIR *dir = opendir(ports_dir);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char path[300], value[ATTRIBUTE_SIZE];
		int fd;

		if (entry->d_name[0] == '.')
			continue;
		attribute_read(dirfd(dir), entry->d_name, "name", value);
		if (strcmp(value, name) != 0)
			continue;
		snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
		fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	return -ENOENT;
}

static bool has_host(int fd)
{
	struct pollfd port = { .fd = fd, .events = POLLOUT };

	return poll(&port, 1, 0) >= 0 && !(port.revents & POLLHUP);
}

int port_await_host(int fd, uint64_t give_up_ms)
{
	while (!has_host(fd)) {
		if (clock_mono_ms() > give_up_ms)
			return -ENOTCONN;
		(void) nanosleep(&look_again, NULL);
	}
	return 0;
}

int port_open(const char *name, struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = open_if_there(name);
	uint64_t give_up = clock_mono_ms() + PORT_WAIT_MS;
	int r;

	while (fd == -ENOENT && clock_mono_ms() <= give_up) {
		(void) nanosleep(&look_again, NULL);
		fd = open_if_there(name);
	}
	r = fd < 0 ? fd : port_await_host(fd, give_up);
	return r < 0 ? resoluto_fail(err, r, "open the port %s", name) : fd_take(&fd);
}
