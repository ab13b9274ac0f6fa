/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.c - an init with a network card, for the other side of the egress bench: modules, the image read-only,
 * QEMU's user network (10.0.2.15), and one program in the image with /work of the initramfs at its /mnt.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/route.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void need(int ok, const char *what)
{
	if (ok)
		return;
	printf("bench: %s: %s\n", what, strerror(errno));
	fflush(stdout);
	(void) reboot(RB_AUTOBOOT);
	_exit(1);
}

/* In the order of /modules/list. */
static void load_modules(void)
{
	FILE *list = fopen("/modules/list", "re");
	char name[100], path[200];

	need(list != NULL, "open the list of modules");
	while (fgets(name, sizeof(name), list)) {
		int fd;

		name[strcspn(name, "\n")] = '\0';
		snprintf(path, sizeof(path), "/modules/%s.ko", name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		need(fd >= 0 && (syscall(SYS_finit_module, fd, "", 0) == 0 || errno == EEXIST),
		     path);
		(void) close(fd);
	}
	(void) fclose(list);
}

static struct sockaddr address(const char *text)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = inet_addr(text) };
	struct sockaddr any;

	memcpy(&any, &in, sizeof(any));
	return any;
}

static void configure(const char *name, const char *own, const char *mask)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_flags = 0 };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	request.ifr_addr = address(own);
	need(ioctl(fd, SIOCSIFADDR, &request) == 0, "set an address");
	request.ifr_addr = address(mask);
	need(ioctl(fd, SIOCSIFNETMASK, &request) == 0, "set a mask");
	need(ioctl(fd, SIOCGIFFLAGS, &request) == 0, "look at a device");
	request.ifr_flags |= IFF_UP | IFF_RUNNING;
	need(ioctl(fd, SIOCSIFFLAGS, &request) == 0, "bring a device up");
	(void) close(fd);
}

static void add_route(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct rtentry route = { .rt_flags = RTF_UP | RTF_GATEWAY,
		                 .rt_dst = address("0.0.0.0"),
		                 .rt_genmask = address("0.0.0.0"),
		                 .rt_gateway = address("10.0.2.2") };

	need(ioctl(fd, SIOCADDRT, &route) == 0, "add a route");
	(void) close(fd);
}

static void run(char **argv)
{
	pid_t pid = fork();

	if (pid == 0) {
		need(chroot("/rootfs") == 0 && chdir("/mnt") == 0, "enter the image");
		(void) execvp(argv[0], argv);
		need(0, argv[0]);
	}
	(void) waitpid(pid, NULL, 0);
}

int main(void)
{
	static char *program[] = { "/usr/bin/python3", "main.py", NULL };

	(void) mkdir("/dev", 0755);
	(void) mkdir("/rootfs", 0755);
	load_modules();
	(void) mount("dev", "/dev", "devtmpfs", 0, NULL);
	need(mount("/dev/vda", "/rootfs", "squashfs", MS_RDONLY, NULL) == 0, "mount the image");
	need(mount("/work", "/rootfs/mnt", NULL, MS_BIND, NULL) == 0, "mount the work");
	need(mount("proc", "/rootfs/proc", "proc", 0, NULL) == 0, "mount proc");
	need(mount("/dev", "/rootfs/dev", NULL, MS_BIND, NULL) == 0, "mount dev");
	configure("lo", "127.0.0.1", "255.0.0.0");
	configure("eth0", "10.0.2.15", "255.255.255.0");
	add_route();
	run(program);
	fflush(stdout);
	sync();
	(void) reboot(RB_POWER_OFF);
	(void) reboot(RB_AUTOBOOT);
	return 0;
}
