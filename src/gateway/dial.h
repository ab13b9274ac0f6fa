/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * dial.h - connect to the first of some addresses that answers (RFC 8305): families take turns, IPv6
 * first; the next one is tried when one has failed, or has been silent for a moment; the first that is
 * connected wins and the others are given up.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "gateway/resolver.h"

enum {
	DIAL_STAGGER_MS = 250, /* until the next address is tried besides */
	DIAL_AT_ONCE = 4,
	DIAL_ADDRESS_TEXT = 56, /* bytes of an address with its port as text */
	DIAL_WORDS = 400,       /* bytes of what went wrong with each address */
};

struct dial;

/* fd: the connected socket, now the callee's.  Or a negative errno value: -ETIMEDOUT is our limit, -EMFILE
 * no room for a socket.  dial_words() says more.  The callee may free the dial. */
typedef void dial_fn(struct dial *dial, void *ctx, int fd, const union socket_address *address);

/* Families in turn, IPv6 first, otherwise in the order given. */
void dial_order(union socket_address *addresses, size_t count);
/* "192.0.2.1", "2001:db8::1" */
void dial_address_text(const union socket_address *address, char text[DIAL_ADDRESS_TEXT]);

/* count is at most RESOLVER_ADDRESSES_MAX, and not 0.  fn is called from the loop, never from here. */
int dial_start(struct loop *loop, const union socket_address *addresses, size_t count,
               uint16_t port, uint32_t limit_ms, dial_fn *fn, void *ctx, struct dial **ret_dial);
void dial_free(struct dial *dial);
const char *dial_words(const struct dial *dial);
