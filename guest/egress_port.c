/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/egress_service.h"

enum { READS_AT_ONCE = 2 }; /* of EGRESS_GULP, before others have their turn */

/* The gateway has gone, or does not keep the rules: the run goes on without a network. */
static void lose(struct egress_service *service)
{
	if (service->is_lost)
		return;
	service->is_lost = true;
	loop_remove(&service->port);
	fd_close(&service->port.fd);
	egress_streams_reset_all(service);
}

static struct egress_stream *owner(struct egress_service *service, uint32_t stream)
{
	return mux_owner(service->mux, stream);
}

static void on_data(void *ctx, uint32_t stream, const void *bytes, size_t len)
{
	struct egress_stream *own = owner(ctx, stream);

	if (own)
		egress_stream_data(own, bytes, len);
}

static void on_fin(void *ctx, uint32_t stream)
{
	struct egress_stream *own = owner(ctx, stream);

	if (own)
		egress_stream_fin(own);
}

static void on_reset(void *ctx, uint32_t stream, enum egress_reason reason)
{
	struct egress_stream *own = owner(ctx, stream);

	if (own)
		egress_stream_reset(own);
}

static void on_credit(void *ctx, uint32_t stream)
{
	struct egress_stream *own = owner(ctx, stream);

	if (own)
		egress_stream_resume(own);
}

static void on_opened(void *ctx, uint32_t stream)
{
}

/* A runner that is behind loses rows; the host has them all. */
static void on_decision(void *ctx, const char *json, size_t len)
{
	struct egress_service *service = ctx;

	if (send(service->rows_fd, json, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		service->rows_dropped++;
}

static const struct mux_calls calls = {
	.opened = on_opened,
	.decision = on_decision,
	.data = on_data,
	.fin = on_fin,
	.reset = on_reset,
	.credit = on_credit,
};

/* A port gives a page at a time: they are put together first.  *ret_len 0: nothing more. */
static int read_piece(struct egress_service *service, size_t *ret_len)
{
	*ret_len = 0;
	while (*ret_len < EGRESS_GULP) {
		ssize_t n = read(service->port.fd, service->bytes + *ret_len,
		                 EGRESS_GULP - *ret_len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		/* The host's end is closed; what was read before is passed on first. */
		if (n <= 0)
			return *ret_len > 0 ? 0 : -EPIPE;
		*ret_len += (size_t) n;
	}
	return 0;
}

static int receive(struct egress_service *service)
{
	for (int i = 0; i < READS_AT_ONCE; i++) {
		size_t len;
		int r = read_piece(service, &len);

		if (r == 0 && len > 0)
			r = mux_feed(service->mux, service->bytes, len, NULL);
		if (r < 0 || len < EGRESS_GULP)
			return r;
	}
	return 0;
}

static int on_event(struct loop_watch *watch, uint32_t events)
{
	struct egress_service *service = watch->ctx;

	if ((events & (EPOLLIN | EPOLLHUP)) && receive(service) < 0) {
		lose(service);
		return 0;
	}
	egress_port_flush(service);
	return 0;
}

static int send_some(struct egress_service *service)
{
	struct buf *out = mux_out(service->mux);
	size_t done = 0;
	int r = 0;

	while (r == 0 && done < out->len) {
		ssize_t n = write(service->port.fd, out->data + done, out->len - done);

		if (n > 0)
			done += (size_t) n;
		else if (n == 0 || errno == EAGAIN)
			break;
		else if (errno != EINTR)
			r = -errno;
	}
	buf_drop_front(out, done);
	return r;
}

void egress_port_flush(struct egress_service *service)
{
	if (service->is_lost)
		return;
	if (send_some(service) < 0) {
		lose(service);
		return;
	}
	egress_streams_resume_waiting(service);
	(void) loop_change(&service->port,
	                   EPOLLIN | (mux_out(service->mux)->len > 0 ? EPOLLOUT : 0));
}

int egress_port_open(struct egress_service *service, int fd)
{
	int r = mux_new(MUX_GUEST, &calls, service, &service->mux);

	if (r < 0)
		return r;
	service->port = (struct loop_watch){ .fd = fd,
		                             .events = EPOLLIN,
		                             .fn = on_event,
		                             .ctx = service };
	r = loop_add(service->loop, &service->port);
	if (r == 0)
		egress_port_flush(service);
	return r;
}
