/* SPDX-License-Identifier: Apache-2.0 */
/* What the process in the guest tells the gateway, without a port: what it would have sent is looked at. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "check.h"
#include "egress/dns.h"
#include "guest/egress_answer.h"
#include "wire/frame.h"

static const struct mux_calls calls = { 0 };
static struct egress_policy policy;
static struct egress_service service;

static void start(void)
{
	egress_names_done(&service.told);
	egress_names_done(&service.names);
	mux_free(service.mux);
	loop_free(&service.loop);
	service = (struct egress_service){ .policy = &policy, .port = { .fd = -1 } };
	CHECK(loop_new(&service.loop) == 0);
	CHECK(mux_new(MUX_GUEST, &calls, &service, &service.mux) == 0);
}

/* A question for A; a label is what is between dots. */
static enum dns_rcode ask(const char *name)
{
	uint8_t query[512] = { 7, 7, 1, 0, 0, 1 }, answer[EGRESS_ANSWER_MAX];
	size_t at = 12;

	while (*name) {
		const size_t len = strcspn(name, ".");

		query[at++] = (uint8_t) len;
		memcpy(query + at, name, len);
		at += len;
		name += len + (name[len] == '.');
	}
	query[at + 2] = DNS_A;
	query[at + 4] = 1;
	CHECK(egress_dns_answer(&service, query, at + 5, false, answer) > 12);
	return (enum dns_rcode)(answer[3] & 15);
}

/* How many messages of a type wait for the port; *ret_last (may be NULL) is what the last of them said. */
static size_t waiting(uint8_t type, char ret_last[MUX_NAME_MAX + 1])
{
	const struct buf *out = mux_out(service.mux);
	struct frame frame;
	size_t count = 0, used;

	for (size_t at = 0; at < out->len; at += used) {
		CHECK(frame_parse(out->data + at, out->len - at, &frame, &used) == 0);
		if (frame.type != type)
			continue;
		count++;
		if (ret_last)
			snprintf(ret_last, MUX_NAME_MAX + 1, "%.*s", (int) frame.len,
			         (const char *) frame.payload);
	}
	return count;
}

/* DATA until no more is taken. */
static void fill_port(void)
{
	static const char block[MUX_CREDIT];
	uint32_t stream;

	while (mux_wants_more(service.mux)) {
		CHECK(mux_open(service.mux, 443, "a", 1, &stream) == 0);
		CHECK(mux_send(service.mux, stream, block, sizeof(block)) == 0);
	}
}

static void a_refused_name_is_told_once_also_through_a_full_port(void)
{
	char last[MUX_NAME_MAX + 1];

	start();
	fill_port();
	CHECK(ask("evil.example") == DNS_NXDOMAIN && ask("EVIL.example") == DNS_NXDOMAIN);
	CHECK(waiting(FRAME_ASKED, last) == 1);
	CHECK_STR(last, "evil.example");
	CHECK(ask("x_y.example") == DNS_NXDOMAIN && waiting(FRAME_ASKED, last) == 2);
	CHECK_STR(last, "x_y.example");
}

static void ask_for_many(const char *prefix, int count)
{
	char name[64];

	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "%s%d.example", prefix, i);
		CHECK(ask(name) == DNS_NXDOMAIN);
	}
}

/* Remembered or not, it is told; one that is not remembered again and again, while the port has room for that. */
static void names_beyond_those_that_are_remembered_are_told_too(void)
{
	char last[MUX_NAME_MAX + 1];

	start();
	ask_for_many("n", EGRESS_NAMES_MAX);
	CHECK(waiting(FRAME_ASKED, NULL) == EGRESS_NAMES_MAX && mux_wants_more(service.mux));
	CHECK(ask("one.more.example") == DNS_NXDOMAIN);
	CHECK(waiting(FRAME_ASKED, last) == EGRESS_NAMES_MAX + 1);
	CHECK_STR(last, "one.more.example");
	CHECK(ask("n7.example") == DNS_NXDOMAIN);
	CHECK(waiting(FRAME_ASKED, NULL) == EGRESS_NAMES_MAX + 1);
	fill_port();
	ask_for_many("m", 20000);
	CHECK(waiting(FRAME_ASKED, NULL) == EGRESS_NAMES_MAX + 1);
}

