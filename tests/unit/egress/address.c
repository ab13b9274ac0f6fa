/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>

#include "check.h"

#include "egress/address.h"

static enum egress_address_class class_of(const char *text)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };

	if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
		return egress_address_classify((struct sockaddr *) &in, sizeof(in));
	CHECK(inet_pton(AF_INET6, text, &in6.sin6_addr) == 1);
	return egress_address_classify((struct sockaddr *) &in6, sizeof(in6));
}

struct row {
	const char *address, *class_of;
};

static void check_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *got = egress_address_class_name(class_of(rows[i].address));

		if (strcmp(got, rows[i].class_of) != 0)
			printf("# %s\n", rows[i].address);
		CHECK_STR(got, rows[i].class_of);
	}
}

#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]))

/* The first and last of each block and their neighbours. */
static void ipv4_blocks(void)
{
	static const struct row rows[] = {
		{ "0.0.0.0", "unspecified" },
		{ "0.255.255.255", "unspecified" },
		{ "1.0.0.0", "public" },
		{ "9.255.255.255", "public" },
		{ "10.0.0.0", "private" },
		{ "10.255.255.255", "private" },
		{ "11.0.0.0", "public" },
		{ "100.63.255.255", "public" },
		{ "100.64.0.0", "shared" },
		{ "100.127.255.255", "shared" },
		{ "100.128.0.0", "public" },
		{ "126.255.255.255", "public" },
		{ "127.0.0.0", "loopback" },
		{ "127.255.255.255", "loopback" },
		{ "128.0.0.0", "public" },
		{ "169.253.255.255", "public" },
		{ "169.254.0.0", "link-local" },
		{ "169.254.255.255", "link-local" },
		{ "169.255.0.0", "public" },
		{ "172.15.255.255", "public" },
		{ "172.16.0.0", "private" },
		{ "172.31.255.255", "private" },
		{ "172.32.0.0", "public" },
		{ "191.255.255.255", "public" },
		{ "192.0.0.0", "protocol" },
		{ "192.0.0.255", "protocol" },
		{ "192.0.1.0", "public" },
		{ "192.0.2.0", "documentation" },
		{ "192.0.2.255", "documentation" },
		{ "192.0.3.0", "public" },
		{ "192.88.99.1", "reserved" },
		{ "192.88.100.0", "public" },
		{ "192.167.255.255", "public" },
		{ "192.168.0.0", "private" },
		{ "192.168.255.255", "private" },
		{ "192.169.0.0", "public" },
		{ "198.17.255.255", "public" },
		{ "198.18.0.0", "benchmark" },
		{ "198.19.255.255", "benchmark" },
		{ "198.20.0.0", "public" },
		{ "198.51.99.255", "public" },
		{ "198.51.100.0", "documentation" },
		{ "198.51.100.255", "documentation" },
		{ "198.51.101.0", "public" },
		{ "203.0.112.255", "public" },
		{ "203.0.113.0", "documentation" },
		{ "203.0.113.255", "documentation" },
		{ "203.0.114.0", "public" },
		{ "223.255.255.255", "public" },
		{ "224.0.0.0", "multicast" },
		{ "239.255.255.255", "multicast" },
		{ "240.0.0.0", "reserved" },
		{ "255.255.255.254", "reserved" },
		{ "255.255.255.255", "broadcast" },
		{ "1.1.1.1", "public" },
		{ "8.8.8.8", "public" },
	};

	CHECK_ROWS(rows);
}

static void ipv6_blocks(void)
{
	static const struct row rows[] = {
		{ "::", "unspecified" },
		{ "::1", "loopback" },
		{ "100::", "discard" },
		{ "100::ffff:ffff:ffff:ffff", "discard" },
		{ "100:0:0:1::", "reserved" },
		{ "2001:1::1", "protocol" },
		{ "2001:2::1", "benchmark" },
		{ "2001:2:0:ffff::", "benchmark" },
		{ "2001:2:1::", "protocol" },
		{ "2001:10::", "orchid" },
		{ "2001:1f:ffff::", "orchid" },
		{ "2001:20::1", "orchid" },
		{ "2001:2f:ffff::", "orchid" },
		{ "2001:30::", "protocol" },
		{ "2001:1ff:ffff::", "protocol" },
		{ "2001:200::", "public" },
		{ "2001:db7:ffff::", "public" },
		{ "2001:db8::", "documentation" },
		{ "2001:db8:ffff:ffff::1", "documentation" },
		{ "2001:db9::", "public" },
		{ "2606:4700::1111", "public" },
		{ "2a00:1450:4001::1", "public" },
		{ "3ffd:ffff::", "public" },
		{ "3ffe::1", "reserved" },
		{ "3fff::", "documentation" },
		{ "3fff:fff:ffff::", "documentation" },
		{ "3fff:1000::", "public" },
		{ "1fff:ffff::", "reserved" },
		{ "4000::", "reserved" },
		{ "5f00::1", "reserved" },
		{ "fbff:ffff::", "reserved" },
		{ "fc00::", "unique-local" },
		{ "fdff:ffff:ffff::1", "unique-local" },
		{ "fe00::", "reserved" },
		{ "fe7f:ffff::", "reserved" },
		{ "fe80::1", "link-local" },
		{ "febf:ffff::", "link-local" },
		{ "fec0::1", "site-local" },
		{ "feff:ffff::", "site-local" },
		{ "ff00::", "multicast" },
		{ "ff02::1", "multicast" },
	};

	CHECK_ROWS(rows);
}

