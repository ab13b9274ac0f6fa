/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/init.h"

static const char modules_dir[] = "/modules";
/* In the last file system of init_mount_early(). */
static const char last_mounted[] = "/sys/fs/cgroup/cgroup.procs";

int init_mount_early(struct resoluto_err *err)
{
	static const struct {
		const char *type, *target, *option;
		unsigned long flags;
	} mounts[] = {
		{ "proc", "/proc", "CONFIG_PROC_FS", MS_NOSUID | MS_NODEV | MS_NOEXEC },
		{ "sysfs", "/sys", "CONFIG_SYSFS", MS_NOSUID | MS_NODEV | MS_NOEXEC },
		{ "devtmpfs", "/dev", "CONFIG_DEVTMPFS", MS_NOSUID | MS_NOEXEC },
		/* last_mounted is in here. */
		{ "cgroup2", "/sys/fs/cgroup", "CONFIG_CGROUPS", MS_NOSUID | MS_NODEV | MS_NOEXEC },
	};

	/* Everybody's by default, where it is a tmpfs: and the kernel starts programs out of it. */
	if (chmod("/", 0755) < 0)
		return resoluto_fail(err, -errno, "take the initramfs for root");
	/* The last of them is there: /early was. */
	if (access(last_mounted, F_OK) == 0)
		return 1;
	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		/* EBUSY: a kernel that mounts devtmpfs by itself did. */
		int r = mount(mounts[i].type, mounts[i].target, mounts[i].type, mounts[i].flags,
		              NULL);

		if (r < 0 && errno == ENODEV)
			return resoluto_fail(err, -errno, "this kernel lacks %s", mounts[i].option);
		if (r < 0 && errno != EBUSY)
			return resoluto_fail(err, -errno, "mount %s", mounts[i].target);
	}
	return 0;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int load_module(const char *name, struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = -1;
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", modules_dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return resoluto_fail(err, -errno, "open %s", path);
	if (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST)
		return resoluto_fail(err, -errno, "load the module %s", name);
	/* The file lies in memory: give it back.  (A template is the smaller for it, too.) */
	(void) unlink(path);
	return 0;
}

int init_load_modules(struct resoluto_err *err)
{
	struct dirent **entries;
	int count = scandir(modules_dir, &entries, is_visible, alphasort), r = 0;

	if (count < 0)
		return errno == ENOENT ? 0 : resoluto_fail(err, -errno, "list %s", modules_dir);
	for (int i = 0; i < count; i++) {
		if (r == 0)
			r = load_module(entries[i]->d_name, err);
		free(entries[i]);
	}
	free(entries);
	return r;
}

int init_harden_self(struct resoluto_err *err)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return resoluto_fail(err, -errno, "become undumpable");
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return resoluto_fail(err, -errno, "ignore SIGPIPE");
	return 0;
}

/* By ACPI or by PSCI, of which the device tree tells; a machine with neither can only be reset. */
static bool can_power_off(void)
{
	return access("/sys/firmware/acpi", F_OK) == 0 ||
	       access("/sys/firmware/devicetree/base/psci", F_OK) == 0;
}

void init_power_off(void)
{
	(void) reboot(can_power_off() ? RB_POWER_OFF : RB_AUTOBOOT);
}
