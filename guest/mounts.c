/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
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
#include "guest/image_path.h"
#include "guest/mounts.h"
#include "guest/settings.h"

#define HOST_NAME "sandbox"

#define UPPER_DIR "/upper/files"
#define WORK_DIR "/upper/work"

enum {
	PLACE_SIZE = 64, /* of a path in one of the layers */
	MODE_BITS = 07777,
	FULL_BYTES = 64 * 1024, /* less free space than this is full */
	INODE_SHARE = 4096,     /* one inode for so many bytes of memory */
};

static const char hosts_text[] = "127.0.0.1\tlocalhost " HOST_NAME "\n::1\tlocalhost\n";
static const char settings_dir[] = "/proc/sys", lockdown_dir[] = "/sys/kernel/security";
/* Of our own kernel alone (guest-kernel/patches, "net: the loopback device"). */
static const char loopback_due[] = "/proc/sys/net/core/loopback_is_due";

static int mount_at(const char *source, const char *target, const char *type, unsigned long flags,
                    const char *options, struct resoluto_err *err)
{
	if (mount(source, target, type, flags, options) < 0)
		return resoluto_fail(err, -errno, "mount %s as %s", target, type ? type : source);
	return 0;
}

int mount_image(const struct disks *disks, struct resoluto_err *err)
{
	if (!disks->rootfs[0])
		return resoluto_fail(err, -ENOENT, "find the disk with the image");
	return mount_at(disks->rootfs, "/rootfs", "squashfs", MS_RDONLY | MS_NOSUID | MS_NODEV,
	                NULL, err);
}

static int mount_upper(const struct disks *disks, struct resoluto_err *err)
{
	char options[96];
	struct sysinfo info;

	if (disks->scratch[0])
		return mount_at(disks->scratch, "/upper", "ext4", MS_NOSUID | MS_NODEV | MS_NOATIME,
		                "nobarrier,noinit_itable,discard", err);
	if (sysinfo(&info) < 0)
		return resoluto_fail(err, -errno, "ask for the size of the memory");
	snprintf(options, sizeof(options), "mode=0755,size=%d%%,nr_inodes=%llu", UPPER_PERCENT,
	         (unsigned long long) info.totalram * info.mem_unit / INODE_SHARE);
	return mount_at("tmpfs", "/upper", "tmpfs", MS_NOSUID | MS_NODEV, options, err);
}

int mount_put_file(const char *path, const char *text, struct resoluto_err *err)
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

/* A directory that must be there for what comes; an image may have nothing but one program. */
struct place {
	const char *path;
	mode_t mode;
	bool is_fixed; /* that is its mode, whatever the image says */
	bool gets_files;
};

/* In the upper layer, and like the image's where that has one. */
static int make_place(const struct place *place, struct resoluto_err *err)
{
	char image[PLACE_SIZE], upper[PLACE_SIZE];
	struct stat st = { .st_mode = place->mode };
	bool is_there;

	snprintf(image, sizeof(image), "/rootfs%s", place->path);
	snprintf(upper, sizeof(upper), UPPER_DIR "%s", place->path);
	is_there = lstat(image, &st) == 0;
	if (!is_there && errno != ENOENT)
		return resoluto_fail(err, -errno, "look at %s of the image", place->path);
	/* A link in one of these places would have the rest of the root built elsewhere. */
	if (is_there && !S_ISDIR(st.st_mode))
		return resoluto_fail(err, -ENOTDIR, "%s of the image is not a directory",
		                     place->path);
	if (is_there && !place->gets_files &&
	    !(place->is_fixed && (st.st_mode & MODE_BITS) != place->mode))
		return 0;
	if (place->is_fixed)
		st.st_mode = place->mode;
	if (mkdir(upper, 0700) < 0 || chown(upper, st.st_uid, st.st_gid) < 0 ||
	    chmod(upper, st.st_mode & MODE_BITS) < 0)
		return resoluto_fail(err, -errno, "make %s", place->path);
	return 0;
}

/* Before it lies over the image: through the overlay each change would copy what it changes. */
static int fill_upper(struct resoluto_err *err)
{
	static const struct place places[] = {
		{ "/proc", 0555, false, false }, { "/sys", 0555, false, false },
		{ "/dev", 0755, false, false },  { "/run", 0755, false, false },
		{ "/tmp", 01777, true, false },  { "/etc", 0755, false, true },
	};
	int r = 0;

	if (mkdir(UPPER_DIR, 0755) < 0 || mkdir(WORK_DIR, 0755) < 0)
		return resoluto_fail(err, -errno, "make the upper layer");
	for (size_t i = 0; r == 0 && i < sizeof(places) / sizeof(places[0]); i++)
		r = make_place(&places[i], err);
	if (r == 0)
		r = mount_put_file(UPPER_DIR "/etc/hosts", hosts_text, err);
	if (r == 0)
		r = mount_put_file(UPPER_DIR "/etc/hostname", HOST_NAME "\n", err);
	return r < 0 ? r : mount_put_file(UPPER_DIR "/etc/resolv.conf", "", err);
}

