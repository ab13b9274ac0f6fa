/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress_knock.c - connections to ports of a name that nobody listens on.  The kernel refuses them by itself and
 * at once; here they are only seen, so that the gateway writes down what was asked for: a raw socket has a copy of
 * every first packet of a connection.
 */
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/egress_probe.h"
#include "guest/egress_service.h"

enum {
	PACKET_MAX = 128, /* bytes: two headers */
	FLAGS_AT = 13,    /* of a TCP header */
	FLAGS_MASK = TH_SYN | TH_ACK,
};

static bool is_listened_on(const struct egress_service *service, const struct egress_host *host,
                           uint16_t port)
{
	uint16_t ports[EGRESS_HOST_PORTS_MAX];
	const size_t count = egress_policy_ports(service->policy, &host->name, ports,
	                                         EGRESS_HOST_PORTS_MAX);

	for (size_t i = 0; i < count && i < EGRESS_HOST_PORTS_MAX; i++) {
		if (ports[i] == port)
			return true;
	}
	return false;
}

/* Whether it is the first of its kind, and there is room to say so. */
static bool is_news(const struct egress_service *service, uint32_t number, uint16_t port)
{
	for (size_t i = 0; i < service->knock_count; i++) {
		if (service->knocks[i].number == number && service->knocks[i].port == port)
			return false;
	}
	return service->knock_count < EGRESS_KNOCKS_MAX;
}

/* Opened and given up: a connection like any other, to be decided and written down.  They are few, and have room in a port
 * that is full of DATA too. */
static void tell(struct egress_service *service, uint32_t number, uint16_t port)
{
	const struct egress_host *host;
	uint32_t stream;

	if (service->is_lost || number >= service->names.count || !is_news(service, number, port))
		return;
	host = service->names.hosts[number];
	if (egress_is_probe(&host->name) || is_listened_on(service, host, port) ||
	    mux_open(service->mux, port, host->name.text, strlen(host->name.text), &stream) < 0)
		return;
	(void) mux_reset(service->mux, stream, EGRESS_BROKEN);
	service->knocks[service->knock_count++] = (struct egress_knock){ number, port };
}

static uint16_t port_of(const uint8_t *header)
{
	return (uint16_t) (header[2] << 8 | header[3]);
}

/* With the header of IPv4 in front. */
static int on_knock4(struct loop_watch *watch, uint32_t events)
{
	struct egress_service *service = watch->ctx;
	uint8_t packet[PACKET_MAX];
	uint32_t number;

	for (int i = 0; i < EGRESS_ACCEPTS; i++) {
		const ssize_t n = recv(watch->fd, packet, sizeof(packet), MSG_DONTWAIT);
		const size_t head = n > 0 ? (packet[0] & 15) * 4U : 0;

		if (n < 0)
			break;
		if (head >= sizeof(struct iphdr) && (size_t) n >= head + sizeof(struct tcphdr) &&
		    egress_number4(packet + offsetof(struct iphdr, daddr), &number))
			tell(service, number, port_of(packet + head));
	}
	egress_port_flush(service);
	return 0;
}

/* Without a header of IPv6: the address comes beside it. */
static bool receive6(int fd, uint8_t packet[PACKET_MAX], ssize_t *ret_len, struct in6_addr *ret_to)
{
	union {
		struct cmsghdr head;
		uint8_t bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	} control;
	struct iovec piece = { packet, PACKET_MAX };
	struct msghdr message = { .msg_iov = &piece,
		                  .msg_iovlen = 1,
		                  .msg_control = &control,
		                  .msg_controllen = sizeof(control) };
	const struct cmsghdr *info;

	*ret_len = recvmsg(fd, &message, MSG_DONTWAIT);
	*ret_to = (struct in6_addr){ 0 };
	info = *ret_len < 0 ? NULL : CMSG_FIRSTHDR(&message);
	if (info && info->cmsg_level == IPPROTO_IPV6 && info->cmsg_type == IPV6_PKTINFO)
		memcpy(ret_to, CMSG_DATA(info) + offsetof(struct in6_pktinfo, ipi6_addr),
		       sizeof(*ret_to));
	return *ret_len >= 0;
}

static int on_knock6(struct loop_watch *watch, uint32_t events)
{
	struct egress_service *service = watch->ctx;
	uint8_t packet[PACKET_MAX];
	struct in6_addr to;
	uint32_t number;
	ssize_t n;

	for (int i = 0; i < EGRESS_ACCEPTS && receive6(watch->fd, packet, &n, &to); i++) {
		if ((size_t) n >= sizeof(struct tcphdr) && egress_number6(to.s6_addr, &number))
			tell(service, number, port_of(packet));
	}
	egress_port_flush(service);
	return 0;
}

/* First packets alone, and of them the headers: SYN without ACK.  For good, whatever becomes of this process. */
static int filter(int fd, int family)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0), /* of IPv4: the length of its header */
		BPF_STMT(BPF_LD | BPF_B | BPF_IND, FLAGS_AT),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, FLAGS_MASK),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TH_SYN, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, PACKET_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const int on = 1;
	const struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (family == AF_INET6)
		code[0] = (struct sock_filter) BPF_STMT(BPF_LDX | BPF_IMM, 0);
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof(on)) < 0)
		return -errno;
	return 0;
}

static int open_one(struct egress_service *service, struct loop_watch *watch, int family,
                    loop_fn *fn)
{
	CLEANUP(fd_close)
	int fd = socket(family, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	const int on = 1;
	int r = fd < 0 ? -errno : filter(fd, family);

	if (r < 0)
		return r;
	if (family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on)) < 0)
		return -errno;
	*watch = (struct loop_watch){ .fd = fd, .events = EPOLLIN, .fn = fn, .ctx = service };
	r = loop_add(service->loop, watch);
	if (r == 0)
		(void) fd_take(&fd);
	return r;
}

int egress_knock_open(struct egress_service *service)
{
	int r = open_one(service, &service->knock4, AF_INET, on_knock4);

	if (r < 0 || !service->has_six)
		return r;
	return open_one(service, &service->knock6, AF_INET6, on_knock6);
}
