/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "guest/ports.h"

enum { LOOK_AGAIN_NS = 300 * 1000 };

static const char ports_dir[] = "/sys/class/virtio-ports";

/* Is this the device whose attribute `name` says name? */
static bool has_name(int dirfd, const char *device, const char *name)
{
	CLEANUP(fd_close) int fd = -1;
	char path[300], text[64];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/name", device);
	fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read_up_to(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return strcmp(text, name) == 0;
}

static int open_if_there(const char *name)
{
	CLEANUP(dir_close) DIR *dir = opendir(ports_dir);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char path[300];
		int fd;

		if (entry->d_name[0] == '.' || !has_name(dirfd(dir), entry->d_name, name))
			continue;
		snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
		fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	return -ENOENT;
}

int port_open(const char *name, struct resoluto_err *err)
{
	const struct timespec pause = { .tv_nsec = LOOK_AGAIN_NS };
	uint64_t give_up = clock_mono_ms() + PORT_WAIT_MS;

	for (;;) {
		int fd = open_if_there(name);

		if (fd != -ENOENT || clock_mono_ms() > give_up)
			return fd < 0 ? resoluto_fail(err, fd, "open the port %s", name) : fd;
		(void) nanosleep(&pause, NULL);
	}
}
