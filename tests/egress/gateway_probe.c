/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gateway_probe - locks itself down as the gateway does, then tries what it is told to, and prints how that went:
 *
 *	gateway_probe CONFIG ATTEMPT...     one line each: "ATTEMPT: ok" or the name of the error
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gateway/confine.h"

static long read_passwd(void)
{
	return open("/etc/passwd", O_RDONLY);
}

static long read_raw(void)
{
	return syscall(SYS_openat, AT_FDCWD, "/etc/resolv.conf", O_RDONLY);
}

static long make_file(void)
{
	return open("/tmp/made-by-the-gateway", O_CREAT | O_WRONLY, 0600);
}

static long memory_file(void)
{
	return memfd_create("x", 0);
}

static long stat_file(void)
{
	struct stat st;

	return stat("/etc/passwd", &st);
}

static long run_program(void)
{
	char *argv[] = { (char *) "true", NULL };

	return execv("/bin/true", argv);
}

static long make_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return pid;
}

static long make_thread(void)
{
	return syscall(SYS_clone, CLONE_VM | CLONE_THREAD | CLONE_SIGHAND, 0, 0, 0, 0);
}

static long signal_parent(void)
{
	return kill(getppid(), 0);
}

static long trace_parent(void)
{
	return ptrace(PTRACE_ATTACH, getppid(), 0, 0);
}

static long be_root(void)
{
	return setresuid(0, 0, 0);
}

static long new_namespace(void)
{
	return unshare(CLONE_NEWUSER);
}

static long mount_something(void)
{
	return mount("none", "/tmp", "tmpfs", 0, NULL);
}

static long unix_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0);
}

static long pair_of_sockets(void)
{
	int pair[2];

	return socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
}

static long netlink_socket(void)
{
	return socket(AF_NETLINK, SOCK_RAW, 0);
}

static long packet_socket(void)
{
	return socket(AF_PACKET, SOCK_RAW, 0);
}

static long raw_socket(void)
{
	return socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}

static long vsock_socket(void)
{
	return socket(AF_VSOCK, SOCK_STREAM, 0);
}

static long tcp_socket(void)
{
	return socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static long udp6_socket(void)
{
	return socket(AF_INET6, SOCK_DGRAM, 0);
}

static long listen_on_a_port(void)
{
	const struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(7777) };
	int fd = (int) tcp_socket();

	return bind(fd, (const struct sockaddr *) &address, sizeof(address));
}

static long connect_to(uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return connect(fd, (const struct sockaddr *) &address, sizeof(address));
}

/* Both connect past a rule that is about connect() of TCP. */
static long mptcp_socket(void)
{
	return socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP);
}

static long sctp_socket(void)
{
	return socket(AF_INET6, SOCK_STREAM, IPPROTO_SCTP);
}

static long send_and_connect(void)
{
	const struct sockaddr_in address = { .sin_family = AF_INET,
		                             .sin_port = htons(22),
		                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	return sendto((int) tcp_socket(), "x", 1, MSG_FASTOPEN, (const struct sockaddr *) &address,
	              sizeof(address));
}

static long connect_to_an_allowed_port(void)
{
	return connect_to(443);
}

static long connect_to_another_port(void)
{
	return connect_to(22);
}

static long executable_memory(void)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
	                -1, 0);

	return at == MAP_FAILED ? -1 : 0;
}

static long make_executable(void)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? -1 : mprotect(at, 4096, PROT_READ | PROT_EXEC);
}

