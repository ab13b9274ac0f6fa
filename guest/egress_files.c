/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "guest/egress_files.h"
#include "guest/mounts.h"

enum { NSSWITCH_MAX = 64 * 1024 }; /* bytes of the image's file that are taken over */

static const char resolv_conf[] = "nameserver 127.0.0.1\n";
static const char hosts_line[] = "hosts: files dns\n";

static bool is_hosts_line(const char *line)
{
	line += strspn(line, " \t");
	if (strncmp(line, "hosts", 5) != 0)
		return false;
	line += 5;
	return line[strspn(line, " \t")] == ':';
}

int egress_nsswitch(const char *text, struct buf *out)
{
	int r = 0;

	while (r == 0 && text && *text) {
		size_t len = strcspn(text, "\n");

		if (!is_hosts_line(text))
			r = buf_add(out, text, len);
		if (r == 0 && !is_hosts_line(text))
			r = buf_add_str(out, "\n");
		text += len + (text[len] == '\n');
	}
	return r < 0 ? r : buf_add_str(out, hosts_line);
}

int egress_files_write(struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf old = BUF_INIT(0);
	CLEANUP(buf_done) struct buf new = BUF_INIT(NSSWITCH_MAX + sizeof(hosts_line) + 1);
	int r = mount_read_image_file("/etc/nsswitch.conf", NSSWITCH_MAX, &old);

	if (r < 0 || egress_nsswitch(old.data, &new) < 0)
		return resoluto_fail(err, -ENOMEM, "write /etc/nsswitch.conf");
	r = mount_put_file("/etc/nsswitch.conf", new.data, err);
	return r < 0 ? r : mount_put_file("/etc/resolv.conf", resolv_conf, err);
}
