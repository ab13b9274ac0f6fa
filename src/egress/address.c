/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address.c - tables of the special blocks (IANA's registries, and what clouds use), each with the narrower
 * block before the wider one; the first that has the address tells its class.
 */
#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "egress/address.h"

#define IPV4(a, b, c, d) ((uint32_t) (a) << 24 | (b) << 16 | (c) << 8 | (d))
/* The eight groups of an IPv6 address, as two numbers. */
#define IPV6(a, b, c, d) ((uint64_t) (a) << 48 | (uint64_t) (b) << 32 | (uint64_t) (c) << 16 | (d))

static const struct {
	uint32_t prefix;
	unsigned bits;
	enum egress_address_class class_of;
} blocks4[] = {
	{ IPV4(169, 254, 169, 254), 32, EGRESS_ADDRESS_METADATA }, /* most clouds */
	{ IPV4(169, 254, 170, 2), 32, EGRESS_ADDRESS_METADATA },   /* AWS, tasks */
	{ IPV4(169, 254, 170, 23), 32, EGRESS_ADDRESS_METADATA },  /* AWS, pods */
	{ IPV4(168, 63, 129, 16), 32, EGRESS_ADDRESS_METADATA },   /* Azure */
	{ IPV4(100, 100, 100, 200), 32, EGRESS_ADDRESS_METADATA }, /* Alibaba */
	{ IPV4(192, 0, 0, 192), 32, EGRESS_ADDRESS_METADATA },     /* Oracle */
	{ IPV4(0, 0, 0, 0), 8, EGRESS_ADDRESS_UNSPECIFIED },
	{ IPV4(10, 0, 0, 0), 8, EGRESS_ADDRESS_PRIVATE },
	{ IPV4(100, 64, 0, 0), 10, EGRESS_ADDRESS_SHARED },
	{ IPV4(127, 0, 0, 0), 8, EGRESS_ADDRESS_LOOPBACK },
	{ IPV4(169, 254, 0, 0), 16, EGRESS_ADDRESS_LINK_LOCAL },
	{ IPV4(172, 16, 0, 0), 12, EGRESS_ADDRESS_PRIVATE },
	{ IPV4(192, 0, 0, 0), 24, EGRESS_ADDRESS_PROTOCOL },
	{ IPV4(192, 0, 2, 0), 24, EGRESS_ADDRESS_DOCUMENTATION },
	{ IPV4(192, 88, 99, 0), 24, EGRESS_ADDRESS_RESERVED }, /* relays of 6to4, given up */
	{ IPV4(192, 168, 0, 0), 16, EGRESS_ADDRESS_PRIVATE },
	{ IPV4(198, 18, 0, 0), 15, EGRESS_ADDRESS_BENCHMARK },
	{ IPV4(198, 51, 100, 0), 24, EGRESS_ADDRESS_DOCUMENTATION },
	{ IPV4(203, 0, 113, 0), 24, EGRESS_ADDRESS_DOCUMENTATION },
	{ IPV4(224, 0, 0, 0), 4, EGRESS_ADDRESS_MULTICAST },
	{ IPV4(255, 255, 255, 255), 32, EGRESS_ADDRESS_BROADCAST },
	{ IPV4(240, 0, 0, 0), 4, EGRESS_ADDRESS_RESERVED },
};

/* Where an IPv4 address is within. */
enum inner {
	INNER_NONE,
	INNER_LAST, /* the last four bytes */
	INNER_6TO4, /* behind the first two bytes */
	INNER_TEREDO, /* the server behind the first four bytes, the client's bits inverted at the end */
};

static const struct {
	uint64_t high, low; /* the prefix */
	unsigned bits;
	enum egress_address_class class_of; /* with an address within: if that one is public */
	enum inner inner;
} blocks6[] = {
	{ 0, 0, 128, EGRESS_ADDRESS_UNSPECIFIED, INNER_NONE },
	{ 0, 1, 128, EGRESS_ADDRESS_LOOPBACK, INNER_NONE },
	{ 0, IPV6(0, 0xffff, 0, 0), 96, EGRESS_ADDRESS_PUBLIC, INNER_LAST },    /* mapped */
	{ 0, IPV6(0xffff, 0, 0, 0), 96, EGRESS_ADDRESS_RESERVED, INNER_LAST },  /* translated */
	{ 0, 0, 96, EGRESS_ADDRESS_RESERVED, INNER_LAST },                      /* compatible */
	{ IPV6(0x64, 0xff9b, 0, 0), 0, 96, EGRESS_ADDRESS_PUBLIC, INNER_LAST }, /* NAT64 */
	/* Where in it the address is depends on the network, so that a public one proves nothing. */
	{ IPV6(0x64, 0xff9b, 1, 0), 0, 48, EGRESS_ADDRESS_RESERVED, INNER_LAST },
	{ IPV6(0x100, 0, 0, 0), 0, 64, EGRESS_ADDRESS_DISCARD, INNER_NONE },
	{ IPV6(0x2001, 0, 0, 0), 0, 32, EGRESS_ADDRESS_PUBLIC, INNER_TEREDO },
	{ IPV6(0x2001, 2, 0, 0), 0, 48, EGRESS_ADDRESS_BENCHMARK, INNER_NONE },
	{ IPV6(0x2001, 0x10, 0, 0), 0, 28, EGRESS_ADDRESS_ORCHID, INNER_NONE },
	{ IPV6(0x2001, 0x20, 0, 0), 0, 28, EGRESS_ADDRESS_ORCHID, INNER_NONE },
	{ IPV6(0x2001, 0, 0, 0), 0, 23, EGRESS_ADDRESS_PROTOCOL, INNER_NONE },
	{ IPV6(0x2001, 0xdb8, 0, 0), 0, 32, EGRESS_ADDRESS_DOCUMENTATION, INNER_NONE },
	{ IPV6(0x2002, 0, 0, 0), 0, 16, EGRESS_ADDRESS_PUBLIC, INNER_6TO4 },
	{ IPV6(0x3ffe, 0, 0, 0), 0, 16, EGRESS_ADDRESS_RESERVED,
	  INNER_NONE }, /* 6bone, given back */
	{ IPV6(0x3fff, 0, 0, 0), 0, 20, EGRESS_ADDRESS_DOCUMENTATION, INNER_NONE },
	{ IPV6(0xfd00, 0xec2, 0, 0), 0x254, 128, EGRESS_ADDRESS_METADATA, INNER_NONE }, /* AWS */
	{ IPV6(0xfd00, 0xec2, 0, 0), 0x23, 128, EGRESS_ADDRESS_METADATA,
	  INNER_NONE }, /* AWS, pods */
	{ IPV6(0xfd20, 0xce, 0, 0), 0x254, 128, EGRESS_ADDRESS_METADATA, INNER_NONE }, /* Google */
	{ IPV6(0xfc00, 0, 0, 0), 0, 7, EGRESS_ADDRESS_UNIQUE_LOCAL, INNER_NONE },
	{ IPV6(0xfe80, 0, 0, 0), 0, 10, EGRESS_ADDRESS_LINK_LOCAL, INNER_NONE },
	{ IPV6(0xfec0, 0, 0, 0), 0, 10, EGRESS_ADDRESS_SITE_LOCAL, INNER_NONE },
	{ IPV6(0xff00, 0, 0, 0), 0, 8, EGRESS_ADDRESS_MULTICAST, INNER_NONE },
	{ IPV6(0x2000, 0, 0, 0), 0, 3, EGRESS_ADDRESS_PUBLIC, INNER_NONE },
	{ 0, 0, 0, EGRESS_ADDRESS_RESERVED, INNER_NONE },
};

static const char *const names[EGRESS_ADDRESS_CLASS_COUNT] = {
	[EGRESS_ADDRESS_PUBLIC] = "public",
	[EGRESS_ADDRESS_UNSPECIFIED] = "unspecified",
	[EGRESS_ADDRESS_LOOPBACK] = "loopback",
	[EGRESS_ADDRESS_METADATA] = "metadata",
	[EGRESS_ADDRESS_LINK_LOCAL] = "link-local",
	[EGRESS_ADDRESS_PRIVATE] = "private",
	[EGRESS_ADDRESS_UNIQUE_LOCAL] = "unique-local",
	[EGRESS_ADDRESS_SITE_LOCAL] = "site-local",
	[EGRESS_ADDRESS_SHARED] = "shared",
	[EGRESS_ADDRESS_BENCHMARK] = "benchmark",
	[EGRESS_ADDRESS_DOCUMENTATION] = "documentation",
	[EGRESS_ADDRESS_PROTOCOL] = "protocol",
	[EGRESS_ADDRESS_DISCARD] = "discard",
	[EGRESS_ADDRESS_ORCHID] = "orchid",
	[EGRESS_ADDRESS_MULTICAST] = "multicast",
	[EGRESS_ADDRESS_BROADCAST] = "broadcast",
	[EGRESS_ADDRESS_RESERVED] = "reserved",
	[EGRESS_ADDRESS_OTHER] = "other",
};

static enum egress_address_class classify4(uint32_t address)
{
	for (size_t i = 0; i < sizeof(blocks4) / sizeof(blocks4[0]); i++) {
		if ((address ^ blocks4[i].prefix) >> (32 - blocks4[i].bits) == 0)
			return blocks4[i].class_of;
	}
	return EGRESS_ADDRESS_PUBLIC;
}

static bool is_within(uint64_t high, uint64_t low, uint64_t prefix_high, uint64_t prefix_low,
                      unsigned bits)
{
	if (bits == 0)
		return true;
	if (bits <= 64)
		return (high ^ prefix_high) >> (64 - bits) == 0;
	return high == prefix_high && (low ^ prefix_low) >> (128 - bits) == 0;
}

static enum egress_address_class classify_inner(uint64_t high, uint64_t low, enum inner inner)
{
	enum egress_address_class class_of;

	switch (inner) {
	case INNER_NONE:
		return EGRESS_ADDRESS_PUBLIC;
	case INNER_LAST:
		return classify4((uint32_t) low);
	case INNER_6TO4:
		return classify4((uint32_t) (high >> 16));
	case INNER_TEREDO:
		class_of = classify4(~(uint32_t) low);
		return class_of == EGRESS_ADDRESS_PUBLIC ? classify4((uint32_t) high) : class_of;
	}
	return EGRESS_ADDRESS_OTHER;
}

/* An interface id of ISATAP, under whatever prefix: 0000:5efe or 0200:5efe, then an IPv4 address. */
static bool is_isatap(uint64_t low)
{
	return ((low >> 32) & ~(uint64_t) 0x02000000) == 0x5efe;
}

static enum egress_address_class classify6(uint64_t high, uint64_t low)
{
	enum egress_address_class class_of;
	size_t i = 0;

	while (!is_within(high, low, blocks6[i].high, blocks6[i].low, blocks6[i].bits))
		i++; /* the last has all */
	class_of = classify_inner(high, low, blocks6[i].inner);
	if (class_of == EGRESS_ADDRESS_PUBLIC)
		class_of = blocks6[i].class_of;
	if (class_of == EGRESS_ADDRESS_PUBLIC && is_isatap(low))
		class_of = classify4((uint32_t) low);
	return class_of;
}

enum egress_address_class egress_address_classify4(struct in_addr address)
{
	return classify4(ntohl(address.s_addr));
}

enum egress_address_class egress_address_classify6(const struct in6_addr *address)
{
	uint64_t halves[2];

	memcpy(halves, address->s6_addr, sizeof(halves));
	return classify6(be64toh(halves[0]), be64toh(halves[1]));
}

enum egress_address_class egress_address_classify(const struct sockaddr *address, socklen_t len)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	if (len >= sizeof(in) && address->sa_family == AF_INET) {
		memcpy(&in, address, sizeof(in));
		return egress_address_classify4(in.sin_addr);
	}
	if (len >= sizeof(in6) && address->sa_family == AF_INET6) {
		memcpy(&in6, address, sizeof(in6));
		return egress_address_classify6(&in6.sin6_addr);
	}
	return EGRESS_ADDRESS_OTHER;
}

const char *egress_address_class_name(enum egress_address_class class_of)
{
	return (unsigned) class_of < EGRESS_ADDRESS_CLASS_COUNT ? names[class_of] : NULL;
}
