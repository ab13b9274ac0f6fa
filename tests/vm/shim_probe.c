/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shim_probe.c - locks itself down with the shim's own functions, beneath the directory given, and tries
 * what the shim may do and what it must not.  Prints "NAME RESULT" lines.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sched.h>
#include <unistd.h>

#include "base/io.h"
#include "shim/confine.h"

static int out;

/* write() is all that is certain to work. */
static void tell(const char *name, long r)
{
	char line[128];

	snprintf(line, sizeof(line), "%s %s\n", name, r >= 0 ? "ok" : strerrorname_np(errno));
	(void) !write(out, line, strlen(line));
}

static long code(int r)
{
	errno = r < 0 ? -r : 0;
	return r;
}

static void try_allowed(int dir, int pidfd)
{
	tell("replace-file", code(replace_file_at(dir, "state.json", "{}", 2, 0600, NULL)));
	tell("make-directory", mkdirat(dir, "outbox", 0700));
	tell("unlink", unlinkat(dir, "state.json", 0));
	tell("flush", syncfs(dir));
	tell("duplicate", fcntl(dir, F_DUPFD_CLOEXEC, 0));
	tell("signal-qemu", syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0));
}

/* pair: of a socket; lent: a file of its own, open for reading. */
static void try_forbidden(int dir, int pair, int lent)
{
	tell("socket", socket(AF_UNIX, SOCK_STREAM, 0));
	tell("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, (int[2]){ 0 }));
	tell("fork", syscall(SYS_fork));
	tell("clone", syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
	tell("exec", syscall(SYS_execve, "/bin/true", NULL, NULL));
	tell("ptrace", ptrace(PTRACE_ATTACH, getppid(), NULL, NULL));
	tell("kill", kill(getppid(), 0));
	tell("pidfd-open", syscall(SYS_pidfd_open, getppid(), 0));
	tell("unshare", unshare(CLONE_NEWUSER));
	tell("mount", mount("none", "/mnt", "tmpfs", 0, NULL));
	tell("chmod", chmod("/tmp", 0777));
	tell("executable-memory", (long) mmap(NULL, 4096, PROT_READ | PROT_EXEC,
	                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == -1
	                                  ? -1
	                                  : 0);
	tell("read-passwd", openat(AT_FDCWD, "/etc/passwd", O_RDONLY));
	tell("write-tmp", openat(AT_FDCWD, "/tmp/shim-probe", O_WRONLY | O_CREAT, 0600));
	tell("symlink", symlinkat("/etc", dir, "link"));
	tell("climb", openat(dir, "../above", O_WRONLY | O_CREAT, 0600));
	tell("sigio", fcntl(pair, F_SETOWN, getppid()));
	tell("sigio-high", syscall(SYS_fcntl, pair, F_SETOWN | 1UL << 32, getppid()));
	tell("sigio-number", fcntl(pair, F_SETSIG, SIGKILL));
	tell("sigio-on", fcntl(pair, F_SETFL, O_ASYNC));
	tell("lease", fcntl(lent, F_SETLEASE, F_RDLCK));
	tell("notify", fcntl(dir, F_NOTIFY, DN_ACCESS));
}

int main(int argc, char **argv)
{
	int dir = argc > 1 ? open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1, ruleset;
	int pidfd = (int) syscall(SYS_pidfd_open, getpid(), 0);
	const struct confine_place place = { NULL, dir, CONFINE_TREE };
	int pair[2], lent = openat(dir, "lent", O_RDONLY | O_CREAT | O_CLOEXEC, 0600);

	out = fcntl(1, F_DUPFD_CLOEXEC, 10);
	if (dir < 0 || pidfd < 0 || lent < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 ||
	    confine_ruleset(&place, 1, false, &ruleset, NULL) < 0 || confine_enter(ruleset) < 0 ||
	    confine_shim_calls(pidfd) < 0)
		return 1;
	try_allowed(dir, pidfd);
	try_forbidden(dir, pair[0], lent);
	_exit(0);
}
