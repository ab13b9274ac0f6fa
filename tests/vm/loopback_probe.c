/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loopback_probe.c - the only program of an image: looks for the loopback device in one way, as early as a program can.
 *
 * Prints whether the kernel had yet to open it, what it saw, and the first again; "-" where the kernel opens it itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define DUE "/proc/sys/net/core/loopback_is_due"

enum { TEXT = 256 };

static const char *said(int result)
{
	return result < 0 ? strerrorname_np(errno) : "ok";
}

static void first_line(const char *path, char ret[TEXT])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret, TEXT - 1);

	if (n < 0)
		strcpy(ret, "-");
	else
		ret[n] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	if (fd >= 0)
		close(fd);
}

static const char *bind_four(void)
{
	const struct sockaddr_in own = { .sin_family = AF_INET,
		                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	return said(bind(socket(AF_INET, SOCK_STREAM, 0), (const void *) &own, sizeof(own)));
}

static const char *bind_six(void)
{
	const struct sockaddr_in6 own = { .sin6_family = AF_INET6,
		                          .sin6_addr = IN6ADDR_LOOPBACK_INIT };

	return said(bind(socket(AF_INET6, SOCK_STREAM, 0), (const void *) &own, sizeof(own)));
}

/* The flags of the first device of all. */
static const char *ask_netlink(void)
{
	const struct {
		struct nlmsghdr head;
		struct ifinfomsg body;
	} question = { .head = { .nlmsg_len = sizeof(question),
		                 .nlmsg_type = RTM_GETLINK,
		                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP } };
	static char answer[65536];
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	const struct ifinfomsg *body = NLMSG_DATA((struct nlmsghdr *) answer);

	if (send(fd, &question, sizeof(question), 0) < 0 ||
	    recv(fd, answer, sizeof(answer), 0) < (ssize_t) NLMSG_LENGTH(sizeof(*body)))
		return said(-1);
	return body->ifi_flags & IFF_UP ? "ok" : "down";
}

static const char *ask_for_flags(void)
{
	struct ifreq request = { .ifr_name = "lo" };

	if (ioctl(socket(AF_UNIX, SOCK_STREAM, 0), SIOCGIFFLAGS, &request) < 0)
		return said(-1);
	return request.ifr_flags & IFF_UP ? "ok" : "down";
}

/* Devices with an address. */
static const char *ask_for_list(void)
{
	struct ifreq list[4];
	struct ifconf request = { .ifc_len = sizeof(list), .ifc_req = list };

	if (ioctl(socket(AF_UNIX, SOCK_STREAM, 0), SIOCGIFCONF, &request) < 0)
		return said(-1);
	return request.ifc_len > 0 ? "ok" : "none";
}

static const struct {
	const char *name;
	const char *(*look)(void);
} looks[] = {
	{ "bind-4", bind_four },    { "bind-6", bind_six },   { "netlink", ask_netlink },
	{ "flags", ask_for_flags }, { "list", ask_for_list },
};

int main(int argc, char **argv)
{
	char before[TEXT], after[TEXT], line[TEXT];
	const char *seen = line, *way = argc > 1 ? argv[1] : "";

	first_line(DUE, before);
	if (way[0] == '/')
		first_line(way, line);
	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		if (strcmp(way, looks[i].name) == 0)
			seen = looks[i].look();
	}
	first_line(DUE, after);
	printf("%s|%s|%s\n", before, seen, after);
	return 0;
}
