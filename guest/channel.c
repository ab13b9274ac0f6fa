/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <endian.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/io.h"
#include "guest/channel.h"
#include "wire/keys.h"

enum {
	READ_SIZE = 16 * 1024,   /* bytes asked for at once; the driver gives 4 KiB */
	CREDIT_STEP = 64 * 1024, /* credit is given in steps, not for each line */
	OUT_FULL = 64 * 1024,    /* bytes of frames that wait to be written together */
	OUT_MAX = OUT_FULL + 2 * FRAME_MAX,
};

static const struct ship_ops channel_ship_ops;

void channel_init(struct channel *channel, int control_fd, int conduit_fd)
{
	*channel = (struct channel){
		.ship = { .ops = &channel_ship_ops },
		.control = { .fd = control_fd, .in = BUF_INIT(FRAME_MAX + READ_SIZE) },
		.conduit = { .fd = conduit_fd, .in = BUF_INIT(FRAME_MAX + READ_SIZE) },
		.job = BUF_INIT(FRAME_JOB_MAX),
		.stdin_bytes = BUF_INIT(FRAME_STDIN_CREDIT),
		.stdin_credit = FRAME_STDIN_CREDIT,
		.out = BUF_INIT(OUT_MAX),
	};
}

void channel_done(struct channel *channel)
{
	fd_close(&channel->control.fd);
	fd_close(&channel->conduit.fd);
	buf_done(&channel->control.in);
	buf_done(&channel->conduit.in);
	buf_done(&channel->job);
	buf_done(&channel->stdin_bytes);
	buf_done(&channel->out);
}

/* --- what comes in --- */

static int take_job(struct channel *channel, const struct frame *frame, struct resoluto_err *err)
{
	int r;

	if (channel->has_job)
		return resoluto_fail(err, -EPROTO, "the host sent a second job");
	r = frame_join(&channel->job, frame);
	if (r < 0)
		return resoluto_fail(err, r == -ENOMEM ? r : -EPROTO, "the job is too large");
	channel->has_job = r == 1;
	return 0;
}

static int keep_stdin(struct channel *channel, const struct frame *frame, struct resoluto_err *err)
{
	if (channel->stdin_has_ended || frame->len > channel->stdin_credit)
		return resoluto_fail(err, -EPROTO,
		                     "the host sent stdin beyond its credit or its end");
	channel->stdin_credit -= frame->len;
	return buf_add(&channel->stdin_bytes, frame->payload, frame->len);
}

static int keep_signal(struct channel *channel, const struct frame *frame, struct resoluto_err *err)
{
	uint32_t number;

	if (frame_get_u32(frame, &number) < 0 || number == 0 || number >= 64)
		return resoluto_fail(err, -EPROTO, "the host sent a signal that is none");
	channel->signals |= UINT64_C(1) << number;
	return 0;
}

/* One that nobody asked for says nothing: it may have been under way for any time. */
static int keep_clock(struct channel *channel, const struct frame *frame, struct resoluto_err *err)
{
	struct frame_clock host;

	if (frame_get_clock(frame, &host) < 0 || host.wall_ns > INT64_MAX / 2 ||
	    host.raw_ns > INT64_MAX / 2)
		return resoluto_fail(err, -EPROTO, "the host sent a time that is none");
	if (channel->clock_asked == 0)
		return 0;
	channel->clock = (struct clock_sample){ .asked = channel->clock_asked,
		                                .got = (int64_t) clock_raw_ns(),
		                                .wall = (int64_t) clock_wall_ns(),
		                                .host_wall = (int64_t) host.wall_ns,
		                                .host_raw = (int64_t) host.raw_ns };
	channel->clock_asked = 0;
	channel->has_clock = true;
	return 0;
}

static int handle_control(struct channel *channel, const struct frame *frame,
                          struct resoluto_err *err)
{
	switch (frame->type) {
	case FRAME_CLOCK:
		return keep_clock(channel, frame, err);
	case FRAME_JOB:
		return take_job(channel, frame, err);
	case FRAME_STDIN:
		return keep_stdin(channel, frame, err);
	case FRAME_STDIN_EOF:
		channel->stdin_has_ended = true;
		return 0;
	case FRAME_SIGNAL:
		return keep_signal(channel, frame, err);
	default:
		break;
	}
	return resoluto_fail(err, -EPROTO, "the host sent a frame of type %d on control",
	                     frame->type);
}

static struct channel_put *find_put(struct channel *channel, uint32_t stream)
{
	for (int i = 0; i < SHIP_PUTS; i++) {
		if (channel->puts[i].state != PUT_IS_FREE && channel->puts[i].stream == stream)
			return &channel->puts[i];
	}
	return NULL;
}

