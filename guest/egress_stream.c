/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress_stream.c - one connection of the program and its stream on the port.
 *
 * Two directions that end apart.  Nothing is read from the program that the port and the gateway have no room
 * for; what the gateway sends is at most the credit, and waits here until the program takes it.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest/egress_probe.h"
#include "guest/egress_service.h"

struct egress_stream {
	struct loop_watch watch;
	struct egress_service *service;
	uint32_t id;
	struct buf out; /* for the program */
	size_t out_at;  /* of it are written */
	bool has_fin;   /* the gateway has ended its direction */
	bool has_shut;  /* ... and the program was told */
	bool has_ended; /* the program has ended its direction, and the gateway was told */
	bool is_waiting;
	struct egress_stream *next, *previous, *next_waiting;
};

static void unlink_waiting(struct egress_stream *stream)
{
	struct egress_stream **link = &stream->service->waiting;

	while (stream->is_waiting && *link != stream)
		link = &(*link)->next_waiting;
	if (stream->is_waiting)
		*link = stream->next_waiting;
	stream->is_waiting = false;
}

static void stream_free(struct egress_stream *stream)
{
	struct egress_service *service = stream->service;

	/* Where there was no memory to tell the other end, the mux still has it. */
	mux_set_owner(service->mux, stream->id, NULL);
	unlink_waiting(stream);
	loop_remove(&stream->watch);
	(void) close(stream->watch.fd);
	buf_done(&stream->out);
	if (stream->previous)
		stream->previous->next = stream->next;
	else
		service->streams = stream->next;
	if (stream->next)
		stream->next->previous = stream->previous;
	free(stream);
}

static void set_reset(int fd, bool is_reset)
{
	const struct linger linger = { .l_onoff = is_reset };

	(void) setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

void egress_stream_reset(struct egress_stream *stream)
{
	stream_free(stream);
}

/* The program's side broke. */
static void give_up(struct egress_stream *stream)
{
	(void) mux_reset(stream->service->mux, stream->id, EGRESS_BROKEN);
	egress_stream_reset(stream);
}

static bool has_room(const struct egress_stream *stream)
{
	return !stream->has_ended && mux_room(stream->service->mux, stream->id) > 0 &&
	       mux_wants_more(stream->service->mux);
}

/* Until the port has taken something. */
static void wait_for_port(struct egress_stream *stream)
{
	struct egress_service *service = stream->service;

	if (stream->is_waiting || stream->has_ended || mux_wants_more(service->mux))
		return;
	stream->is_waiting = true;
	stream->next_waiting = service->waiting;
	service->waiting = stream;
}

/* A socket that is not to be read hangs up without end: it is not watched at all meanwhile. */
static void set_watch(struct egress_stream *stream)
{
	uint32_t events = 0;

	if (has_room(stream))
		events |= EPOLLIN;
	if (stream->out_at < stream->out.len)
		events |= EPOLLOUT;
	wait_for_port(stream);
	if (events == 0) {
		loop_remove(&stream->watch);
		stream->watch.events = 0;
		return;
	}
	if (stream->watch.loop) {
		(void) loop_change(&stream->watch, events);
		return;
	}
	stream->watch.events = events;
	(void) loop_add(stream->service->loop, &stream->watch);
}

void egress_stream_resume(struct egress_stream *stream)
{
	set_watch(stream);
}

/* True: it was the end of both directions, and the stream is gone. */
static bool end_if_over(struct egress_stream *stream)
{
	if (stream->has_fin && !stream->has_shut && stream->out_at == stream->out.len) {
		(void) shutdown(stream->watch.fd, SHUT_WR);
		stream->has_shut = true;
	}
	if (!stream->has_shut || !stream->has_ended)
		return false;
	set_reset(stream->watch.fd, false);
	stream_free(stream);
	return true;
}

/* As much of bytes as the program takes now; negative: its side broke. */
static ssize_t give(struct egress_stream *stream, const char *bytes, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = send(stream->watch.fd, bytes + done, len - done,
		                 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0)
			return -errno;
		done += (size_t) n;
	}
	return (ssize_t) done;
}

