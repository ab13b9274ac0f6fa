/* SPDX-License-Identifier: Apache-2.0 */
#include <ares.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "gateway/hosts.h"
#include "gateway/resolver.h"

/* One name that is being asked for, and who waits for it. */
struct resolver_lookup {
	struct resolver *resolver;
	struct resolver_lookup *next;
	struct resolver_wait *waits;
	char name[EGRESS_NAME_MAX + 1];
};

/* A socket of c-ares. */
struct resolver_socket {
	struct loop_watch watch;
	struct resolver_socket *next;
};

struct resolver {
	struct loop *loop; /* borrowed */
	ares_channel channel;
	struct loop_timer timer;
	struct resolver_socket *sockets;
	struct resolver_lookup *lookups;
	size_t lookup_count;
	struct hosts hosts;
};

static void arm(struct resolver *resolver)
{
	struct timeval wait;

	resolver->timer.at_ms = 0;
	if (ares_timeout(resolver->channel, NULL, &wait))
		resolver->timer.at_ms = clock_mono_ms() + (uint64_t) wait.tv_sec * 1000 +
		                        (uint64_t) wait.tv_usec / 1000 + 1;
}

static int on_timer(struct loop_timer *timer)
{
	struct resolver *resolver = timer->ctx;

	ares_process_fd(resolver->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	arm(resolver);
	return 0;
}

static int on_socket(struct loop_watch *watch, uint32_t events)
{
	struct resolver *resolver = watch->ctx;
	const int fd = watch->fd;
	const bool reads = events & (EPOLLIN | EPOLLHUP | EPOLLERR), writes = events & EPOLLOUT;

	/* May free the watch. */
	ares_process_fd(resolver->channel, reads ? fd : ARES_SOCKET_BAD,
	                writes ? fd : ARES_SOCKET_BAD);
	arm(resolver);
	return 0;
}

static void add_socket(struct resolver *resolver, int fd, uint32_t events)
{
	struct resolver_socket *added = calloc(1, sizeof(*added));

	/* Without a watch the question runs into its limit. */
	if (!added)
		return;
	added->watch = (struct loop_watch){ .fd = fd,
		                            .events = events,
		                            .fn = on_socket,
		                            .ctx = resolver };
	if (loop_add(resolver->loop, &added->watch) < 0) {
		free(added);
		return;
	}
	added->next = resolver->sockets;
	resolver->sockets = added;
}

static void remove_socket(struct resolver_socket **link)
{
	struct resolver_socket *gone = *link;

	*link = gone->next;
	loop_remove(&gone->watch);
	free(gone);
}

static void on_socket_state(void *ctx, ares_socket_t fd, int is_read, int is_written)
{
	struct resolver *resolver = ctx;
	struct resolver_socket **link = &resolver->sockets;
	const uint32_t events = (is_read ? EPOLLIN : 0) | (is_written ? EPOLLOUT : 0);

	while (*link && (*link)->watch.fd != fd)
		link = &(*link)->next;
	if (!*link && events)
		add_socket(resolver, fd, events);
	else if (*link && events)
		(void) loop_change(&(*link)->watch, events);
	else if (*link)
		remove_socket(link);
}

static int read_hosts(struct resolver *resolver)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(HOSTS_FILE_MAX);

	/* No file, or one that is no table: none. */
	if (read_file_at(AT_FDCWD, "/etc/hosts", HOSTS_FILE_MAX, &text, NULL) < 0 || !text.data)
		return 0;
	return hosts_parse(text.data, text.len, &resolver->hosts);
}

static int open_channel(struct resolver *resolver)
{
	static char only_name_servers[] = "b";
	struct ares_options options = {
		.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES | ARES_FLAG_EDNS,
		.timeout = RESOLVER_TRY_MS,
		.tries = RESOLVER_TRIES,
		.ednspsz = 1232,
		.lookups = only_name_servers,
		.sock_state_cb = on_socket_state,
		.sock_state_cb_data = resolver,
	};

	return ares_init_options(&resolver->channel, &options,
	                         ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
	                                 ARES_OPT_EDNSPSZ | ARES_OPT_LOOKUPS |
	                                 ARES_OPT_SOCK_STATE_CB);
}

int resolver_new(struct loop *loop, struct resolver **ret_resolver, struct resoluto_err *err)
{
	struct resolver *resolver = calloc(1, sizeof(*resolver));
	int r = resolver ? ares_library_init(ARES_LIB_INIT_ALL) : ARES_ENOMEM;

	if (r == ARES_SUCCESS)
		r = open_channel(resolver);
	if (r != ARES_SUCCESS) {
		free(resolver);
		return resoluto_fail(err, r == ARES_ENOMEM ? -ENOMEM : -EIO,
		                     "set up the resolver: %s", ares_strerror(r));
	}
	resolver->loop = loop;
	resolver->timer = (struct loop_timer){ .fn = on_timer, .ctx = resolver };
	loop_add_timer(loop, &resolver->timer);
	if (read_hosts(resolver) < 0) {
		resolver_free(resolver);
		return resoluto_fail(err, -ENOMEM, "read the table of hosts");
	}
	*ret_resolver = resolver;
	return 0;
}

