/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "guest/attribute.h"
#include "guest/disks.h"

static const char disks_dir[] = "/sys/block";

/* The next disk of the listing; false: that was the last. */
static bool next_disk(DIR *dir, char ret_path[DISK_PATH_SIZE], char ret_serial[ATTRIBUTE_SIZE])
{
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "vd", 2) != 0 || strlen(entry->d_name) > 16)
			continue;
		attribute_read(dirfd(dir), entry->d_name, "serial", ret_serial);
		snprintf(ret_path, DISK_PATH_SIZE, "/dev/%.16s", entry->d_name);
		return true;
	}
	return false;
}

int disk_find(const char *serial, char ret_path[DISK_PATH_SIZE])
{
	CLEANUP(dir_close) DIR *dir = opendir(disks_dir);
	char found[ATTRIBUTE_SIZE];

	while (next_disk(dir, ret_path, found)) {
		if (strcmp(found, serial) == 0)
			return 0;
	}
	return -ENOENT;
}

/* Where the path of the disk with this serial number is kept; NULL: it is none of ours. */
static char *place_of(struct disks *disks, const char *serial)
{
	if (strcmp(serial, "rootfs") == 0)
		return disks->rootfs;
	if (strcmp(serial, "inbox") == 0)
		return disks->inbox;
	return strcmp(serial, "scratch") == 0 ? disks->scratch : NULL;
}

void disks_find(struct disks *ret_disks)
{
	CLEANUP(dir_close) DIR *dir = opendir(disks_dir);
	char path[DISK_PATH_SIZE], serial[ATTRIBUTE_SIZE];

	*ret_disks = (struct disks){ "", "", "" };
	while (next_disk(dir, path, serial)) {
		char *place = place_of(ret_disks, serial);

		if (place)
			memcpy(place, path, DISK_PATH_SIZE);
	}
}
