/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/proc.h"

enum {
	STAT_MAX = 4096, /* bytes of /proc/PID/stat */
	PROC_FDS_MAX = 64,
	PIPE_BYTES = 64 * 1024, /* what a pipe holds */
};

static int pidfd_open_of(pid_t pid)
{
	long fd = syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : (int) fd;
}

/* Copy what the child keeps out of the way of the numbers that will be given. */
static int park_fds(const struct proc_options *options, int parked[PROC_FDS_MAX], int *report)
{
	int above = 3, fd;

	for (size_t i = 0; i < options->fd_count; i++) {
		if (options->fds[i].to >= above)
			above = options->fds[i].to + 1;
	}
	fd = fcntl(*report, F_DUPFD_CLOEXEC, above);
	if (fd < 0)
		return -errno;
	*report = fd;
	for (size_t i = 0; i < options->fd_count; i++) {
		parked[i] = fcntl(options->fds[i].from, F_DUPFD_CLOEXEC, above);
		if (parked[i] < 0)
			return -errno;
	}
	return 0;
}

/* Whatever was at 0, 1 and 2. */
static int place_null(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return -errno;
	for (int i = 0; i <= 2; i++) {
		if (dup2(null, i) < 0)
			return -errno;
	}
	return 0;
}

/* In the child: give each descriptor its number, and close all others. */
static int place_fds(const struct proc_options *options, int *report)
{
	int parked[PROC_FDS_MAX];
	int r;

	if (options->fd_count > PROC_FDS_MAX)
		return -E2BIG;
	r = park_fds(options, parked, report);
	if (r == 0)
		r = place_null();
	if (r < 0)
		return r;
	for (size_t i = 0; i < options->fd_count; i++) {
		if (dup2(parked[i], options->fds[i].to) < 0)
			return -errno;
	}
	if (close_range(0, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		return -errno;
	/* Where a number was closed before, open() may have given null that very number. */
	for (int i = 0; i <= 2; i++) {
		r = fd_set_cloexec(i, 0);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < options->fd_count && r == 0; i++)
		r = fd_set_cloexec(options->fds[i].to, 0);
	return r;
}

/* No handler of ours may run in the child; what was ignored stays so, as exec has it, but SIGPIPE and SIGXFSZ,
 * which we ignore for ourselves, and SIGCHLD: a program that waits for its children does not expect that the kernel forgets them. */
static void reset_signals(void)
{
	struct sigaction action;
	sigset_t none;

	for (int signo = 1; signo < NSIG; signo++) {
		if (sigaction(signo, NULL, &action) < 0)
			continue;
		if (action.sa_handler != SIG_IGN && action.sa_handler != SIG_DFL)
			(void) signal(signo, SIG_DFL);
	}
	(void) signal(SIGPIPE, SIG_DFL);
	(void) signal(SIGXFSZ, SIG_DFL);
	(void) signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int child_setup(const struct proc_options *options, int *report)
{
	int r = place_fds(options, report);

	if (r < 0)
		return r;
	reset_signals();
	if (options->new_session && setsid() < 0)
		return -errno;
	if (options->cwd_fd > 0 && fchdir(options->cwd_fd) < 0)
		return -errno;
	return options->prepare ? options->prepare(options->ctx) : 0;
}

static _Noreturn void run_child(const struct proc_options *options, int report)
{
	char go;
	int r;

	/* Not before its pidfd is open: where SIGCHLD is ignored, one that has ended has no pid. */
	if (read_up_to(report, &go, 1) != 1)
		_exit(127);
	r = child_setup(options, &report);
	if (r == 0) {
		if (options->env)
			execvpe(options->argv[0], (char *const *) options->argv,
			        (char *const *) options->env);
		else
			execvp(options->argv[0], (char *const *) options->argv);
		r = -errno;
	}
	(void) !write(report, &r, sizeof(r));
	_exit(127);
}

static int reap(pid_t pid, int *ret_status)
{
	pid_t r;

	do {
		r = waitpid(pid, ret_status, 0);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

/* Make the child, tell who it is or why there is none, and stay its parent until it has been taken hold of. */
static _Noreturn void run_parent(const struct proc_options *options, int childs, int link)
{
	pid_t pid = fork();
	char gone;

	if (pid == 0) {
		fd_close(&link);
		run_child(options, childs);
	}
	if (pid < 0)
		pid = -errno;
	/* Who is not heard is not waited for either: the child ends when its caller closes its end. */
	if (write_all(link, &pid, sizeof(pid)) < 0)
		_exit(1);
	(void) !read_up_to(link, &gone, 1);
	_exit(0);
}

/* The child of a child that is gone when this returns. */
static int fork_orphan(const struct proc_options *options, int report, int childs,
                       struct proc *proc)
{
	CLEANUP(fd_close) int ours = -1, theirs = -1;
	int pair[2], status;
	pid_t parent, pid = -ECHILD; /* the parent was killed before it said anything */

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	parent = fork();
	if (parent < 0)
		return -errno;
	if (parent == 0) {
		fd_close(&report);
		fd_close(&ours);
		run_parent(options, childs, theirs);
	}
	fd_close(&theirs);
	(void) !read_up_to(ours, &pid, sizeof(pid));
	proc->pidfd = pid < 0 ? pid : pidfd_open_of(pid);
	fd_close(&ours);
	(void) reap(parent, &status);
	proc->pid = pid;
	proc->is_orphan = true;
	return proc->pidfd < 0 ? proc->pidfd : 0;
}

static int fork_child(const struct proc_options *options, int report, int childs, struct proc *proc)
{
	int status;

	proc->pid = fork();
	if (proc->pid < 0)
		return -errno;
	if (proc->pid == 0) {
		fd_close(&report);
		run_child(options, childs);
	}
	proc->pidfd = pidfd_open_of(proc->pid);
	if (proc->pidfd >= 0)
		return 0;
	(void) kill(proc->pid, SIGKILL);
	(void) reap(proc->pid, &status);
	return proc->pidfd;
}

static int make_failed(int code, struct resoluto_err *err)
{
	if (code == -EAGAIN)
		return resoluto_fail(
			err, code,
			"make a process: this user (ulimit -u) or its cgroup (pids.max) "
			"may have no more");
	return resoluto_fail(err, code, "make a process");
}

int proc_spawn(const struct proc_options *options, struct proc *ret_proc, struct resoluto_err *err)
{
	CLEANUP(fd_close) int report = -1, childs = -1;
	struct proc proc = PROC_NONE;
	int pair[2], failure, status, r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return resoluto_fail(err, -errno, "make a socket pair");
	report = pair[0];
	childs = pair[1];
	r = options->is_orphan ? fork_orphan(options, report, childs, &proc)
	                       : fork_child(options, report, childs, &proc);
	fd_close(&childs);
	if (r < 0)
		return make_failed(r, err);
	(void) send(report, "", 1, MSG_NOSIGNAL);
	if (read_up_to(report, &failure, sizeof(failure)) == (ssize_t) sizeof(failure)) {
		(void) proc_wait(&proc, -1, &status);
		return resoluto_fail(err, failure, "start %s", options->argv[0]);
	}
	*ret_proc = proc;
	return 0;
}

int proc_wait(struct proc *proc, int timeout_ms, int *ret_status)
{
	const uint64_t end_ms = clock_mono_ms() + (timeout_ms > 0 ? (uint64_t) timeout_ms : 0);
	struct pollfd poll_fd = { .fd = proc->pidfd, .events = POLLIN };
	int n, r;

	if (proc->pidfd < 0)
		return -ESRCH;
	for (;;) {
		uint64_t now_ms;

		n = poll(&poll_fd, 1, timeout_ms);
		if (n >= 0 || errno != EINTR)
			break;
		now_ms = clock_mono_ms();
		if (timeout_ms > 0)
			timeout_ms = now_ms < end_ms ? (int) (end_ms - now_ms) : 0;
	}
	if (n <= 0)
		return n < 0 ? -errno : -ETIMEDOUT;
	*ret_status = 0;
	r = proc->is_orphan ? 0 : reap(proc->pid, ret_status);
	fd_close(&proc->pidfd);
	proc->pid = -1;
	return r;
}

int proc_kill(struct proc *proc, int signo)
{
	if (proc->pidfd < 0)
		return -ESRCH;
	return syscall(SYS_pidfd_send_signal, proc->pidfd, signo, NULL, 0) < 0 ? -errno : 0;
}

void proc_done(struct proc *proc)
{
	int status;

	if (proc->pidfd >= 0) {
		(void) proc_kill(proc, SIGKILL);
		(void) proc_wait(proc, -1, &status);
	}
	fd_close(&proc->pidfd);
	*proc = PROC_NONE;
}

/* Keep what fits, drop the rest. */
static void keep(struct buf *buf, const char *bytes, size_t len)
{
	const size_t room = buf->max - buf->len;

	(void) buf_add(buf, bytes, len < room ? len : room);
}

/* Read what is there; closes *fd at its end. */
static void read_pipe(int *fd, struct buf *buf)
{
	char bytes[PIPE_BYTES];
	ssize_t n = *fd < 0 ? 0 : read(*fd, bytes, sizeof(bytes));

	if (n > 0)
		keep(buf, bytes, (size_t) n);
	else if (n == 0 || (errno != EINTR && errno != EAGAIN))
		fd_close(fd);
}

/* Until both pipes end, or the program does: a grandchild may hold them open for ever, but what
 * the program itself wrote is in them when it ends. */
static int drain_pipes(const struct proc *proc, int fds[2], struct buf *bufs[2])
{
	while (fds[0] >= 0 || fds[1] >= 0) {
		struct pollfd polls[3] = { { fds[0], POLLIN, 0 },
			                   { fds[1], POLLIN, 0 },
			                   { proc->pidfd, POLLIN, 0 } };

		if (poll(polls, 3, -1) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		for (int i = 0; i < 2; i++) {
			if (polls[i].revents || polls[2].revents)
				read_pipe(&fds[i], bufs[i]);
		}
		if (polls[2].revents)
			return 0;
	}
	return 0;
}

static int open_pipe(int *ret_read, int *ret_write)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	*ret_read = pair[0];
	*ret_write = pair[1];
	return fd_set_nonblock(pair[0]);
}

int proc_run(const char *const *argv, struct buf *ret_stdout, struct buf *ret_stderr,
             struct resoluto_err *err)
{
	CLEANUP(fd_close) int out_read = -1;
	CLEANUP(fd_close) int out_write = -1;
	CLEANUP(fd_close) int err_read = -1;
	CLEANUP(fd_close) int err_write = -1;
	CLEANUP(proc_done) struct proc proc = PROC_NONE;
	CLEANUP(buf_done) struct buf none = BUF_INIT(0);
	struct buf *bufs[2] = { ret_stdout ? ret_stdout : &none, ret_stderr ? ret_stderr : &none };
	int fds[2], status, r;

	r = open_pipe(&out_read, &out_write);
	if (r == 0)
		r = open_pipe(&err_read, &err_write);
	if (r < 0)
		return resoluto_fail(err, r, "make a pipe");
	r = proc_spawn(&(struct proc_options){ .argv = argv,
	                                       .fds = (struct proc_fd[]){ { out_write, 1 },
	                                                                  { err_write, 2 } },
	                                       .fd_count = 2 },
	               &proc, err);
	if (r < 0)
		return r;
	fd_close(&out_write);
	fd_close(&err_write);
	fds[0] = fd_take(&out_read);
	fds[1] = fd_take(&err_read);
	r = drain_pipes(&proc, fds, bufs);
	fd_close(&fds[0]);
	fd_close(&fds[1]);
	if (r == 0)
		r = proc_wait(&proc, -1, &status);
	if (r < 0)
		return resoluto_fail(err, r, "run %s", argv[0]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int proc_start_time(pid_t pid, uint64_t *ret_ticks)
{
	CLEANUP(buf_done) struct buf stat = BUF_INIT(0);
	unsigned long long ticks;
	char path[64];
	const char *at;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
	r = read_file_at(-1, path, STAT_MAX, &stat, NULL);
	if (r < 0)
		return r;
	/* The name in parentheses may hold anything; field 22 is the 20th behind its end. */
	at = stat.data ? strrchr(stat.data, ')') : NULL;
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at || sscanf(at, " %llu", &ticks) != 1)
		return -EINVAL;
	*ret_ticks = ticks;
	return 0;
}
