/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "shim/channel.h"

void channel_init(struct channel *channel, int fd, loop_fn *fn, void *ctx)
{
	*channel = (struct channel){
		.watch = { .fd = fd, .events = EPOLLIN, .fn = fn, .ctx = ctx },
		.in = BUF_INIT(FRAME_MAX + CHANNEL_READ_MAX),
		.out = BUF_INIT(CHANNEL_OUT_MAX),
	};
}

void channel_done(struct channel *channel)
{
	loop_remove(&channel->watch);
	fd_close(&channel->watch.fd);
	buf_done(&channel->in);
	buf_done(&channel->out);
}

int channel_watch(struct channel *channel, struct loop *loop)
{
	return loop_add(loop, &channel->watch);
}

int channel_update(struct channel *channel)
{
	uint32_t events = 0;

	/* epoll tells a hang-up again and again, whatever is asked for. */
	if (channel->has_ended) {
		loop_remove(&channel->watch);
		return 0;
	}
	if (!channel->is_paused)
		events |= EPOLLIN;
	if (channel->out.len > 0)
		events |= EPOLLOUT;
	return loop_change(&channel->watch, events);
}

int channel_read(struct channel *channel)
{
	size_t room = channel->in.max - channel->in.len;
	ssize_t n;
	int r;

	if (channel->has_ended || channel->watch.fd < 0)
		return 0;
	if (room > CHANNEL_READ_MAX)
		room = CHANNEL_READ_MAX;
	r = buf_reserve(&channel->in, room);
	if (r < 0)
		return r;
	do {
		n = recv(channel->watch.fd, channel->in.data + channel->in.len, room, MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return 0;
	/* QEMU or the caller died: that is an end like another. */
	if (n <= 0) {
		channel->has_ended = true;
		return 0;
	}
	channel->in.len += (size_t) n;
	return (int) n;
}

int channel_flush(struct channel *channel)
{
	while (channel->out.len > 0 && !channel->has_ended) {
		ssize_t n = send(channel->watch.fd, channel->out.data, channel->out.len,
		                 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		/* Its reading side tells the end; what was to be written has no reader. */
		if (n < 0) {
			buf_clear(&channel->out);
			break;
		}
		buf_drop_front(&channel->out, (size_t) n);
	}
	return 0;
}

bool channel_is_full(const struct channel *channel)
{
	return channel->out.len >= CHANNEL_OUT_FULL;
}
