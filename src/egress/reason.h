/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * reason.h - why a connection was not made, or ended early: a closed list.  Names are part of the
 * result (spec/run-result.schema.json), numbers of the port's RST frame.
 */

enum egress_reason {
	EGRESS_NONE = 0, /* nothing was wrong */
	/* what was asked for */
	EGRESS_NAME_MALFORMED,   /* no host name */
	EGRESS_NAME_ADDRESS,     /* an address literal */
	EGRESS_NOT_ALLOWED,      /* no pattern has this name */
	EGRESS_PORT_NOT_ALLOWED, /* one has the name, with other ports */
	/* what the stream began with */
	EGRESS_NOT_TLS, /* plain text, or another protocol, on a port for TLS */
	EGRESS_HELLO_MALFORMED,
	EGRESS_HELLO_TOO_LONG, /* over 64 KiB */
	EGRESS_HELLO_TIMEOUT,  /* not whole within the handshake limit */
	EGRESS_HELLO_CUT,      /* ended before it was whole */
	EGRESS_SNI_MISSING,
	EGRESS_SNI_TWICE, /* two names, or two extensions */
	EGRESS_SNI_MALFORMED,
	EGRESS_SNI_OTHER, /* a name, but not the one the stream was opened for */
	EGRESS_HTTP_MALFORMED,
	EGRESS_HTTP_HOST_OTHER,
	EGRESS_HTTP_FORM, /* absolute-form, authority-form (CONNECT) or asterisk-form */
	EGRESS_HTTP_UPGRADE,
	/* where it leads */
	EGRESS_NO_ADDRESS,      /* the name does not resolve */
	EGRESS_RESOLVER,        /* no answer within the limit, or a failure of the name server */
	EGRESS_ADDRESS_REFUSED, /* every address is one that is not public */
	EGRESS_CONNECT_FAILED,
	EGRESS_CONNECT_TIMEOUT,
	EGRESS_PROXY_REFUSED, /* the proxy said no */
	/* on the way */
	EGRESS_IDLE,         /* no byte either way within the limit */
	EGRESS_BROKEN,       /* the far side reset the connection */
	EGRESS_TOO_MANY,     /* streams, or bytes waiting */
	EGRESS_PROTOCOL,     /* the guest broke the rules of the port */
	EGRESS_LEARNING,     /* written down, not connected */
	EGRESS_GATEWAY_LOST, /* the gateway died: said by who reads the rows */
	EGRESS_REASON_COUNT,
};

/* "not-allowed"; NULL beyond the list. */
const char *egress_reason_name(enum egress_reason reason);
/* One sentence for people, without a full stop. */
const char *egress_reason_text(enum egress_reason reason);
/* EGRESS_REASON_COUNT: no such name. */
enum egress_reason egress_reason_from_name(const char *name);
