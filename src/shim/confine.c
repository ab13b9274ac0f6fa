/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/sockios.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/filter.h"
#include "base/landlock.h"
#include "shim/confine.h"

int confine_check(unsigned *ret_landlock, struct resoluto_err *err)
{
	const uint32_t action = SECCOMP_RET_KILL_PROCESS;
	int version = landlock_version();

	if (version < 1)
		return resoluto_fail(
			err, -EOPNOTSUPP,
			"this kernel has no landlock, which keeps QEMU from the host's files; "
			"boot with it in the kernel's lsm= list");
	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0)
		return resoluto_fail(err, -EOPNOTSUPP,
		                     "this kernel has no seccomp filters, which keep QEMU from its "
		                     "system calls");
	*ret_landlock = (unsigned) version;
	return 0;
}

static uint64_t place_rights(unsigned rights, bool is_dir)
{
	uint64_t fs = 0;

	if (rights & (CONFINE_READ | CONFINE_TREE))
		fs |= LANDLOCK_ACCESS_FS_READ_FILE | (is_dir ? LANDLOCK_ACCESS_FS_READ_DIR : 0);
	if (rights & CONFINE_EXEC)
		fs |= LANDLOCK_ACCESS_FS_EXECUTE;
	if (rights & (CONFINE_WRITE | CONFINE_TREE))
		fs |= LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_FS_TRUNCATE | LANDLOCK_FS_IOCTL_DEV;
	if (rights & CONFINE_TREE)
		fs |= LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR |
		      LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR;
	return fs;
}

static int add_place(int ruleset, const struct confine_place *place, uint64_t handled)
{
	CLEANUP(fd_close) int opened = -1;
	struct stat st;
	int fd;

	if (place->path)
		opened = open(place->path, O_PATH | O_CLOEXEC);
	if (place->path && opened < 0)
		return errno == ENOENT ? 0 : -errno;
	fd = place->path ? opened : place->fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return landlock_give_files(ruleset, fd,
	                           place_rights(place->rights, S_ISDIR(st.st_mode)) & handled);
}

int confine_ruleset(const struct confine_place *places, size_t count, bool cage_signals,
                    int *ret_ruleset, struct resoluto_err *err)
{
	CLEANUP(fd_close) int ruleset = -1;
	struct landlock_taken taken = landlock_all(landlock_version());

	if (!cage_signals)
		taken.scopes &= ~(uint64_t) LANDLOCK_SCOPE_SIGNALS;
	ruleset = landlock_new(&taken);
	if (ruleset < 0)
		return resoluto_fail(err, ruleset, "make a landlock ruleset");
	for (size_t i = 0; i < count; i++) {
		int r = add_place(ruleset, &places[i], taken.files);

		if (r < 0)
			return resoluto_fail(err, r, "allow %s in landlock",
			                     places[i].path ? places[i].path : "an inherited file");
	}
	*ret_ruleset = fd_take(&ruleset);
	return 0;
}

int confine_enter(int ruleset)
{
	return landlock_enter(ruleset);
}

