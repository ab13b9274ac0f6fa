/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_check.c - what a kernel lacks is named by its option; proc and sys are files of a temporary folder. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "check.h"
#include "guest/kernel_check.h"

static const char all_file_systems[] = "nodev\tsysfs\nnodev\ttmpfs\nnodev\tdevpts\nnodev\tcgroup2\n"
				       "\tsquashfs\nnodev\toverlay\n";

static void make_file(int root, const char *folder, const char *name, const char *text)
{
	CLEANUP(fd_close) int dir = -1, fd = -1;

	CHECK(mkdirs_beneath(root, folder, 0755) == 0);
	dir = openat(root, folder, O_RDONLY | O_DIRECTORY);
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text));
}

/* What a kernel with everything shows. */
static int open_whole_kernel(char *path)
{
	int root;

	CHECK(mkdtemp(path));
	root = open(path, O_RDONLY | O_DIRECTORY);
	CHECK(root >= 0);
	make_file(root, "proc", "filesystems", all_file_systems);
	make_file(root, "proc/net", "tcp", "");
	make_file(root, "sys/bus/platform/drivers", "virtio-mmio", "");
	make_file(root, "sys/bus/virtio/drivers", "virtio_console", "");
	make_file(root, "sys/bus/virtio/drivers", "virtio_blk", "");
	make_file(root, "sys/bus/virtio/devices", "virtio0", "");
	return root;
}

static void remove_kernel(const char *path)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", path);
	CHECK(system(command) == 0);
}

static void a_kernel_with_everything_passes(void)
{
	char path[] = "/tmp/kernel-check-XXXXXX";
	CLEANUP(fd_close) int root = open_whole_kernel(path);
	struct resoluto_err err = { .code = 0 };

	CHECK(kernel_check(root, &err) == 0);
	remove_kernel(path);
}

/* Without what stands at `without` the text names the option. */
static void check_option(const char *without, const char *option)
{
	char path[] = "/tmp/kernel-check-XXXXXX", expected[RESOLUTO_ERR_TEXT];
	CLEANUP(fd_close) int root = open_whole_kernel(path);
	struct resoluto_err err = { .code = 0 };

	CHECK(unlinkat(root, without, 0) == 0);
	CHECK(kernel_check(root, &err) == -ENODEV);
	snprintf(expected, sizeof(expected), "this kernel lacks %s", option);
	CHECK(strcmp(err.text, expected) == 0);
	remove_kernel(path);
}

static void a_missing_driver_is_named(void)
{
	check_option("sys/bus/platform/drivers/virtio-mmio", "CONFIG_VIRTIO_MMIO");
	check_option("sys/bus/virtio/drivers/virtio_console", "CONFIG_VIRTIO_CONSOLE");
	check_option("sys/bus/virtio/drivers/virtio_blk", "CONFIG_VIRTIO_BLK");
	check_option("proc/net/tcp", "CONFIG_INET");
}

static void a_bus_without_devices_is_told_from_one_without_drivers(void)
{
	check_option("sys/bus/virtio/devices/virtio0",
	             "CONFIG_VIRTIO_MMIO_CMDLINE_DEVICES (or CONFIG_ACPI, for the machine with its "
	             "tables)");
}

static void check_file_systems(const char *list, const char *options)
{
	char path[] = "/tmp/kernel-check-XXXXXX", expected[RESOLUTO_ERR_TEXT];
	CLEANUP(fd_close) int root = open_whole_kernel(path);
	struct resoluto_err err = { .code = 0 };

	make_file(root, "proc", "filesystems", list);
	CHECK(kernel_check(root, &err) == -ENODEV);
	snprintf(expected, sizeof(expected), "this kernel lacks %s", options);
	CHECK(strcmp(err.text, expected) == 0);
	remove_kernel(path);
}

static void missing_file_systems_are_named_all_at_once(void)
{
	check_file_systems("nodev\ttmpfs\nnodev\tdevpts\nnodev\tcgroup2\n\tsquashfs\n",
	                   "CONFIG_OVERLAY_FS");
	check_file_systems("nodev\ttmpfs\nnodev\tdevpts\nnodev\toverlay\n",
	                   "CONFIG_SQUASHFS, CONFIG_CGROUPS");
	check_file_systems("", "CONFIG_SQUASHFS, CONFIG_OVERLAY_FS, CONFIG_TMPFS, "
	                       "CONFIG_UNIX98_PTYS, CONFIG_CGROUPS");
}

static void a_name_counts_only_as_a_whole(void)
{
	check_file_systems("nodev\tdevtmpfs\nnodev\tdevpts\nnodev\tcgroup2\n\tsquashfs\n"
	                   "nodev\toverlay\n",
	                   "CONFIG_TMPFS");
}

static void a_kernel_with_nothing_fits_into_the_text(void)
{
	char path[] = "/tmp/kernel-check-XXXXXX";
	CLEANUP(fd_close) int root = -1;
	struct resoluto_err err = { .code = 0 };

	CHECK(mkdtemp(path));
	root = open(path, O_RDONLY | O_DIRECTORY);
	CHECK(kernel_check(root, &err) == -ENODEV);
	CHECK(strstr(err.text, "CONFIG_VIRTIO_MMIO,") && strstr(err.text, "CONFIG_INET"));
	remove_kernel(path);
}

int main(void)
{
	RUN(a_kernel_with_everything_passes);
	RUN(a_missing_driver_is_named);
	RUN(a_bus_without_devices_is_told_from_one_without_drivers);
	RUN(missing_file_systems_are_named_all_at_once);
	RUN(a_name_counts_only_as_a_whole);
	RUN(a_kernel_with_nothing_fits_into_the_text);
	return check_done();
}
