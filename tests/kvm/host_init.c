/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_init.c - the first process of the test host with KVM (docs/design/kvm.md).
 *
 * Its root is what the product disk holds, over what the host disk holds, both read-only, with memory on top.  It runs
 * /job in there to its end and switches the machine off.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest/disks.h"
#include "guest/init.h"

static int mount_kernel_views(struct resoluto_err *err)
{
	static const char *const views[][2] = { { "proc", "/proc" },
		                                { "sysfs", "/sys" },
		                                { "devtmpfs", "/dev" } };

	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
		if (mount(views[i][0], views[i][1], views[i][0], 0, NULL) < 0)
			return resoluto_fail(err, -errno, "mount %s", views[i][1]);
	}
	return 0;
}

static int mount_disk(const char *serial, const char *target, struct resoluto_err *err)
{
	char disk[DISK_PATH_SIZE];

	if (disk_find(serial, disk) < 0)
		return resoluto_fail(err, -ENOENT, "find the disk %s", serial);
	if (mount(disk, target, "squashfs", MS_RDONLY, NULL) < 0)
		return resoluto_fail(err, -errno, "mount the disk %s", serial);
	return 0;
}

static int mount_root(struct resoluto_err *err)
{
	if (mount("tmpfs", "/upper", "tmpfs", 0, NULL) < 0 || mkdir("/upper/files", 0755) < 0 ||
	    mkdir("/upper/work", 0755) < 0)
		return resoluto_fail(err, -errno, "make the upper layer");
	if (mount("overlay", "/newroot", "overlay", 0,
	          "lowerdir=/scratch:/rootfs,upperdir=/upper/files,workdir=/upper/work") < 0)
		return resoluto_fail(err, -errno, "mount the root");
	return 0;
}

static int enter_root(struct resoluto_err *err)
{
	static const char *const kept[] = { "/proc", "/sys", "/dev" };

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		char target[32];

		snprintf(target, sizeof(target), "/newroot%s", kept[i]);
		if (mount(kept[i], target, NULL, MS_MOVE, NULL) < 0)
			return resoluto_fail(err, -errno, "move %s", kept[i]);
	}
	if (chdir("/newroot") < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 ||
	    chdir("/") < 0)
		return resoluto_fail(err, -errno, "enter the root");
	return 0;
}

/* Orphans become children of the first process: it waits for all that end before the job. */
static int run_job(struct resoluto_err *err)
{
	pid_t job = fork();
	int status;

	if (job < 0)
		return resoluto_fail(err, -errno, "start the job");
	if (job == 0) {
		(void) execl("/job", "/job", NULL);
		perror("/job");
		_exit(127);
	}
	while (wait(&status) != job)
		continue;
	printf("host_init: the job ended with status %d\n", status);
	return 0;
}

int main(void)
{
	struct resoluto_err err = { .code = 0 };
	int r = mount_kernel_views(&err);

	if (r == 0)
		r = init_load_modules(&err);
	if (r == 0)
		r = mount_disk("host", "/rootfs", &err);
	if (r == 0)
		r = mount_disk("product", "/scratch", &err);
	if (r == 0)
		r = mount_root(&err);
	if (r == 0)
		r = enter_root(&err);
	if (r == 0)
		r = run_job(&err);
	if (r < 0)
		printf("host_init: %s: %s\n", err.text, strerrordesc_np(-err.code));
	fflush(stdout);
	init_power_off();
	return 1;
}
