/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/path.h"
#include "runtime/microvm/door.h"
#include "runtime/microvm/run.h"
#include "wire/frame.h"
#include "wire/reason.h"

enum {
	RECEIVE_MAX = 4096, /* bytes per read: the shim sends hints only */
	RUN_OUT_MAX = 4 * FRAME_MAX,
	END_MS = 2000, /* for the shim to end by itself */
};

void run_init(struct run *run, struct claim *claim)
{
	*run = (struct run){
		.claim = claim,
		.slot = SLOT_NONE,
		.shim = PROC_NONE,
		.gateway = PROC_NONE,
		.socket = -1,
		.prefix_fd = -1,
		.inotify_fd = -1,
		.in = BUF_INIT(FRAME_MAX + RECEIVE_MAX),
		.out = BUF_INIT(RUN_OUT_MAX),
	};
}

static int take(struct run *run, const struct frame *frame)
{
	uint32_t more;

	if (frame->type == FRAME_CREDIT) {
		if (frame_get_u32(frame, &more) < 0 || more > FRAME_STDIN_CREDIT)
			return -EBADMSG;
		run->credit += more;
	}
	/* STARTED and NEWS say: look.  So does a frame of a later version. */
	run->news++;
	return 0;
}

static int take_frames(struct run *run)
{
	size_t at = 0;
	int r = 0;

	while (r == 0 && at < run->in.len) {
		struct frame frame;
		size_t used;

		r = frame_parse(run->in.data + at, run->in.len - at, &frame, &used);
		if (r == 0) {
			at += used;
			r = take(run, &frame);
		}
	}
	buf_drop_front(&run->in, at);
	return r == -EAGAIN ? 0 : r;
}

/* A shim that a guest has taken over may send anything: the connection is over then. */
static void hang_up(struct run *run)
{
	run->has_ended = true;
	fd_close(&run->socket);
	buf_clear(&run->in);
	buf_clear(&run->out);
}

int run_receive(struct run *run)
{
	if (run->is_attached)
		attached_look(run);
	while (!run->has_ended && !run->is_attached) {
		ssize_t n;
		int r = buf_reserve(&run->in, RECEIVE_MAX);

		if (r < 0)
			return r;
		n = recv(run->socket, run->in.data + run->in.len, RECEIVE_MAX, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n <= 0) {
			hang_up(run);
			return 0;
		}
		run->in.len += (size_t) n;
		if (take_frames(run) < 0)
			hang_up(run);
	}
	return 0;
}

int run_flush(struct run *run)
{
	while (run->out.len > 0 && !run->has_ended) {
		ssize_t n = send(run->socket, run->out.data, run->out.len,
		                 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0)
			return run_receive(run); /* its last words, and its end */
		buf_drop_front(&run->out, (size_t) n);
	}
	return 0;
}

int run_send(struct run *run, uint8_t type, const void *payload, size_t len)
{
	int r;

	if (run->has_ended)
		return -EPIPE;
	if (run->is_attached)
		return door_send(run->claim->dir.fd, type, payload, len, NULL);
	r = frame_add(&run->out, type, 0, 0, payload, len);
	return r < 0 ? r : run_flush(run);
}

int run_wait_news(struct run *run, uint64_t news, int timeout_ms)
{
	const uint64_t until = clock_mono_ms() + (uint64_t) timeout_ms;

	for (;;) {
		uint64_t now;
		bool extra;
		int r = run_receive(run);

		if (r < 0)
			return r;
		if (run->has_ended || run->news > news)
			return 0;
		now = clock_mono_ms();
		if (now >= until)
			return -ETIMEDOUT;
		r = run_poll(run, -1, (int) (until - now), &extra);
		if (r < 0)
			return r;
	}
}

int run_poll(struct run *run, int extra_fd, int timeout_ms, bool *ret_extra)
{
	struct pollfd polls[2] = { { .fd = -1 }, { .fd = extra_fd, .events = POLLIN } };
	int r;

	if (run->is_attached)
		return attached_poll(run, extra_fd, timeout_ms, ret_extra);
	if (!run->has_ended) {
		polls[0] = (struct pollfd){ .fd = run->socket, .events = POLLIN };
		if (run->out.len > 0)
			polls[0].events |= POLLOUT;
	}
	if (poll(polls, 2, timeout_ms) < 0 && errno != EINTR)
		return -errno;
	*ret_extra = polls[1].revents != 0;
	r = run_flush(run);
	return r < 0 ? r : run_receive(run);
}

