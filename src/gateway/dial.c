/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "gateway/dial.h"

struct attempt {
	struct loop_watch watch; /* .fd is owned; -1: free */
	const union socket_address *address;
};

struct dial {
	struct loop *loop; /* borrowed */
	dial_fn *fn;
	void *ctx;
	union socket_address addresses[RESOLVER_ADDRESSES_MAX];
	size_t count, next;
	struct attempt attempts[DIAL_AT_ONCE];
	struct loop_timer timer;
	uint64_t end_ms, try_ms; /* when all is over; when the next one is tried */
	int failure;             /* the last one */
	char words[DIAL_WORDS];
};

void dial_order(union socket_address *addresses, size_t count)
{
	sa_family_t wanted = AF_INET6;

	for (size_t at = 0; at < count; at++) {
		size_t from = at;

		while (from < count && addresses[from].any.sa_family != wanted)
			from++;
		if (from < count) {
			const union socket_address moved = addresses[from];

			memmove(&addresses[at + 1], &addresses[at], (from - at) * sizeof(moved));
			addresses[at] = moved;
		}
		wanted = addresses[at].any.sa_family == AF_INET6 ? AF_INET : AF_INET6;
	}
}

void dial_address_text(const union socket_address *address, char text[DIAL_ADDRESS_TEXT])
{
	const void *bytes = address->any.sa_family == AF_INET ? (void *) &address->v4.sin_addr
	                                                      : (void *) &address->v6.sin6_addr;

	if (!inet_ntop(address->any.sa_family, bytes, text, DIAL_ADDRESS_TEXT))
		text[0] = '\0';
}

static void note(struct dial *dial, const union socket_address *address, int failure)
{
	char text[DIAL_ADDRESS_TEXT];
	const size_t used = strlen(dial->words);

	dial->failure = failure;
	dial_address_text(address, text);
	snprintf(dial->words + used, sizeof(dial->words) - used, "%s%s: %s", used ? "; " : "", text,
	         strerrordesc_np(-failure));
}

static void give_up(struct attempt *attempt)
{
	loop_remove(&attempt->watch);
	fd_close(&attempt->watch.fd);
}

static void finish(struct dial *dial, int fd, const union socket_address *address)
{
	dial->timer.at_ms = 0;
	for (int i = 0; i < DIAL_AT_ONCE; i++)
		give_up(&dial->attempts[i]);
	dial->fn(dial, dial->ctx, fd, address);
}

static struct attempt *free_attempt(struct dial *dial)
{
	for (int i = 0; i < DIAL_AT_ONCE; i++) {
		if (dial->attempts[i].watch.fd < 0)
			return &dial->attempts[i];
	}
	return NULL;
}

static bool is_waiting(const struct dial *dial)
{
	for (int i = 0; i < DIAL_AT_ONCE; i++) {
		if (dial->attempts[i].watch.fd >= 0)
			return true;
	}
	return false;
}

static socklen_t length_of(const union socket_address *address)
{
	return address->any.sa_family == AF_INET ? sizeof(address->v4) : sizeof(address->v6);
}

/* 0: it is being connected, and the loop tells how it went. */
static int try(struct dial *dial, struct attempt *attempt, const union socket_address *address)
{
	CLEANUP(fd_close)
	int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	const int on = 1;
	int r;

	if (fd < 0)
		return -errno;
	(void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(fd, &address->any, length_of(address)) < 0 && errno != EINPROGRESS)
		return -errno;
	attempt->address = address;
	attempt->watch.fd = fd;
	attempt->watch.events = EPOLLOUT;
	r = loop_add(dial->loop, &attempt->watch);
	if (r < 0)
		attempt->watch.fd = -1;
	else
		(void) fd_take(&fd);
	return r;
}

static void arm(struct dial *dial)
{
	const bool has_more = dial->next < dial->count && free_attempt(dial);

	dial->timer.at_ms = has_more && dial->try_ms < dial->end_ms ? dial->try_ms : dial->end_ms;
}

/* Begin with the next address that can be tried; with none left and none waited for, it is over. */
static void go_on(struct dial *dial, uint64_t now)
{
	struct attempt *attempt = free_attempt(dial);

	while (attempt && dial->next < dial->count) {
		const union socket_address *address = &dial->addresses[dial->next++];
		int r = try(dial, attempt, address);

		if (r == 0) {
			dial->try_ms = now + DIAL_STAGGER_MS;
			break;
		}
		note(dial, address, r);
	}
	if (is_waiting(dial))
		arm(dial);
	else
		finish(dial, dial->failure, NULL);
}

static int on_attempt(struct loop_watch *watch, uint32_t events)
{
	struct attempt *attempt = (struct attempt *) watch;
	struct dial *dial = watch->ctx;
	socklen_t len = sizeof(int);
	int failure = 0;

	if (getsockopt(watch->fd, SOL_SOCKET, SO_ERROR, &failure, &len) < 0)
		failure = errno;
	if (failure) {
		note(dial, attempt->address, -failure);
		give_up(attempt);
		go_on(dial, clock_mono_ms());
		return 0;
	}
	loop_remove(watch);
	finish(dial, fd_take(&watch->fd), attempt->address);
	return 0;
}

static int on_timer(struct loop_timer *timer)
{
	struct dial *dial = timer->ctx;
	const uint64_t now = clock_mono_ms();

	if (now >= dial->end_ms)
		finish(dial, -ETIMEDOUT, NULL);
	else
		go_on(dial, now);
	return 0;
}

int dial_start(struct loop *loop, const union socket_address *addresses, size_t count,
               uint16_t port, uint32_t limit_ms, dial_fn *fn, void *ctx, struct dial **ret_dial)
{
	struct dial *dial = calloc(1, sizeof(*dial));
	const uint64_t now = clock_mono_ms();

	if (!dial)
		return -ENOMEM;
	dial->loop = loop;
	dial->fn = fn;
	dial->ctx = ctx;
	dial->count = count;
	memcpy(dial->addresses, addresses, count * sizeof(*addresses));
	dial_order(dial->addresses, count);
	for (size_t i = 0; i < count; i++) {
		/* The port is at the same place in both. */
		dial->addresses[i].v4.sin_port = htons(port);
	}
	for (int i = 0; i < DIAL_AT_ONCE; i++)
		dial->attempts[i].watch = (struct loop_watch){ .fd = -1,
			                                       .fn = on_attempt,
			                                       .ctx = dial };
	dial->end_ms = now + limit_ms;
	dial->try_ms = now;
	dial->timer = (struct loop_timer){ .at_ms = now, .fn = on_timer, .ctx = dial };
	loop_add_timer(loop, &dial->timer);
	*ret_dial = dial;
	return 0;
}

void dial_free(struct dial *dial)
{
	if (!dial)
		return;
	for (int i = 0; i < DIAL_AT_ONCE; i++)
		give_up(&dial->attempts[i]);
	loop_remove_timer(dial->loop, &dial->timer);
	free(dial);
}

const char *dial_words(const struct dial *dial)
{
	return dial->words;
}