static long much_memory(void)
{
	void *at = mmap(NULL, 512 * 1024 * 1024, PROT_READ | PROT_WRITE,
	                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? -1 : 0;
}

static long write_rows(void)
{
	return write(4, "row\n", 4);
}

static long rewrite_rows(void)
{
	return fcntl(4, F_SETFL, 0);
}

/* The kernel looks at the lower half of the descriptor's number. */
static long rewrite_rows_high(void)
{
	return syscall(SYS_fcntl, 4 | 1UL << 32, F_SETFL, 0);
}

static long cut_rows(void)
{
	return ftruncate(4, 0);
}

static long seek_in_rows(void)
{
	return lseek(4, 0, SEEK_SET);
}

static long unlock_rows(void)
{
	return flock(4, LOCK_UN);
}

static long ring(void)
{
	struct io_uring_params params = { 0 };

	return syscall(SYS_io_uring_setup, 4, &params);
}

static long watch_files(void)
{
	return inotify_init1(0);
}

static long load_bpf(void)
{
	return syscall(SYS_bpf, 0, NULL, 0);
}

static long raise_limit(void)
{
	const struct rlimit limit = { 4096, 4096 };

	return setrlimit(RLIMIT_NOFILE, &limit);
}

static long dumpable(void)
{
	return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

/* As the library that asks name servers does it. */
static long set_up_socket(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -1 : fcntl(fd, F_SETFD, 1);
}

/* The kernel would signal in our name. */
static long signal_by_socket(void)
{
	return fcntl((int) tcp_socket(), F_SETOWN, getppid());
}

static long signal_by_socket_high(void)
{
	return syscall(SYS_fcntl, tcp_socket(), F_SETOWN | 1UL << 32, getppid());
}

static long choose_signal(void)
{
	return fcntl((int) tcp_socket(), F_SETSIG, SIGKILL);
}

static long signal_by_ioctl(void)
{
	const int pid = getppid();

	return ioctl((int) tcp_socket(), FIOSETOWN, &pid);
}

static long lease_rows(void)
{
	return fcntl(4, F_SETLEASE, F_WRLCK);
}

static const struct {
	const char *name;
	long (*fn)(void);
} attempts[] = {
	{ "read-passwd", read_passwd },
	{ "read-raw", read_raw },
	{ "make-file", make_file },
	{ "memory-file", memory_file },
	{ "stat", stat_file },
	{ "exec", run_program },
	{ "fork", make_process },
	{ "thread", make_thread },
	{ "signal", signal_parent },
	{ "ptrace", trace_parent },
	{ "root", be_root },
	{ "namespace", new_namespace },
	{ "mount", mount_something },
	{ "unix", unix_socket },
	{ "socketpair", pair_of_sockets },
	{ "netlink", netlink_socket },
	{ "packet", packet_socket },
	{ "raw-socket", raw_socket },
	{ "vsock", vsock_socket },
	{ "tcp", tcp_socket },
	{ "udp6", udp6_socket },
	{ "listen", listen_on_a_port },
	{ "mptcp", mptcp_socket },
	{ "sctp", sctp_socket },
	{ "fastopen", send_and_connect },
	{ "allowed-port", connect_to_an_allowed_port },
	{ "other-port", connect_to_another_port },
	{ "exec-memory", executable_memory },
	{ "make-exec", make_executable },
	{ "much-memory", much_memory },
	{ "write-rows", write_rows },
	{ "rewrite-rows", rewrite_rows },
	{ "rewrite-rows-high", rewrite_rows_high },
	{ "cut-rows", cut_rows },
	{ "seek-rows", seek_in_rows },
	{ "unlock-rows", unlock_rows },
	{ "io_uring", ring },
	{ "inotify", watch_files },
	{ "bpf", load_bpf },
	{ "limit", raise_limit },
	{ "dumpable", dumpable },
	{ "set-up-socket", set_up_socket },
	{ "sigio", signal_by_socket },
	{ "sigio-high", signal_by_socket_high },
	{ "sigio-number", choose_signal },
	{ "sigio-ioctl", signal_by_ioctl },
	{ "lease-rows", lease_rows },
};

static void attempt(const char *name)
{
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		if (strcmp(attempts[i].name, name) != 0)
			continue;
		errno = 0;
		printf("%s: %s\n", name, attempts[i].fn() >= 0 ? "ok" : strerrorname_np(errno));
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	struct resoluto_err err = { 0 };
	struct gateway_config config;

	if (argc < 2 || gateway_config_parse(argv[1], strlen(argv[1]), &config, &err) < 0 ||
	    gateway_confine(&config, &err) < 0) {
		fprintf(stderr, "gateway_probe: %s\n", err.text);
		return 125;
	}
	for (int i = 2; i < argc; i++)
		attempt(argv[i]);
	return 0;
}