static void metadata_of_clouds(void)
{
	static const struct row rows[] = {
		{ "169.254.169.254", "metadata" },
		{ "169.254.169.253", "link-local" },
		{ "169.254.170.2", "metadata" },
		{ "168.63.129.16", "metadata" },
		{ "168.63.129.17", "public" },
		{ "100.100.100.200", "metadata" },
		{ "192.0.0.192", "metadata" },
		{ "fd00:ec2::254", "metadata" },
		{ "fd00:ec2::253", "unique-local" },
		{ "fd20:ce::254", "metadata" },
		{ "::ffff:169.254.169.254", "metadata" },
		{ "64:ff9b::a9fe:a9fe", "metadata" },
		{ "::169.254.169.254", "metadata" },
		{ "2002:a9fe:a9fe::1", "metadata" },
	};

	CHECK_ROWS(rows);
}

static void what_is_within(void)
{
	static const struct row rows[] = {
		/* mapped */
		{ "::ffff:10.0.0.1", "private" },
		{ "::ffff:127.0.0.1", "loopback" },
		{ "::ffff:0.0.0.0", "unspecified" },
		{ "::ffff:8.8.8.8", "public" },
		/* translated */
		{ "::ffff:0:127.0.0.1", "loopback" },
		{ "::ffff:0:8.8.8.8", "reserved" },
		/* compatible */
		{ "::10.0.0.1", "private" },
		{ "::127.0.0.1", "loopback" },
		{ "::8.8.8.8", "reserved" },
		{ "::2", "unspecified" },
		/* NAT64 */
		{ "64:ff9b::10.0.0.1", "private" },
		{ "64:ff9b::7f00:1", "loopback" },
		{ "64:ff9b::8.8.8.8", "public" },
		{ "64:ff9b:1::10.0.0.1", "private" },
		{ "64:ff9b:1::8.8.8.8", "reserved" },
		{ "64:ff9b:1:a00:0:100:808:808", "reserved" },
		{ "64:ff9b::1:0:0:808:808", "reserved" },
		{ "64:ff9b:2::8.8.8.8", "reserved" },
		/* 6to4 */
		{ "2002:a00:1::1", "private" },
		{ "2002:7f00:1::", "loopback" },
		{ "2002:c0a8:101::5", "private" },
		{ "2002:808:808::1", "public" },
		{ "2002:e000:1::", "multicast" },
		/* Teredo: 2001:0:SERVER:flags:port:CLIENT inverted */
		{ "2001:0:808:808:0:0:f5ff:fffe", "private" },
		{ "2001:0:808:808:0:0:80ff:fffe", "loopback" },
		{ "2001:0:a00:1:0:0:f7f7:f7f7", "private" },
		{ "2001:0:7f00:1:0:0:f7f7:f7f7", "loopback" },
		{ "2001:0:808:808:0:0:f7f7:f7f7", "public" },
		/* ISATAP */
		{ "2a00:1:2:3:0:5efe:10.0.0.1", "private" },
		{ "2a00:1:2:3:200:5efe:127.0.0.1", "loopback" },
		{ "2a00:1:2:3:0:5efe:8.8.8.8", "public" },
		{ "2a00:1:2:3:100:5efe:10.0.0.1", "public" },
		{ "fe80::5efe:8.8.8.8", "link-local" },
	};

	CHECK_ROWS(rows);
}

static void what_is_no_address(void)
{
	struct sockaddr_storage storage = { .ss_family = AF_UNIX };

	CHECK(egress_address_classify((struct sockaddr *) &storage, sizeof(storage)) ==
	      EGRESS_ADDRESS_OTHER);
	storage.ss_family = AF_INET6;
	CHECK(egress_address_classify((struct sockaddr *) &storage, sizeof(struct sockaddr_in)) ==
	      EGRESS_ADDRESS_OTHER);
	storage.ss_family = AF_INET;
	CHECK(egress_address_classify((struct sockaddr *) &storage, 4) == EGRESS_ADDRESS_OTHER);
	CHECK(egress_address_classify((struct sockaddr *) &storage, sizeof(storage)) ==
	      EGRESS_ADDRESS_UNSPECIFIED);
	CHECK(egress_address_classify((struct sockaddr *) &storage, 0) == EGRESS_ADDRESS_OTHER);
}

static void every_class_has_a_name(void)
{
	for (int i = 0; i < EGRESS_ADDRESS_CLASS_COUNT; i++)
		CHECK(egress_address_class_name((enum egress_address_class) i));
	CHECK(!egress_address_class_name(EGRESS_ADDRESS_CLASS_COUNT));
}

int main(void)
{
	RUN(ipv4_blocks);
	RUN(ipv6_blocks);
	RUN(metadata_of_clouds);
	RUN(what_is_within);
	RUN(what_is_no_address);
	RUN(every_class_has_a_name);
	return check_done();
}
