/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_qemu.c - stands where QEMU would (RESOLUTO_LOCAL_QEMU), started by the very same launcher: it
 * plays a guest that keeps the protocol, one that breaks it, or an emulator that its guest has taken
 * over and that tries what must fail.
 *
 * The first word of the job's RESOLUTO_WORKLOAD_ARGV says which.  Descriptors come from the argument
 * list, as QEMU gets them.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <linux/bpf.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/crc32c.h"
#include "base/io.h"
#include "qemu_argv.h"
#include "wire/frame.h"

#define OTHER_BOOT_ID "11111111-2222-4333-8444-555555555555"

static struct {
	int qmp, console, control, conduit;
	json_t *words; /* of the workload */
	char *host_boot_ids;
	uint32_t stream;
} fake;

static const char *word(size_t i)
{
	const char *text = json_string_value(json_array_get(fake.words, i));

	return text ? text : "";
}

static void tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void tell(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vdprintf(fake.console, fmt, args);
	va_end(args);
}

static void send_frame(int fd, uint8_t type, uint8_t flags, uint32_t stream, const void *payload,
                       size_t len)
{
	struct buf out = BUF_INIT(FRAME_MAX);

	if (frame_add(&out, type, flags, stream, payload, len) < 0 ||
	    write_all(fd, out.data, out.len) < 0)
		exit(91);
	buf_done(&out);
}

static void send_u32(int fd, uint8_t type, uint32_t stream, uint32_t value)
{
	send_frame(fd, type, 0, stream, &value, sizeof(value));
}

/* The next frame on fd; its payload stays valid until the next call. */
static struct frame receive(int fd)
{
	static uint8_t bytes[FRAME_MAX];
	struct frame frame;
	size_t used;

	if (read_up_to(fd, bytes, 4) != 4)
		exit(92);
	if (read_up_to(fd, bytes + 4, frame_le32(bytes)) != (ssize_t) frame_le32(bytes) ||
	    frame_parse(bytes, 4 + frame_le32(bytes), &frame, &used) < 0)
		exit(93);
	return frame;
}

static void take_job(void)
{
	struct buf text = BUF_INIT(FRAME_JOB_MAX);
	struct frame frame;
	json_t *job, *env;

	do {
		frame = receive(fake.control);
	} while (frame.type != FRAME_JOB || frame_join(&text, &frame) == 0);
	job = json_loadb(text.data, text.len, 0, NULL);
	env = json_object_get(job, "env");
	fake.words = json_loads(json_string_value(json_object_get(env, "RESOLUTO_WORKLOAD_ARGV")),
	                        0, NULL);
	fake.host_boot_ids = strdup(
		json_string_value(json_object_get(env, "RESOLUTO_HOST_BOOT_IDS")));
	tell("job %zu stdin %d scratch %d\n", text.len, json_is_true(json_object_get(job, "stdin")),
	     json_is_true(json_object_get(job, "scratch")));
	buf_done(&text);
}

static void hello(void)
{
	send_u32(fake.control, FRAME_HELLO, 0, FRAME_VERSION);
	send_u32(fake.conduit, FRAME_HELLO, 0, FRAME_VERSION);
	take_job();
	if (receive(fake.conduit).type != FRAME_HELLO)
		exit(94);
}

static void started(const char *boot_id)
{
	char json[128];

	snprintf(json, sizeof(json), "{\"guest_boot_id\":\"%s\"}", boot_id);
	send_frame(fake.control, FRAME_STARTED, 0, 0, json, strlen(json));
}

static uint32_t begin(const char *key, uint64_t size)
{
	char payload[512];

	memcpy(payload, &size, 8);
	snprintf(payload + 8, sizeof(payload) - 8, "%s", key);
	send_frame(fake.conduit, FRAME_PUT_BEGIN, 0, ++fake.stream, payload, 8 + strlen(key));
	return fake.stream;
}

