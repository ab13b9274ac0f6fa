/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "child.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/path.h"
#include "base/proc.h"

enum { PATIENCE_MS = 60 * 1000 }; /* for a program to do what it does at once */

#define ARGV(...) ((const char *const[]){ __VA_ARGS__, NULL })

static int run(const char *const *argv, struct buf *ret_stdout)
{
	*ret_stdout = BUF_INIT(1 << 20);
	return proc_run(argv, ret_stdout, NULL, NULL);
}

/* Start it with these descriptors, and wait; the wait status. */
static int spawn_and_wait(const struct proc_options *options)
{
	CLEANUP(proc_done) struct proc proc = PROC_NONE;
	struct resoluto_err err = { 0 };
	int status;

	if (proc_spawn(options, &proc, &err) < 0) {
		printf("# %s\n", err.text);
		CHECK(!"the program starts");
	}
	CHECK(proc_wait(&proc, PATIENCE_MS, &status) == 0);
	CHECK(proc.pid == -1 && proc.pidfd == -1);
	return status;
}

/* All that was written to the other end of a pipe whose writing end is closed with it. */
static char *read_pipe(int pair[2])
{
	struct buf text = BUF_INIT(65536);

	fd_close(&pair[1]);
	CHECK(read_rest(pair[0], &text) == 0);
	fd_close(&pair[0]);
	return buf_take(&text);
}

/* The output of a shell script started with options that name no descriptors. */
static void expect_output(struct proc_options options, const char *script, const char *want)
{
	CLEANUP(mem_free) char *got = NULL;
	struct proc_fd fds[1];
	int pair[2];

	CHECK(pipe2(pair, O_CLOEXEC) == 0);
	fds[0] = (struct proc_fd){ pair[1], 1 };
	options.argv = ARGV("sh", "-c", script);
	options.fds = fds;
	options.fd_count = 1;
	CHECK(spawn_and_wait(&options) == 0);
	got = read_pipe(pair);
	CHECK_STR(got, want);
}

static void tells_how_a_program_ended(void)
{
	CHECK(proc_run(ARGV("true"), NULL, NULL, NULL) == 0);
	CHECK(proc_run(ARGV("sh", "-c", "exit 37"), NULL, NULL, NULL) == 37);
	CHECK(proc_run(ARGV("sh", "-c", "kill -KILL $$"), NULL, NULL, NULL) == 128 + SIGKILL);
}