static int mount_overlay(const struct disks *disks, struct resoluto_err *err)
{
	char options[128];

	/* The scratch disk is thrown away with the run: nobody needs it to survive a power cut. */
	snprintf(options, sizeof(options),
	         "lowerdir=/rootfs,upperdir=" UPPER_DIR ",workdir=" WORK_DIR "%s",
	         disks->scratch[0] ? ",volatile" : "");
	return mount_at("overlay", "/newroot", "overlay", MS_NOSUID | MS_NODEV, options, err);
}

static int mount_kernel_views(struct resoluto_err *err)
{
	static const struct {
		const char *type, *target;
		unsigned long flags;
		const char *options;
	} mounts[] = {
		{ "proc", "/views/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL },
		{ "sysfs", "/views/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL },
		{ "cgroup2", "/views/sys/fs/cgroup", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL },
		{ "tmpfs", "/views/dev", MS_NOSUID | MS_NOEXEC, "mode=0755,size=64k" },
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
		{ "/views/dev/null", 1, 3 },    { "/views/dev/zero", 1, 5 },
		{ "/views/dev/full", 1, 7 },    { "/views/dev/random", 1, 8 },
		{ "/views/dev/urandom", 1, 9 }, { "/views/dev/tty", 5, 0 },
	};
	static const char *const links[][2] = {
		{ "pts/ptmx", "/views/dev/ptmx" },
		{ "/proc/self/fd", "/views/dev/fd" },
		{ "/proc/self/fd/0", "/views/dev/stdin" },
		{ "/proc/self/fd/1", "/views/dev/stdout" },
		{ "/proc/self/fd/2", "/views/dev/stderr" },
	};

	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		if (mknod(nodes[i].path, S_IFCHR | 0666, makedev(nodes[i].major, nodes[i].minor)) <
		    0)
			return resoluto_fail(err, -errno, "make %s", nodes[i].path);
	}
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		if (symlink(links[i][0], links[i][1]) < 0)
			return resoluto_fail(err, -errno, "make %s", links[i][1]);
	}
	if (mkdir("/views/dev/pts", 0755) < 0 || mkdir("/views/dev/shm", 01777) < 0)
		return resoluto_fail(err, -errno, "make the directories of /dev");
	return mount_at("tmpfs", "/views/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777", err);
}

int mount_views(struct resoluto_err *err)
{
	int r = mount_kernel_views(err);

	return r < 0 ? r : fill_dev(err);
}

static int move_views(struct resoluto_err *err)
{
	static const char *const views[][2] = {
		{ "/views/proc", "/newroot/proc" },
		{ "/views/sys", "/newroot/sys" },
		{ "/views/dev", "/newroot/dev" },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(views) / sizeof(views[0]); i++)
		r = mount_at(views[i][0], views[i][1], NULL, MS_MOVE, NULL, err);
	return r;
}

static int mount_terminals(struct resoluto_err *err)
{
	return mount_at("devpts", "/newroot/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
	                "newinstance,ptmxmode=0666,mode=0620", err);
}

int mount_root(const struct disks *disks, struct resoluto_err *err)
{
	int r = mount_upper(disks, err);

	if (r == 0)
		r = fill_upper(err);
	if (r == 0)
		r = mount_overlay(disks, err);
	if (r == 0)
		r = move_views(err);
	return r < 0 ? r : mount_terminals(err);
}

int mount_enter_root(struct resoluto_err *err)
{
	/* The kernel's threads have the first process's root: a program that the kernel starts by itself, as root
	 * (/sbin/request-key), would be the image's.  In the old root nothing is started any more. */
	if (unshare(CLONE_FS) < 0 ||
	    mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_NOEXEC | MS_NOSUID, NULL) < 0)
		return resoluto_fail(err, -errno, "leave the kernel's own root");
	/* Moved over the old root, not only entered: else unshare(CLONE_NEWUSER) fails in there. */
	if (chdir("/newroot") < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 ||
	    chdir("/") < 0)
		return resoluto_fail(err, -errno, "enter the root of the image");
	return 0;
}

int mount_read_image_file(const char *path, size_t max, struct buf *ret)
{
	CLEANUP(fd_close) int fd = image_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int r;

	*ret = BUF_INIT(max);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	r = read_rest(fd, ret);
	if (r < 0)
		buf_done(ret);
	return r == -ENOMEM ? r : 0;
}

