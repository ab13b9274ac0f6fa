/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "guest/mounts.h"
#include "guest/streams.h"

struct session;

/* One output of the program. */
struct stream {
	struct session *session;
	int fd; /* borrowed from the child; -1: it has ended */
	bool is_stderr;
	struct redact_stream *redact;
	struct line_cutter cutter;
	uint64_t idle_at_ms; /* when it was quiet for long enough; 0: nothing may be waiting */
};

struct session {
	const struct stream_options *options;
	struct program_child *child;
	struct stream outputs[2];
	char *bytes;        /* STREAM_READ */
	struct buf clean;   /* what the redaction let pass */
	int signal_fd;      /* owned: SIGCHLD */
	uint64_t delivered; /* signals that were delivered and are kept */
	bool has_ended;
	int wait_status;
	uint64_t drain_until_ms;     /* once it has ended */
	uint64_t memory_at_ms;       /* when to look at its memory again */
	struct cgroup_memory memory; /* as it was then */
	int stalled_looks;
	bool was_stalled;
	uint64_t loopback_at_ms; /* when to bring it up; UINT64_MAX: it was */
	bool has_more_dead;      /* than are reaped in one turn */
};

enum {
	WATCH_SIGCHLD,
	WATCH_STDOUT,
	WATCH_STDERR,
	WATCH_STDIN,
	WATCH_CONTROL,
	WATCH_CONDUIT,
	WATCH_EGRESS,
	WATCHES
};

static int piece(void *ctx, const void *bytes, size_t len, bool has_newline)
{
	struct stream *stream = ctx;
	const struct stream_options *options = stream->session->options;

	return report_piece(options->report, options->span, stream->is_stderr, bytes, len,
	                    has_newline);
}

/* Cut and report what the redaction let pass. */
static int pass_on(struct stream *stream)
{
	struct buf *clean = &stream->session->clean;
	int r = clean->len
	                ? line_cutter_feed(&stream->cutter, clean->data, clean->len, piece, stream)
	                : 0;

	buf_clear(clean);
	return r;
}

static int idle_stream(struct stream *stream)
{
	int r = redact_stream_idle(stream->redact, &stream->session->clean);

	if (r == 0)
		r = pass_on(stream);
	return r < 0 ? r : line_cutter_idle(&stream->cutter, piece, stream);
}

static int end_stream(struct stream *stream)
{
	int r = redact_stream_end(stream->redact, &stream->session->clean);

	stream->fd = -1;
	if (r == 0)
		r = pass_on(stream);
	return r < 0 ? r : line_cutter_idle(&stream->cutter, piece, stream);
}

/* One read.  *ret_had: there was something. */
static int read_stream(struct stream *stream, bool *ret_had)
{
	struct session *session = stream->session;
	ssize_t n = read(stream->fd, session->bytes, STREAM_READ);
	int r;

	*ret_had = n > 0;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return end_stream(stream);
	r = redact_stream_feed(stream->redact, session->bytes, (size_t) n, &session->clean);
	if (r == 0)
		r = pass_on(stream);
	stream->idle_at_ms = clock_mono_ms() + STREAM_IDLE_MS;
	return r;
}

/* As much stdin into the pipe as it takes.  A program that does not read any more is none of our business. */
static int feed_stdin(struct session *session, struct resoluto_err *err)
{
	struct channel *channel = session->options->channel;
	int *fd = &session->child->stdin_fd;

	while (channel->stdin_bytes.len > 0) {
		size_t taken = channel->stdin_bytes.len;
		int r;

		if (*fd >= 0) {
			ssize_t n = write(*fd, channel->stdin_bytes.data, channel->stdin_bytes.len);

			if (n < 0 && (errno == EAGAIN || errno == EINTR))
				return 0;
			if (n < 0)
				fd_close(fd);
			else
				taken = (size_t) n;
		}
		r = channel_take_stdin(channel, taken, err);
		if (r < 0)
			return r;
	}
	if (channel->stdin_has_ended)
		fd_close(fd);
	return 0;
}

static void deliver(struct session *session, int signo)
{
	if (session->has_ended && signo != SIGKILL)
		return;
	if (!session->has_ended)
		(void) kill(-session->child->pid, signo);
	/* Nothing gets away by leaving the process group. */
	if (signo == SIGKILL)
		(void) cgroup_kill_now(session->options->cgroup);
}

static void deliver_signals(struct session *session)
{
	struct channel *channel = session->options->channel;
	uint64_t kept = session->options->is_hook ? channel->signals : 0;
	int signo;

	channel->signals &= ~session->delivered;
	while ((signo = channel_take_signal(channel)))
		deliver(session, signo);
	channel->signals |= kept;
	session->delivered |= kept;
}