/* Returns the type of the answer, or 1000 + the code of a NAK. */
static int put(const char *key, const void *bytes, size_t len)
{
	uint32_t stream = begin(key, len);
	struct frame answer;

	for (size_t at = 0; at < len; at += FRAME_PAYLOAD_MAX) {
		size_t n = len - at < FRAME_PAYLOAD_MAX ? len - at : FRAME_PAYLOAD_MAX;

		send_frame(fake.conduit, FRAME_PUT_DATA, 0, stream, (const char *) bytes + at, n);
	}
	send_u32(fake.conduit, FRAME_PUT_END, stream, crc32c(0, bytes, len));
	do {
		answer = receive(fake.conduit);
	} while (answer.stream != stream);
	return answer.type == FRAME_NAK ? 1000 + (int) frame_le32(answer.payload) : answer.type;
}

static void put_text(const char *key, const char *text)
{
	int r = put(key, text, strlen(text));

	if (r != FRAME_ACK)
		tell("put %s answered %d\n", key, r);
}

static void finish(unsigned chunks)
{
	char manifest[64];

	put_text("result.json", "{\"node_id\":\"run\",\"status\":\"success\",\"exit_code\":0}");
	snprintf(manifest, sizeof(manifest), "{\"total_chunks\": %u}", chunks);
	put_text("_manifest.json", manifest);
	dprintf(fake.qmp, "{\"event\":\"SHUTDOWN\",\"data\":{\"guest\":true,\"reason\":\"guest-"
	                  "shutdown\"}}\n");
	exit(0);
}

static void qmp_ends(const char *reason)
{
	dprintf(fake.qmp, "{\"event\": \"SHUTDOWN\", \"data\": {\"reason\": \"%s\"}}\r\n", reason);
}

static void stay(void)
{
	for (;;)
		pause();
}

/* --- guests that keep the protocol --- */

static void guest_good(void)
{
	put_text("_canary_ok", "ok");
	started(OTHER_BOOT_ID);
	put_text("events-000001.jsonl", "{}\n");
	put_text("outbox/output.tar.gz", "archive");
	finish(1);
}

/* stdin comes back as chunk 1; credit as it is read. */
static void guest_cat(void)
{
	struct buf all = BUF_INIT(1024 * 1024);
	uint32_t taken = 0;

	started(OTHER_BOOT_ID);
	for (;;) {
		struct frame frame = receive(fake.control);

		if (frame.type == FRAME_STDIN_EOF)
			break;
		if (frame.type != FRAME_STDIN || buf_add(&all, frame.payload, frame.len) < 0)
			exit(95);
		taken += (uint32_t) frame.len;
		if (taken >= 64 * 1024) {
			send_u32(fake.control, FRAME_CREDIT, 0, taken);
			taken = 0;
		}
	}
	if (put("events-000001.jsonl", all.data ? all.data : "", all.len) != FRAME_ACK)
		exit(96);
	finish(1);
}

/* The first signals that come, by number. */
static void guest_signals(void)
{
	struct frame frame;
	uint32_t number = 0;

	started(OTHER_BOOT_ID);
	do {
		frame = receive(fake.control);
		if (frame.type == FRAME_SIGNAL && frame_get_u32(&frame, &number) == 0)
			tell("signal %u\n", number);
	} while (number != SIGTERM);
	if (strcmp(word(1), "obey") != 0)
		stay();
	put_text("events-000001.jsonl", "{}\n");
	finish(1);
}

static void guest_damaged(void)
{
	uint32_t stream = begin("events-000001.jsonl", 2);
	struct frame answer;

	send_frame(fake.conduit, FRAME_PUT_DATA, 0, stream, "{}", 2);
	send_u32(fake.conduit, FRAME_PUT_END, stream, 12345);
	answer = receive(fake.conduit);
	tell("damaged answered %d %u\n", answer.type, frame_le32(answer.payload));
	put_text("events-000001.jsonl", "{}\n");
	finish(1);
}

