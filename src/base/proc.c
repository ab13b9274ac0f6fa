/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/proc.h"

enum {
	FD_HIGH =
		1000, /* inherited descriptors are parked above this before they get their numbers */
	STAT_MAX = 4096, /* bytes of /proc/PID/stat */
	PROC_FDS_MAX = 64,
};

static int pidfd_open_of(pid_t pid)
{
	long fd = syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : (int) fd;
}

/* In the child: give each descriptor its number.  Parked high first, so that none is overwritten. */
static int place_fds(const struct proc_options *options, int *report)
{
	int parked[PROC_FDS_MAX];
	int last = 2, null;

	if (options->fd_count > PROC_FDS_MAX)
		return -E2BIG;
	*report = fcntl(*report, F_DUPFD_CLOEXEC, FD_HIGH);
	if (*report < 0)
		return -errno;
	for (size_t i = 0; i < options->fd_count; i++) {
		parked[i] = fcntl(options->fds[i].from, F_DUPFD_CLOEXEC, FD_HIGH);
		if (parked[i] < 0)
			return -errno;
	}
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return -errno;
	for (int i = 0; i <= 2; i++) {
		if (dup2(null, i) < 0)
			return -errno;
	}
	for (size_t i = 0; i < options->fd_count; i++) {
		if (dup2(parked[i], options->fds[i].to) < 0)
			return -errno;
		if (options->fds[i].to > last)
			last = options->fds[i].to;
	}
	if (close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		return -errno;
	for (size_t i = 0; i < options->fd_count; i++) {
		if (fd_set_cloexec(options->fds[i].to, 0) < 0)
			return -EBADF;
	}
	return 0;
}

static int child_setup(const struct proc_options *options, int *report)
{
	sigset_t none;
	int r;

	r = place_fds(options, report);
	if (r < 0)
		return r;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (options->new_session && setsid() < 0)
		return -errno;
	if (options->cwd_fd > 0 && fchdir(options->cwd_fd) < 0)
		return -errno;
	return options->prepare ? options->prepare(options->ctx) : 0;
}

static _Noreturn void run_child(const struct proc_options *options, int report)
{
	int r = child_setup(options, &report);

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

int proc_spawn(const struct proc_options *options, struct proc *ret_proc, struct resoluto_err *err)
{
	CLEANUP(fd_close) int report_read = -1;
	CLEANUP(fd_close) int report_write = -1;
	struct proc proc = PROC_NONE;
	int pair[2], failure;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return resoluto_fail(err, -errno, "make a pipe");
	report_read = pair[0];
	report_write = pair[1];
	proc.pid = fork();
	if (proc.pid < 0)
		return resoluto_fail(err, -errno, "fork");
	if (proc.pid == 0)
		run_child(options, report_write);
	fd_close(&report_write);

	if (read_up_to(report_read, &failure, sizeof(failure)) == (ssize_t) sizeof(failure)) {
		(void) waitpid(proc.pid, NULL, 0);
		return resoluto_fail(err, failure, "start %s", options->argv[0]);
	}
	proc.pidfd = pidfd_open_of(proc.pid);
	if (proc.pidfd < 0) {
		int r = proc.pidfd;

		(void) kill(proc.pid, SIGKILL);
		(void) waitpid(proc.pid, NULL, 0);
		return resoluto_fail(err, r, "open a pidfd");
	}
	*ret_proc = proc;
	return 0;
}

int proc_wait(struct proc *proc, int timeout_ms, int *ret_status)
{
	struct pollfd poll_fd = { .fd = proc->pidfd, .events = POLLIN };
	int n;

	do {
		n = poll(&poll_fd, 1, timeout_ms);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n == 0)
		return -ETIMEDOUT;
	if (waitpid(proc->pid, ret_status, 0) < 0)
		return -errno;
	fd_close(&proc->pidfd);
	proc->pid = -1;
	return 0;
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

/* Read both pipes to their ends, each into its bounded buffer (what does not fit is dropped). */
static int drain_pipes(int fds[2], struct buf *bufs[2])
{
	char bytes[4096];

	while (fds[0] >= 0 || fds[1] >= 0) {
		struct pollfd polls[2] = { { fds[0], POLLIN, 0 }, { fds[1], POLLIN, 0 } };

		if (poll(polls, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		for (int i = 0; i < 2; i++) {
			ssize_t n;

			if (!polls[i].revents)
				continue;
			n = read(fds[i], bytes, sizeof(bytes));
			if (n > 0)
				(void) buf_add(bufs[i], bytes, (size_t) n);
			else if (n == 0 || errno != EINTR)
				fd_close(&fds[i]);
		}
	}
	return 0;
}

int proc_run(const char *const *argv, struct buf *ret_stdout, struct buf *ret_stderr,
             struct resoluto_err *err)
{
	CLEANUP(proc_done) struct proc proc = PROC_NONE;
	CLEANUP(buf_done) struct buf none = BUF_INIT(0);
	struct buf *bufs[2] = { ret_stdout ? ret_stdout : &none, ret_stderr ? ret_stderr : &none };
	int out[2], errs[2], fds[2], status, r;

	if (pipe2(out, O_CLOEXEC) < 0)
		return resoluto_fail(err, -errno, "make a pipe");
	if (pipe2(errs, O_CLOEXEC) < 0) {
		r = -errno;
		close(out[0]);
		close(out[1]);
		return resoluto_fail(err, r, "make a pipe");
	}
	r = proc_spawn(
		&(struct proc_options){ .argv = argv,
	                                .fds = (struct proc_fd[]){ { out[1], 1 }, { errs[1], 2 } },
	                                .fd_count = 2 },
		&proc, err);
	close(out[1]);
	close(errs[1]);
	fds[0] = out[0];
	fds[1] = errs[0];
	if (r == 0)
		r = drain_pipes(fds, bufs);
	fd_close(&fds[0]);
	fd_close(&fds[1]);
	if (r == 0)
		r = proc_wait(&proc, -1, &status);
	if (r < 0)
		return err && err->code == r ? r : resoluto_fail(err, r, "run %s", argv[0]);
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
