/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "runtime/microvm/files.h"
#include "runtime/microvm/gateway.h"
#include "runtime/microvm/json.h"
#include "runtime/microvm/rundir.h"

enum {
	FD_PORT = 3, /* the gateway's numbers */
	FD_ROWS,
	FD_CONFIG,
	SCHEMA = 1,
	CONNECT_MS = 10 * 1000,
	IDLE_MS = 300 * 1000,
	HANDSHAKE_MS = 10 * 1000,
	WORDS_MAX = 300, /* bytes of its own words that an error repeats */
};

bool gateway_is_needed(const struct resoluto_launch_spec *spec)
{
	return spec->egress_learn || (spec->egress_allow && spec->egress_allow[0]);
}

int gateway_config_write(const struct gateway *gateway, struct buf *out)
{
	const struct resoluto_launch_spec *spec = gateway->spec;
	CLEANUP(json_done)
	json_t *root = json_pack("{si sI s[] sb sb ss* si si si}", "schema", SCHEMA, "uid",
	                         (json_int_t) gateway->uid, "patterns", "learn", spec->egress_learn,
	                         "wide", spec->egress_wide, "proxy", gateway->proxy, "connect_ms",
	                         CONNECT_MS, "idle_ms", IDLE_MS, "handshake_ms", HANDSHAKE_MS);
	json_t *patterns = json_object_get(root, "patterns");

	for (const char *const *at = spec->egress_allow; root && at && *at; at++) {
		if (json_array_append_new(patterns, json_string(*at)) < 0)
			return -EINVAL;
	}
	if (root && !gateway->proxy)
		(void) json_object_set_new(root, "proxy", json_null());
	return root ? json_write(out, root) : -ENOMEM;
}

/* What its process gets. */
struct ends {
	int port, rows, config, words;
};

static void ends_done(struct ends *ends)
{
	fd_close(&ends->port);
	fd_close(&ends->rows);
	fd_close(&ends->config);
	fd_close(&ends->words);
}

static int make_files(const struct gateway *gateway, struct ends *ends, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(GATEWAY_CONFIG_BYTES);
	int r = gateway_config_write(gateway, &json);

	if (r < 0)
		return resoluto_fail(err, r, "write the gateway's configuration");
	ends->config = file_in_memory(GATEWAY_PROGRAM, json.data, json.len, err);
	if (ends->config < 0)
		return ends->config;
	/* Of a boot before this one. */
	(void) unlinkat(gateway->rundir_fd, GATEWAY_ROWS, 0);
	ends->rows = openat(gateway->rundir_fd, GATEWAY_ROWS,
	                    O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (ends->rows < 0)
		return resoluto_fail(err, -errno, "create " GATEWAY_ROWS);
	ends->words = memfd_create(GATEWAY_PROGRAM, MFD_CLOEXEC);
	return ends->words < 0 ? resoluto_fail(err, -errno, "make a file in memory") : 0;
}

static int spawn(const struct gateway *gateway, const struct ends *ends, struct proc *ret_proc,
                 struct resoluto_err *err)
{
	static const char *const env[] = { "PATH=/usr/bin:/bin", "LC_ALL=C", NULL };
	const char *const argv[] = { gateway->program, NULL };
	const struct proc_fd fds[] = {
		{ ends->port, FD_PORT },
		{ ends->rows, FD_ROWS },
		{ ends->config, FD_CONFIG },
		{ ends->words, STDERR_FILENO },
	};

	return proc_spawn(&(struct proc_options){ .argv = argv,
	                                          .env = env,
	                                          .fds = fds,
	                                          .fd_count = sizeof(fds) / sizeof(fds[0]),
	                                          .new_session = true,
	                                          .is_orphan = gateway->spec->outlives_caller },
	                  ret_proc, err);
}

/* How it says what went wrong. */
static int explain(int words_fd, struct resoluto_err *err)
{
	char words[WORDS_MAX + 1];
	ssize_t n = pread(words_fd, words, WORDS_MAX, 0);

	words[n > 0 ? n : 0] = '\0';
	words[strcspn(words, "\n")] = '\0';
	return resoluto_fail(err, -EOPNOTSUPP, "start the gateway for egress: %s",
	                     words[0] ? words : "it ended without a word");
}

/* Its HELLO is the sign that it has locked itself down; QEMU is to read it, so it is only looked at. */
static int await(const struct proc *proc, int port_fd, int words_fd, struct resoluto_err *err)
{
	struct pollfd polls[] = { { .fd = port_fd, .events = POLLIN },
		                  { .fd = proc->pidfd, .events = POLLIN } };
	const uint64_t until = clock_mono_ms() + GATEWAY_START_MS;
	char byte;

	for (;;) {
		const uint64_t now = clock_mono_ms();

		if (now >= until)
			return resoluto_fail(err, -ETIMEDOUT, "start the gateway for egress");
		if (poll(polls, 2, (int) (until - now)) < 0 && errno != EINTR)
			return resoluto_fail(err, -errno, "wait for the gateway");
		if (recv(port_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1)
			return 0;
		if (polls[0].revents || polls[1].revents)
			return explain(words_fd, err);
	}
}

int gateway_start(const struct gateway *gateway, struct proc *ret_proc, int *ret_port_fd,
                  struct resoluto_err *err)
{
	CLEANUP(ends_done) struct ends ends = { -1, -1, -1, -1 };
	CLEANUP(fd_close) int ours = -1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return resoluto_fail(err, -errno, "make a socket for the gateway");
	ours = pair[0];
	ends.port = pair[1];
	r = make_files(gateway, &ends, err);
	if (r == 0)
		r = spawn(gateway, &ends, ret_proc, err);
	if (r < 0)
		return r;
	fd_close(&ends.port);
	r = await(ret_proc, ours, ends.words, err);
	if (r < 0) {
		proc_done(ret_proc);
		return r;
	}
	*ret_port_fd = fd_take(&ours);
	return 0;
}

/* The gateway holds a lock on the file as long as it lives. */
static int await_end(int fd, uint64_t limit_ms)
{
	int r = lock_within(fd, LOCK_SH, limit_ms);

	return r == -EWOULDBLOCK ? -ETIMEDOUT : r;
}

int gateway_read_rows(int rundir_fd, uint64_t limit_ms, struct buf *ret_text,
                      struct resoluto_err *err)
{
	CLEANUP(fd_close)
	int fd = openat(rundir_fd, GATEWAY_ROWS, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = await_end(fd, limit_ms);
	if (r < 0)
		return resoluto_fail(err, r, "wait for the gateway of the run");
	*ret_text = BUF_INIT(GATEWAY_ROWS_BYTES);
	r = rundir_read(rundir_fd, GATEWAY_ROWS, true, ret_text, err);
	if (r < 0)
		buf_done(ret_text);
	return r;
}
