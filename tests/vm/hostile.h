/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * hostile.h - a guest end that says on its ports what a script tells it to, for tests.
 *
 * It keeps the protocol up to the job (HELLO on `control` alone), reads its standard input to the end, and does it,
 * line by line.  A line is a JSON object; "do" says what:
 *
 *	hello                          HELLO on the conduit port, and its answer
 *	started                        STARTED with the boot id
 *	raw port data [times]          these bytes, base64, as they are
 *	put key data|fill [size] [crc] a whole object and its answer; fill: so many zeros; size: announced, -1 unknown;
 *	                               crc: false for a wrong one
 *	begin key [size]               PUT_BEGIN alone
 *	endless key [size]             an object without end
 *	chunks after count [data]      that many chunks, one after another, behind so many that were put by hand
 *	beats every_ms run_id          a heartbeat in a chunk of its own, again and again
 *	off                            the machine ends
 *	stay                           nothing, for ever
 *
 * Keys are text; \u0000 in them is a NUL.  What it is answered goes to the console: "put KEY: ACK" or "NAK code".
 */

#include <stdint.h>

struct hostile {
	int control, conduit, console; /* blocking */
	const char *boot_id;
	void (*off)(void); /* end the machine */
	uint32_t stream;
	uint32_t chunks;
};

/* Does not return. */
void hostile_play(struct hostile *guest) __attribute__((noreturn));
