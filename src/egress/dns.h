/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * dns.h - one question of a stub resolver, and the answer to it.  Pure; one question and no
 * compression in it is all that a stub sends, so that is all that is read.
 *
 * A name that is not allowed does not exist, whatever type was asked for: DNS_NXDOMAIN.  One that is allowed
 * exists with every type (no data for those other than addresses), or else libraries that ask for two types
 * give up on the name.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "egress/name.h"
#include "egress/reason.h"

enum {
	DNS_MESSAGE_MAX = 65535, /* bytes, over TCP */
	DNS_UDP_MIN = 512,       /* bytes that every client takes */
	DNS_UDP_MAX = 1232,      /* bytes that we send at most, whatever the client says it takes */
	DNS_WIRE_NAME_MAX = 255, /* bytes */
	DNS_RECORDS_MAX = 64,
};

enum dns_type { DNS_A = 1, DNS_AAAA = 28 }; /* those we have answers for */

enum dns_rcode {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
	DNS_BADVERS = 16, /* EDNS other than version 0 */
};

struct dns_query {
	uint16_t id;
	bool is_recursion_desired, is_checking_disabled;
	uint8_t opcode;
	/* EGRESS_NONE: host is set.  Else the question has a name that is no host's. */
	enum egress_reason name_reason;
	struct egress_name host;
	char text[DNS_WIRE_NAME_MAX +
	          1];            /* the name for people, as asked, unprintable bytes as '?' */
	uint16_t type, class_of; /* class_of is 1 (IN) when there is no error */
	uint8_t question[DNS_WIRE_NAME_MAX + 4]; /* name, type and class, byte for byte */
	size_t question_len;                     /* 0: could not be read, and is not repeated */
	bool has_edns;
	uint16_t udp_size; /* bytes; at least DNS_UDP_MIN */
};

struct dns_address {
	enum dns_type type;
	uint8_t bytes[16]; /* 4 of them with DNS_A */
};

/*
 * DNS_NOERROR: *ret_query is a question of class IN to be decided.  Another code: answer with that (of other
 * classes, CHAOS among them, no name exists).
 * -EBADMSG: no question at all (too short, or an answer): say nothing.
 */
int dns_parse(const void *bytes, size_t len, struct dns_query *ret_query);

/*
 * Append the answer to out.  The addresses (at most DNS_RECORDS_MAX) of another type than was asked for are
 * left out; none left is an answer without data.  What does not fit into UDP is left out whole, with TC set:
 * the client asks again over TCP.  The two bytes of length before a message over TCP are the caller's.
 */
int dns_answer(const struct dns_query *query, enum dns_rcode rcode,
               const struct dns_address *addresses, size_t count, uint32_t ttl_s, bool is_udp,
               struct buf *out);