/* Reap whoever has ended: as PID 1 we inherit every orphan. */
static void reap(struct session *session)
{
	struct signalfd_siginfo info;
	pid_t pid = 1;
	int status, count;

	while (read(session->signal_fd, &info, sizeof(info)) > 0)
		;
	for (count = 0; count < CGROUP_REAP_MAX && (pid = waitpid(-1, &status, WNOHANG)) > 0;
	     count++) {
		if (pid != session->child->pid)
			continue;
		session->has_ended = true;
		session->wait_status = status;
		session->drain_until_ms = clock_mono_ms() + session->options->drain_timeout_ms;
	}
	session->has_more_dead = count == CGROUP_REAP_MAX;
}

static bool has_open_output(const struct session *session)
{
	return session->outputs[0].fd >= 0 || session->outputs[1].fd >= 0;
}

static int earlier(int timeout_ms, uint64_t at_ms, uint64_t now_ms)
{
	uint64_t left = at_ms > now_ms ? at_ms - now_ms : 0;

	return left < (uint64_t) timeout_ms ? (int) left : timeout_ms;
}

static int timeout_ms(const struct session *session)
{
	uint64_t now = clock_mono_ms();
	int timeout;

	if (session->has_more_dead)
		return 0;
	timeout = earlier(report_due_ms(session->options->report), session->memory_at_ms, now);
	timeout = earlier(timeout, session->loopback_at_ms, now);
	if (session->options->clock)
		timeout = earlier(timeout, clock_sync_due_ms(session->options->clock), now);
	for (int i = 0; i < 2; i++) {
		if (session->outputs[i].idle_at_ms)
			timeout = earlier(timeout, session->outputs[i].idle_at_ms, now);
	}
	if (session->has_ended)
		timeout = earlier(timeout, session->drain_until_ms, now);
	return timeout;
}

static void set_watches(const struct session *session, struct pollfd watches[WATCHES])
{
	const struct channel *channel = session->options->channel;
	/* A pipe with its reader gone is always ready for an error: only looked at while there is something to
	 * write. */
	bool has_input = channel && channel->stdin_bytes.len > 0;

	watches[WATCH_SIGCHLD] = (struct pollfd){ session->signal_fd, POLLIN, 0 };
	watches[WATCH_STDOUT] = (struct pollfd){ session->outputs[0].fd, POLLIN, 0 };
	watches[WATCH_STDERR] = (struct pollfd){ session->outputs[1].fd, POLLIN, 0 };
	watches[WATCH_STDIN] = (struct pollfd){ has_input ? session->child->stdin_fd : -1, POLLOUT,
		                                0 };
	watches[WATCH_CONTROL] = (struct pollfd){ channel ? channel->control.fd : -1, POLLIN, 0 };
	watches[WATCH_CONDUIT] = (struct pollfd){ channel ? channel->conduit.fd : -1, POLLIN, 0 };
	watches[WATCH_EGRESS] = (struct pollfd){
		session->options->egress ? session->options->egress->rows_fd : -1, POLLIN, 0
	};
}

