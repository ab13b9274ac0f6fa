/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * proxy.h - a proxy of the caller's network, spoken to by CONNECT (RFC 9110, 9.3.6).  Pure.
 *
 * The caller named it, so it may have any address.  It resolves the name of a stream itself: the gateway's
 * check of addresses does not happen then, and docs/design/egress.md says so.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "egress/name.h"
#include "resoluto/err.h"

enum {
	PROXY_ANSWER_MAX = 8 * 1024, /* bytes of the answer's head */
	PROXY_LOGIN_MAX = 512,       /* bytes of user:password */
};

struct proxy_address {
	char host[EGRESS_NAME_MAX + 1]; /* a name or an address, without brackets */
	uint16_t port;                  /* 0: there is no proxy */
	char *login;                    /* "Basic ..." without line ends; NULL: none; owned */
};

/* "http://[USER:PASSWORD@]HOST:PORT[/]", also without the scheme.  -EINVAL: what is wrong with it; the
 * password is in no message. */
int proxy_parse(const char *text, struct proxy_address *ret_proxy, struct resoluto_err *err);
void proxy_done(struct proxy_address *proxy);

/* The request for a tunnel. */
int proxy_request(const struct proxy_address *proxy, const char *name, uint16_t port,
                  struct buf *out);

/*
 * Look at the start of the answer.  0: *ret_status is its code and its head took *ret_used bytes.
 * -EAGAIN: it is not whole.  -EBADMSG: it is no answer to a CONNECT.  -E2BIG: over PROXY_ANSWER_MAX.
 */
int proxy_answer(const void *bytes, size_t len, unsigned *ret_status, size_t *ret_used);
