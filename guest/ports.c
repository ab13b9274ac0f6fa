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
#include "guest/attribute.h"
#include "guest/ports.h"

enum { LOOK_AGAIN_NS = 300 * 1000 };

static const char ports_dir[] = "/sys/class/virtio-ports";

static int open_if_there(const char *name)
{
	CLEANUP(dir_close) DIR *dir = opendir(ports_dir);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char path[300];
		int fd;

		if (entry->d_name[0] == '.' ||
		    !attribute_is(dirfd(dir), entry->d_name, "name", name))
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
