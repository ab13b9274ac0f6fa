/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "guest/canary.h"

enum canary_verdict canary_judge(const struct canary *canary, int tries)
{
	bool is_unproven = canary->external.outcome == CANARY_UNPROVEN ||
	                   canary->metadata.outcome == CANARY_UNPROVEN;
	bool is_blocked = canary->external.outcome == CANARY_BLOCKED &&
	                  canary->metadata.outcome == CANARY_BLOCKED;

	if (!canary->store_ok || is_unproven)
		return CANARY_FAILED;
	if (is_blocked)
		return CANARY_PASSED;
	return tries < CANARY_TRIES ? CANARY_AGAIN : CANARY_FAILED;
}

static socklen_t make_address(const char *host, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in *in4 = (struct sockaddr_in *) ret;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *) ret;

	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, host, &in4->sin_addr) == 1) {
		in4->sin_family = AF_INET;
		in4->sin_port = htons(port);
		return sizeof(*in4);
	}
	if (inet_pton(AF_INET6, host, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		return sizeof(*in6);
	}
	return 0;
}

/* The errno value connect() ended with, 0 when it connected. */
static int finish_connect(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };
	int failure = 0, n;
	socklen_t size = sizeof(failure);

	do {
		n = poll(&poll_fd, 1, CANARY_CONNECT_MS);
	} while (n < 0 && errno == EINTR);
	if (n == 0)
		return ETIMEDOUT;
	if (n < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size) < 0)
		return errno;
	return failure;
}

static void set(struct canary_probe *probe, enum canary_outcome outcome, const char *host,
                uint16_t port, const char *what)
{
	probe->outcome = outcome;
	snprintf(probe->detail, sizeof(probe->detail), "%.60s port %u: %s", host, port, what);
}

void canary_connect(const char *host, uint16_t port, struct canary_probe *probe)
{
	CLEANUP(fd_close) int fd = -1;
	struct sockaddr_storage address;
	socklen_t size = make_address(host, port, &address);
	int failure = 0;

	if (size == 0) {
		set(probe, CANARY_UNPROVEN, host, port, "not an IP address");
		return;
	}
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 && errno != EAFNOSUPPORT) {
		set(probe, CANARY_UNPROVEN, host, port, strerrorname_np(errno));
		return;
	}
	/* A kernel without this family of addresses reaches none of them. */
	if (fd < 0)
		failure = EAFNOSUPPORT;
	else if (connect(fd, (struct sockaddr *) &address, size) < 0)
		failure = errno == EINPROGRESS ? finish_connect(fd) : errno;
	if (failure == 0)
		set(probe, CANARY_REACHABLE, host, port, "it answered");
	else
		set(probe, CANARY_BLOCKED, host, port, strerrorname_np(failure));
}
