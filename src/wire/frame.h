/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * frame.h - the frames on the virtio-serial ports between guest and shim, and on the socket
 * between shim and caller.  Pure.  Who sends what when: docs/design/channel.md.
 *
 *	u32 LE  length of what follows (8 + payload)
 *	u8      type
 *	u8      flags: bit 0 = the message goes on in the next frame of this type and stream
 *	u16     0
 *	u32 LE  stream
 *	payload at most FRAME_PAYLOAD_MAX bytes
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "resoluto/err.h"

enum {
	FRAME_VERSION = 1,
	FRAME_HEADER = 12,             /* bytes */
	FRAME_PAYLOAD_MAX = 64 * 1024, /* bytes */
	FRAME_MAX = FRAME_HEADER + FRAME_PAYLOAD_MAX,
	FRAME_MORE = 1,                  /* flag */
	FRAME_JOB_MAX = 8 * 1024 * 1024, /* bytes of a whole JOB */
	FRAME_STDIN_CREDIT = 256 *
	                     1024, /* bytes of STDIN that may be sent before the first CREDIT */
};

enum frame_type {
	FRAME_HELLO = 1, /* payload: u32 LE version; first on every port, both ways */
	/* control, host to guest */
	FRAME_JOB = 2, /* JSON, may be split */
	FRAME_STDIN = 4,
	FRAME_STDIN_EOF = 5,
	FRAME_SIGNAL = 6, /* u32 LE signal number */
	FRAME_CLOCK = 7,  /* struct frame_clock: right behind HELLO, and as an answer */
	/* control, guest to host; an empty CLOCK asks for one */
	FRAME_STARTED = 3, /* JSON {"guest_boot_id": ...}; right before the program is executed */
	FRAME_CREDIT = 8,  /* u32 LE: so many bytes more of STDIN may be sent */
	/* conduit, guest to host; stream numbers a put */
	FRAME_PUT_BEGIN = 16, /* u64 LE size or UINT64_MAX, then the key */
	FRAME_PUT_DATA = 17,
	FRAME_PUT_END = 18, /* u32 LE crc32c of all data */
	/* conduit, host to guest */
	FRAME_ACK = 19,
	FRAME_NAK =
		20, /* u32 LE enum frame_nak, then text; for a put that was begun and is now void */
	/* net: docs/design/egress.md; CREDIT too */
	FRAME_OPEN = 32,
	FRAME_OPENED = 33,
	FRAME_RST = 34,
	FRAME_DATA = 35,
	FRAME_FIN = 36,
	FRAME_ASKED = 37,
	FRAME_DECISION = 38,
	/* socket between caller and shim; the caller also sends STDIN, STDIN_EOF, SIGNAL; the shim
	 * also STARTED and CREDIT */
	FRAME_NEWS = 64,    /* shim: an object or the state has changed, look */
	FRAME_DETACH = 65,  /* caller: go on without me */
	FRAME_DESTROY = 66, /* caller: end now; payload: the reason's name */
	FRAME_LOGS = 67, /* caller: write the console's last bytes to console.log now, then NEWS */
};

enum frame_nak {
	FRAME_NAK_STORE = 1, /* could not be written; may work later */
	FRAME_NAK_FULL = 2,  /* no space or over a quota */
	FRAME_NAK_CRC = 3,   /* arrived damaged */
};

/* The host's clocks, read while the message is made: two u64 LE, in nanoseconds. */
struct frame_clock {
	uint64_t wall_ns; /* since the epoch: CLOCK_REALTIME */
	uint64_t raw_ns;  /* since some fixed point: CLOCK_MONOTONIC_RAW */
};

struct frame {
	uint8_t type, flags;
	uint32_t stream;
	const uint8_t *payload; /* borrowed from what was parsed */
	size_t len;
};

/*
 * Look at the start of bytes.  0: *ret_frame is whole and took *ret_used bytes.  -EAGAIN: more
 * bytes are needed.  -EBADMSG: this is no frame (length, flags or the zero field are wrong).
 */
int frame_parse(const void *bytes, size_t len, struct frame *ret_frame, size_t *ret_used);

/* Append one frame (len at most FRAME_PAYLOAD_MAX). */
int frame_add(struct buf *out, uint8_t type, uint8_t flags, uint32_t stream, const void *payload,
              size_t len);
/* Append a message of any length as as many frames as it takes. */
int frame_add_message(struct buf *out, uint8_t type, uint32_t stream, const void *payload,
                      size_t len);
int frame_add_u32(struct buf *out, uint8_t type, uint32_t stream, uint32_t value);
int frame_add_clock(struct buf *out, const struct frame_clock *clock);

/* -EBADMSG unless the payload is exactly that. */
int frame_get_u32(const struct frame *frame, uint32_t *ret_value);
int frame_get_clock(const struct frame *frame, struct frame_clock *ret_clock);
uint32_t frame_le32(const void *bytes);
uint64_t frame_le64(const void *bytes);

/*
 * Put the frames of one message together.  `message` starts as BUF_INIT(bound).  1: the message is
 * whole.  0: more frames follow.  -E2BIG: over the bound.
 */
int frame_join(struct buf *message, const struct frame *frame);
