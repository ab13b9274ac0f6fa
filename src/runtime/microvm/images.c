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

#define REMEDY "bash scripts/local-backend-up.sh makes it again"
#define NEWC_MAGIC "07070" /* and 1, or 2 where it has sums */
#define NEWC_END "TRAILER!!!"

enum {
	SEGMENTS_MAX = 64,
	SQUASHFS_SUPERBLOCK = 96,
	SQUASHFS_USED_AT = 40, /* u64 LE: bytes the file system takes */
	NEWC_TAIL = 1024,      /* bytes with the last name in them: archives are filled up to 512 */
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

/* A plain archive ends with a name that says so; one that is packed tells only who unpacks it. */
static int check_initrd(int fd, uint64_t size)
{
	char head[sizeof(NEWC_MAGIC) - 1], tail[NEWC_TAIL];
	const size_t end = strlen(NEWC_END);
	ssize_t n = pread(fd, head, sizeof(head), 0);

	if (n != (ssize_t) sizeof(head) || memcmp(head, NEWC_MAGIC, sizeof(head)) != 0)
		return 0;
	n = pread(fd, tail, sizeof(tail), size > sizeof(tail) ? (off_t) (size - sizeof(tail)) : 0);
	while (n > 0 && tail[n - 1] == '\0')
		n--;
	return n >= (ssize_t) end && memcmp(tail + n - end, NEWC_END, end) == 0 ? 0 : -EBADMSG;
}

static int check_content(int fd, enum image_kind kind, uint64_t size)
{
	if (size == 0)
		return -EBADMSG;
	switch (kind) {
	case IMAGE_KERNEL:
		return check_kernel(fd, size);
	case IMAGE_INITRD:
		return check_initrd(fd, size);
	case IMAGE_ROOTFS:
		return check_squashfs(fd, size);
	}
	return -EINVAL;
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