static void repeats_of_a_malformed_name_cost_the_others_nothing(void)
{
	char last[MUX_NAME_MAX + 1];

	start();
	for (int i = 0; i < 2 * EGRESS_MALFORMED_MAX; i++)
		CHECK(ask("a_a.example") == DNS_NXDOMAIN);
	CHECK(waiting(FRAME_ASKED, NULL) == 1);
	ask_for_many("_", EGRESS_MALFORMED_MAX + 1);
	CHECK(waiting(FRAME_ASKED, last) == EGRESS_MALFORMED_MAX + 2);
	CHECK_STR(last, "_200.example");
	fill_port();
	CHECK(ask("b_b.example") == DNS_NXDOMAIN);
	CHECK(waiting(FRAME_ASKED, NULL) == EGRESS_MALFORMED_MAX + 2);
}

/* What could not be told is not taken for told. */
static void a_name_for_which_there_was_no_memory_is_told_later(void)
{
	struct buf *out;

	start();
	while (mux_ask(service.mux, "x", 1) == 0)
		;
	CHECK(ask("evil.example") == DNS_NXDOMAIN && ask("x_y") == DNS_NXDOMAIN);
	out = mux_out(service.mux);
	buf_clear(out);
	CHECK(ask("evil.example") == DNS_NXDOMAIN && ask("x_y") == DNS_NXDOMAIN);
	CHECK(waiting(FRAME_ASKED, NULL) == 2);
}

/* The mux keeps the stream then, and must not know who had it: a later message would come to memory that is free. */
static void a_stream_that_ends_without_a_word_has_no_owner(void)
{
	const struct egress_host host = { .name = { "site.example" } };
	int pair[2];

	start();
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	egress_stream_new(&service, pair[0], &host, 443);
	CHECK(mux_stream_count(service.mux) == 1 && mux_owner(service.mux, 1));
	while (mux_ask(service.mux, "x", 1) == 0)
		;
	(void) close(pair[1]);
	egress_stream_data(mux_owner(service.mux, 1), "x", 1);
	CHECK(!service.streams);
	CHECK(mux_stream_count(service.mux) == 1 && !mux_owner(service.mux, 1));
}

/* Whoever took over the process would see no more of the sandbox's packets than the first of each connection. */
static void what_the_raw_sockets_see_is_fixed(void)
{
	int none = 0;

	if (geteuid() != 0)
		SKIP("raw sockets need root");
	start();
	service.has_six = true;
	CHECK(egress_knock_open(&service) == 0);
	CHECK(setsockopt(service.knock4.fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none)) < 0);
	CHECK(errno == EPERM);
	CHECK(setsockopt(service.knock6.fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none)) < 0);
	CHECK(errno == EPERM);
	loop_remove(&service.knock4);
	loop_remove(&service.knock6);
	(void) close(service.knock4.fd);
	(void) close(service.knock6.fd);
}

static void names_of_the_canary_are_told_to_nobody(void)
{
	const struct egress_host host = { .name = { "on-the-list.resoluto.invalid" } };
	char byte;
	int pair[2];

	start();
	policy.is_learning = true;
	(void) ask("on-the-list.resoluto.invalid"); /* no such address here, so maybe no answer */
	policy.is_learning = false;
	CHECK(ask("off-the-list.resoluto.invalid") == DNS_NXDOMAIN);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	egress_stream_new(&service, pair[0], &host, 443);
	CHECK(!service.streams && recv(pair[1], &byte, 1, 0) == 0);
	(void) close(pair[1]);
	CHECK(waiting(FRAME_ASKED, NULL) == 0 && waiting(FRAME_OPEN, NULL) == 0);
}

int main(void)
{
	RUN(a_refused_name_is_told_once_also_through_a_full_port);
	RUN(names_beyond_those_that_are_remembered_are_told_too);
	RUN(repeats_of_a_malformed_name_cost_the_others_nothing);
	RUN(a_name_for_which_there_was_no_memory_is_told_later);
	RUN(a_stream_that_ends_without_a_word_has_no_owner);
	RUN(what_the_raw_sockets_see_is_fixed);
	RUN(names_of_the_canary_are_told_to_nobody);
	start();
	mux_free(service.mux);
	loop_free(&service.loop);
	return check_done();
}
