/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * demux.h - what the guest may say, in which order: the rules of docs/design/channel.md.  Pure.
 *
 * One frame in, one action out.  The caller does the action and reports how storing went; everything a
 * hostile guest can send ends as an action, as nothing, or as -EPROTO or -EDQUOT, which end the run.
 *
 * That bounds the objects of a run: KEY_CHUNK_MAX chunks, DEMUX_OUTBOXES_MAX archives, three others.
 */

#include <stdbool.h>
#include <stdint.h>

#include "resoluto/err.h"
#include "wire/frame.h"
#include "wire/keys.h"

enum {
	DEMUX_PUTS_MAX = 4,            /* open at once */
	DEMUX_OUTBOXES_MAX = 32,       /* archives of a run */
	DEMUX_CHUNK_MAX = 1024 * 1024, /* bytes of an object of each kind */
	DEMUX_RESULT_MAX = 1024 * 1024,
	DEMUX_MANIFEST_MAX = 4096,
	DEMUX_CANARY_MAX = 64,
	DEMUX_STARTED_MAX = 1024, /* bytes of STARTED */
	DEMUX_GONE_MAX = 8,       /* streams remembered whose guest did not end them after a NAK */
};

enum demux_port {
	DEMUX_CONTROL,
	DEMUX_CONDUIT,
	DEMUX_PORT_COUNT,
};

enum demux_what {
	DEMUX_NOTHING,
	DEMUX_HELLO,   /* the port is open: answer */
	DEMUX_STARTED, /* bytes, len: its JSON */
	DEMUX_CREDIT,  /* number: bytes of STDIN more */
	DEMUX_CLOCK,   /* it asks for the time */
	DEMUX_BEGIN,   /* put: open its object */
	DEMUX_DATA,    /* put, bytes, len: write */
	DEMUX_END,     /* put: put in place, then demux_stored() or demux_failed() */
	DEMUX_DAMAGED, /* put: throw away, NAK crc */
	DEMUX_BEHIND,  /* put: NAK; what must be stored before it could not be */
};

struct demux_put {
	bool is_open;
	bool is_void; /* NAK has been sent: the rest of it is ignored */
	uint32_t stream;
	enum key_kind kind;
	uint32_t chunk;     /* its number */
	char key[KEY_SIZE]; /* relative to the prefix */
	uint64_t size;      /* UINT64_MAX: not told */
	uint64_t got;
	uint32_t crc;
};

struct demux_action {
	enum demux_what what;
	struct demux_put *put; /* of the demux; valid until the next frame */
	unsigned slot;         /* its place, 0 to DEMUX_PUTS_MAX - 1 */
	const uint8_t *bytes;  /* of the frame */
	size_t len;
	uint32_t number;
};

/* Starts as { 0 }. */
struct demux {
	bool has_hello[DEMUX_PORT_COUNT];
	bool has_started;
	uint32_t last_stream;
	struct demux_put puts[DEMUX_PUTS_MAX];
	uint32_t gone[DEMUX_GONE_MAX]; /* a ring; 0: none */
	unsigned gone_next;
	uint32_t chunks;       /* stored, without a gap */
	uint32_t failed_chunk; /* could not be stored and was not sent again; 0: none */
	bool has_canary, has_result, has_manifest;
	bool result_has_failed;                      /* and was not sent again */
	char outboxes[DEMUX_OUTBOXES_MAX][KEY_SIZE]; /* stored */
	unsigned outbox_count;
	char manifest[DEMUX_MANIFEST_MAX];
};

/* 0, -EPROTO with what the guest did wrong, or -EDQUOT: more objects than a run may have. */
int demux_frame(struct demux *demux, enum demux_port port, const struct frame *frame,
                struct demux_action *ret_action, struct resoluto_err *err);
/* The object of an END is in place: ACK. */
void demux_stored(struct demux *demux, struct demux_put *put);
/* It could not be begun, written or put in place: NAK.  The guest may send it again. */
void demux_failed(struct demux *demux, struct demux_put *put);
