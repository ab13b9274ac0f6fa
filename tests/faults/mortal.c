/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortal.c - what makes a runner die at a moment that a test chooses, as SIGKILL would let it: linked to the real one.
 *
 * /die-after in the initramfs holds milliseconds, counted from the start of PID 1, or "MS PATH": from the moment
 * when PATH is there.  Nobody in a guest may kill its PID 1, and nobody outside can, so that it has to be one of its
 * own threads.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static char order[256]; /* what the file holds */

static void rest(long ms)
{
	struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	while (nanosleep(&left, &left) < 0)
		;
}

static void *die_later(void *unused)
{
	const char *path = strchr(order, ' ');

	while (path && access(path + 1, F_OK) < 0)
		rest(1);
	rest(atol(order));
	/* The whole process at once, nothing of it runs again. */
	(void) syscall(SYS_exit_group, 137);
	return NULL;
}

/* With all signals blocked: a SIGCHLD that the runner waits for by a signalfd would be given to the thread that does
 * not block it, which means thrown away, and the runner would wait for its program for ever. */
static void start_dying(void)
{
	sigset_t all, before;
	pthread_t thread;

	(void) sigfillset(&all);
	(void) pthread_sigmask(SIG_BLOCK, &all, &before);
	(void) pthread_create(&thread, NULL, die_later, NULL);
	(void) pthread_sigmask(SIG_SETMASK, &before, NULL);
}

__attribute__((constructor)) static void arm(void)
{
	int fd = getpid() == 1 ? open("/die-after", O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	if (read(fd, order, sizeof(order) - 1) > 0)
		start_dying();
	(void) close(fd);
}
