/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/egress.h"
#include "guest/egress_service.h"

#define EMPTY_DIR "/nothing"

enum { FD_PORT = 3, FD_ROWS, FD_END };

/* Both to their numbers, by way of numbers above; the rest is not for us. */
static int take_descriptors(int port_fd, int rows_fd)
{
	const int port = fcntl(port_fd, F_DUPFD, FD_END + 2),
		  rows = fcntl(rows_fd, F_DUPFD, FD_END + 2);

	if (port < 0 || rows < 0 || dup2(port, FD_PORT) < 0 || dup2(rows, FD_ROWS) < 0 ||
	    syscall(SYS_close_range, FD_END, ~0U, 0) < 0)
		return -errno;
	return 0;
}

static int limit(int resource, rlim_t value)
{
	const struct rlimit limit = { .rlim_cur = value, .rlim_max = value };

	return setrlimit(resource, &limit) < 0 ? -errno : 0;
}

/* A user that nothing else here runs as, in a directory that is empty, and no way back. */
static int drop_rights(void)
{
	int r = limit(RLIMIT_NOFILE, EGRESS_FILES_MAX);

	if (r == 0)
		r = limit(RLIMIT_CORE, 0);
	if (r == 0)
		r = limit(RLIMIT_NPROC, 0);
	if (r == 0)
		r = limit(RLIMIT_FSIZE, 0);
	if (r < 0)
		return r;
	if (mkdir(EMPTY_DIR, 0500) < 0 && errno != EEXIST)
		return -errno;
	if (chroot(EMPTY_DIR) < 0 || chdir("/") < 0 || setgroups(0, NULL) < 0 ||
	    setresgid(EGRESS_UID, EGRESS_UID, EGRESS_UID) < 0 ||
	    setresuid(EGRESS_UID, EGRESS_UID, EGRESS_UID) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

static int serve(struct egress_service *service)
{
	int r = loop_new(&service->loop);

	if (r == 0)
		r = egress_dns_open(service);
	if (r == 0)
		r = egress_knock_open(service);
	if (r == 0)
		r = drop_rights();
	if (r == 0)
		r = egress_port_open(service, FD_PORT);
	/* An empty row: names are answered from now on. */
	if (r == 0 && send(FD_ROWS, "", 0, MSG_NOSIGNAL) < 0)
		r = -errno;
	return r < 0 ? r : loop_run(service->loop);
}

void egress_child(int port_fd, int rows_fd, const struct egress_policy *policy)
{
	static struct egress_service service;
	sigset_t none;

	sigemptyset(&none);
	(void) sigprocmask(SIG_SETMASK, &none, NULL);
	service.policy = policy;
	service.rows_fd = FD_ROWS;
	service.has_six = egress_has_six();
	service.bytes = malloc(EGRESS_GULP);
	if (service.bytes && take_descriptors(port_fd, rows_fd) == 0)
		(void) serve(&service);
	_exit(1);
}
