/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "guest/disks.h"
#include "guest/mounts.h"

#define HOST_NAME "sandbox"

enum {
	FULL_BYTES = 64 * 1024, /* less free space than this is full */
	INODE_SHARE = 4096,     /* one inode for so many bytes of memory */
};

static const char hosts_text[] = "127.0.0.1\tlocalhost " HOST_NAME "\n::1\tlocalhost\n";
static const char settings_dir[] = "/proc/sys";

static int mount_at(const char *source, const char *target, const char *type, unsigned long flags,
                    const char *options, struct resoluto_err *err)
{
	if (mount(source, target, type, flags, options) < 0)
		return resoluto_fail(err, -errno, "mount %s", target);
	return 0;
}

int mount_image(struct resoluto_err *err)
{
	char disk[DISK_PATH_SIZE];
	int r = disk_find("rootfs", disk);

	if (r < 0)
		return resoluto_fail(err, r, "find the disk with the image");
	return mount_at(disk, "/rootfs", "squashfs", MS_RDONLY | MS_NOSUID | MS_NODEV, NULL, err);
}

static int mount_upper(bool has_scratch, struct resoluto_err *err)
{
	char disk[DISK_PATH_SIZE], options[96];
	struct sysinfo info;
	int r;

	if (has_scratch) {
		r = disk_find("scratch", disk);
		if (r < 0)
			return resoluto_fail(err, r, "find the scratch disk");
		return mount_at(disk, "/upper", "ext4", MS_NOSUID | MS_NODEV | MS_NOATIME,
		                "nobarrier,noinit_itable,discard", err);
	}
	if (sysinfo(&info) < 0)
		return resoluto_fail(err, -errno, "ask for the size of the memory");
	snprintf(options, sizeof(options), "mode=0755,size=%d%%,nr_inodes=%llu", UPPER_PERCENT,
	         (unsigned long long) info.totalram * info.mem_unit / INODE_SHARE);
	return mount_at("tmpfs", "/upper", "tmpfs", MS_NOSUID | MS_NODEV, options, err);
}

static int make_directory(const char *path, mode_t mode)
{
	if (mkdir(path, mode) < 0 && errno != EEXIST)
		return -errno;
	return 0;
}

static int mount_overlay(bool has_scratch, struct resoluto_err *err)
{
	char options[128];
	int r;

	if ((r = make_directory("/upper/files", 0755)) < 0 ||
	    (r = make_directory("/upper/work", 0755)) < 0)
		return resoluto_fail(err, r, "make the upper layer");
	/* The scratch disk is thrown away with the run: nobody needs it to survive a power cut. */
	snprintf(options, sizeof(options),
	         "lowerdir=/rootfs,upperdir=/upper/files,workdir=/upper/work%s",
	         has_scratch ? ",volatile" : "");
	return mount_at("overlay", "/newroot", "overlay", MS_NOSUID | MS_NODEV, options, err);
}

/* A new file in place of whatever the image has there, never through a link of the image. */
static int put_file(const char *path, const char *text, struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = -1;
	int r;

	if (unlink(path) < 0 && errno != ENOENT)
		return resoluto_fail(err, -errno, "replace %s", path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return resoluto_fail(err, -errno, "create %s", path);
	r = write_all(fd, text, strlen(text));
	return r < 0 ? resoluto_fail(err, r, "write %s", path) : 0;
}

/* Directories that must be there for what comes; an image may have nothing but one program. */
static int make_directories(struct resoluto_err *err)
{
	static const struct {
		const char *path;
		mode_t mode;
	} directories[] = {
		{ "/newroot/proc", 0555 }, { "/newroot/sys", 0555 }, { "/newroot/dev", 0755 },
		{ "/newroot/etc", 0755 },  { "/newroot/run", 0755 }, { "/newroot/tmp", 01777 },
	};

	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		struct stat st;

		if (mkdir(directories[i].path, directories[i].mode) < 0 && errno != EEXIST)
			return resoluto_fail(err, -errno, "make %s", directories[i].path);
		/* A link in one of these places would have the rest of the root built elsewhere. */
		if (lstat(directories[i].path, &st) < 0 || !S_ISDIR(st.st_mode))
			return resoluto_fail(err, -ENOTDIR, "%s of the image is not a directory",
			                     directories[i].path + strlen("/newroot"));
	}
	return chmod("/newroot/tmp", 01777) < 0 ? resoluto_fail(err, -errno, "open /tmp for all")
	                                        : 0;
}

