/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/proc.h"
#include "gateway/keeper.h"

enum { WORDS_MAX = 300 /* bytes of nft's own words that an error repeats */ };

static const char *const nft_environment[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C",
	                                       NULL };

static int explain(int words_fd, int failure, struct resoluto_err *err)
{
	char words[WORDS_MAX + 1];
	ssize_t n = pread(words_fd, words, WORDS_MAX, 0);

	words[n > 0 ? n : 0] = '\0';
	words[strcspn(words, "\n")] = '\0';
	return resoluto_fail(err, failure, "set the rules of the bridge by nft: %s",
	                     words[0] ? words : "it said nothing");
}

/* One transaction: all of it or nothing. */
static int apply(const struct buf *rules, struct resoluto_err *err)
{
	static const char *const argv[] = { "nft", "-f", "-", NULL };
	CLEANUP(fd_close) int text = memfd_create("rules", MFD_CLOEXEC);
	CLEANUP(fd_close) int words = memfd_create("words", MFD_CLOEXEC);
	CLEANUP(proc_done) struct proc nft = PROC_NONE;
	const struct proc_fd fds[] = { { text, STDIN_FILENO }, { words, STDERR_FILENO } };
	int status = 0,
	    r = text < 0 || words < 0 ? -errno : write_all(text, rules->data, rules->len);

	if (r == 0 && lseek(text, 0, SEEK_SET) < 0)
		r = -errno;
	if (r < 0)
		return resoluto_fail(err, r, "write rules for nft");
	r = proc_spawn(&(struct proc_options){ .argv = argv,
	                                       .env = nft_environment,
	                                       .fds = fds,
	                                       .fd_count = 2 },
	               &nft, err);
	if (r < 0)
		return r;
	r = proc_wait(&nft, KEEPER_NFT_MS, &status);
	if (r == 0 && status != 0)
		r = -EIO;
	return r < 0 ? explain(words, r, err) : 0;
}

static int set_rules(const struct gateway_config *config, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf rules = BUF_INIT(BRIDGE_RULES_MAX);
	int r = bridge_rules(&config->bridge, &config->policy, &rules);

	return r < 0 ? resoluto_fail(err, r, "write the rules of the bridge") : apply(&rules, err);
}

int keeper_sweep(const struct bridge *bridge, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf rules = BUF_INIT(BRIDGE_RULES_MAX);
	int r = bridge_no_rules(bridge, &rules);

	return r < 0 ? resoluto_fail(err, r, "write the rules of the bridge") : apply(&rules, err);
}

/* 0: the other end is there and has sent a byte. */
static int await_byte(int fd)
{
	char byte;
	ssize_t n;

	do {
		n = recv(fd, &byte, 1, 0);
	} while (n < 0 && errno == EINTR);
	return n == 1 ? 0 : n == 0 ? -EPIPE : -errno;
}

/* Whatever is sent is not looked at. */
static void await_end(int life_fd)
{
	while (await_byte(life_fd) == 0)
		continue;
}

static void end_child(pid_t pid, int *control)
{
	fd_close(control);
	for (int waited = 0; waited < KEEPER_END_MS; waited += 10) {
		if (waitpid(pid, NULL, WNOHANG) != 0)
			return;
		(void) poll(NULL, 0, 10);
	}
	(void) kill(pid, SIGKILL);
	(void) waitpid(pid, NULL, 0);
}

static int keep(const struct gateway_config *config, int life_fd, int control,
                struct resoluto_err *err)
{
	int r = await_byte(control);

	/* It has said why. */
	if (r < 0)
		return resoluto_fail(err, -EIO, "start the gateway of the bridge");
	r = set_rules(config, err);
	if (r < 0)
		return r;
	if (send(life_fd, "r", 1, MSG_NOSIGNAL) == 1)
		await_end(life_fd);
	/* As long as rules are there, so is who they lead to, or nobody. */
	return keeper_sweep(&config->bridge, err);
}

int keeper_fork(pid_t *ret_pid, int *ret_control, struct resoluto_err *err)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return resoluto_fail(err, -errno, "make a socket for the gateway");
	pid = fork();
	if (pid < 0) {
		int r = -errno;

		(void) close(pair[0]);
		(void) close(pair[1]);
		return resoluto_fail(err, r, "make a process for the gateway");
	}
	(void) close(pair[pid == 0 ? 0 : 1]);
	*ret_control = pair[pid == 0 ? 1 : 0];
	*ret_pid = pid;
	return 0;
}

int keeper_keep(const struct gateway_config *config, int life_fd, pid_t pid, int control,
                struct resoluto_err *err)
{
	int r = keep(config, life_fd, control, err);

	end_child(pid, &control);
	return r;
}
