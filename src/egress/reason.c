/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "egress/reason.h"

static const struct {
	const char *name, *text;
} reasons[EGRESS_REASON_COUNT] = {
	[EGRESS_NONE] = { "none", "nothing was wrong" },
	[EGRESS_NAME_MALFORMED] = { "name-malformed", "what was asked for is no host name" },
	[EGRESS_NAME_ADDRESS] = { "name-address", "an address was asked for instead of a name" },
	[EGRESS_NOT_ALLOWED] = { "not-allowed", "the name is not allowed" },
	[EGRESS_PORT_NOT_ALLOWED] = { "port-not-allowed",
	                              "the name is allowed, but not on this port" },
	[EGRESS_NOT_TLS] = { "not-tls", "the connection did not begin with TLS" },
	[EGRESS_HELLO_MALFORMED] = { "hello-malformed", "the TLS ClientHello is malformed" },
	[EGRESS_HELLO_TOO_LONG] = { "hello-too-long", "the TLS ClientHello is larger than 64 KiB" },
	[EGRESS_HELLO_TIMEOUT] = { "hello-timeout",
	                           "the program did not say in time whom it wants to speak to" },
	[EGRESS_HELLO_CUT] = { "hello-cut", "the connection ended before the program had said "
	                                    "whom it wants to speak to" },
	[EGRESS_SNI_MISSING] = { "sni-missing", "the TLS ClientHello names no server" },
	[EGRESS_SNI_TWICE] = { "sni-twice", "the TLS ClientHello names more than one server" },
	[EGRESS_SNI_MALFORMED] = { "sni-malformed",
	                           "the server in the TLS ClientHello is no host name" },
	[EGRESS_SNI_OTHER] = { "sni-other", "the server in the TLS ClientHello is not the one "
	                                    "that was looked up" },
	[EGRESS_HTTP_MALFORMED] = { "http-malformed", "what was sent is no strict HTTP/1.1" },
	[EGRESS_HTTP_HOST_OTHER] = { "http-host-other",
	                             "the HTTP Host is not the name that was looked up" },
	[EGRESS_HTTP_FORM] = { "http-form", "the HTTP request is meant for a proxy" },
	[EGRESS_HTTP_UPGRADE] = { "http-upgrade",
	                          "the HTTP request wants to change to another protocol" },
	[EGRESS_NO_ADDRESS] = { "no-address", "the name does not resolve" },
	[EGRESS_RESOLVER] = { "resolver", "the name server did not answer, or failed" },
	[EGRESS_ADDRESS_REFUSED] = { "address-refused",
	                             "the name leads to addresses that are not public" },
	[EGRESS_CONNECT_FAILED] = { "connect-failed", "the connection was not accepted" },
	[EGRESS_CONNECT_TIMEOUT] = { "connect-timeout", "nobody answered in time" },
	[EGRESS_PROXY_REFUSED] = { "proxy-refused", "the proxy refused the connection" },
	[EGRESS_IDLE] = { "idle", "no byte passed for too long" },
	[EGRESS_BROKEN] = { "broken", "the far side broke the connection off" },
	[EGRESS_TOO_MANY] = { "too-many", "too many connections, or too many bytes waiting" },
	[EGRESS_PROTOCOL] = { "protocol", "the guest broke the rules of the net port" },
	[EGRESS_LEARNING] = { "learning", "written down and not connected: the run is learning" },
	[EGRESS_GATEWAY_LOST] = { "gateway-lost", "the gateway ended before the run did" },
};

const char *egress_reason_name(enum egress_reason reason)
{
	return (unsigned) reason < EGRESS_REASON_COUNT ? reasons[reason].name : NULL;
}

const char *egress_reason_text(enum egress_reason reason)
{
	return (unsigned) reason < EGRESS_REASON_COUNT ? reasons[reason].text : NULL;
}

enum egress_reason egress_reason_from_name(const char *name)
{
	unsigned i = 0;

	while (i < EGRESS_REASON_COUNT && strcmp(reasons[i].name, name) != 0)
		i++;
	return (enum egress_reason) i;
}
