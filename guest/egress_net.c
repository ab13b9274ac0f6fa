/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An address of its own besides 127.0.0.1 is what getaddrinfo() with AI_ADDRCONFIG looks for: without one it
 * would not ask at all.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "guest/egress_names.h"
#include "guest/egress_net.h"

static const char first_port[] = "/proc/sys/net/ipv4/ip_unprivileged_port_start";

/* A request about an address or a route, with one address in it. */
struct request {
	struct nlmsghdr head;
	union {
		struct ifaddrmsg address;
		struct rtmsg route;
	};
	char attributes[96];
};

static void add_attribute(struct request *request, unsigned short type, const void *bytes,
                          size_t len)
{
	struct rtattr *attribute = (struct rtattr *) ((char *) request +
	                                              NLMSG_ALIGN(request->head.nlmsg_len));

	attribute->rta_type = type;
	attribute->rta_len = (unsigned short) RTA_LENGTH(len);
	memcpy(RTA_DATA(attribute), bytes, len);
	request->head.nlmsg_len = (uint32_t) (NLMSG_ALIGN(request->head.nlmsg_len) +
	                                      RTA_ALIGN(attribute->rta_len));
}

/* 0 or what the kernel says; what is there already is fine. */
static int ask(int fd, struct request *request)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr failure;
		char rest[256];
	} answer;
	ssize_t n;

	request->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE;
	if (send(fd, request, request->head.nlmsg_len, 0) < 0)
		return -errno;
	n = recv(fd, &answer, sizeof(answer), 0);
	if (n < 0)
		return -errno;
	if ((size_t) n < NLMSG_LENGTH(sizeof(answer.failure)) ||
	    answer.head.nlmsg_type != NLMSG_ERROR)
		return -EBADMSG;
	return answer.failure.error == -EEXIST ? 0 : answer.failure.error;
}

static int add_address(int fd, int family, const void *address, size_t len, unsigned prefix,
                       unsigned lo)
{
	struct request request = {
		.head = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct ifaddrmsg)),
		          .nlmsg_type = RTM_NEWADDR },
		.address = { .ifa_family = (unsigned char) family,
		             .ifa_prefixlen = (unsigned char) prefix,
		             .ifa_flags = IFA_F_NODAD,
		             .ifa_index = lo },
	};

	add_attribute(&request, IFA_LOCAL, address, len);
	add_attribute(&request, IFA_ADDRESS, address, len);
	return ask(fd, &request);
}

static int add_local_route(int fd, int family, const void *address, size_t len, unsigned prefix,
                           unsigned lo)
{
	struct request request = {
		.head = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
		          .nlmsg_type = RTM_NEWROUTE },
		.route = { .rtm_family = (unsigned char) family,
		           .rtm_dst_len = (unsigned char) prefix,
		           .rtm_table = RT_TABLE_LOCAL,
		           .rtm_protocol = RTPROT_STATIC,
		           .rtm_scope = RT_SCOPE_HOST,
		           .rtm_type = RTN_LOCAL },
	};
	const uint32_t device = lo;

	add_attribute(&request, RTA_DST, address, len);
	add_attribute(&request, RTA_OIF, &device, sizeof(device));
	return ask(fd, &request);
}

static int bring_up(unsigned *ret_lo)
{
	CLEANUP(fd_close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_name = "lo" };

	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) < 0)
		return -errno;
	request.ifr_flags |= IFF_UP;
	if (ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		return -errno;
	*ret_lo = if_nametoindex("lo");
	return *ret_lo ? 0 : -errno;
}

static int add_four(int fd, unsigned lo)
{
	const struct in_addr own = { htonl((198U << 24) | (18U << 16) | 1) };
	const struct in_addr range = { htonl((198U << 24) | (18U << 16)) };
	int r = add_address(fd, AF_INET, &own, sizeof(own), 32, lo);

	return r < 0 ? r : add_local_route(fd, AF_INET, &range, sizeof(range), EGRESS_PREFIX4, lo);
}

static int add_six(int fd, unsigned lo)
{
	struct in6_addr range = { .s6_addr = { 0x20, 0x01, 0x00, 0x02 } }, own = range;
	int r;

	own.s6_addr[15] = 1;
	r = add_address(fd, AF_INET6, &own, sizeof(own), 128, lo);
	if (r == -EOPNOTSUPP || r == -EAFNOSUPPORT)
		return 0;
	return r < 0 ? r : add_local_route(fd, AF_INET6, &range, sizeof(range), EGRESS_PREFIX6, lo);
}

static int open_ports(void)
{
	CLEANUP(fd_close) int fd = open(first_port, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : write_all(fd, "0", 1);
}

int egress_net_set_up(struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	unsigned lo = 0;
	int r = fd < 0 ? -errno : bring_up(&lo);

	if (r == 0)
		r = add_four(fd, lo);
	if (r == 0)
		r = add_six(fd, lo);
	if (r == 0)
		r = open_ports();
	return r < 0 ? resoluto_fail(err, r, "make the addresses that stand for names") : 0;
}
