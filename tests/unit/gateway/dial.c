/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"
#include "gateway/dial.h"

static union socket_address address(const char *text)
{
	union socket_address made = { .any.sa_family = strchr(text, ':') ? AF_INET6 : AF_INET };

	if (made.any.sa_family == AF_INET)
		CHECK(inet_pton(AF_INET, text, &made.v4.sin_addr) == 1);
	else
		CHECK(inet_pton(AF_INET6, text, &made.v6.sin6_addr) == 1);
	return made;
}

static void is_order(const char *const *in, const char *const *out, size_t count)
{
	union socket_address addresses[RESOLVER_ADDRESSES_MAX];

	for (size_t i = 0; i < count; i++)
		addresses[i] = address(in[i]);
	dial_order(addresses, count);
	for (size_t i = 0; i < count; i++) {
		char text[DIAL_ADDRESS_TEXT];

		dial_address_text(&addresses[i], text);
		CHECK_STR(text, out[i]);
	}
}

static void families_take_turns(void)
{
	is_order((const char *const[]){ "1.0.0.1", "1.0.0.2", "1.0.0.3", "2001::1", "2001::2" },
	         (const char *const[]){ "2001::1", "1.0.0.1", "2001::2", "1.0.0.2", "1.0.0.3" }, 5);
	is_order((const char *const[]){ "2001::1", "2001::2", "2001::3", "1.0.0.1" },
	         (const char *const[]){ "2001::1", "1.0.0.1", "2001::2", "2001::3" }, 4);
	is_order((const char *const[]){ "1.0.0.1", "1.0.0.2" },
	         (const char *const[]){ "1.0.0.1", "1.0.0.2" }, 2);
	is_order((const char *const[]){ "2001::9" }, (const char *const[]){ "2001::9" }, 1);
	is_order(NULL, NULL, 0);
}

struct outcome {
	struct loop *loop;
	struct dial *dial;
	int fd, calls;
	char address[DIAL_ADDRESS_TEXT], words[DIAL_WORDS];
};

static void on_dialled(struct dial *dial, void *ctx, int fd, const union socket_address *to)
{
	struct outcome *outcome = ctx;

	outcome->fd = fd;
	outcome->calls++;
	snprintf(outcome->words, sizeof(outcome->words), "%s", dial_words(dial));
	if (to)
		dial_address_text(to, outcome->address);
	dial_free(dial);
	loop_stop(outcome->loop);
}

static struct outcome dial_all(const char *const *texts, size_t count, uint16_t port,
                               uint32_t limit_ms)
{
	struct outcome outcome = { 0 };
	union socket_address addresses[RESOLVER_ADDRESSES_MAX];

	for (size_t i = 0; i < count; i++)
		addresses[i] = address(texts[i]);
	CHECK(loop_new(&outcome.loop) == 0);
	CHECK(dial_start(outcome.loop, addresses, count, port, limit_ms, on_dialled, &outcome,
	                 &outcome.dial) == 0);
	CHECK(outcome.calls == 0);
	CHECK(loop_run(outcome.loop) == 0);
	CHECK(outcome.calls == 1);
	loop_free(&outcome.loop);
	return outcome;
}

/* A server on a free port of 127.0.0.1. */
static int serve(uint16_t *ret_port)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *) &at, sizeof(at)) == 0);
	CHECK(listen(fd, 8) == 0 && getsockname(fd, (struct sockaddr *) &at, &len) == 0);
	*ret_port = ntohs(at.sin_port);
	return fd;
}

static void one_that_refuses_is_followed_by_the_next(void)
{
	uint16_t port;
	int server = serve(&port);
	/* 127.0.0.2 has nobody on that port. */
	struct outcome outcome = dial_all((const char *const[]){ "127.0.0.2", "127.0.0.1" }, 2,
	                                  port, 5000);

	CHECK(outcome.fd >= 0);
	CHECK_STR(outcome.address, "127.0.0.1");
	CHECK_STR(outcome.words, "127.0.0.2: Connection refused");
	(void) close(outcome.fd);
	(void) close(server);
}

static void when_all_refuse_each_is_named(void)
{
	uint16_t port;
	int server = serve(&port);
	struct outcome outcome;

	(void) close(server);
	outcome = dial_all((const char *const[]){ "127.0.0.1", "127.0.0.3" }, 2, port, 5000);
	CHECK(outcome.fd == -ECONNREFUSED);
	CHECK_STR(outcome.words, "127.0.0.1: Connection refused; 127.0.0.3: Connection refused");
}

/* A full backlog: the kernel answers nothing. */
static void silence_ends_at_the_limit(void)
{
	uint16_t port;
	int server = serve(&port), fillers[32];
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct outcome outcome;
	uint64_t began;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(listen(server, 0) == 0);
	for (int i = 0; i < 32; i++) {
		fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void) connect(fillers[i], (struct sockaddr *) &at, sizeof(at));
	}
	began = clock_mono_ms();
	outcome = dial_all((const char *const[]){ "127.0.0.1" }, 1, port, 300);
	CHECK(outcome.fd == -ETIMEDOUT);
	CHECK(clock_mono_ms() - began >= 299 && clock_mono_ms() - began < 5000);
	for (int i = 0; i < 32; i++)
		(void) close(fillers[i]);
	(void) close(server);
}

static void one_that_is_given_up_calls_nobody(void)
{
	struct outcome outcome = { 0 };
	const union socket_address to = address("127.0.0.1");

	CHECK(loop_new(&outcome.loop) == 0);
	CHECK(dial_start(outcome.loop, &to, 1, 9, 1000, on_dialled, &outcome, &outcome.dial) == 0);
	dial_free(outcome.dial);
	dial_free(NULL);
	CHECK(outcome.calls == 0);
	loop_free(&outcome.loop);
}

int main(void)
{
	RUN(families_take_turns);
	RUN(one_that_refuses_is_followed_by_the_next);
	RUN(when_all_refuse_each_is_named);
	RUN(silence_ends_at_the_limit);
	RUN(one_that_is_given_up_calls_nobody);
	return check_done();
}
