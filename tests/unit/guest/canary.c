/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "check.h"
#include "guest/canary.h"

static struct canary canary_of(enum canary_outcome external, enum canary_outcome metadata,
                               bool store_ok)
{
	return (struct canary){ .external = { .outcome = external },
		                .metadata = { .outcome = metadata },
		                .store_ok = store_ok };
}

static void all_closed_and_stored_passes(void)
{
	struct canary canary = canary_of(CANARY_BLOCKED, CANARY_BLOCKED, true);

	CHECK(canary_judge(&canary, 1) == CANARY_PASSED);
	CHECK(canary_judge(&canary, CANARY_TRIES) == CANARY_PASSED);
}

static void what_still_answers_is_asked_again_but_not_for_ever(void)
{
	struct canary external = canary_of(CANARY_REACHABLE, CANARY_BLOCKED, true);
	struct canary metadata = canary_of(CANARY_BLOCKED, CANARY_REACHABLE, true);

	CHECK(canary_judge(&external, 1) == CANARY_AGAIN);
	CHECK(canary_judge(&metadata, CANARY_TRIES - 1) == CANARY_AGAIN);
	CHECK(canary_judge(&external, CANARY_TRIES) == CANARY_FAILED);
	CHECK(canary_judge(&metadata, CANARY_TRIES) == CANARY_FAILED);
}

static void any_other_fault_fails_at_once(void)
{
	struct canary store = canary_of(CANARY_BLOCKED, CANARY_BLOCKED, false);
	struct canary both = canary_of(CANARY_REACHABLE, CANARY_BLOCKED, false);
	struct canary unproven = canary_of(CANARY_UNPROVEN, CANARY_REACHABLE, true);

	CHECK(canary_judge(&store, 1) == CANARY_FAILED);
	CHECK(canary_judge(&both, 1) == CANARY_FAILED);
	CHECK(canary_judge(&unproven, 1) == CANARY_FAILED);
}

static struct canary with_egress(enum canary_outcome refused, enum canary_outcome allowed,
                                 enum canary_outcome address)
{
	struct canary canary = canary_of(CANARY_BLOCKED, CANARY_BLOCKED, true);

	canary.has_egress = true;
	canary.egress = (struct canary_egress){ .refused = { .outcome = refused },
		                                .allowed = { .outcome = allowed },
		                                .address = { .outcome = address } };
	return canary;
}

static void with_egress_names_must_mean_what_they_should(void)
{
	struct canary good = with_egress(CANARY_BLOCKED, CANARY_BLOCKED, CANARY_BLOCKED);
	struct canary refused = with_egress(CANARY_REACHABLE, CANARY_BLOCKED, CANARY_BLOCKED);
	struct canary allowed = with_egress(CANARY_BLOCKED, CANARY_REACHABLE, CANARY_BLOCKED);
	struct canary unproven = with_egress(CANARY_BLOCKED, CANARY_UNPROVEN, CANARY_BLOCKED);
	struct canary address = with_egress(CANARY_BLOCKED, CANARY_BLOCKED, CANARY_REACHABLE);
	struct canary unasked = with_egress(CANARY_BLOCKED, CANARY_BLOCKED, CANARY_UNPROVEN);

	CHECK(canary_judge(&good, 1) == CANARY_PASSED);
	CHECK(canary_judge(&refused, 1) == CANARY_FAILED);
	CHECK(canary_judge(&allowed, 1) == CANARY_FAILED);
	CHECK(canary_judge(&unproven, 1) == CANARY_FAILED);
	CHECK(canary_judge(&unasked, 1) == CANARY_FAILED);
	CHECK(canary_judge(&address, 1) == CANARY_AGAIN);
	CHECK(canary_judge(&address, CANARY_TRIES) == CANARY_FAILED);
	good.egress.address6.outcome = CANARY_REACHABLE;
	CHECK(canary_judge(&good, 1) == CANARY_AGAIN);
	CHECK(canary_judge(&good, CANARY_TRIES) == CANARY_FAILED);
	good.egress.address6.outcome = CANARY_UNPROVEN;
	CHECK(canary_judge(&good, 1) == CANARY_FAILED);
	address.has_egress = false;
	CHECK(canary_judge(&address, 1) == CANARY_PASSED);
}

static enum canary_outcome judge_name(bool is_allowed, int answer, uint8_t first)
{
	const uint8_t address[4] = { first, 18, 0, 2 };
	struct canary_probe probe = { .name = "x" };

	canary_judge_name("a.example", is_allowed, answer, address, &probe);
	CHECK(strncmp(probe.detail, "a.example: ", 11) == 0 && probe.detail[11]);
	return probe.outcome;
}

static void an_answer_to_a_name_is_judged(void)
{
	CHECK(judge_name(true, 1, 198) == CANARY_BLOCKED);
	CHECK(judge_name(true, 1, 93) == CANARY_REACHABLE);
	CHECK(judge_name(true, 0, 0) == CANARY_REACHABLE);
	CHECK(judge_name(false, 0, 0) == CANARY_BLOCKED);
	CHECK(judge_name(false, 1, 198) == CANARY_REACHABLE);
	CHECK(judge_name(true, -ETIMEDOUT, 0) == CANARY_UNPROVEN);
	CHECK(judge_name(false, -ETIMEDOUT, 0) == CANARY_UNPROVEN);
}

/* A port of loopback that answers, or (not listening) that does not. */
static int bind_port(bool is_listening, uint16_t *ret_port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && bind(fd, (struct sockaddr *) &address, size) == 0);
	CHECK(!is_listening || listen(fd, 4) == 0);
	CHECK(getsockname(fd, (struct sockaddr *) &address, &size) == 0);
	*ret_port = ntohs(address.sin_port);
	return fd;
}

static void a_connection_that_works_is_seen(void)
{
	struct canary_probe probe = { .name = "external" };
	uint16_t port;
	CLEANUP(fd_close) int fd = bind_port(true, &port);

	CHECK(fd >= 0);
	canary_connect("127.0.0.1", port, &probe);
	CHECK(probe.outcome == CANARY_REACHABLE);
	CHECK(strstr(probe.detail, "127.0.0.1 port ") && strstr(probe.detail, "it answered"));
}

static void a_refused_connection_is_blocked(void)
{
	struct canary_probe probe = { .name = "external" };
	uint16_t port;
	CLEANUP(fd_close) int fd = bind_port(false, &port);

	CHECK(fd >= 0);
	canary_connect("127.0.0.1", port, &probe);
	CHECK(probe.outcome == CANARY_BLOCKED && strstr(probe.detail, "ECONNREFUSED"));
}

static void a_name_is_no_address(void)
{
	static const char *const hosts[] = { "example.com", "", "1.1.1", "1.1.1.1.1", ":::1" };

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		struct canary_probe probe = { .name = "external" };

		canary_connect(hosts[i], 80, &probe);
		CHECK(probe.outcome == CANARY_UNPROVEN);
	}
}

int main(void)
{
	RUN(all_closed_and_stored_passes);
	RUN(what_still_answers_is_asked_again_but_not_for_ever);
	RUN(any_other_fault_fails_at_once);
	RUN(with_egress_names_must_mean_what_they_should);
	RUN(an_answer_to_a_name_is_judged);
	RUN(a_connection_that_works_is_seen);
	RUN(a_refused_connection_is_blocked);
	RUN(a_name_is_no_address);
	return check_done();
}