static int mount_kernel_views(struct resoluto_err *err)
{
	static const struct {
		const char *type, *target;
		unsigned long flags;
		const char *options;
	} mounts[] = {
		{ "proc", "/newroot/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL },
		{ "sysfs", "/newroot/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL },
		{ "cgroup2", "/newroot/sys/fs/cgroup", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL },
		{ "tmpfs", "/newroot/dev", MS_NOSUID | MS_NOEXEC, "mode=0755,size=64k" },
	};

	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		int r = mount_at(mounts[i].type, mounts[i].target, mounts[i].type, mounts[i].flags,
		                 mounts[i].options, err);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Nothing here reaches the machine: no memory, no disks, no ports, no log of the kernel. */
static int fill_dev(struct resoluto_err *err)
{
	static const struct {
		const char *path;
		unsigned major, minor;
	} nodes[] = {
		{ "/newroot/dev/null", 1, 3 },    { "/newroot/dev/zero", 1, 5 },
		{ "/newroot/dev/full", 1, 7 },    { "/newroot/dev/random", 1, 8 },
		{ "/newroot/dev/urandom", 1, 9 }, { "/newroot/dev/tty", 5, 0 },
	};
	static const char *const links[][2] = {
		{ "pts/ptmx", "/newroot/dev/ptmx" },
		{ "/proc/self/fd", "/newroot/dev/fd" },
		{ "/proc/self/fd/0", "/newroot/dev/stdin" },
		{ "/proc/self/fd/1", "/newroot/dev/stdout" },
		{ "/proc/self/fd/2", "/newroot/dev/stderr" },
	};
	int r;

	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		if (mknod(nodes[i].path, S_IFCHR | 0666, makedev(nodes[i].major, nodes[i].minor)) <
		    0)
			return resoluto_fail(err, -errno, "make %s", nodes[i].path);
	}
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		if (symlink(links[i][0], links[i][1]) < 0)
			return resoluto_fail(err, -errno, "make %s", links[i][1]);
	}
	if ((r = make_directory("/newroot/dev/pts", 0755)) < 0 ||
	    (r = make_directory("/newroot/dev/shm", 01777)) < 0)
		return resoluto_fail(err, r, "make the directories of /dev");
	r = mount_at("devpts", "/newroot/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
	             "newinstance,ptmxmode=0666,mode=0620", err);
	if (r < 0)
		return r;
	return mount_at("tmpfs", "/newroot/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777",
	                err);
}

int mount_root(bool has_scratch, struct resoluto_err *err)
{
	int r = mount_upper(has_scratch, err);

	if (r == 0)
		r = mount_overlay(has_scratch, err);
	if (r == 0)
		r = make_directories(err);
	if (r == 0)
		r = put_file("/newroot/etc/hosts", hosts_text, err);
	if (r == 0)
		r = put_file("/newroot/etc/hostname", HOST_NAME "\n", err);
	if (r == 0)
		r = put_file("/newroot/etc/resolv.conf", "", err);
	if (r == 0)
		r = mount_kernel_views(err);
	return r < 0 ? r : fill_dev(err);
}

int mount_enter_root(struct resoluto_err *err)
{
	/* Moved over the old root, not only entered: else unshare(CLONE_NEWUSER) fails in there. */
	if (chdir("/newroot") < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 ||
	    chdir("/") < 0)
		return resoluto_fail(err, -errno, "enter the root of the image");
	return 0;
}

/* A missing file is an empty one, and so is one that is no file: it is the image's. */
static int read_image_file(const char *path, struct buf *ret)
{
	int r = read_file_at(AT_FDCWD, path, USER_FILE_MAX, ret, NULL);

	return r == -ENOMEM ? r : 0;
}

int mount_resolve_user(const char *spec, struct user *ret_user, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf passwd = BUF_INIT(0);
	CLEANUP(buf_done) struct buf group = BUF_INIT(0);
	struct stat st;
	int r;

	if (read_image_file("/etc/passwd", &passwd) < 0 ||
	    read_image_file("/etc/group", &group) < 0)
		return resoluto_fail(err, -ENOMEM, "read the image's users");
	r = user_resolve(spec, passwd.data, group.data, ret_user, err);
	if (r < 0)
		return r;
	/* A home that the image promises but does not have is none. */
	if (strcmp(ret_user->home, USER_DEFAULT_HOME) != 0 &&
	    (lstat(ret_user->home, &st) < 0 || !S_ISDIR(st.st_mode)))
		snprintf(ret_user->home, sizeof(ret_user->home), "%s", USER_DEFAULT_HOME);
	return 0;
}

static int append_line(const char *path, const char *line, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(0);
	int r = read_image_file(path, &text);

	text.max = USER_FILE_MAX + 1024;
	if (r == 0 && text.len > 0 && text.data[text.len - 1] != '\n')
		r = buf_add_str(&text, "\n");
	if (r == 0)
		r = buf_add_str(&text, line);
	return r < 0 ? resoluto_fail(err, r, "add to %s", path) : put_file(path, text.data, err);
}

int mount_add_user(const struct user *user, struct resoluto_err *err)
{
	CLEANUP(fd_close) int home = -1;
	char line[512];
	int r = 0;

	if (!user->is_in_passwd) {
		snprintf(line, sizeof(line), "%s:x:%u:%u::%s:/bin/sh\n", user->name, user->uid,
		         user->gid, user->home);
		r = append_line("/etc/passwd", line, err);
	}
	if (r == 0 && !user->is_in_group) {
		snprintf(line, sizeof(line), "%s:x:%u:\n", user->name, user->gid);
		r = append_line("/etc/group", line, err);
	}
	if (r < 0 || strcmp(user->home, USER_DEFAULT_HOME) != 0)
		return r;
	home = mount_make_owned(user->home, user, err);
	return home < 0 ? home : 0;
}

int mount_make_owned(const char *path, const struct user *user, struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = -1;
	int r = mkdirs(path, 0755);

	if (r < 0)
		return resoluto_fail(err, r, "make %s", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return resoluto_fail(err, -errno, "open %s", path);
	if (fchown(fd, user->uid, user->gid) < 0)
		return resoluto_fail(err, -errno, "give %s to the user", path);
	return fd_take(&fd);
}

static int bring_up_loopback(struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_name = "lo" };

	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) < 0)
		return resoluto_fail(err, -errno, "look at the loopback device");
	request.ifr_flags |= IFF_UP;
	if (ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		return resoluto_fail(err, -errno, "bring up the loopback device");
	return 0;
}