static int resolve_user(const char *spec, const struct buf *passwd, const struct buf *group,
                        struct user *ret_user, struct resoluto_err *err)
{
	struct stat st;
	int r = user_resolve(spec, passwd->data, group->data, ret_user, err);

	if (r < 0)
		return r;
	/* A home that the image promises but does not have is none. */
	if (strcmp(ret_user->home, USER_DEFAULT_HOME) != 0 &&
	    (lstat(ret_user->home, &st) < 0 || !S_ISDIR(st.st_mode)))
		snprintf(ret_user->home, sizeof(ret_user->home), "%s", USER_DEFAULT_HOME);
	return 0;
}

static int add_line(const char *path, struct buf *text, const char *line, struct resoluto_err *err)
{
	int r = 0;

	text->max = USER_FILE_MAX + 1024;
	if (text->len > 0 && text->data[text->len - 1] != '\n')
		r = buf_add_str(text, "\n");
	if (r == 0)
		r = buf_add_str(text, line);
	return r < 0 ? resoluto_fail(err, r, "add to %s", path)
	             : mount_put_file(path, text->data, err);
}

/* The lines the image lacks. */
static int add_user(const struct user *user, struct buf *passwd, struct buf *group,
                    struct resoluto_err *err)
{
	char line[512];
	int r = 0;

	if (!user->is_in_passwd) {
		snprintf(line, sizeof(line), "%s:x:%u:%u::%s:/bin/sh\n", user->name, user->uid,
		         user->gid, user->home);
		r = add_line("/etc/passwd", passwd, line, err);
	}
	if (r == 0 && !user->is_in_group) {
		snprintf(line, sizeof(line), "%s:x:%u:\n", user->name, user->gid);
		r = add_line("/etc/group", group, line, err);
	}
	return r;
}

int mount_read_users(struct image_users *ret, struct resoluto_err *err)
{
	if (mount_read_image_file("/etc/passwd", USER_FILE_MAX, &ret->passwd) < 0 ||
	    mount_read_image_file("/etc/group", USER_FILE_MAX, &ret->group) < 0)
		return resoluto_fail(err, -ENOMEM, "read the image's users");
	return 0;
}

void image_users_done(struct image_users *users)
{
	buf_done(&users->passwd);
	buf_done(&users->group);
}

int mount_settle_user(const char *spec, struct image_users *users, struct user *ret_user,
                      struct resoluto_err *err)
{
	CLEANUP(fd_close) int home = -1;
	int r = resolve_user(spec, &users->passwd, &users->group, ret_user, err);

	if (r == 0)
		r = add_user(ret_user, &users->passwd, &users->group, err);
	if (r < 0 || strcmp(ret_user->home, USER_DEFAULT_HOME) != 0)
		return r;
	home = mount_make_owned(ret_user->home, ret_user, err);
	return home < 0 ? home : 0;
}

int mount_make_owned(const char *path, const struct user *user, struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = image_make_dir(path, 0755);
	struct stat st;

	if (fd < 0)
		return resoluto_fail(err, fd, "make %s", path);
	if (fstat(fd, &st) < 0)
		return resoluto_fail(err, -errno, "look at %s", path);
	/* One that is right already is not copied into the upper layer. */
	if ((st.st_uid != user->uid || st.st_gid != user->gid) &&
	    fchown(fd, user->uid, user->gid) < 0)
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

int mount_set_up_kernel(struct kernel_done *done, struct resoluto_err *err)
{
	int r = settings_apply(settings_dir, &done->settings, err);

	if (r < 0 || done->rest)
		return r;
	r = settings_lock_down(lockdown_dir, err);
	if (r < 0)
		return r;
	if (sethostname(HOST_NAME, strlen(HOST_NAME)) < 0)
		return resoluto_fail(err, -errno, "set the host name");
	/* Our own kernel brings it up for the first program that could notice. */
	if (access(loopback_due, F_OK) < 0)
		r = bring_up_loopback(err);
	done->rest = r == 0;
	return r;
}

void mount_bring_up_loopback(void)
{
	CLEANUP(fd_close) int fd = open(loopback_due, O_WRONLY | O_CLOEXEC);

	/* Where it fails, who needs it waits for it. */
	(void) !(fd >= 0 && write(fd, "0", 1));
}

/* The overlay is volatile there: nothing is written out for this, it only remembers failures. */
bool mount_has_lost(void)
{
	CLEANUP(fd_close) int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && syncfs(fd) < 0;
}

bool mount_is_full(void)
{
	struct statfs st;

	return statfs("/", &st) == 0 &&
	       ((uint64_t) st.f_bavail * (uint64_t) st.f_bsize < FULL_BYTES ||
	        (st.f_files > 0 && st.f_ffree == 0));
}
