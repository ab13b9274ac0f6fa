/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * http_head.h - plain HTTP/1.x from a client, pinned to one host: every request of a connection, in
 * origin-form, with exactly one Host that is the name (and port, if it says one).  Pure; nothing is copied
 * and nothing allocated: the caller keeps the bytes until they may go on.
 *
 * To know where the next request begins the bodies are followed, so strictly that no server can see
 * another border: one Content-Length or "chunked" alone; sizes of chunks without extensions; no folded line, no
 * blank before a colon, no CR or LF by itself, no NUL.  What wants another protocol is refused.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "egress/name.h"
#include "egress/reason.h"

enum {
	HTTP_HEAD_MAX = 64 * 1024, /* bytes of a head, and of the trailer of a chunked body */
};

struct http_head {
	uint64_t requests; /* heads that were whole and right so far */

	/* private */
	struct egress_name name;
	uint16_t port;
	uint8_t state;
	size_t seen;   /* bytes not passed that were searched for the end of the head already */
	uint64_t left; /* bytes of body or chunk */
};

void http_head_init(struct http_head *head, const struct egress_name *name, uint16_t port);

/*
 * bytes: all that came and was not passed yet, from the first one on.  EGRESS_NONE: *ret_pass of them may go
 * on, and are not shown again (0: wait for more).  Any other reason is final.
 */
enum egress_reason http_head_look(struct http_head *head, const void *bytes, size_t len,
                                  size_t *ret_pass);
/* Between requests, so that the end of the client's direction cuts nothing off. */
bool http_head_is_between(const struct http_head *head);
