/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "runtime/microvm/json.h"
#include "shim/shim.h"
#include "wire/json_read.h"

/* --- to the guest, on control --- */

/* What passes between reading the clocks and the guest's reading of them is the guest's to bound: it knows when it
 * asked (guest/clock_judge.h). */
static int send_clock(struct shim *shim)
{
	const struct frame_clock clock = { .wall_ns = clock_wall_ns(), .raw_ns = clock_raw_ns() };

	shim->owes_clock = false;
	return frame_add_clock(&shim->control.out, &clock);
}

static int greet(struct shim *shim)
{
	int r = frame_add_u32(&shim->control.out, FRAME_HELLO, 0, FRAME_VERSION);

	if (r == 0)
		r = send_clock(shim);
	shim->has_greeted = r == 0;
	return r;
}

/* A piece at a time: the job is never held here. */
static int send_job_piece(struct shim *shim)
{
	char bytes[FRAME_PAYLOAD_MAX];
	ssize_t n = pread(SHIM_FD_JOB, bytes, sizeof(bytes), (off_t) shim->job_sent);
	uint8_t more;

	if (n <= 0)
		return n < 0 ? -errno : -EIO;
	shim->job_sent += (uint64_t) n;
	more = shim->job_sent < shim->job_size ? FRAME_MORE : 0;
	return frame_add(&shim->control.out, FRAME_JOB, more, 0, bytes, (size_t) n);
}

static int send_signal(struct shim *shim)
{
	uint32_t number = (uint32_t) __builtin_ctzll(shim->signals);

	shim->signals &= shim->signals - 1;
	return frame_add_u32(&shim->control.out, FRAME_SIGNAL, 0, number);
}

static int send_stdin_piece(struct shim *shim)
{
	size_t n = shim->stdin_bytes.len;
	int r;

	if (n > STDIN_PIECE)
		n = STDIN_PIECE;
	if (n > shim->guest_credit)
		n = (size_t) shim->guest_credit;
	r = frame_add(&shim->control.out, FRAME_STDIN, 0, 0, shim->stdin_bytes.data, n);
	if (r < 0)
		return r;
	shim->guest_credit -= n;
	buf_drop_front(&shim->stdin_bytes, n);
	return 0;
}

/* The next thing in its order; 1: something was added, 0: nothing waits. */
static int add_next(struct shim *shim)
{
	int r;

	if (!shim->demux.has_hello[DEMUX_CONTROL])
		return 0;
	if (!shim->has_greeted)
		r = greet(shim);
	else if (shim->owes_clock)
		r = send_clock(shim);
	else if (shim->job_sent < shim->job_size)
		r = send_job_piece(shim);
	else if (shim->signals)
		r = send_signal(shim);
	else if (shim->stdin_bytes.len > 0 && shim->guest_credit > 0)
		r = send_stdin_piece(shim);
	else if (shim->stdin_has_ended && !shim->stdin_end_sent && shim->stdin_bytes.len == 0) {
		r = frame_add(&shim->control.out, FRAME_STDIN_EOF, 0, 0, NULL, 0);
		shim->stdin_end_sent = true;
	} else
		return 0;
	return r < 0 ? r : 1;
}

/* A flush that takes everything leaves nobody who would wake us for the rest: go on until the port is
 * full or nothing waits.  Called on a port that is full already, it adds nothing. */
int shim_feed_guest(struct shim *shim)
{
	int added = 1, r = channel_flush(&shim->control);

	while (r == 0 && added == 1 && !channel_is_full(&shim->control)) {
		added = add_next(shim);
		r = added < 0 ? added : channel_flush(&shim->control);
	}
	if (r == 0)
		r = channel_update(&shim->control);
	return r < 0 ? r : shim_feed_caller(shim);
}

/* --- from the guest --- */

static int answer(struct shim *shim, uint32_t stream, int nak, const char *why)
{
	char payload[4 + 200];
	size_t n = strlen(why);
	const uint32_t code = (uint32_t) nak;

	if (nak == 0)
		return frame_add(&shim->conduit.out, FRAME_ACK, 0, stream, NULL, 0);
	if (n > sizeof(payload) - 4)
		n = sizeof(payload) - 4;
	for (int i = 0; i < 4; i++)
		payload[i] = (char) (code >> (8 * i));
	memcpy(payload + 4, why, n);
	return frame_add(&shim->conduit.out, FRAME_NAK, 0, stream, payload, 4 + n);
}