void resolver_free(struct resolver *resolver)
{
	if (!resolver)
		return;
	ares_destroy(resolver->channel);
	while (resolver->sockets)
		remove_socket(&resolver->sockets);
	loop_remove_timer(resolver->loop, &resolver->timer);
	hosts_done(&resolver->hosts);
	ares_library_cleanup();
	free(resolver);
}

static void add_address(struct resolver_answer *answer, int family, const void *bytes)
{
	union socket_address *address = &answer->addresses[answer->count];

	if (answer->count == RESOLVER_ADDRESSES_MAX) {
		answer->left_out++;
		return;
	}
	*address = (union socket_address){ .any.sa_family = (sa_family_t) family };
	if (family == AF_INET)
		memcpy(&address->v4.sin_addr, bytes, sizeof(address->v4.sin_addr));
	else
		memcpy(&address->v6.sin6_addr, bytes, sizeof(address->v6.sin6_addr));
	answer->count++;
}

static void add_node(struct resolver_answer *answer, const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		add_address(answer, AF_INET, &((const struct sockaddr_in *) address)->sin_addr);
	else if (address->sa_family == AF_INET6)
		add_address(answer, AF_INET6, &((const struct sockaddr_in6 *) address)->sin6_addr);
}

static enum egress_reason reason_of(int status, size_t count)
{
	switch (status) {
	case ARES_SUCCESS:
		return count > 0 ? EGRESS_NONE : EGRESS_NO_ADDRESS;
	case ARES_ENODATA:
	case ARES_ENOTFOUND:
	case ARES_ENONAME:
		return EGRESS_NO_ADDRESS;
	default:
		return EGRESS_RESOLVER;
	}
}

static void unlink_lookup(struct resolver_lookup *lookup)
{
	struct resolver *resolver = lookup->resolver;
	struct resolver_lookup **link = &resolver->lookups;

	while (*link != lookup)
		link = &(*link)->next;
	*link = lookup->next;
	resolver->lookup_count--;
}

/* Whoever is told may ask for the same name again, and may make others forget. */
static void tell(struct resolver_lookup *lookup, const struct resolver_answer *answer)
{
	struct resolver_wait *wait;

	while ((wait = lookup->waits)) {
		lookup->waits = wait->next;
		wait->lookup = NULL;
		wait->fn(wait, answer);
	}
}

static void on_answer(void *ctx, int status, int timeouts, struct ares_addrinfo *found)
{
	struct resolver_lookup *lookup = ctx;
	struct resolver_answer answer = { .words = ares_strerror(status) };

	for (const struct ares_addrinfo_node *node = found ? found->nodes : NULL; node;
	     node = node->ai_next)
		add_node(&answer, node->ai_addr);
	answer.reason = reason_of(status, answer.count);
	if (found)
		ares_freeaddrinfo(found);
	unlink_lookup(lookup);
	if (status != ARES_EDESTRUCTION)
		tell(lookup, &answer);
	free(lookup);
}

static bool answer_from_hosts(const struct resolver *resolver, const char *name,
                              struct resolver_answer *answer)
{
	const struct hosts *hosts = &resolver->hosts;

	for (size_t i = 0; i < hosts->count; i++) {
		if (strcmp(hosts->entries[i].name, name) == 0)
			add_address(answer, hosts->entries[i].family, &hosts->entries[i].address);
	}
	answer->words = "from the table of hosts";
	return answer->count > 0;
}

static struct resolver_lookup *find(const struct resolver *resolver, const char *name)
{
	struct resolver_lookup *lookup = resolver->lookups;

	while (lookup && strcmp(lookup->name, name) != 0)
		lookup = lookup->next;
	return lookup;
}

static void join(struct resolver_lookup *lookup, struct resolver_wait *wait)
{
	wait->lookup = lookup;
	wait->next = lookup->waits;
	lookup->waits = wait;
}

int resolver_ask(struct resolver *resolver, const char *name, struct resolver_wait *wait)
{
	const struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC,
		                                   .ai_socktype = SOCK_STREAM,
		                                   .ai_flags = ARES_AI_NOSORT };
	struct resolver_lookup *lookup = find(resolver, name);
	struct resolver_answer known = { 0 };

	if (answer_from_hosts(resolver, name, &known)) {
		wait->fn(wait, &known);
		return 0;
	}
	if (lookup) {
		join(lookup, wait);
		return 0;
	}
	if (resolver->lookup_count == RESOLVER_LOOKUPS_MAX)
		return -EBUSY;
	lookup = calloc(1, sizeof(*lookup));
	if (!lookup)
		return -ENOMEM;
	lookup->resolver = resolver;
	snprintf(lookup->name, sizeof(lookup->name), "%s", name);
	lookup->next = resolver->lookups;
	resolver->lookups = lookup;
	resolver->lookup_count++;
	join(lookup, wait);
	/* May answer, and free the lookup, at once. */
	ares_getaddrinfo(resolver->channel, lookup->name, NULL, &hints, on_answer, lookup);
	arm(resolver);
	return 0;
}

void resolver_forget(struct resolver_wait *wait)
{
	struct resolver_wait **link;

	if (!wait->lookup)
		return;
	link = &wait->lookup->waits;
	while (*link != wait)
		link = &(*link)->next;
	*link = wait->next;
	wait->lookup = NULL;
}
