/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * address.h - is an address one of the public internet, and if not, what?  Pure.
 *
 * An address that has an IPv4 address within (mapped, compatible, translated, NAT64, 6to4, Teredo, ISATAP) is
 * of the class of that one unless it is public.  Of what is left, IPv6 is public in 2000::/3 only.
 */

#include <netinet/in.h>
#include <sys/socket.h>

enum egress_address_class {
	EGRESS_ADDRESS_PUBLIC = 0,
	EGRESS_ADDRESS_UNSPECIFIED,  /* 0.0.0.0/8, :: */
	EGRESS_ADDRESS_LOOPBACK,     /* 127/8, ::1 */
	EGRESS_ADDRESS_METADATA,     /* the cloud's: 169.254.169.254, fd00:ec2::254 and others */
	EGRESS_ADDRESS_LINK_LOCAL,   /* 169.254/16, fe80::/10 */
	EGRESS_ADDRESS_PRIVATE,      /* 10/8, 172.16/12, 192.168/16 */
	EGRESS_ADDRESS_UNIQUE_LOCAL, /* fc00::/7 */
	EGRESS_ADDRESS_SITE_LOCAL,   /* fec0::/10 */
	EGRESS_ADDRESS_SHARED,       /* 100.64/10 */
	EGRESS_ADDRESS_BENCHMARK,    /* 198.18/15, 2001:2::/48 */
	EGRESS_ADDRESS_DOCUMENTATION, /* 192.0.2/24, 198.51.100/24, 203.0.113/24, 2001:db8::/32, 3fff::/20 */
	EGRESS_ADDRESS_PROTOCOL,  /* 192.0.0/24, 2001::/23 */
	EGRESS_ADDRESS_DISCARD,   /* 100::/64 */
	EGRESS_ADDRESS_ORCHID,    /* 2001:10::/28, 2001:20::/28 */
	EGRESS_ADDRESS_MULTICAST, /* 224/4, ff00::/8 */
	EGRESS_ADDRESS_BROADCAST, /* 255.255.255.255 */
	EGRESS_ADDRESS_RESERVED,  /* 240/4, and IPv6 that is nothing else */
	EGRESS_ADDRESS_OTHER,     /* of another family, or cut short */
	EGRESS_ADDRESS_CLASS_COUNT,
};

enum egress_address_class egress_address_classify(const struct sockaddr *address, socklen_t len);
enum egress_address_class egress_address_classify4(struct in_addr address);
enum egress_address_class egress_address_classify6(const struct in6_addr *address);

/* "link-local"; NULL beyond the list. */
const char *egress_address_class_name(enum egress_address_class class_of);
