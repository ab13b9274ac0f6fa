/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "guest/canary.h"
#include "guest/egress_names.h"
#include "guest/egress_probe.h"

#define CANARY_PUBLIC6 "2606:4700:4700::1111" /* whom 1.1.1.1 belongs to */

enum { CANARY_TLS_PORT = 443 };

/* What a name means does not get better by waiting. */
static bool names_are_right(const struct canary *canary)
{
	return canary->egress.refused.outcome == CANARY_BLOCKED &&
	       canary->egress.allowed.outcome == CANARY_BLOCKED &&
	       canary->egress.address.outcome != CANARY_UNPROVEN &&
	       canary->egress.address6.outcome != CANARY_UNPROVEN;
}

enum canary_verdict canary_judge(const struct canary *canary, int tries)
{
	bool is_unproven = canary->external.outcome == CANARY_UNPROVEN ||
	                   canary->metadata.outcome == CANARY_UNPROVEN;
	bool is_blocked = canary->external.outcome == CANARY_BLOCKED &&
	                  canary->metadata.outcome == CANARY_BLOCKED;

	if (canary->has_egress && !names_are_right(canary))
		return CANARY_FAILED;
	if (canary->has_egress && (canary->egress.address.outcome != CANARY_BLOCKED ||
	                           canary->egress.address6.outcome != CANARY_BLOCKED))
		is_blocked = false;

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

void canary_judge_name(const char *name, bool is_allowed, int answer, const uint8_t address[4],
                       struct canary_probe *probe)
{
	char text[INET_ADDRSTRLEN] = "";
	bool is_right = is_allowed ? answer == 1 && egress_is_made_up4(address) : answer == 0;

	probe->outcome = is_right ? CANARY_BLOCKED : CANARY_REACHABLE;
	if (answer < 0)
		probe->outcome = CANARY_UNPROVEN;
	if (answer == 1)
		(void) inet_ntop(AF_INET, address, text, sizeof(text));
	snprintf(probe->detail, sizeof(probe->detail), "%.100s: %s", name,
	         answer < 0    ? strerrorname_np(-answer)
	         : answer == 1 ? text
	                       : "no such name");
}

static void probe_name(const char *text, bool is_allowed, struct canary_probe *probe)
{
	struct egress_name name;
	uint8_t address[4] = { 0 };
	int answer = -EINVAL;

	if (egress_name_parse(text, strlen(text), &name) == EGRESS_NONE)
		answer = egress_probe(&name, address);
	canary_judge_name(text, is_allowed, answer, address, probe);
}

/* A name of the first pattern; while learning all are. */
static void allowed_name(const struct egress_policy *policy, char ret[EGRESS_NAME_MAX + 1])
{
	const struct egress_pattern *first = policy->count ? &policy->patterns[0] : NULL;

	if (!first || !first->name.text[0])
		snprintf(ret, EGRESS_NAME_MAX + 1, "on-the-list" EGRESS_PROBE_SUFFIX);
	else if (first->is_wildcard && strlen(first->name.text) + 2 <= EGRESS_NAME_MAX)
		snprintf(ret, EGRESS_NAME_MAX + 1, "x.%.*s", EGRESS_NAME_MAX - 2, first->name.text);
	else
		snprintf(ret, EGRESS_NAME_MAX + 1, "%s", first->name.text);
}

void canary_egress(const struct egress_policy *policy, const char *host, struct canary_egress *ret)
{
	static const char refused[] = "off-the-list" EGRESS_PROBE_SUFFIX;
	char allowed[EGRESS_NAME_MAX + 1];
	struct egress_name name;

	ret->refused.name = "egress-refused-name";
	ret->allowed.name = "egress-allowed-name";
	ret->address.name = "egress-address";
	ret->address6.name = "egress-address6";
	if (egress_name_parse(refused, strlen(refused), &name) == EGRESS_NONE &&
	    egress_policy_has_name(policy, &name))
		ret->refused = (struct canary_probe){
			.name = ret->refused.name,
			.outcome = CANARY_BLOCKED,
			.detail = "not asked: every name is allowed"
		};
	else
		probe_name(refused, false, &ret->refused);
	allowed_name(policy, allowed);
	probe_name(allowed, true, &ret->allowed);
	canary_connect(host, CANARY_TLS_PORT, &ret->address);
	canary_connect(CANARY_PUBLIC6, CANARY_TLS_PORT, &ret->address6);
}
