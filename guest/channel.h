/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * channel.h - the guest's end of the channel (docs/design/channel.md): two ports, frames both ways.
 *
 * Everything waits in one place: whoever waits for an acknowledgement also takes in what comes on
 * `control` meanwhile (stdin, signals), and whoever writes into a full port goes on reading.  What came
 * is kept in this struct, bounded by the credit that was given, until somebody asks for it.
 *
 * A failure of these functions is final: -EPIPE the host has gone, -EPROTO it sent what does not fit.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "guest/clock_judge.h"
#include "guest/ship.h"
#include "wire/frame.h"

enum { CHANNEL_NAK_TEXT = 200 }; /* bytes kept of what a NAK says */

struct channel_port {
	int fd;           /* owned */
	bool has_greeted; /* its HELLO came */
	struct buf in;    /* the frame that is not whole yet */
};

struct channel_put {
	enum { PUT_IS_FREE, PUT_IS_OPEN, PUT_IS_STORED, PUT_IS_REFUSED } state;
	bool has_ended; /* its PUT_END was sent */
	uint32_t stream, crc, nak;
	char text[CHANNEL_NAK_TEXT + 1];
};

struct channel {
	struct ship ship; /* the conduit port as a place for objects */
	struct channel_port control, conduit;
	struct buf job; /* JSON; whole when has_job */
	bool has_job;
	int64_t clock_asked; /* when the question went out that has no answer yet; 0: none */
	bool has_clock;      /* an answer came that nobody has looked at */
	struct clock_sample clock;
	struct buf stdin_bytes; /* came and was not taken yet */
	bool stdin_has_ended;
	size_t stdin_credit; /* bytes that may still come */
	size_t stdin_owed;   /* bytes taken for which no credit was given yet */
	uint64_t signals;    /* bit n: signal n came and was not taken yet */
	uint32_t last_stream;
	struct channel_put puts[SHIP_PUTS];
	struct buf out; /* frames for the conduit that were not written yet */
};

/* Takes both descriptors, which must not block. */
void channel_init(struct channel *channel, int control_fd, int conduit_fd);
void channel_done(struct channel *channel);

int channel_say_hello(struct channel *channel, struct resoluto_err *err);
/* Until a first CLOCK and the job are here. */
int channel_await_job(struct channel *channel, struct resoluto_err *err);
/* The job was read: overwrite it and what is left of it in the port's buffer. */
void channel_forget_job(struct channel *channel);
/* Take in what is there, without waiting. */
int channel_receive(struct channel *channel, struct resoluto_err *err);
/* Wait up to timeout_ms (-1: for ever) for anything, and take it in. */
int channel_wait(struct channel *channel, int timeout_ms, struct resoluto_err *err);

/* Ask for the host's time.  The answer will be in `clock`. */
int channel_ask_clock(struct channel *channel, struct resoluto_err *err);
int channel_send_started(struct channel *channel, const char *guest_boot_id,
                         struct resoluto_err *err);
/* The first len bytes of stdin_bytes were used: drop them and, now and then, give credit. */
int channel_take_stdin(struct channel *channel, size_t len, struct resoluto_err *err);
/* The lowest signal that waits, taken; 0: none. */
int channel_take_signal(struct channel *channel);
