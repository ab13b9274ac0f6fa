/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "guest/kernel_check.h"

enum { LIST_MAX = 64 * 1024 }; /* bytes of a list in /proc */

/* What is there if the option is: a path, or a line of that list that ends in a word. */
struct part {
	const char *option, *path, *word;
};

static const struct part drivers_and_files[] = {
	{ "CONFIG_VIRTIO_MMIO", "sys/bus/platform/drivers/virtio-mmio", NULL },
	{ "CONFIG_VIRTIO_CONSOLE", "sys/bus/virtio/drivers/virtio_console", NULL },
	{ "CONFIG_VIRTIO_BLK", "sys/bus/virtio/drivers/virtio_blk", NULL },
	{ "CONFIG_SQUASHFS", "proc/filesystems", "squashfs" },
	{ "CONFIG_OVERLAY_FS", "proc/filesystems", "overlay" },
	{ "CONFIG_TMPFS", "proc/filesystems", "tmpfs" },
	{ "CONFIG_UNIX98_PTYS", "proc/filesystems", "devpts" },
	{ "CONFIG_CGROUPS", "proc/filesystems", "cgroup2" },
	{ "CONFIG_INET", "proc/net/tcp", NULL },
	{ NULL, NULL, NULL },
};

static const struct part devices[] = {
	{ "CONFIG_VIRTIO_MMIO_CMDLINE_DEVICES (or CONFIG_ACPI, for the machine with its tables)",
	  "sys/bus/virtio/devices/virtio0", NULL },
	{ NULL, NULL, NULL },
};

static bool has_line_ending_in(const char *text, const char *word)
{
	size_t len = strlen(word);

	while (*text) {
		size_t line = strcspn(text, "\n");

		if (line > len && text[line - len - 1] == '\t' &&
		    memcmp(text + line - len, word, len) == 0)
			return true;
		text += line + (text[line] == '\n');
	}
	return false;
}

static bool is_there(int root, const struct part *part)
{
	CLEANUP(buf_done) struct buf list = BUF_INIT(0);

	if (!part->word)
		return faccessat(root, part->path, F_OK, 0) == 0;
	return read_file_at(root, part->path, LIST_MAX, &list, NULL) == 0 && list.data &&
	       has_line_ending_in(list.data, part->word);
}

static int check(int root, const struct part *parts, struct resoluto_err *err)
{
	char names[RESOLUTO_ERR_TEXT / 2] = "";
	size_t len = 0;

	for (const struct part *part = parts; part->option; part++) {
		if (!is_there(root, part) && len < sizeof(names))
			len += (size_t) snprintf(names + len, sizeof(names) - len, "%s%s",
			                         len > 0 ? ", " : "", part->option);
	}
	return len == 0 ? 0 : resoluto_fail(err, -ENODEV, "this kernel lacks %s", names);
}

int kernel_check(int root, struct resoluto_err *err)
{
	int r = check(root, drivers_and_files, err);

	return r < 0 ? r : check(root, devices, err);
}
