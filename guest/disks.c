/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "guest/disks.h"

static bool has_serial(int dirfd, const char *device, const char *serial)
{
	CLEANUP(fd_close) int fd = -1;
	char path[300], text[64];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/serial", device);
	fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read_up_to(fd, text, sizeof(text) - 1);
	if (n < 0)
		return false;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return strcmp(text, serial) == 0;
}

int disk_find(const char *serial, char ret_path[DISK_PATH_SIZE])
{
	CLEANUP(dir_close) DIR *dir = opendir("/sys/block");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "vd", 2) != 0 || strlen(entry->d_name) > 16 ||
		    !has_serial(dirfd(dir), entry->d_name, serial))
			continue;
		snprintf(ret_path, DISK_PATH_SIZE, "/dev/%.16s", entry->d_name);
		return 0;
	}
	return -ENOENT;
}