/* False: the stream is gone. */
static bool write_some(struct egress_stream *stream)
{
	ssize_t n = give(stream, stream->out.data + stream->out_at,
	                 stream->out.len - stream->out_at);

	if (n < 0) {
		give_up(stream);
		return false;
	}
	stream->out_at += (size_t) n;
	if (stream->out_at == stream->out.len) {
		buf_clear(&stream->out);
		stream->out_at = 0;
	}
	(void) mux_consumed(stream->service->mux, stream->id, (size_t) n);
	return !end_if_over(stream);
}

static bool read_some(struct egress_stream *stream)
{
	struct egress_service *service = stream->service;
	size_t room = mux_room(service->mux, stream->id);
	ssize_t n;

	if (!has_room(stream))
		return true;
	n = recv(stream->watch.fd, service->bytes, room < EGRESS_PIECE ? room : EGRESS_PIECE,
	         MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n < 0) {
		give_up(stream);
		return false;
	}
	if (n > 0) {
		(void) mux_send(service->mux, stream->id, service->bytes, (size_t) n);
		return true;
	}
	stream->has_ended = true;
	(void) mux_fin(service->mux, stream->id);
	return !end_if_over(stream);
}

static int on_event(struct loop_watch *watch, uint32_t events)
{
	struct egress_stream *stream = watch->ctx;
	struct egress_service *service = stream->service;
	bool is_there = true;

	if (events & EPOLLERR) {
		give_up(stream);
		is_there = false;
	}
	if (is_there && (events & EPOLLOUT))
		is_there = write_some(stream);
	if (is_there && (events & (EPOLLIN | EPOLLHUP)))
		is_there = read_some(stream);
	if (is_there)
		set_watch(stream);
	egress_port_flush(service);
	return 0;
}

void egress_stream_data(struct egress_stream *stream, const void *bytes, size_t len)
{
	ssize_t n = stream->out.len > 0 ? 0 : give(stream, bytes, len);

	if (n >= 0 && (size_t) n < len) {
		buf_drop_front(&stream->out, stream->out_at);
		stream->out_at = 0;
		if (buf_add(&stream->out, (const char *) bytes + n, len - (size_t) n) < 0)
			n = -ENOMEM;
	}
	if (n < 0) {
		give_up(stream);
		return;
	}
	(void) mux_consumed(stream->service->mux, stream->id, (size_t) n);
	set_watch(stream);
}

void egress_stream_fin(struct egress_stream *stream)
{
	stream->has_fin = true;
	if (!end_if_over(stream))
		set_watch(stream);
}

static struct egress_stream *make(struct egress_service *service, int fd)
{
	struct egress_stream *stream = malloc(sizeof(*stream));

	if (!stream)
		return NULL;
	*stream = (struct egress_stream){
		.watch = { .fd = fd, .fn = on_event, .ctx = stream },
		.service = service,
		.out = BUF_INIT(MUX_CREDIT),
		.next = service->streams,
	};
	if (service->streams)
		service->streams->previous = stream;
	service->streams = stream;
	return stream;
}

void egress_stream_new(struct egress_service *service, int fd, const struct egress_host *host,
                       uint16_t port)
{
	struct egress_stream *stream = NULL;
	const int on = 1;
	uint32_t id = 0;

	(void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	/* Every close but that of a whole conversation is a reset, also the one of a process that is killed: a cut answer
	 * must not look like an end. */
	set_reset(fd, true);
	if (!service->is_lost && !egress_is_probe(&host->name) &&
	    mux_open(service->mux, port, host->name.text, strlen(host->name.text), &id) == 0)
		stream = make(service, fd);
	if (!stream) {
		(void) mux_reset(service->mux, id, EGRESS_BROKEN);
		(void) close(fd);
		return;
	}
	stream->id = id;
	mux_set_owner(service->mux, id, stream);
	set_watch(stream);
}

void egress_streams_resume_waiting(struct egress_service *service)
{
	while (service->waiting && mux_wants_more(service->mux)) {
		struct egress_stream *stream = service->waiting;

		unlink_waiting(stream);
		set_watch(stream);
	}
}

void egress_streams_reset_all(struct egress_service *service)
{
	while (service->streams)
		egress_stream_reset(service->streams);
}
