/* SPDX-License-Identifier: Apache-2.0 */
/* disks.c - whether all disks are there, while the driver goes through the bus; sysfs is a temporary folder. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "check.h"
#include "guest/disks.h"

static char sys_dir[] = "/tmp/disks-XXXXXX";
static int root = -1;

static void set_up(void)
{
	CHECK(mkdtemp(sys_dir));
	root = open(sys_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(root >= 0);
}

static void tear_down(void)
{
	char command[64];

	fd_close(&root);
	snprintf(command, sizeof(command), "rm -rf %s", sys_dir);
	CHECK(system(command) == 0);
}

static void add(const char *folder, const char *file, const char *text)
{
	CLEANUP(fd_close) int dir = -1, fd = -1;

	CHECK(mkdirs_beneath(root, folder, 0755) == 0);
	dir = openat(root, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(dir, file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text));
}

static void complete_once_the_last_one_is_there(void)
{
	set_up();
	CHECK(!disks_are_complete(sys_dir));
	/* A port, and two disks whose driver has not started. */
	add("bus/virtio/devices/virtio0", "device", "0x0003\n");
	CHECK(!disks_are_complete(sys_dir));
	add("bus/virtio/devices/virtio1", "device", "0x0002\n");
	add("bus/virtio/devices/virtio2", "device", "0x0002\n");
	CHECK(!disks_are_complete(sys_dir));
	add("block/vda", "serial", "rootfs\n");
	CHECK(!disks_are_complete(sys_dir));
	/* One of another bus is no disk of ours. */
	add("block/loop0", "serial", "");
	CHECK(!disks_are_complete(sys_dir));
	add("block/vdb", "serial", "inbox\n");
	CHECK(disks_are_complete(sys_dir));
	tear_down();
}

int main(void)
{
	RUN(complete_once_the_last_one_is_there);
	return check_done();
}