static void tells_what_cannot_be_started(void)
{
	struct resoluto_err err = { 0 };
	struct proc proc = PROC_NONE;
	struct proc_options options = { .argv = ARGV("no-such-program-anywhere") };

	CHECK(proc_spawn(&options, &proc, &err) == -ENOENT && proc.pid == -1);
	CHECK(err.code == -ENOENT && strstr(err.text, "no-such-program-anywhere"));
	options.argv = ARGV("/dev/null");
	CHECK(proc_spawn(&options, &proc, NULL) == -EACCES);
	options.argv = ARGV("/");
	CHECK(proc_spawn(&options, &proc, NULL) == -EACCES);
	CHECK(proc_run(ARGV("/no/such"), NULL, NULL, &err) == -ENOENT);
	/* No zombie is left. */
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

static int refuse(void *ctx)
{
	return -*(int *) ctx;
}

static void tells_what_prepare_returned(void)
{
	int code = EMLINK;
	struct proc proc = PROC_NONE;

	CHECK(proc_spawn(&(struct proc_options){ .argv = ARGV("true"),
	                                         .prepare = refuse,
	                                         .ctx = &code },
	                 &proc, NULL) == -EMLINK);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

static int set_process_group(void *ctx)
{
	return setenv("PREPARED", ctx, 1) < 0 ? -errno : 0;
}

static void prepares_in_the_child(void)
{
	expect_output((struct proc_options){ .prepare = set_process_group, .ctx = "yes" },
	              "echo $PREPARED", "yes\n");
	CHECK(!getenv("PREPARED"));
}

static void gives_the_environment(void)
{
	expect_output((struct proc_options){ .env = ARGV("A=1", "PATH=/usr/bin:/bin") },
	              "echo $A; echo ${HOME-none}", "1\nnone\n");
}

static void gives_directory_and_session(void)
{
	CLEANUP(fd_close) int fd = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	expect_output((struct proc_options){ .cwd_fd = fd, .new_session = true },
	              "pwd; [ $(cut -d' ' -f6 /proc/$$/stat) = $$ ] && echo leader",
	              "/usr\nleader\n");
}

static void gives_no_other_descriptors(void)
{
	CLEANUP(fd_close) int stray = open("/dev/null", O_RDONLY);
	CLEANUP(fd_close) int high = fcntl(stray, F_DUPFD, 200);
	CLEANUP(buf_done) struct buf text = BUF_INIT(0);

	CHECK(stray >= 0 && high >= 200);
	/* 3 is what ls itself has opened. */
	CHECK(run(ARGV("ls", "/proc/self/fd"), &text) == 0);
	CHECK_STR(text.data, "0\n1\n2\n3\n");
	buf_done(&text);
	CHECK(run(ARGV("readlink", "/proc/self/fd/0"), &text) == 0);
	CHECK_STR(text.data, "/dev/null\n");
}

/* Each of the two goes where the other was, and another to a number far above. */
static void places_descriptors_that_overlap(void)
{
	int out[2], first[2], second[2];
	struct proc_fd fds[5];
	char script[200];
	CLEANUP(mem_free) char *got = NULL;

	CHECK(pipe2(out, O_CLOEXEC) == 0 && pipe2(first, O_CLOEXEC) == 0 &&
	      pipe2(second, O_CLOEXEC) == 0);
	CHECK(write_all(first[1], "first", 5) == 0 && write_all(second[1], "second", 6) == 0);
	fds[0] = (struct proc_fd){ first[0], second[0] };
	fds[1] = (struct proc_fd){ second[0], first[0] };
	fds[2] = (struct proc_fd){ out[1], 1 };
	fds[3] = (struct proc_fd){ out[1], out[0] };
	fds[4] = (struct proc_fd){ out[1], 300 };
	fd_close(&first[1]);
	fd_close(&second[1]);
	snprintf(script, sizeof(script),
	         "cat /proc/self/fd/%d; cat /proc/self/fd/%d; "
	         "echo x >/proc/self/fd/300; echo y >/proc/self/fd/%d",
	         second[0], first[0], out[0]);
	CHECK(spawn_and_wait(&(struct proc_options){ .argv = ARGV("sh", "-c", script),
	                                             .fds = fds,
	                                             .fd_count = 5 }) == 0);
	fd_close(&first[0]);
	fd_close(&second[0]);
	got = read_pipe(out);
	CHECK_STR(got, "firstsecondx\ny\n");
}

static void places_one_descriptor_twice(void)
{
	CLEANUP(mem_free) char *got = NULL;
	int out[2];

	CHECK(pipe2(out, O_CLOEXEC) == 0);
	CHECK(spawn_and_wait(&(struct proc_options){
		      .argv = ARGV("sh", "-c", "echo one; echo two >&2"),
		      .fds = (struct proc_fd[]){ { out[1], 1 }, { out[1], 2 } },
		      .fd_count = 2 }) == 0);
	got = read_pipe(out);
	CHECK_STR(got, "one\ntwo\n");
}

static void refuses_bad_descriptors(void)
{
	struct proc_fd many[100] = { { 0, 3 } };
	struct proc proc = PROC_NONE;
	struct proc_options options = { .argv = ARGV("true"),
		                        .fds = (struct proc_fd[]){ { 9999, 3 } },
		                        .fd_count = 1 };

	CHECK(proc_spawn(&options, &proc, NULL) == -EBADF);
	options.fds = many;
	options.fd_count = 100;
	CHECK(proc_spawn(&options, &proc, NULL) == -E2BIG);
}

/* With 0, 1 and 2 closed, every pipe and file gets one of those numbers. */
static int run_with_closed_standard_streams(void)
{
	struct buf out = BUF_INIT(1000), errs = BUF_INIT(1000);
	int r;

	close(0);
	close(1);
	close(2);
	r = proc_run(ARGV("sh", "-c", "echo out; echo err >&2; cat; ls /proc/self/fd"), &out, &errs,
	             NULL);
	if (r != 0 || strcmp(out.data, "out\n0\n1\n2\n3\n") != 0 || strcmp(errs.data, "err\n") != 0)
		return 1;
	buf_done(&out);
	buf_done(&errs);
	return proc_run(ARGV("/no/such"), NULL, NULL, NULL) == -ENOENT ? 0 : 2;
}

static void works_with_closed_standard_streams(void)
{
	CHECK(in_child(run_with_closed_standard_streams) == 0);
}

static int run_with_few_descriptors(void)
{
	struct rlimit limit = { 40, 40 };
	struct buf out = BUF_INIT(1000);
	int r;

	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 1;
	if (proc_run(ARGV("/no/such"), NULL, NULL, NULL) != -ENOENT)
		return 2;
	r = proc_run(ARGV("echo", "hi"), &out, NULL, NULL);
	return r == 0 && strcmp(out.data, "hi\n") == 0 ? 0 : 3;
}

static void works_with_few_descriptors(void)
{
	CHECK(in_child(run_with_few_descriptors) == 0);
}

static void on_signal(int signo)
{
	(void) !write(STDERR_FILENO, "handler\n", 8);
}

/* Handlers, ignored SIGPIPE and blocked signals are ours, not the program's. */
static int signals_of_the_program(void)
{
	struct buf out = BUF_INIT(1000);
	sigset_t blocked;
	int r;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGUSR1, on_signal);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	if (proc_run(ARGV("sh", "-c", "kill -PIPE $$; exit 9"), NULL, NULL, NULL) != 128 + SIGPIPE)
		return 1;
	if (proc_run(ARGV("sh", "-c", "kill -USR1 $$; exit 9"), NULL, NULL, NULL) != 128 + SIGUSR1)
		return 2;
	if (proc_run(ARGV("sh", "-c", "kill -TERM $$; exit 9"), NULL, NULL, NULL) != 128 + SIGTERM)
		return 3;
	r = proc_run(ARGV("grep", "SigBlk", "/proc/self/status"), &out, NULL, NULL);
	return r == 0 && strcmp(out.data, "SigBlk:\t0000000000000000\n") == 0 ? 0 : 4;
}

/* SIGCHLD, bit 16 of the mask, is the lowest of the fifth digit from the end; a newline follows. */
static int children_of_the_program(void)
{
	struct buf out = BUF_INIT(1000);

	signal(SIGCHLD, SIG_IGN);
	/* How it ended the kernel does not tell here. */
	if (proc_run(ARGV("grep", "SigIgn", "/proc/self/status"), &out, NULL, NULL) != -ECHILD)
		return 1;
	return out.len > 6 && strchr("02468ace", out.data[out.len - 6]) ? 0 : 2;
}

static void leaves_signals_as_a_program_expects(void)
{
	CHECK(in_child(signals_of_the_program) == 0);
	CHECK(in_child(children_of_the_program) == 0);
}

static void waits_no_longer_than_asked(void)
{
	CLEANUP(proc_done) struct proc proc = PROC_NONE;
	struct proc_options options = { .argv = ARGV("sleep", "1000") };
	int status;

	CHECK(proc_wait(&proc, -1, &status) == -ESRCH && proc_kill(&proc, SIGKILL) == -ESRCH);
	CHECK(proc_spawn(&options, &proc, NULL) == 0);
	CHECK(proc_wait(&proc, 0, &status) == -ETIMEDOUT);
	CHECK(proc_wait(&proc, 20, &status) == -ETIMEDOUT);
	CHECK(proc.pid > 0 && proc_kill(&proc, SIGTERM) == 0);
	CHECK(proc_wait(&proc, PATIENCE_MS, &status) == 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	CHECK(proc_wait(&proc, -1, &status) == -ESRCH);
}

static void kills_and_reaps_when_done(void)
{
	struct proc_options options = { .argv = ARGV("sh", "-c",
		                                     "trap '' TERM; while :; do sleep 1; done") };
	struct proc proc = PROC_NONE;
	pid_t pid;

	CHECK(proc_spawn(&options, &proc, NULL) == 0);
	pid = proc.pid;
	proc_done(&proc);
	CHECK(proc.pid == -1 && proc.pidfd == -1);
	CHECK(kill(pid, 0) < 0 && errno == ESRCH);
	proc_done(&proc);
}

static void catches_both_streams(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);
	CLEANUP(buf_done) struct buf errs = BUF_INIT(100);

	CHECK(proc_run(ARGV("sh", "-c", "head -c 300000 /dev/zero; echo oops >&2; exit 3"), &out,
	               &errs, NULL) == 3);
	CHECK(out.len == 300000);
	CHECK_STR(errs.data, "oops\n");
}

static void keeps_what_fits_of_much_output(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(10);
	CLEANUP(buf_done) struct buf errs = BUF_INIT(0);

	CHECK(proc_run(ARGV("sh", "-c",
	                    "printf 0123456; printf 789abcdef; head -c 200000 /dev/zero; "
	                    "echo x >&2"),
	               &out, &errs, NULL) == 0);
	CHECK(out.len == 10 && errs.len == 0);
	CHECK_STR(out.data, "0123456789");
}

/* A child of the program holds both pipes; the program's own end is what counts. */
static void waits_for_no_grandchild(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(1000);
	unsigned pid;

	CHECK(proc_run(ARGV("sh", "-c", "sleep 1000 & echo $!"), &out, NULL, NULL) == 0);
	CHECK(sscanf(out.data, "%u", &pid) == 1);
	CHECK(kill((pid_t) pid, SIGKILL) == 0);
}

static void names_a_process_by_its_start(void)
{
	CLEANUP(proc_done) struct proc proc = PROC_NONE;
	struct proc_options options = { .argv = ARGV("sleep", "1000") };
	uint64_t ours, again, theirs;
	char before[16];

	CHECK(proc_start_time(getpid(), &ours) == 0 && ours > 0);
	CHECK(proc_start_time(getppid(), &again) == 0 && again <= ours);
	CHECK(prctl(PR_GET_NAME, before) == 0);
	CHECK(prctl(PR_SET_NAME, "a) R 1 2 (b)") == 0);
	CHECK(proc_start_time(getpid(), &again) == 0 && again == ours);
	CHECK(prctl(PR_SET_NAME, before) == 0);
	CHECK(proc_spawn(&options, &proc, NULL) == 0);
	CHECK(proc_start_time(proc.pid, &theirs) == 0 && theirs >= ours);
	CHECK(proc_start_time(0x3fffffff, &theirs) == -ENOENT);
}

static pid_t parent_of(pid_t pid)
{
	CLEANUP(buf_done) struct buf stat = BUF_INIT(4096);
	char path[64];
	int parent = -1;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
	CHECK(read_file_at(-1, path, 4096, &stat, NULL) == 0);
	CHECK(sscanf(strrchr(stat.data, ')'), ") %*c %d", &parent) == 1);
	return parent;
}

/* Whoever starts many that outlive it is the parent of none of them. */
static void an_orphan_is_not_ours_to_reap(void)
{
	const struct proc_options options = { .argv = ARGV("sleep", "60"), .is_orphan = true };
	struct proc proc = PROC_NONE;
	int status = -1;

	CHECK(proc_spawn(&options, &proc, NULL) == 0);
	CHECK(proc.pid > 0 && parent_of(proc.pid) != getpid());
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	CHECK(proc_wait(&proc, 0, &status) == -ETIMEDOUT);
	CHECK(proc_kill(&proc, SIGKILL) == 0);
	CHECK(proc_wait(&proc, PATIENCE_MS, &status) == 0 && status == 0);
	CHECK(proc.pid == -1 && proc.pidfd == -1);
}

static void an_orphan_gets_its_descriptors_and_tells_what_fails(void)
{
	struct proc_fd fd = { .to = 1 };
	const struct proc_options writes = { .argv = ARGV("echo", "hello"),
		                             .fds = &fd,
		                             .fd_count = 1,
		                             .is_orphan = true };
	const struct proc_options none = { .argv = ARGV("/no/such/program"), .is_orphan = true };
	struct proc proc = PROC_NONE;
	int pair[2];
	char *got;

	CHECK(pipe2(pair, O_CLOEXEC) == 0);
	fd.from = pair[1];
	CHECK(proc_spawn(&writes, &proc, NULL) == 0);
	got = read_pipe(pair);
	CHECK_STR(got, "hello\n");
	free(got);
	proc_done(&proc);
	CHECK(proc_spawn(&none, &proc, NULL) == -ENOENT && proc.pidfd == -1);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

/* As a user who has no other process, where we can be one; the limit does not hold for root. */
static int become_somebody(rlim_t processes)
{
	const struct rlimit limit = { processes, processes };

	if (setrlimit(RLIMIT_NPROC, &limit) < 0)
		return -1;
	return geteuid() == 0 && (setgroups(0, NULL) < 0 || setresuid(61234, 61234, 61234) < 0);
}

static bool is_told_no_more(bool is_orphan)
{
	struct resoluto_err err = { 0 };
	struct proc proc = PROC_NONE;
	const struct proc_options options = { .argv = ARGV("true"), .is_orphan = is_orphan };

	return proc_spawn(&options, &proc, &err) == -EAGAIN && strstr(err.text, "ulimit -u") &&
	       proc.pidfd == -1;
}

static int spawn_without_any_process(void)
{
	return become_somebody(0) == 0 && is_told_no_more(false) && is_told_no_more(true) ? 0 : 1;
}

/* Ourselves and the one between: the orphan is the one too many. */
static int spawn_with_one_process(void)
{
	return become_somebody(2) == 0 && is_told_no_more(true) ? 0 : 1;
}

static void tells_that_there_are_no_more_processes(void)
{
	CHECK(in_child(spawn_without_any_process) == 0);
	if (geteuid() == 0)
		CHECK(in_child(spawn_with_one_process) == 0);
	/* No zombie is left. */
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

int main(void)
{
	/* A directory that cannot be searched would turn "no such program" into "not allowed". */
	if (setenv("PATH", "/usr/bin:/bin", 1) < 0)
		return 99;
	RUN(tells_how_a_program_ended);
	RUN(tells_what_cannot_be_started);
	RUN(tells_what_prepare_returned);
	RUN(prepares_in_the_child);
	RUN(gives_the_environment);
	RUN(gives_directory_and_session);
	RUN(gives_no_other_descriptors);
	RUN(places_descriptors_that_overlap);
	RUN(places_one_descriptor_twice);
	RUN(refuses_bad_descriptors);
	RUN(works_with_closed_standard_streams);
	RUN(works_with_few_descriptors);
	RUN(leaves_signals_as_a_program_expects);
	RUN(waits_no_longer_than_asked);
	RUN(kills_and_reaps_when_done);
	RUN(catches_both_streams);
	RUN(keeps_what_fits_of_much_output);
	RUN(waits_for_no_grandchild);
	RUN(names_a_process_by_its_start);
	RUN(an_orphan_is_not_ours_to_reap);
	RUN(an_orphan_gets_its_descriptors_and_tells_what_fails);
	RUN(tells_that_there_are_no_more_processes);
	return check_done();
}