static int handle_conduit(struct channel *channel, const struct frame *frame,
                          struct resoluto_err *err)
{
	struct channel_put *put = find_put(channel, frame->stream);
	size_t len;

	if (!put || put->state != PUT_IS_OPEN || frame->flags)
		return resoluto_fail(err, -EPROTO, "the host answered a put that is not under way");
	if (frame->type == FRAME_ACK) {
		put->state = PUT_IS_STORED;
		return 0;
	}
	if (frame->type != FRAME_NAK || frame->len < 4)
		return resoluto_fail(err, -EPROTO, "the host sent a frame of type %d on conduit",
		                     frame->type);
	len = frame->len - 4 < CHANNEL_NAK_TEXT ? frame->len - 4 : CHANNEL_NAK_TEXT;
	put->state = PUT_IS_REFUSED;
	put->nak = frame_le32(frame->payload);
	memcpy(put->text, frame->payload + 4, len);
	put->text[len] = '\0';
	return 0;
}

static int handle(struct channel *channel, struct channel_port *port, const struct frame *frame,
                  struct resoluto_err *err)
{
	uint32_t version;

	if (port->has_greeted)
		return port == &channel->control ? handle_control(channel, frame, err)
		                                 : handle_conduit(channel, frame, err);
	if (frame->type != FRAME_HELLO || frame_get_u32(frame, &version) < 0)
		return resoluto_fail(err, -EPROTO, "the host did not say hello first");
	if (version != FRAME_VERSION)
		return resoluto_fail(err, -EPROTO,
		                     "the host speaks version %u of the channel, this is %d",
		                     version, FRAME_VERSION);
	port->has_greeted = true;
	return 0;
}

/* Handle the whole frames that are in port->in. */
static int handle_all(struct channel *channel, struct channel_port *port, struct resoluto_err *err)
{
	size_t at = 0;

	for (;;) {
		struct frame frame;
		size_t used;
		int r = frame_parse(port->in.data + at, port->in.len - at, &frame, &used);

		if (r == -EAGAIN)
			break;
		if (r < 0)
			return resoluto_fail(err, -EPROTO, "the host sent what is no frame");
		r = handle(channel, port, &frame, err);
		if (r < 0)
			return r;
		at += used;
	}
	buf_drop_front(&port->in, at);
	return 0;
}

static int receive_port(struct channel *channel, struct channel_port *port,
                        struct resoluto_err *err)
{
	for (;;) {
		ssize_t n;
		int r = buf_reserve(&port->in, READ_SIZE);

		if (r < 0)
			return resoluto_fail(err, r, "make room for a frame");
		n = read(port->fd, port->in.data + port->in.len, READ_SIZE);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n <= 0)
			return resoluto_fail(err, -EPIPE, "the host has gone");
		port->in.len += (size_t) n;
		r = handle_all(channel, port, err);
		if (r < 0)
			return r;
	}
}

int channel_receive(struct channel *channel, struct resoluto_err *err)
{
	int r = receive_port(channel, &channel->control, err);

	return r < 0 ? r : receive_port(channel, &channel->conduit, err);
}