int run_read_state_file(int dirfd, struct run_state *ret_state, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(STATE_JSON_MAX);
	int r = rundir_read(dirfd, "state.json", false, &json, err);

	if (r < 0)
		return r;
	/* What a power cut may leave of one that was never flushed. */
	if (json.len == 0)
		return -ENOENT;
	return run_state_parse(json.data, json.len, ret_state, err);
}

/* Nobody writes it any more, and no end stands there. */
static void conclude(struct run *run, struct run_state *state)
{
	if (run->is_attached) {
		attached_conclude(run, state);
		return;
	}
	state->phase = RESOLUTO_PHASE_FAILED;
	snprintf(state->reason, sizeof(state->reason), "%s", reason_name(REASON_SHIM_KILLED));
}

int run_read_state(struct run *run, struct run_state *ret_state, struct resoluto_err *err)
{
	int r = run_receive(run);

	if (r < 0)
		return resoluto_fail(err, r, "hear from the shim");
	*ret_state = (struct run_state){ .phase = RESOLUTO_PHASE_PENDING };
	r = run_read_state_file(run->claim->dir.fd, ret_state, err);
	/* It is not flushed: a power cut may have left anything. */
	if (r == -EBADMSG && run->is_attached && attached_has_restarted(run))
		r = -ENOENT;
	if (r == -EBADMSG) {
		/* A shim that its guest has taken over: that is how the run ended. */
		*ret_state = (struct run_state){ .phase = RESOLUTO_PHASE_FAILED };
		snprintf(ret_state->reason, sizeof(ret_state->reason), "%s",
		         reason_name(REASON_PROTOCOL));
		return 0;
	}
	if (r < 0 && r != -ENOENT)
		return r;
	if (run->is_attached && attached_may_go_on(run, ret_state)) {
		*ret_state = (struct run_state){ .phase = RESOLUTO_PHASE_PENDING };
	} else if (run->has_ended && !run_state_is_final(ret_state)) {
		conclude(run, ret_state);
	}
	return 0;
}

/* Hints do not end it, only the shim's end does. */
static int await_end(struct run *run, int timeout_ms)
{
	const uint64_t until = clock_mono_ms() + (uint64_t) timeout_ms;
	int r = 0;

	while (r == 0 && !run->has_ended) {
		const uint64_t now = clock_mono_ms();

		if (now >= until)
			return -ETIMEDOUT;
		r = run_wait_news(run, run->news, (int) (until - now));
	}
	return r;
}

void run_end(struct run *run)
{
	const char *why = reason_name(REASON_SIGNAL);
	int status;

	if (run_send(run, FRAME_DESTROY, why, strlen(why)) == 0)
		(void) await_end(run, END_MS);
	if (run->shim.pidfd >= 0 && !run->has_ended)
		(void) proc_kill(&run->shim, SIGKILL);
	/* From the closed socket to its exit a shim only frees memory. */
	if (run->shim.pidfd >= 0 && proc_wait(&run->shim, END_MS, &status) == -ETIMEDOUT)
		(void) proc_kill(&run->shim, SIGKILL);
	proc_done(&run->shim);
	/* It ends by itself, as soon as QEMU has. */
	if (run->gateway.pidfd >= 0)
		(void) proc_wait(&run->gateway, END_MS, &status);
	proc_done(&run->gateway);
	/* Later runs with the same user have no business there. */
	if (run->prefix_fd >= 0 && geteuid() == 0)
		(void) !fchown(run->prefix_fd, 0, 0);
	run_leave(run);
}

void run_leave(struct run *run)
{
	fd_close(&run->shim.pidfd);
	run->shim = PROC_NONE;
	fd_close(&run->gateway.pidfd);
	run->gateway = PROC_NONE;
	fd_close(&run->socket);
	fd_close(&run->prefix_fd);
	fd_close(&run->inotify_fd);
	slot_done(&run->slot);
	buf_done(&run->in);
	buf_done(&run->out);
	run_record_doc_done(&run->record);
	run->has_ended = true;
}
