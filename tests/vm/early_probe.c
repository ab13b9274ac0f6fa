/* SPDX-License-Identifier: Apache-2.0 */
/*
 * early_probe.c - what our own kernel starts before init, in a real guest; its words are on the console.
 *
 * As /early it says what is there already, leaves a file behind and never ends.  As init it waits for that file, for a
 * while, and resets the machine.  With a file /early-breaks it holds the lock of the runner's early part for a moment
 * and leaves half a word in its file instead.
 */
#include <fcntl.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOOKS = 500 };

static const struct timespec nap = { .tv_nsec = 10 * 1000 * 1000 };

static const char mark[] = "/early-was-here";

/* Whole lines, through the kernel's log: the console may not be there yet. */
__attribute__((format(printf, 1, 2))) static void tell(const char *fmt, ...)
{
	char text[200], line[256];
	va_list args;
	int fd;

	(void) mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	snprintf(line, sizeof(line), "<1>early-probe: %s\n", text);
	fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		(void) !write(fd, line, strlen(line));
		(void) close(fd);
	}
}

static int has_loopback(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &request) == 0;
}

static int is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

static int can_open(const char *path)
{
	return open(path, O_RDONLY | O_CLOEXEC) >= 0;
}

static void be_early(void)
{
	char target[16];
	int has_init;

	/* Before, not even the log can be opened. */
	for (int i = 0; i < LOOKS && !is_there("/early.go"); i++)
		(void) nanosleep(&nap, NULL);
	tell("early uid %d pid-1 %d", (int) getuid(), getpid() == 1);
	(void) mount("proc", "/proc", "proc", 0, NULL);
	has_init = readlink("/proc/1/exe", target, sizeof(target)) > 0;
	tell("early proc %d loopback %d init %d", is_there("/proc/self"), has_loopback(), has_init);
	for (int i = 0; i < LOOKS && !is_there("/early.disks"); i++)
		(void) nanosleep(&nap, NULL);
	tell("early disks sign %d open %d", is_there("/early.disks"),
	     can_open("/dev/vda") && can_open("/dev/vdb"));
	(void) mkdir(mark, 0700);
	for (;;)
		pause();
}

/* For a while, so that a runner that does not wait would find nothing and go on by itself. */
static void break_off(void)
{
	int fd = open("/early.state", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
		for (int i = 0; i < LOOKS / 10; i++)
			(void) nanosleep(&nap, NULL);
		(void) !write(fd, "half", 4);
	}
}

static void be_init(void)
{
	for (int i = 0; i < LOOKS && !is_there(mark); i++)
		(void) nanosleep(&nap, NULL);
	tell("init mark %d", is_there(mark));
	(void) reboot(RB_AUTOBOOT);
}

int main(int argc, char **argv)
{
	if (getpid() == 1)
		be_init();
	else if (is_there("/early-breaks"))
		break_off();
	else if (argc == 1 && strcmp(argv[0], "/early") == 0)
		be_early();
	return 0;
}
