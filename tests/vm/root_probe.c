/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root_probe.c - what root of the guest can do before and after the runner has set the kernel up.
 *
 * It stands in the initramfs in the runner's place.  As the first process it makes its attempts, then becomes
 * the runner (/runner) and leaves a child behind, in the initramfs and with all rights.  Once the workload (`sleep`)
 * runs, the child makes its attempts again and ends the workload.  Each attempt is a line on the console:
 * "root-probe: WHEN NAME OUTCOME", the outcome "ok" or an errno by name.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __x86_64__
#include <sys/io.h>
#endif

#define RUNNER "/runner"
#define HELPER "helper"
#define HELPER_MARK "/helper-ran"
#define SPARE_MODULE "/spare.ko"

static const char *when;

static void tell(const char *name, long result)
{
	printf("root-probe: %s %s %s\n", when, name, result >= 0 ? "ok" : strerrorname_np(errno));
	fflush(stdout);
}

static long open_and_close(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd;
}

static void try_modules(void)
{
	int fd = open(SPARE_MODULE, O_RDONLY | O_CLOEXEC);

	tell("init_module", syscall(SYS_init_module, "no module at all", 16, ""));
	tell("finit_module", syscall(SYS_finit_module, fd, "", 0));
	close(fd);
}

static void try_kexec(void)
{
	tell("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0));
	tell("kexec_file_load", syscall(SYS_kexec_file_load, -1, -1, 0, "", 0));
}

static void try_node(const char *name, unsigned major, unsigned minor)
{
	char path[40];

	snprintf(path, sizeof(path), "/node-%u-%u", major, minor);
	(void) mknod(path, S_IFCHR | 0600, makedev(major, minor));
	tell(name, open_and_close(path, O_RDWR));
}

static void try_memory(void)
{
	try_node("/dev/mem", 1, 1);
	try_node("/dev/kmem", 1, 2);
	try_node("/dev/port", 1, 4);
	try_node("msr", 202, 0);
	try_node("tun", 10, 200);
#ifdef __x86_64__
	tell("ioperm", ioperm(0x80, 1, 1));
	tell("iopl", iopl(3));
	(void) iopl(0);
#endif
}

/* As `ip link add probe0 type KIND` does. */
static void try_link(const char *kind)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg info;
		char attributes[64];
	} request = { .header = { .nlmsg_type = RTM_NEWLINK,
		                  .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE } };
	struct rtattr *info = (struct rtattr *) request.attributes;
	struct rtattr *name = (struct rtattr *) (request.attributes + RTA_LENGTH(0));
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[256];
	} answer = { .error.error = -EIO };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	char what[40];

	*name = (struct rtattr){ .rta_len = (unsigned short) RTA_LENGTH(strlen(kind) + 1),
		                 .rta_type = IFLA_INFO_KIND };
	strcpy(RTA_DATA(name), kind);
	*info = (struct rtattr){ .rta_len = (unsigned short) RTA_LENGTH(RTA_ALIGN(name->rta_len)),
		                 .rta_type = IFLA_LINKINFO };
	request.header.nlmsg_len = (unsigned) (NLMSG_LENGTH(sizeof(request.info)) +
	                                       RTA_ALIGN(info->rta_len));
	if (fd < 0 || send(fd, &request, request.header.nlmsg_len, 0) < 0 ||
	    recv(fd, &answer, sizeof(answer), 0) < 0)
		answer.error.error = -errno;
	errno = -answer.error.error;
	snprintf(what, sizeof(what), "link-%s", kind);
	tell(what, answer.error.error);
	close(fd);
}

static void try_links(void)
{
	static const char *const kinds[] = { "dummy",   "veth",  "bridge",
		                             "macvlan", "vxlan", "wireguard" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		try_link(kinds[i]);
}

static void try_all(const char *now)
{
	when = now;
	try_modules();
	try_kexec();
	try_memory();
}

static long write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), code;
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

	code = errno;
	if (fd >= 0)
		close(fd);
	errno = code;
	return n;
}

/* What was set is set for good. */
static void try_to_take_back(void)
{
	tell("take-back-modules", write_to("/proc/sys/kernel/modules_disabled", "0"));
	tell("take-back-kexec", write_to("/proc/sys/kernel/kexec_load_disabled", "0"));
	tell("take-back-bpf", write_to("/proc/sys/kernel/unprivileged_bpf_disabled", "0"));
	tell("mount-securityfs", mount("none", "/scratch", "securityfs", 0, NULL));
	tell("take-back-lockdown", write_to("/scratch/lockdown", "none"));
	(void) umount("/scratch");
	tell("mount-debugfs", mount("none", "/scratch", "debugfs", 0, NULL));
	(void) umount("/scratch");
	tell("mount-tracefs", mount("none", "/scratch", "tracefs", 0, NULL));
	(void) umount("/scratch");
	tell("kcore", open_and_close("/proc/kcore", O_RDONLY));
}

/* A program that the kernel would start as root, for the core of one that crashes: this one, which leaves a mark.
 * The kernel's threads have the root they began with, the initramfs. */
static void try_helper(void)
{
	pid_t crashing;

	(void) write_to("/proc/sys/kernel/core_pattern", "|/init " HELPER);
	crashing = fork();
	if (crashing == 0)
		abort();
	(void) waitpid(crashing, NULL, 0);
	for (int i = 0; i < 100 && access(HELPER_MARK, F_OK) < 0; i++)
		usleep(20000);
	tell("helper", access(HELPER_MARK, F_OK));
	(void) unlink(HELPER_MARK);
	(void) write_to("/proc/sys/kernel/core_pattern", "core");
}

/* Of the process called so; 0: none yet. */
static pid_t find_program(const char *name)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;

	while (proc && !found && (entry = readdir(proc))) {
		char path[300], comm[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		file = isdigit((unsigned char) entry->d_name[0]) ? fopen(path, "re") : NULL;
		if (file && fgets(comm, sizeof(comm), file) &&
		    strncmp(comm, name, strlen(name)) == 0)
			found = (pid_t) atoi(entry->d_name);
		if (file)
			fclose(file);
	}
	if (proc)
		closedir(proc);
	return found;
}

/* Into what the kernel's programs come from. */
static void try_root(void)
{
	struct stat st;
	bool is_for_others = stat("/", &st) == 0 && (st.st_mode & 0022) != 0;

	errno = EPERM;
	tell("root-of-others", is_for_others ? 0 : -1);
}

static void probe_beside_the_workload(void)
{
	pid_t workload;

	while ((workload = find_program("sleep")) == 0)
		usleep(20000);
	try_all("after");
	try_links();
	try_to_take_back();
	try_helper();
	try_root();
	kill(workload, SIGUSR1);
	_exit(0);
}

int main(int argc, char **argv)
{
	pid_t child;

	if (argc == 2 && strcmp(argv[1], HELPER) == 0)
		return creat(HELPER_MARK, 0600) < 0;
	try_all("before");
	try_root();
	(void) mount("proc", "/proc", "proc", 0, NULL);
	try_helper();
	(void) umount("/proc");
	child = fork();
	if (child == 0)
		probe_beside_the_workload();
	execl(RUNNER, RUNNER, (char *) NULL);
	tell("exec-runner", -1);
	return 1;
}
