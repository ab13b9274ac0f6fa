/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * egress_service.h - the process in the guest that answers names and carries connections; private to
 * egress_*.c.  A wish goes out, the gateway decides (docs/design/egress.md): nothing here protects anybody.
 *
 *	egress_child.c   its rights, its loop, its end
 *	egress_port.c    the port `net`: bytes to and from the streams of mux.h
 *	egress_dns.c     127.0.0.1:53
 *	egress_listen.c  listeners, bound before the answer that names their address leaves
 *	egress_knock.c   connections to ports that nobody listens on, seen
 *	egress_stream.c  one connection of the program and its stream
 *
 * One thread.  When the port is gone, `is_lost`: streams are reset, names are SERVFAIL, and it stays.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/loop.h"
#include "egress/mux.h"
#include "egress/policy.h"
#include "guest/egress_names.h"

enum {
	EGRESS_LISTENERS_MAX = 4096,
	EGRESS_HOST_PORTS_MAX = 256, /* of one name */
	EGRESS_BACKLOG = 1024,       /* connections that wait to be accepted, per listener */
	EGRESS_ACCEPTS = 32,         /* taken at once */
	EGRESS_PIECE = 64 * 1024,    /* bytes read at once from the program */
	EGRESS_GULP = 256 * 1024,    /* ... and from the port: so few frames are cut */
	EGRESS_DNS_CLIENTS = 32,     /* over TCP, at once */
	EGRESS_FILES_MAX = 8192,
	EGRESS_MALFORMED_MAX = 200,  /* names that are no host's, remembered in a run */
	EGRESS_MALFORMED_SIZE = 256, /* bytes of one, with the 0 */
	EGRESS_KNOCKS_MAX = 256,     /* ports that nobody listens on, told in a run */
};

struct egress_knock {
	uint32_t number; /* of the name */
	uint16_t port;
};

struct egress_listener;
struct egress_stream;
struct dns_client;

struct egress_service {
	struct loop *loop;
	const struct egress_policy *policy;
	struct egress_names names; /* that have an address */
	struct egress_names told;  /* to the gateway, since they are refused or learned */
	/* Names that are no host's, that were told to it. */
	char malformed[EGRESS_MALFORMED_MAX][EGRESS_MALFORMED_SIZE];
	size_t malformed_count;
	bool has_six;

	/* The port. */
	struct mux *mux;
	struct loop_watch port;
	bool is_lost;
	char *bytes; /* EGRESS_GULP, of whoever reads */

	struct egress_listener *listeners; /* owned */
	size_t listener_count;
	struct egress_stream *streams; /* owned */
	struct egress_stream *waiting; /* for room in the port */

	struct loop_watch knock4, knock6;
	struct egress_knock knocks[EGRESS_KNOCKS_MAX]; /* that were told */
	size_t knock_count;

	struct loop_watch udp, tcp;
	struct dns_client *clients; /* owned */
	size_t client_count;

	int rows_fd;           /* owned: to the runner, one packet per row */
	uint64_t rows_dropped; /* it did not take */
};

/* egress_child.c: the row that says that the process which serves has ended. */
extern const char egress_lost_row[];

/* egress_child.c: never returns.  Both descriptors are given. */
_Noreturn void egress_child(int port_fd, int rows_fd, const struct egress_policy *policy);

/* egress_port.c */
int egress_port_open(struct egress_service *service, int fd);
/* Send what waits; called behind everything that may have added to it. */
void egress_port_flush(struct egress_service *service);

/* egress_dns.c */
int egress_dns_open(struct egress_service *service);

/* egress_knock.c: needs rights that are dropped later. */
int egress_knock_open(struct egress_service *service);

/* egress_listen.c: bind what is not bound yet.  -ENOSPC, -EADDRINUSE and others: it cannot be. */
int egress_listen(struct egress_service *service, struct egress_host *host, int family);
bool egress_has_six(void); /* whether this kernel knows the family */

/* egress_stream.c.  Takes the descriptor. */
void egress_stream_new(struct egress_service *service, int fd, const struct egress_host *host,
                       uint16_t port);
void egress_stream_data(struct egress_stream *stream, const void *bytes, size_t len);
void egress_stream_fin(struct egress_stream *stream);
void egress_stream_reset(struct egress_stream *stream); /* the mux has none of it any more */
void egress_stream_resume(struct egress_stream *stream);
void egress_streams_resume_waiting(struct egress_service *service);
void egress_streams_reset_all(struct egress_service *service);
