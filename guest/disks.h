/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* disks.h - the machine's virtio disks, told apart by their serial numbers. */

enum { DISK_PATH_SIZE = 64 };

/* Like "/dev/vda"; "" for one that is not there. */
struct disks {
	char rootfs[DISK_PATH_SIZE], inbox[DISK_PATH_SIZE], scratch[DISK_PATH_SIZE];
};

void disks_find(struct disks *ret_disks);

/* The path of one by any serial number; -ENOENT: there is none. */
int disk_find(const char *serial, char ret_path[DISK_PATH_SIZE]);