static int handle_outputs(struct session *session, const struct pollfd watches[WATCHES])
{
	for (int i = 0; i < 2; i++) {
		bool had;
		int r = 0;

		if (watches[WATCH_STDOUT + i].revents)
			r = read_stream(&session->outputs[i], &had);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Each by itself: a stream that is never quiet does not keep the prompt on the other one back. */
static int handle_idle(struct session *session)
{
	for (int i = 0; i < 2; i++) {
		struct stream *stream = &session->outputs[i];
		int r;

		if (stream->idle_at_ms == 0 || clock_mono_ms() < stream->idle_at_ms)
			continue;
		stream->idle_at_ms = 0;
		r = stream->fd >= 0 ? idle_stream(stream) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static void handle_memory(struct session *session)
{
	uint64_t now_ms = clock_mono_ms();
	struct cgroup_memory now;
	bool is_stalled;

	if (now_ms < session->memory_at_ms)
		return;
	session->memory_at_ms = now_ms + STREAM_MEMORY_MS;
	if (cgroup_read_memory(session->options->cgroup, &now) < 0)
		return;
	is_stalled = session->memory.limit_bytes && cgroup_is_stalled(&session->memory, &now);
	session->memory = now;
	session->stalled_looks = is_stalled ? session->stalled_looks + 1 : 0;
	if (session->stalled_looks >= STREAM_STALLED_LOOKS) {
		session->was_stalled = true;
		(void) cgroup_kill_now(session->options->cgroup);
	}
}

/* Not before: a program that is over by then needed none, and one that needs it early waits for the kernel to do it. */
static void handle_loopback(struct session *session)
{
	if (clock_mono_ms() < session->loopback_at_ms)
		return;
	session->loopback_at_ms = UINT64_MAX;
	mount_bring_up_loopback();
}

static int handle_channel(struct session *session, const struct pollfd watches[WATCHES],
                          struct resoluto_err *err)
{
	int r = 0;

	if (!session->options->channel)
		return 0;
	if (watches[WATCH_CONTROL].revents || watches[WATCH_CONDUIT].revents)
		r = channel_receive(session->options->channel, err);
	if (r < 0)
		return r;
	deliver_signals(session);
	return session->options->is_hook ? 0 : feed_stdin(session, err);
}

/* Wait, and do what there is to do. */
static int turn(struct session *session, struct resoluto_err *err)
{
	struct pollfd watches[WATCHES];
	int r;

	set_watches(session, watches);
	if (poll(watches, WATCHES, timeout_ms(session)) < 0 && errno != EINTR)
		return resoluto_fail(err, -errno, "wait for the program");
	r = handle_channel(session, watches, err);
	if (r == 0 && session->options->clock)
		r = clock_sync_turn(session->options->clock, err);
	if (r < 0)
		return r;
	r = handle_outputs(session, watches);
	if (r == 0)
		r = handle_idle(session);
	if (r == 0 && watches[WATCH_EGRESS].revents)
		r = egress_take_rows(session->options->egress);
	if (watches[WATCH_SIGCHLD].revents || session->has_more_dead)
		reap(session);
	handle_memory(session);
	handle_loopback(session);
	/* The last chunk goes with what follows the end. */
	if (r == 0 && !(session->has_ended && !has_open_output(session)))
		r = report_tick(session->options->report);
	if (r < 0 && session->options->report->failure.code)
		*err = session->options->report->failure;
	else if (r < 0)
		return resoluto_fail(err, r, "report the output");
	return r;
}

/* The drain time is over: kill who holds the outputs open, and read what is still in the pipes. */
static int cut_off(struct session *session, struct resoluto_err *err)
{
	(void) cgroup_kill(session->options->cgroup);
	for (int i = 0; i < 2; i++) {
		struct stream *stream = &session->outputs[i];
		bool had = true;
		int r = 0;

		while (r == 0 && had && stream->fd >= 0)
			r = read_stream(stream, &had);
		if (r == 0 && stream->fd >= 0)
			r = end_stream(stream);
		if (r < 0)
			return resoluto_fail(err, r, "report the output");
	}
	return 0;
}

static int run_session(struct session *session, struct program_end *ret_end,
                       struct resoluto_err *err)
{
	while (!session->has_ended || has_open_output(session)) {
		int r;

		if (session->has_ended && clock_mono_ms() >= session->drain_until_ms)
			break;
		r = turn(session, err);
		if (r < 0)
			return r;
	}
	ret_end->is_complete = !has_open_output(session);
	ret_end->wait_status = session->wait_status;
	ret_end->was_stalled = session->was_stalled;
	return ret_end->is_complete ? 0 : cut_off(session, err);
}

static int session_init(struct session *session, const struct stream_options *options,
                        struct program_child *child)
{
	const int fds[2] = { child->stdout_fd, child->stderr_fd };
	sigset_t chld;
	int r = 0;

	*session = (struct session){
		.options = options,
		.child = child,
		.bytes = malloc(STREAM_READ),
		.clean = BUF_INIT(8 * (STREAM_READ + REDACT_HOLD_MAX)),
		.signal_fd = -1,
		.memory_at_ms = clock_mono_ms() + STREAM_MEMORY_MS,
		.loopback_at_ms = clock_mono_ms() + STREAM_LOOPBACK_MS,
	};
	for (int i = 0; i < 2; i++) {
		session->outputs[i] = (struct stream){ .session = session,
			                               .fd = fds[i],
			                               .is_stderr = i == 1,
			                               .cutter = { .held = BUF_INIT(
									   EVENT_LINE_BYTES) } };
		if (r == 0)
			r = redact_stream_new(options->report->redactor,
			                      &session->outputs[i].redact);
	}
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	session->signal_fd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r == 0 && session->signal_fd < 0)
		r = -errno;
	return r == 0 && !session->bytes ? -ENOMEM : r;
}

static void session_done(struct session *session)
{
	for (int i = 0; i < 2; i++) {
		redact_stream_free(&session->outputs[i].redact);
		buf_done(&session->outputs[i].cutter.held);
	}
	fd_close(&session->signal_fd);
	buf_done(&session->clean);
	free(session->bytes);
	program_child_done(session->child);
}

int streams_run(const struct stream_options *options, struct program_child *child,
                struct program_end *ret_end, struct resoluto_err *err)
{
	CLEANUP(session_done) struct session session;
	int r = session_init(&session, options, child);

	if (r < 0)
		return resoluto_fail(err, r, "make room for the program's streams");
	/* What came before the start. */
	r = handle_channel(&session, (struct pollfd[WATCHES]){ { 0 } }, err);
	return r < 0 ? r : run_session(&session, ret_end, err);
}