static int refuse_put(struct shim *shim, struct demux_put *put, int nak, const char *why)
{
	demux_failed(&shim->demux, put);
	return answer(shim, put->stream, nak, why);
}

static int object_is_stored(struct shim *shim, struct demux_action *action, enum key_kind kind)
{
	const uint32_t stream = action->put->stream;
	int r;

	demux_stored(&shim->demux, action->put);
	if (kind == KEY_IS_CHUNK)
		shim->quiet_since_ms = clock_mono_ms();
	if (kind == KEY_IS_MANIFEST)
		shim->ending.has_manifest = true;
	r = answer(shim, stream, 0, "");
	shim_tell_news(shim);
	return r;
}

static int end_put(struct shim *shim, struct demux_action *action)
{
	const enum key_kind kind = action->put->kind;
	struct resoluto_err err = { 0 };
	int nak, r;

	/* All there is to know has come: nothing the guest still does counts, so its machine goes while that is flushed. */
	if (kind == KEY_IS_MANIFEST)
		(void) shim_stop(shim, REASON_NONE, NULL);
	nak = store_commit(&shim->store, action->slot, kind, &err);
	if (nak == 0)
		return object_is_stored(shim, action, kind);
	/* Lost, or nobody is left who could send it again. */
	if (shim->store.has_lost || shim->is_stopping)
		return shim_stop(shim, shim->store.trouble, err.text);
	r = refuse_put(shim, action->put, nak, err.text);
	action->put->is_open = false;
	return r;
}

static int damaged_put(struct shim *shim, struct demux_action *action)
{
	int r;

	store_abort(&shim->store, action->slot);
	r = refuse_put(shim, action->put, FRAME_NAK_CRC, "arrived damaged");
	action->put->is_open = false;
	return r;
}

/* Its own kernel, or nothing of it is believed. */
static int started(struct shim *shim, const struct demux_action *action)
{
	CLEANUP(json_done) json_t *root = NULL;
	const char *boot_id = NULL;

	if (json_read((const char *) action->bytes, action->len, 0, &root) == -ENOMEM)
		return -ENOMEM;
	if (!root || json_unpack(root, "{ss}", "guest_boot_id", &boot_id) < 0 ||
	    !is_boot_id(boot_id))
		return shim_stop(shim, REASON_OWN_KERNEL_UNPROVEN, "the guest told no boot id");
	memcpy(shim->state.guest_boot_id, boot_id, BOOT_ID_SIZE);
	if (strcmp(boot_id, shim->config.host_boot_id) == 0)
		return shim_stop(shim, REASON_SHARED_KERNEL, "the guest's boot id is the host's");
	shim->state.own_kernel = true;
	shim->tell_started = true;
	shim_tell_news(shim);
	return shim_write_state(shim);
}

/* Running from here on, as a container is with its first process: what comes before the program may hang too, and only
 * over a running sandbox its silence is watched. */
static int hello(struct shim *shim, enum demux_port port)
{
	int r;

	shim->ending.has_hello = true;
	if (port == DEMUX_CONDUIT)
		return frame_add_u32(&shim->conduit.out, FRAME_HELLO, 0, FRAME_VERSION);
	/* First its job: the state goes to the disk, and only the caller waits for that. */
	r = shim_feed_guest(shim);
	shim->state.phase = RESOLUTO_PHASE_RUNNING;
	shim_tell_news(shim);
	return r < 0 ? r : shim_write_state(shim);
}