/* A runner that cannot store gives up. */
static void guest_full(void)
{
	put_text("_canary_ok", "ok");
	qmp_ends("guest-shutdown");
	exit(0);
}

/* --- guests that do not --- */

static void guest_breaks(void)
{
	const char *how = word(1);
	char big[4096] = { 0 };

	if (strcmp(how, "no-frame") == 0)
		write_all(fake.conduit, "\xff\xff\xff\xff", 4);
	else if (strcmp(how, "key") == 0)
		begin("inbox/workspace.tar.gz", 1);
	else if (strcmp(how, "climb") == 0)
		begin("outbox/../../run.json", 1);
	else if (strcmp(how, "order") == 0)
		begin("events-000002.jsonl", 1);
	else if (strcmp(how, "manifest") == 0)
		put_text("_manifest.json", "{\"total_chunks\": 7}");
	else if (strcmp(how, "large") == 0)
		begin("events-000001.jsonl", 2 * 1024 * 1024);
	else if (strcmp(how, "more") == 0)
		send_frame(fake.conduit, FRAME_PUT_DATA, 0, begin("_canary_ok", 2), big,
		           sizeof(big));
	else if (strcmp(how, "type") == 0)
		send_frame(fake.control, FRAME_JOB, 0, 0, "{}", 2);
	else if (strcmp(how, "many") == 0)
		for (int i = 0; i < 5; i++) {
			char key[64];

			snprintf(key, sizeof(key), "outbox/a%d.tar.gz", i);
			begin(key, 1);
		}
	stay();
}

/* Archives without end, each under a name of its own. */
static void guest_flood(void)
{
	char key[64];

	started(OTHER_BOOT_ID);
	for (unsigned i = 0;; i++) {
		snprintf(key, sizeof(key), "outbox/a%07u.tar.gz", i);
		put_text(key, "");
	}
}

/* Writes objects and never reads an answer; the shim must go on living. */
static void guest_deaf(void)
{
	started(OTHER_BOOT_ID);
	for (unsigned i = 1;; i++) {
		char key[64];
		uint32_t stream;

		snprintf(key, sizeof(key), "events-%06u.jsonl", i);
		stream = begin(key, 0);
		send_u32(fake.conduit, FRAME_PUT_END, stream, 0);
	}
}

/* Gives credit without end and reads nothing. */
static void guest_glutton(void)
{
	started(OTHER_BOOT_ID);
	for (int i = 0; i < 1000; i++)
		send_u32(fake.control, FRAME_CREDIT, 0, UINT32_MAX);
	tell("gave credit\n");
	stay();
}

static void guest_console(void)
{
	static char line[1000];

	started(OTHER_BOOT_ID);
	memset(line, 'x', sizeof(line) - 1);
	for (int i = 0; i < 5000; i++)
		tell("%s\n", line);
	tell("last line\n");
	stay();
}

/* --- an emulator that was taken over --- */

static int try_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : 0;
}

static long try_exec(void)
{
	char *const argv[] = { "sh", "-c", "exit 77", NULL };

	return syscall(SYS_execveat, AT_FDCWD, "/bin/sh", argv, NULL, 0);
}

static long try_clone3(void)
{
	uint64_t args[11] = { [4] = SIGCHLD };

	return syscall(SYS_clone3, args, sizeof(args));
}

