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
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/egress.h"
#include "guest/egress_service.h"

#define EMPTY_DIR "/nothing"

enum { FD_PORT = 3, FD_ROWS, FD_END };
enum { ENDED = 1, DID_NOT_START };

const char egress_lost_row[] =
	"{\"name\":\"\",\"sni\":\"\",\"port\":0,\"protocol\":\"none\",\"decision\":\"failed\","
	"\"reason\":\"broken\",\"address\":\"\",\"bytes_up\":0,\"bytes_down\":0,\"duration_ms\":0,"
	"\"detail\":\"the process in the guest that answers names and carries connections ended\"}";

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
static int drop_rights(uid_t uid)
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
	    setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

/* Returns how it ended. */
static int serve(struct egress_service *service)
{
	int r = loop_new(&service->loop);

	if (r == 0)
		r = egress_dns_open(service);
	if (r == 0)
		r = egress_knock_open(service);
	if (r == 0)
		r = drop_rights(EGRESS_UID);
	if (r == 0)
		r = egress_port_open(service, FD_PORT);
	/* An empty row: names are answered from now on. */
	if (r == 0 && send(FD_ROWS, "", 0, MSG_NOSIGNAL) < 0)
		r = -errno;
	if (r < 0)
		return DID_NOT_START;
	(void) loop_run(service->loop);
	return ENDED;
}

/* Whoever asks for a name hears at once that there are none any more, instead of nothing for a long time. */
static void serve_no_more(struct egress_service *service)
{
	int r = loop_new(&service->loop);

	service->is_lost = true;
	if (r == 0)
		r = egress_dns_open(service);
	/* Not one of the rows that may be lost: it waits for the runner. */
	while (send(FD_ROWS, egress_lost_row, sizeof(egress_lost_row) - 1, MSG_NOSIGNAL) < 0) {
		if (errno != EINTR)
			break;
	}
	if (r == 0)
		(void) loop_run(service->loop);
}

/* Out of the root before anybody works there, then asleep until the other one is gone. */
static void stand_in(struct egress_service *service, pid_t pid, int port_fd, int rows_fd)
{
	int status = 0;

	if (drop_rights(EGRESS_STAND_IN_UID) < 0 || take_descriptors(port_fd, rows_fd) < 0)
		return;
	(void) close(FD_PORT);
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return;
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != DID_NOT_START)
		serve_no_more(service);
}

/* Behind the end of ready_fd: then the one that stands in is in its place. */
static int work(struct egress_service *service, int ready_fd, int port_fd, int rows_fd)
{
	char byte;

	while (read(ready_fd, &byte, 1) < 0 && errno == EINTR)
		;
	service->bytes = malloc(EGRESS_GULP);
	if (!service->bytes || take_descriptors(port_fd, rows_fd) < 0)
		return DID_NOT_START;
	return serve(service);
}

void egress_child(int port_fd, int rows_fd, const struct egress_policy *policy)
{
	static struct egress_service service;
	int ready[2];
	sigset_t none;
	pid_t pid;

	sigemptyset(&none);
	(void) sigprocmask(SIG_SETMASK, &none, NULL);
	service.policy = policy;
	service.rows_fd = FD_ROWS;
	service.has_six = egress_has_six();
	if (pipe2(ready, O_CLOEXEC) < 0)
		_exit(DID_NOT_START);
	pid = fork();
	if (pid == 0) {
		(void) close(ready[1]);
		_exit(work(&service, ready[0], port_fd, rows_fd));
	}
	if (pid > 0)
		stand_in(&service, pid, port_fd, rows_fd);
	_exit(ENDED);
}