/* QEMU of its own never does these; the descriptors it needs, it inherits. */
static const char *const qemu_never[] = {
	/* new connections */
	"socket",
	"socketpair",
	"connect",
	"bind",
	"listen",
	"accept",
	"accept4",
	"socketcall",
	/* other processes */
	"fork",
	"vfork",
	"execve",
	"ptrace",
	"process_vm_readv",
	"process_vm_writev",
	"kcmp",
	"kill",
	"tkill",
	"rt_sigqueueinfo",
	"rt_tgsigqueueinfo",
	"pidfd_open",
	"pidfd_getfd",
	"pidfd_send_signal",
	"process_madvise",
	"process_mrelease",
	"migrate_pages",
	"move_pages",
	"setpriority",
	"ioprio_set",
	/* the names and rights of files: landlock does not know these */
	"chmod",
	"fchmod",
	"fchmodat",
	"fchmodat2",
	"chown",
	"lchown",
	"fchown",
	"fchownat",
	"setxattr",
	"lsetxattr",
	"fsetxattr",
	"removexattr",
	"lremovexattr",
	"fremovexattr",
	"setxattrat",
	"removexattrat",
	"utime",
	"utimes",
	"utimensat",
	"futimesat",
	"truncate",
	"open_by_handle_at",
	"name_to_handle_at",
	"inotify_init",
	"inotify_init1",
	"fanotify_init",
	"chroot",
	"mknod",
	"mknodat",
	/* namespaces and mounts */
	"unshare",
	"setns",
	"mount",
	"umount",
	"umount2",
	"move_mount",
	"open_tree",
	"open_tree_attr",
	"fsopen",
	"fsmount",
	"fsconfig",
	"fspick",
	"mount_setattr",
	"pivot_root",
	"quotactl",
	"quotactl_fd",
	"swapon",
	"swapoff",
	/* the kernel's own */
	"bpf",
	"perf_event_open",
	"userfaultfd",
	"keyctl",
	"add_key",
	"request_key",
	"kexec_load",
	"kexec_file_load",
	"init_module",
	"finit_module",
	"delete_module",
	"reboot",
	"acct",
	"syslog",
	"iopl",
	"ioperm",
	"modify_ldt",
	"lookup_dcookie",
	"nfsservctl",
	"settimeofday",
	"clock_settime",
	"clock_adjtime",
	"adjtimex",
	"stime",
	"sethostname",
	"setdomainname",
	"vhangup",
	"personality",
	/* who it is */
	"setuid",
	"setgid",
	"setreuid",
	"setregid",
	"setresuid",
	"setresgid",
	"setgroups",
	"setfsuid",
	"setfsgid",
	"capset",
	/* memory shared with others by a key */
	"shmget",
	"shmat",
	"shmctl",
	"semget",
	"semop",
	"semctl",
	"semtimedop",
	"msgget",
	"msgsnd",
	"msgrcv",
	"msgctl",
	"mq_open",
	"mq_unlink",
	NULL,
};

/* QEMU and its libraries try these and do well without. */
static const char *const qemu_without[] = {
	"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", NULL,
};

/* The kernel signals in its name, other processes of its uid too; or lets those wait who open a file. */
static const uint32_t qemu_never_fcntl[] = {
	F_SETOWN, F_SETOWN_EX, F_SETSIG, F_SETLEASE, F_NOTIFY,
};
static const uint32_t qemu_never_ioctl[] = { FIOSETOWN, SIOCSPGRP };

static int add_qemu_commands(scmp_filter_ctx filter)
{
	const uint32_t end = SCMP_ACT_KILL_PROCESS;
	int r = filter_add_values(filter, end, SCMP_SYS(fcntl), 1, qemu_never_fcntl,
	                          sizeof(qemu_never_fcntl) / sizeof(qemu_never_fcntl[0]));

	return r < 0 ? r
	             : filter_add_values(filter, end, SCMP_SYS(ioctl), 1, qemu_never_ioctl,
	                                 sizeof(qemu_never_ioctl) / sizeof(qemu_never_ioctl[0]));
}

static int add_qemu_conditions(scmp_filter_ctx filter, int exec_fd)
{
	const uint32_t end = SCMP_ACT_KILL_PROCESS;
	int r;

	/* The exec that starts QEMU; the descriptor is closed by it. */
	r = filter_add_if(filter, end, SCMP_SYS(execveat), 0, SCMP_CMP_NE, (scmp_datum_t) exec_fd,
	                  0);
	if (r == 0)
		r = filter_add_if(filter, end, SCMP_SYS(execveat), 4, SCMP_CMP_NE, AT_EMPTY_PATH,
		                  0);
	/* Threads only. */
	if (r == 0)
		r = filter_add_if(filter, end, SCMP_SYS(clone), 0, SCMP_CMP_MASKED_EQ, CLONE_THREAD,
		                  0);
	if (r == 0)
		r = filter_add_if(filter, end, SCMP_SYS(tgkill), 0, SCMP_CMP_NE,
		                  (scmp_datum_t) getpid(), 0);
	if (r == 0)
		r = filter_add_if(filter, end, SCMP_SYS(prlimit64), 0, SCMP_CMP_NE, 0, 0);
	return r;
}

