/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * client_hello.h - what a TLS client says before anything is secret: the name of the server it wants.
 * Pure; nothing is copied and nothing allocated: the caller keeps the bytes until they may go on.
 *
 * The hello may come in any segments, records and fragments.  Strict where two readers could differ:
 * one SNI extension with one host name, lengths that fit exactly, no other bytes within its records.
 * Extensions that nobody knows (GREASE, and with ECH the outer name counts) are passed over.
 *
 * After a HelloRetryRequest the client says hello again; that one must have the same name.  So the
 * caller goes on asking about what follows, for as long as the connection lasts: bytes in bulk.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "egress/name.h"
#include "egress/reason.h"

enum {
	CLIENT_HELLO_MAX = 64 * 1024, /* bytes of the message */
	CLIENT_HELLO_RAW_MAX = 96 *
	                       1024, /* bytes of the records it came in, at most what is kept */
};

struct client_hello {
	bool is_whole;           /* the first one is, and name is set */
	struct egress_name name; /* the SNI */

	/* private */
	uint64_t deadline_ms;
	uint8_t state;
	bool has_early_data, has_ccs;
	size_t record;    /* where the next record begins, from the first byte not passed */
	size_t message;   /* bytes of the message that have come */
	size_t want;      /* bytes of it in all; 0: not known yet */
	uint8_t start[4]; /* its first bytes */
	size_t skip;      /* bytes of a record that goes on without being looked at */
};

/* The first hello must be whole before deadline_ms, on the clock of now_ms. */
void client_hello_init(struct client_hello *hello, uint64_t deadline_ms);

/*
 * bytes: all that came and was not passed yet, from the first one on.  EGRESS_NONE: *ret_pass of them may go
 * on, and are not shown again (0: wait for more).  Nothing is passed before is_whole; the caller compares
 * the name, and may keep what it may pass for as long as it likes.  Any other reason is final.
 */
enum egress_reason client_hello_look(struct client_hello *hello, const void *bytes, size_t len,
                                     uint64_t now_ms, size_t *ret_pass);

/* The client ended its direction, or time has passed: EGRESS_HELLO_CUT, EGRESS_HELLO_TIMEOUT or EGRESS_NONE. */
enum egress_reason client_hello_end(const struct client_hello *hello);
enum egress_reason client_hello_tick(const struct client_hello *hello, uint64_t now_ms);