int channel_wait(struct channel *channel, int timeout_ms, struct resoluto_err *err)
{
	struct pollfd fds[] = {
		{ .fd = channel->control.fd, .events = POLLIN },
		{ .fd = channel->conduit.fd, .events = POLLIN },
	};

	if (poll(fds, 2, timeout_ms) < 0 && errno != EINTR)
		return resoluto_fail(err, -errno, "wait for the host");
	for (int i = 0; i < 2; i++) {
		int r = 0;

		if (fds[i].revents)
			r = receive_port(channel, i == 0 ? &channel->control : &channel->conduit,
			                 err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- what goes out --- */

/* A full port: wait until it takes more, and go on reading, or two full pipes would wait for each other. */
static int wait_writable(struct channel *channel, struct channel_port *port,
                         struct resoluto_err *err)
{
	struct pollfd fds[] = {
		{ .fd = channel->control.fd, .events = POLLIN },
		{ .fd = channel->conduit.fd, .events = POLLIN },
		{ .fd = port->fd, .events = POLLOUT },
	};

	if (poll(fds, 3, -1) < 0 && errno != EINTR)
		return resoluto_fail(err, -errno, "wait for the host");
	if (fds[2].revents & (POLLHUP | POLLERR))
		return resoluto_fail(err, -EPIPE, "the host has gone");
	return fds[0].revents || fds[1].revents ? channel_receive(channel, err) : 0;
}

static int write_port(struct channel *channel, struct channel_port *port, const void *bytes,
                      size_t len, struct resoluto_err *err)
{
	const char *at = bytes;

	while (len > 0) {
		ssize_t n = write(port->fd, at, len);
		int r = 0;

		if (n > 0) {
			at += n;
			len -= (size_t) n;
			continue;
		}
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return resoluto_fail(err, -EPIPE, "the host has gone");
		r = wait_writable(channel, port, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int flush_out(struct channel *channel, struct resoluto_err *err)
{
	int r = write_port(channel, &channel->conduit, channel->out.data, channel->out.len, err);

	buf_clear(&channel->out);
	return r;
}

int channel_say_hello(struct channel *channel, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf hello = BUF_INIT(FRAME_MAX);
	int r = frame_add_u32(&hello, FRAME_HELLO, 0, FRAME_VERSION);

	if (r < 0)
		return resoluto_fail(err, r, "make a frame");
	channel->clock_asked = (int64_t) clock_raw_ns(); /* CLOCK comes with its answer */
	r = write_port(channel, &channel->control, hello.data, hello.len, err);
	return r < 0 ? r : write_port(channel, &channel->conduit, hello.data, hello.len, err);
}

int channel_await_job(struct channel *channel, struct resoluto_err *err)
{
	while (!channel->has_job) {
		int r = channel_wait(channel, -1, err);

		if (r < 0)
			return r;
	}
	if (!channel->has_clock)
		return resoluto_fail(err, -EPROTO, "the host sent a job before the time");
	return 0;
}

static void wipe_behind(struct buf *buf, size_t len)
{
	if (buf->data)
		explicit_bzero(buf->data + len, buf->cap - len);
}

void channel_forget_job(struct channel *channel)
{
	wipe_behind(&channel->job, 0);
	buf_done(&channel->job);
	wipe_behind(&channel->control.in, channel->control.in.len);
}

int channel_ask_clock(struct channel *channel, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(FRAME_MAX);
	int r = frame_add(&out, FRAME_CLOCK, 0, 0, NULL, 0);

	if (r < 0)
		return resoluto_fail(err, r, "make a frame");
	channel->clock_asked = (int64_t) clock_raw_ns();
	return write_port(channel, &channel->control, out.data, out.len, err);
}

int channel_send_started(struct channel *channel, const char *guest_boot_id,
                         struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(FRAME_MAX);
	CLEANUP(buf_done) struct buf json = BUF_INIT(FRAME_PAYLOAD_MAX);
	int r = buf_addf(&json, "{\"guest_boot_id\": \"%s\"}", guest_boot_id);

	if (r == 0)
		r = frame_add(&out, FRAME_STARTED, 0, 0, json.data, json.len);
	if (r < 0)
		return resoluto_fail(err, r, "make a frame");
	return write_port(channel, &channel->control, out.data, out.len, err);
}

int channel_take_stdin(struct channel *channel, size_t len, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(FRAME_MAX);
	int r;

	buf_drop_front(&channel->stdin_bytes, len);
	channel->stdin_owed += len;
	if (channel->stdin_owed < CREDIT_STEP || channel->stdin_has_ended)
		return 0;
	r = frame_add_u32(&out, FRAME_CREDIT, 0, (uint32_t) channel->stdin_owed);
	if (r < 0)
		return resoluto_fail(err, r, "make a frame");
	channel->stdin_credit += channel->stdin_owed;
	channel->stdin_owed = 0;
	return write_port(channel, &channel->control, out.data, out.len, err);
}

int channel_take_signal(struct channel *channel)
{
	int number;

	if (!channel->signals)
		return 0;
	number = __builtin_ctzll(channel->signals);
	channel->signals &= channel->signals - 1;
	return number;
}

/* --- the conduit port as a place for objects --- */

static struct channel *channel_of(struct ship *ship)
{
	return (struct channel *) ((char *) ship - offsetof(struct channel, ship));
}

static int channel_begin(struct ship *ship, const char *key, uint64_t size, uint32_t *ret_put,
                         struct resoluto_err *err)
{
	struct channel *channel = channel_of(ship);
	struct channel_put *put = NULL;
	uint64_t size_le = htole64(size);
	char payload[8 + KEY_SIZE];
	size_t key_len = strlen(key);
	int r;

	for (int i = 0; i < SHIP_PUTS && !put; i++)
		put = channel->puts[i].state == PUT_IS_FREE ? &channel->puts[i] : NULL;
	if (!put || key_len >= KEY_SIZE || channel->last_stream == UINT32_MAX)
		return resoluto_fail(err, -EINVAL, "put %.40s: too many at once, or too long a key",
		                     key);
	memcpy(payload, &size_le, 8);
	memcpy(payload + 8, key, key_len);
	*put = (struct channel_put){ .state = PUT_IS_OPEN, .stream = ++channel->last_stream };
	r = frame_add(&channel->out, FRAME_PUT_BEGIN, 0, put->stream, payload, 8 + key_len);
	if (r < 0)
		return resoluto_fail(err, r, "make a frame");
	*ret_put = put->stream;
	return 0;
}

static int refusal(const struct channel_put *put, struct resoluto_err *err)
{
	switch (put->nak) {
	case FRAME_NAK_FULL:
		return resoluto_fail(err, -ENOSPC, "the store is full: %s", put->text);
	case FRAME_NAK_STORE:
	case FRAME_NAK_CRC:
		return resoluto_fail(err, -EAGAIN, "the store refused: %s", put->text);
	default:
		return resoluto_fail(err, -EPROTO, "the host refused with the unknown code %u",
		                     put->nak);
	}
}

static int channel_data(struct ship *ship, uint32_t number, const void *bytes, size_t len,
                        struct resoluto_err *err)
{
	struct channel *channel = channel_of(ship);
	struct channel_put *put = find_put(channel, number);
	const char *at = bytes;

	if (!put)
		return resoluto_fail(err, -EINVAL, "no such put is under way");
	if (put->state != PUT_IS_OPEN)
		return refusal(put, err);
	put->crc = crc32c(put->crc, bytes, len);
	while (len > 0) {
		size_t now = len < FRAME_PAYLOAD_MAX ? len : FRAME_PAYLOAD_MAX;
		int r = frame_add(&channel->out, FRAME_PUT_DATA, 0, number, at, now);

		if (r < 0)
			return resoluto_fail(err, r, "make a frame");
		if (channel->out.len >= OUT_FULL && (r = flush_out(channel, err)) == 0)
			r = channel_receive(channel, err);
		if (r < 0)
			return r;
		at += now;
		len -= now;
	}
	return 0;
}

/* A put that was refused half-way is ended too, so that the host can forget it. */
static int send_end(struct channel *channel, struct channel_put *put, uint32_t crc,
                    struct resoluto_err *err)
{
	int r = 0;

	if (put && !put->has_ended) {
		put->has_ended = true;
		r = frame_add_u32(&channel->out, FRAME_PUT_END, put->stream, crc);
	}
	if (r < 0)
		return resoluto_fail(err, r, "make a frame");
	return flush_out(channel, err);
}

static int channel_end(struct ship *ship, uint32_t number, struct resoluto_err *err)
{
	struct channel *channel = channel_of(ship);
	struct channel_put *put = find_put(channel, number);

	return send_end(channel, put, put ? put->crc : 0, err);
}

static int channel_wait_put(struct ship *ship, uint32_t number, struct resoluto_err *err)
{
	struct channel *channel = channel_of(ship);
	struct channel_put *put = find_put(channel, number);
	int r = 0;

	if (!put)
		return resoluto_fail(err, -EINVAL, "no such put is under way");
	while (put->state == PUT_IS_OPEN && r == 0)
		r = channel_wait(channel, -1, err);
	if (r == 0 && put->state == PUT_IS_REFUSED)
		r = refusal(put, err);
	put->state = PUT_IS_FREE;
	return r;
}

/* An end with a checksum that cannot fit makes the host throw the object away. */
static int channel_abandon(struct ship *ship, uint32_t number, struct resoluto_err *err)
{
	struct channel *channel = channel_of(ship);
	struct channel_put *put = find_put(channel, number);
	int r = send_end(channel, put, put ? ~put->crc : 0, err);

	while (r == 0 && put && put->state == PUT_IS_OPEN)
		r = channel_wait(channel, -1, err);
	if (r == 0 && put && put->state == PUT_IS_STORED)
		r = resoluto_fail(err, -EPROTO, "the host stored what was abandoned");
	if (put)
		put->state = PUT_IS_FREE;
	return r;
}

static int channel_pause(struct ship *ship, int ms, struct resoluto_err *err)
{
	struct channel *channel = channel_of(ship);
	uint64_t now = clock_mono_ms(), until = now + (uint64_t) ms;
	int r = 0;

	while (r == 0 && now < until) {
		r = channel_wait(channel, (int) (until - now), err);
		now = clock_mono_ms();
	}
	return r;
}

static const struct ship_ops channel_ship_ops = {
	.begin = channel_begin,
	.data = channel_data,
	.end = channel_end,
	.wait = channel_wait_put,
	.abandon = channel_abandon,
	.pause = channel_pause,
};