int confine_qemu_calls(int exec_fd)
{
	CLEANUP(filter_done) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int r;

	if (!filter)
		return -ENOMEM;
	r = filter_add_names(filter, SCMP_ACT_KILL_PROCESS, qemu_never);
	if (r == 0)
		r = filter_add_names(filter, SCMP_ACT_ERRNO(ENOSYS), qemu_without);
	if (r == 0)
		r = add_qemu_conditions(filter, exec_fd);
	if (r == 0)
		r = add_qemu_commands(filter);
	return r < 0 ? r : filter_load(filter);
}

static const char *const shim_calls[] = {
	/* its sockets, pipes and files */
	"read",
	"readv",
	"pread64",
	"write",
	"writev",
	"pwrite64",
	"recvfrom",
	"recvmsg",
	"sendto",
	"sendmsg",
	"close",
	"lseek",
	"fstat",
	"newfstatat",
	"statx",
	"shutdown",
	/* objects and state, beneath what landlock leaves */
	"openat",
	"openat2",
	"mkdirat",
	"renameat",
	"renameat2",
	"unlinkat",
	"fchmod",
	"ftruncate",
	"fsync",
	"fdatasync",
	"syncfs",
	"fstatfs",
	/* waiting */
	"epoll_wait",
	"epoll_pwait",
	"epoll_pwait2",
	"epoll_ctl",
	"poll",
	"ppoll",
	"nanosleep",
	"clock_nanosleep",
	"restart_syscall",
	"waitid",
	"wait4",
	"sched_yield",
	NULL,
};

/* Its own is the first; C libraries do the others where they make or wrap a descriptor. */
static const uint32_t shim_fcntl[] = { F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL };

static int add_shim_conditions(scmp_filter_ctx filter, int qemu_pidfd)
{
	const uint32_t allow = SCMP_ACT_ALLOW;
	int r = filter_add_if(filter, allow, SCMP_SYS(pidfd_send_signal), 0, SCMP_CMP_EQ,
	                      (scmp_datum_t) qemu_pidfd, 0);

	if (r == 0)
		r = filter_add_values(filter, allow, SCMP_SYS(fcntl), 1, shim_fcntl,
		                      sizeof(shim_fcntl) / sizeof(shim_fcntl[0]));
	/* abort() */
	if (r == 0)
		r = filter_add_if(filter, allow, SCMP_SYS(tgkill), 0, SCMP_CMP_EQ,
		                  (scmp_datum_t) getpid(), 0);
	/* No new code. */
	if (r == 0)
		r = filter_add_if(filter, allow, SCMP_SYS(mmap), 2, SCMP_CMP_MASKED_EQ, PROT_EXEC,
		                  0);
	if (r == 0)
		r = filter_add_if(filter, allow, SCMP_SYS(mprotect), 2, SCMP_CMP_MASKED_EQ,
		                  PROT_EXEC, 0);
	return r;
}

/* Anything else fails with EPERM: a C library that tries a newer call first goes on with the old one. */
int confine_shim_calls(int qemu_pidfd)
{
	CLEANUP(filter_done) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r;

	if (!filter)
		return -ENOMEM;
	r = filter_add_names(filter, SCMP_ACT_ALLOW, shim_calls);
	if (r == 0)
		r = filter_add_names(filter, SCMP_ACT_ALLOW, filter_plain_calls);
	if (r == 0)
		r = add_shim_conditions(filter, qemu_pidfd);
	return r < 0 ? r : filter_load(filter);
}
