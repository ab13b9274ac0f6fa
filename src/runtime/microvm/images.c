/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "runtime/microvm/images.h"
#include "wire/frame.h"

#define REMEDY "run scripts/local-backend-up.sh again"

enum {
	SEGMENTS_MAX = 64,
	SQUASHFS_SUPERBLOCK = 96,
	SQUASHFS_USED_AT = 40, /* u64 LE: bytes the file system takes */
};

static const struct {
	const char *what, *remedy;
} kinds[] = {
	[IMAGE_KERNEL] = { "guest kernel", REMEDY },
	[IMAGE_INITRD] = { "guest initramfs", REMEDY },
	[IMAGE_ROOTFS] = { "image",
	                   "remove it from the cache (image rm) and let it be made again" },
};

static int check_segments(int fd, const Elf64_Ehdr *header, uint64_t size)
{
	Elf64_Phdr segments[SEGMENTS_MAX];
	const size_t wanted = header->e_phnum * sizeof(segments[0]);

	if (header->e_phentsize != sizeof(segments[0]) || header->e_phnum > SEGMENTS_MAX)
		return -EBADMSG;
	if (pread(fd, segments, wanted, (off_t) header->e_phoff) != (ssize_t) wanted)
		return -EBADMSG;
	for (int i = 0; i < header->e_phnum; i++) {
		if (segments[i].p_offset > size ||
		    segments[i].p_filesz > size - segments[i].p_offset)
			return -EBADMSG;
	}
	return 0;
}

static int check_kernel(int fd, uint64_t size)
{
	Elf64_Ehdr header;
	ssize_t n = pread(fd, &header, sizeof(header), 0);

	if (n != (ssize_t) sizeof(header))
		return -EBADMSG;
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return 0;
	return header.e_ident[EI_CLASS] == ELFCLASS64 ? check_segments(fd, &header, size)
	                                              : -EBADMSG;
}

static int check_squashfs(int fd, uint64_t size)
{
	unsigned char block[SQUASHFS_SUPERBLOCK];

	if (pread(fd, block, sizeof(block), 0) != (ssize_t) sizeof(block) ||
	    memcmp(block, "hsqs", 4) != 0)
		return -EBADMSG;
	return frame_le64(block + SQUASHFS_USED_AT) <= size ? 0 : -EBADMSG;
}

static int check_content(int fd, enum image_kind kind, uint64_t size)
{
	if (size == 0)
		return -EBADMSG;
	if (kind == IMAGE_KERNEL)
		return check_kernel(fd, size);
	return kind == IMAGE_ROOTFS ? check_squashfs(fd, size) : 0;
}

int image_open(const char *path, enum image_kind kind, bool for_others, int *ret_fd,
               struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return resoluto_fail(err, -errno, "open the %s %s (%s)", kinds[kind].what, path,
		                     kinds[kind].remedy);
	if (fstat(fd, &st) < 0)
		return resoluto_fail(err, -errno, "look at the %s %s", kinds[kind].what, path);
	if (!S_ISREG(st.st_mode))
		return resoluto_fail(err, -EINVAL, "the %s %s is not a file", kinds[kind].what,
		                     path);
	if (for_others && !(st.st_mode & S_IROTH))
		return resoluto_fail(
			err, -EACCES,
			"the %s %s is not readable for the user that runs QEMU; chmod o+r it",
			kinds[kind].what, path);
	if (check_content(fd, kind, (uint64_t) st.st_size) < 0)
		return resoluto_fail(err, -EBADMSG, "the %s %s is damaged or truncated; %s",
		                     kinds[kind].what, path, kinds[kind].remedy);
	*ret_fd = fd_take(&fd);
	return 0;
}