/* A setting this kernel does not have needs no value. */
static int set_kernel(int dirfd, const char *name, const char *value, struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = openat(dirfd, name, O_WRONLY | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		return resoluto_fail(err, -errno, "set %s to %s", name, value);
	return 0;
}

int mount_set_up_kernel(struct resoluto_err *err)
{
	static const char *const settings[][2] = {
		{ "kernel/dmesg_restrict", "1" },
		{ "kernel/kptr_restrict", "2" },
		{ "kernel/unprivileged_bpf_disabled", "1" },
		{ "kernel/kexec_load_disabled", "1" },
		{ "kernel/modprobe", "\n" },
		{ "kernel/modules_disabled", "1" },
		{ "vm/unprivileged_userfaultfd", "0" },
		{ "fs/protected_hardlinks", "1" },
		{ "fs/protected_symlinks", "1" },
		{ "net/ipv4/ip_unprivileged_port_start", "0" },
	};
	CLEANUP(fd_close) int dir = open(settings_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = 0;

	if (dir < 0)
		return resoluto_fail(err, -errno, "open %s", settings_dir);
	for (size_t i = 0; r == 0 && i < sizeof(settings) / sizeof(settings[0]); i++)
		r = set_kernel(dir, settings[i][0], settings[i][1], err);
	if (r < 0)
		return r;
	if (sethostname(HOST_NAME, strlen(HOST_NAME)) < 0)
		return resoluto_fail(err, -errno, "set the host name");
	return bring_up_loopback(err);
}

bool mount_is_full(void)
{
	struct statfs st;

	return statfs("/", &st) == 0 &&
	       ((uint64_t) st.f_bavail * (uint64_t) st.f_bsize < FULL_BYTES ||
	        (st.f_files > 0 && st.f_ffree == 0));
}