static int act(struct shim *shim, enum demux_port port, struct demux_action *action)
{
	struct resoluto_err err = { 0 };
	int nak;

	switch (action->what) {
	case DEMUX_NOTHING:
		return 0;
	case DEMUX_HELLO:
		return hello(shim, port);
	case DEMUX_STARTED:
		return started(shim, action);
	case DEMUX_CREDIT:
		shim->guest_credit += action->number;
		return 0;
	case DEMUX_CLOCK:
		shim->owes_clock = true;
		return 0;
	case DEMUX_BEGIN:
		nak = store_begin(&shim->store, action->slot, action->put, &err);
		break;
	case DEMUX_DATA:
		nak = store_write(&shim->store, action->slot, action->bytes, action->len, &err);
		break;
	case DEMUX_END:
		return end_put(shim, action);
	case DEMUX_DAMAGED:
		return damaged_put(shim, action);
	case DEMUX_BEHIND:
		return answer(shim, action->put->stream, FRAME_NAK_STORE,
		              "an object before it could not be stored");
	default:
		return 0;
	}
	if (nak < 0)
		return shim_stop(shim, REASON_QUOTA, err.text);
	return nak > 0 ? refuse_put(shim, action->put, nak, err.text) : 0;
}

/* One frame; 0: none is whole yet or none is wanted now, 1: go on. */
static int take_frame(struct shim *shim, struct channel *channel, enum demux_port port, size_t *at)
{
	struct resoluto_err err = { 0 };
	struct demux_action action;
	struct frame frame;
	size_t used;
	int r;

	/* A guest that does not read its answers is not read either. */
	if (shim->is_stopping || (channel_is_full(channel) && port == DEMUX_CONDUIT))
		return 0;
	r = frame_parse(channel->in.data + *at, channel->in.len - *at, &frame, &used);
	if (r == -EAGAIN)
		return 0;
	if (r < 0)
		return shim_stop(shim, REASON_PROTOCOL, "the guest sent what is no frame");
	*at += used;
	r = demux_frame(&shim->demux, port, &frame, &action, &err);
	if (r < 0)
		return shim_stop(shim, r == -EDQUOT ? REASON_QUOTA : REASON_PROTOCOL, err.text);
	r = act(shim, port, &action);
	return r < 0 ? r : 1;
}

static int take_frames(struct shim *shim, struct channel *channel, enum demux_port port)
{
	size_t at = 0;
	int r = 1;

	while (r == 1 && channel->in.len > at)
		r = take_frame(shim, channel, port, &at);
	buf_drop_front(&channel->in, at);
	return r < 0 ? r : 0;
}

/* Frames are put off while the port is full of answers; emptied by one flush, it wakes nobody for them. */
static int take_and_flush(struct shim *shim, struct channel *channel, enum demux_port port)
{
	bool was_full;
	int r;

	do {
		r = take_frames(shim, channel, port);
		was_full = channel_is_full(channel);
		if (r == 0)
			r = channel_flush(channel);
	} while (r == 0 && was_full && !channel_is_full(channel));
	return r;
}

static int port_event(struct shim *shim, struct channel *channel, enum demux_port port)
{
	int r = channel_flush(channel);

	if (r == 0 && channel->in.len < channel->in.max)
		r = channel_read(channel);
	if (r >= 0)
		r = take_and_flush(shim, channel, port);
	channel->is_paused = port == DEMUX_CONDUIT && channel_is_full(channel);
	if (r == 0)
		r = channel_update(channel);
	return r < 0 ? r : shim_feed_guest(shim);
}

int shim_control_event(struct loop_watch *watch, uint32_t events)
{
	struct shim *shim = watch->ctx;

	return port_event(shim, &shim->control, DEMUX_CONTROL);
}

int shim_conduit_event(struct loop_watch *watch, uint32_t events)
{
	struct shim *shim = watch->ctx;

	return port_event(shim, &shim->conduit, DEMUX_CONDUIT);
}

static void drain_port(struct shim *shim, struct channel *channel, enum demux_port port)
{
	/* Nobody reads the answers any more, so they do not pile up. */
	do {
		buf_clear(&channel->out);
		if (take_frames(shim, channel, port) < 0)
			return;
	} while (channel_read(channel) > 0);
}

void shim_drain_guest(struct shim *shim)
{
	drain_port(shim, &shim->control, DEMUX_CONTROL);
	drain_port(shim, &shim->conduit, DEMUX_CONDUIT);
}
