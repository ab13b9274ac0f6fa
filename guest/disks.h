/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* disks.h - virtio disks by their serial numbers. */

#include <stddef.h>

#include "resoluto/err.h"

enum { DISK_PATH_SIZE = 64 };

/* "/dev/vda" of the disk with this serial number; -ENOENT when there is none. */
int disk_find(const char *serial, char ret_path[DISK_PATH_SIZE]);