/* The kernel would signal in our name, or let others wait. */
static long try_command(const char *what)
{
	const struct f_owner_ex owner = { F_OWNER_PID, getppid() };
	const int pid = getppid(), kernel = 3;

	if (strcmp(what, "sigio") == 0)
		return fcntl(fake.console, F_SETOWN, pid);
	if (strcmp(what, "sigio-high") == 0)
		return syscall(SYS_fcntl, fake.console, F_SETOWN | 1UL << 32, pid);
	if (strcmp(what, "sigio-ex") == 0)
		return fcntl(fake.console, F_SETOWN_EX, &owner);
	if (strcmp(what, "sigio-number") == 0)
		return fcntl(fake.console, F_SETSIG, SIGKILL);
	if (strcmp(what, "sigio-ioctl") == 0)
		return ioctl(fake.console, FIOSETOWN, &pid);
	if (strcmp(what, "sigio-ioctl-high") == 0)
		return syscall(SYS_ioctl, fake.console, SIOCSPGRP | 1UL << 32, &pid);
	if (strcmp(what, "lease") == 0)
		return fcntl(kernel, F_SETLEASE, F_RDLCK);
	if (strcmp(what, "notify") == 0)
		return fcntl(kernel, F_NOTIFY, DN_ACCESS);
	exit(97);
}

/* Each either ends the process (SIGSYS) or tells what came of it. */
static void attempt(const char *what)
{
	struct iovec iov = { .iov_base = &fake, .iov_len = 1 };
	struct rlimit limit = { 1, 1 };
	long r = -1;

	errno = 0;
	if (strcmp(what, "socket") == 0)
		r = socket(AF_INET, SOCK_STREAM, 0);
	else if (strcmp(what, "socketpair") == 0)
		r = socketpair(AF_UNIX, SOCK_STREAM, 0, (int[2]){ 0 });
	else if (strcmp(what, "connect") == 0)
		r = connect(fake.console,
		            (struct sockaddr *) &(struct sockaddr_un){ AF_UNIX, "/run/x" },
		            sizeof(struct sockaddr_un));
	else if (strcmp(what, "ptrace") == 0)
		r = ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
	else if (strcmp(what, "vm-read") == 0)
		r = process_vm_readv(getppid(), &iov, 1, &iov, 1, 0);
	else if (strcmp(what, "fork") == 0)
		r = fork();
	else if (strcmp(what, "vfork") == 0)
		r = syscall(SYS_vfork);
	else if (strcmp(what, "clone") == 0)
		r = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	else if (strcmp(what, "clone3") == 0)
		r = try_clone3();
	else if (strcmp(what, "exec") == 0)
		r = execve("/bin/sh", (char *[]){ "sh", NULL }, NULL);
	else if (strcmp(what, "execveat") == 0)
		r = try_exec();
	else if (strcmp(what, "unshare") == 0)
		r = unshare(CLONE_NEWUSER);
	else if (strcmp(what, "setns") == 0)
		r = setns(0, CLONE_NEWNET);
	else if (strcmp(what, "mount") == 0)
		r = mount("none", "/mnt", "tmpfs", 0, NULL);
	else if (strcmp(what, "bpf") == 0)
		r = syscall(SYS_bpf, BPF_MAP_CREATE, NULL, 0);
	else if (strcmp(what, "keyctl") == 0)
		r = syscall(SYS_keyctl, 0, 0);
	else if (strcmp(what, "userfaultfd") == 0)
		r = syscall(SYS_userfaultfd, 0);
	else if (strcmp(what, "kill") == 0)
		r = kill(getppid(), SIGKILL);
	else if (strcmp(what, "tgkill") == 0)
		r = syscall(SYS_tgkill, getppid(), getppid(), SIGKILL);
	else if (strcmp(what, "pidfd") == 0)
		r = syscall(SYS_pidfd_open, getppid(), 0);
	else if (strcmp(what, "prlimit") == 0)
		r = prlimit(getppid(), RLIMIT_NOFILE, &limit, NULL);
	else if (strcmp(what, "chmod") == 0)
		r = chmod("/tmp", 0777);
	else if (strcmp(what, "inotify") == 0)
		r = inotify_init1(0);
	else if (strcmp(what, "setuid") == 0)
		r = setuid(0);
	else if (strcmp(what, "read-passwd") == 0)
		errno = -(int) (r = try_open("/etc/passwd", O_RDONLY));
	else if (strcmp(what, "write-file") == 0)
		errno = -(int) (r = try_open(word(2), O_WRONLY | O_CREAT));
	else if (strcmp(what, "list-root") == 0)
		errno = -(int) (r = try_open("/", O_RDONLY | O_DIRECTORY));
	else if (strcmp(what, "read-proc") == 0)
		errno = -(int) (r = try_open("/proc/self/environ", O_RDONLY));
	else if (strcmp(what, "io_uring") == 0)
		r = syscall(SYS_io_uring_setup, 1, NULL);
	else if (strcmp(what, "core") == 0)
		errno = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 &&
		                        getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max == 0
		                ? EPERM
		                : 0;
	else if (strcmp(what, "files-max") == 0)
		errno = getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
		                        limit.rlim_max <= 256 /* its QEMU_FILES_MAX */
		                ? EPERM
		                : 0;
	else if (strcmp(what, "file-size") == 0)
		errno = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_max == 0 ? EPERM : 0;
	else
		r = try_command(what);
	tell("attempt %s: %s\n", what, r >= 0 && errno == 0 ? "ALLOWED" : strerrorname_np(errno));
	exit(0);
}

