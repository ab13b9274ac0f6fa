/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kvm.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "runtime/microvm/host.h"

enum { PROC_TEXT_MAX = 64 * 1024 };

static int find_kib(const char *text, const char *name, uint64_t *ret_bytes)
{
	const char *at = strstr(text, name);
	uint64_t kib;

	if (!at || sscanf(at + strlen(name), ": %" SCNu64 " kB", &kib) != 1)
		return -EBADMSG;
	*ret_bytes = kib * 1024;
	return 0;
}

int host_memory_parse(const char *text, struct host_memory *ret_memory)
{
	int r = find_kib(text, "MemTotal", &ret_memory->total);

	return r < 0 ? r : find_kib(text, "MemAvailable", &ret_memory->available);
}

int host_memory(struct host_memory *ret_memory, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(0);
	int r = read_file_at(AT_FDCWD, "/proc/meminfo", PROC_TEXT_MAX, &text, err);

	if (r < 0)
		return r;
	r = text.data ? host_memory_parse(text.data, ret_memory) : -EBADMSG;
	return r < 0 ? resoluto_fail(err, r, "read the size of this host's memory") : 0;
}

int host_boot_id(char ret_id[BOOT_ID_SIZE], struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(0);
	int r = read_file_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", PROC_TEXT_MAX, &text,
	                     err);

	if (r < 0)
		return r;
	if (text.len < BOOT_ID_SIZE - 1)
		return resoluto_fail(err, -EBADMSG, "read this host's boot id");
	text.data[BOOT_ID_SIZE - 1] = '\0';
	if (!is_boot_id(text.data))
		return resoluto_fail(err, -EBADMSG, "read this host's boot id");
	memcpy(ret_id, text.data, BOOT_ID_SIZE);
	return 0;
}

static bool group_may(const struct stat *st)
{
	return st->st_gid != 0 && (st->st_mode & (S_IRGRP | S_IWGRP)) == (S_IRGRP | S_IWGRP);
}

struct host_kvm host_kvm(void)
{
	CLEANUP(fd_close) int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return (struct host_kvm){ .state = KVM_CLOSED, .code = -errno };
	if (ioctl(fd, KVM_GET_API_VERSION, 0) != KVM_API_VERSION)
		return (struct host_kvm){ .state = KVM_OTHER };
	if (geteuid() != 0 || (st.st_mode & (S_IROTH | S_IWOTH)) == (S_IROTH | S_IWOTH))
		return (struct host_kvm){ .state = KVM_USABLE };
	if (!group_may(&st))
		return (struct host_kvm){ .state = KVM_ROOTS_ALONE };
	return (struct host_kvm){ .state = KVM_USABLE, .gid = st.st_gid };
}
