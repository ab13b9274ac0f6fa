/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "guest/attribute.h"
#include "guest/disks.h"

int disk_find(const char *serial, char ret_path[DISK_PATH_SIZE])
{
	CLEANUP(dir_close) DIR *dir = opendir("/sys/block");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "vd", 2) != 0 || strlen(entry->d_name) > 16 ||
		    !attribute_is(dirfd(dir), entry->d_name, "serial", serial))
			continue;
		snprintf(ret_path, DISK_PATH_SIZE, "/dev/%.16s", entry->d_name);
		return 0;
	}
	return -ENOENT;
}