static void tell_descriptors(void)
{
	for (int fd = 0; fd < 1024; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			tell("fd %d\n", fd);
	}
	tell("uid %d gid %d groups %d\n", (int) getuid(), (int) getgid(), getgroups(0, NULL));
	finish(0);
}

/* The console, the monitor and the emulator's own end, as words 1 to 3 tell: each may be "-" for silence. */
static void guest_end(void)
{
	if (strcmp(word(1), "-") != 0)
		tell("%s\n", word(1));
	if (strcmp(word(2), "STOP") == 0)
		dprintf(fake.qmp, "{\"event\": \"STOP\"}\r\n");
	else if (strcmp(word(2), "-") != 0)
		qmp_ends(word(2));
	if (strncmp(word(3), "signal ", 7) == 0) {
		signal(atoi(word(3) + 7), SIG_DFL);
		raise(atoi(word(3) + 7));
	} else if (strcmp(word(3), "-") != 0) {
		dprintf(STDERR_FILENO, "qemu: last words\n");
		exit(atoi(word(3)));
	}
}

static void play(void)
{
	const char *what = word(0);

	if (strcmp(what, "good") == 0)
		guest_good();
	else if (strcmp(what, "cat") == 0)
		guest_cat();
	else if (strcmp(what, "signals") == 0)
		guest_signals();
	else if (strcmp(what, "damaged") == 0)
		guest_damaged();
	else if (strcmp(what, "full") == 0)
		guest_full();
	else if (strcmp(what, "breaks") == 0)
		guest_breaks();
	else if (strcmp(what, "flood") == 0)
		guest_flood();
	else if (strcmp(what, "deaf") == 0)
		guest_deaf();
	else if (strcmp(what, "glutton") == 0)
		guest_glutton();
	else if (strcmp(what, "console") == 0)
		guest_console();
	else if (strcmp(what, "attempt") == 0)
		attempt(word(1));
	else if (strcmp(what, "descriptors") == 0)
		tell_descriptors();
	else if (strcmp(what, "shared-kernel") == 0)
		started(fake.host_boot_ids);
	else if (strcmp(what, "no-boot-id") == 0)
		send_frame(fake.control, FRAME_STARTED, 0, 0, "{}", 2);
	else if (strcmp(what, "end") == 0)
		guest_end();
	else if (strcmp(what, "started") == 0)
		started(OTHER_BOOT_ID);
	stay();
}

int main(int argc, char **argv)
{
	fake.qmp = qemu_argv_fd(argv, "qmp");
	fake.console = qemu_argv_fd(argv, "console");
	fake.control = qemu_argv_fd(argv, "control");
	fake.conduit = qemu_argv_fd(argv, "conduit");
	hello();
	play();
	return 0;
}
