/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <ctype.h>
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
	SQUASHFS_USED_AT = 40,        /* u64 LE: bytes the file system takes */
	NEWC_HEAD = 110,              /* bytes of a member before its name */
	NEWC_FILE_AT = 54,            /* in it: size of the file, 8 digits */
	NEWC_NAME_AT = 94,            /* and of the name, with its 0 */
	NEWC_MEMBERS_MAX = 64 * 1024, /* that are looked at */
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

/* Of eight hexadecimal digits. */
static bool read_newc(const char *at, uint64_t *ret)
{
	*ret = 0;
	for (int i = 0; i < 8; i++) {
		if (!isxdigit((unsigned char) at[i]))
			return false;
		*ret = *ret * 16 +
		       (uint64_t) (at[i] <= '9' ? at[i] - '0' : (at[i] | 0x20) - 'a' + 10);
	}
	return true;
}

static uint64_t align_newc(uint64_t at)
{
	return (at + 3) & ~UINT64_C(3);
}

/* From one member to the next.  1: it was the last, 0, -EBADMSG. */
static int next_member(int fd, uint64_t *at)
{
	char head[NEWC_HEAD + sizeof(NEWC_END)];
	ssize_t n = pread(fd, head, sizeof(head), (off_t) *at);
	uint64_t file, name;

	if (n < NEWC_HEAD || memcmp(head, NEWC_MAGIC, strlen(NEWC_MAGIC)) != 0 ||
	    !read_newc(head + NEWC_FILE_AT, &file) || !read_newc(head + NEWC_NAME_AT, &name))
		return -EBADMSG;
	if (name == sizeof(NEWC_END) && n == (ssize_t) sizeof(head) &&
	    memcmp(head + NEWC_HEAD, NEWC_END, sizeof(NEWC_END)) == 0)
		return 1;
	*at = align_newc(align_newc(*at + NEWC_HEAD + name) + file);
	return 0;
}

/* A plain archive has a last member that says so; what stands behind it is the kernel's.  One that is packed tells only who
 * unpacks it. */
static int check_initrd(int fd, uint64_t size)
{
	char magic[sizeof(NEWC_MAGIC) - 1];
	uint64_t at = 0;
	int r = 0;

	if (pread(fd, magic, sizeof(magic), 0) != (ssize_t) sizeof(magic) ||
	    memcmp(magic, NEWC_MAGIC, sizeof(magic)) != 0)
		return 0;
	for (int i = 0; r == 0 && i < NEWC_MEMBERS_MAX; i++)
		r = at > size ? -EBADMSG : next_member(fd, &at);
	return r < 0 ? r : 0;
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
