/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "shim/shim.h"

enum { REASON_TEXT_MAX = 64 };

void shim_tell_news(struct shim *shim)
{
	shim->news = true;
}

/* Hints and credit are sums, not queues: a caller that does not read costs nothing.  No credit before there is a guest:
 * what was sent to a machine that does not boot would be missing in the next one. */
static int add_hints(struct shim *shim)
{
	struct buf *out = &shim->caller.out;
	uint64_t room = FRAME_STDIN_CREDIT - shim->caller_credit - shim->stdin_bytes.len;
	int r = 0;

	if (shim->demux.has_hello[DEMUX_CONTROL] && room >= CREDIT_STEP) {
		r = frame_add_u32(out, FRAME_CREDIT, 0, (uint32_t) room);
		shim->caller_credit += room;
	}
	if (r == 0 && shim->tell_started) {
		r = frame_add(out, FRAME_STARTED, 0, 0, NULL, 0);
		shim->tell_started = false;
	}
	if (r == 0 && shim->news) {
		r = frame_add(out, FRAME_NEWS, 0, 0, NULL, 0);
		shim->news = false;
	}
	return r;
}

int shim_feed_caller(struct shim *shim)
{
	int r;

	if (shim->caller.has_ended)
		return 0;
	r = channel_flush(&shim->caller);
	if (r == 0 && shim->caller.out.len == 0)
		r = add_hints(shim);
	if (r == 0)
		r = channel_flush(&shim->caller);
	return r < 0 ? r : channel_update(&shim->caller);
}

static int take_stdin(struct shim *shim, const struct frame *frame)
{
	if (frame->len > shim->caller_credit || shim->stdin_has_ended)
		return shim_stop(shim, REASON_PROTOCOL, "the caller sent more stdin than it may");
	shim->caller_credit -= frame->len;
	return buf_add(&shim->stdin_bytes, frame->payload, frame->len);
}

static int take_signal(struct shim *shim, const struct frame *frame)
{
	uint32_t number;

	if (frame_get_u32(frame, &number) < 0 || number == 0 || number >= 64)
		return 0; /* there is no such signal to deliver */
	shim->signals |= UINT64_C(1) << number;
	return 0;
}

static int take_destroy(struct shim *shim, const struct frame *frame)
{
	char name[REASON_TEXT_MAX] = { 0 };
	enum reason reason;

	memcpy(name, frame->payload, frame->len < sizeof(name) ? frame->len : sizeof(name) - 1);
	reason = reason_from_name(name);
	return shim_stop(shim,
	                 reason == REASON_COUNT || reason == REASON_NONE ? REASON_SIGNAL : reason,
	                 NULL);
}

static int take_logs(struct shim *shim)
{
	int r = shim_write_logs(shim);

	shim_tell_news(shim);
	return r;
}

int shim_take_request(struct shim *shim, const struct frame *frame)
{
	switch (frame->type) {
	case FRAME_SIGNAL:
		return take_signal(shim, frame);
	case FRAME_DESTROY:
		return take_destroy(shim, frame);
	case FRAME_LOGS:
		return take_logs(shim);
	default:
		return 0;
	}
}

/* A run that was let go is somebody's, and stays. */
static int take_callers_destroy(struct shim *shim, const struct frame *frame)
{
	shim->is_dropped = shim->config.drops_objects && !shim->is_detached;
	return take_destroy(shim, frame);
}

static int take_detach(struct shim *shim)
{
	shim->is_detached = true;
	shim->store.is_lazy = false;
	shim_watch_silence(shim);
	return 0;
}

static int take(struct shim *shim, const struct frame *frame)
{
	switch (frame->type) {
	case FRAME_STDIN:
		return take_stdin(shim, frame);
	case FRAME_STDIN_EOF:
		shim->stdin_has_ended = true;
		return 0;
	case FRAME_DETACH:
		return take_detach(shim);
	case FRAME_DESTROY:
		return take_callers_destroy(shim, frame);
	case FRAME_SIGNAL:
	case FRAME_LOGS:
		return shim_take_request(shim, frame);
	default:
		return shim_stop(shim, REASON_PROTOCOL,
		                 "the caller sent a frame of an unknown type");
	}
}

static int take_frames(struct shim *shim)
{
	struct buf *in = &shim->caller.in;
	size_t at = 0;
	int r = 0;

	while (r == 0 && at < in->len) {
		struct frame frame;
		size_t used;

		r = frame_parse(in->data + at, in->len - at, &frame, &used);
		if (r == -EAGAIN) {
			r = 0;
			break;
		}
		if (r < 0) {
			r = shim_stop(shim, REASON_PROTOCOL, "the caller sent what is no frame");
			at = in->len;
			break;
		}
		at += used;
		r = take(shim, &frame);
	}
	buf_drop_front(in, at);
	return r;
}

int shim_caller_event(struct loop_watch *watch, uint32_t events)
{
	struct shim *shim = watch->ctx;
	int r = channel_read(&shim->caller);

	if (r >= 0)
		r = take_frames(shim);
	if (r == 0 && shim->caller.has_ended && !shim->is_detached)
		r = shim_stop(shim, REASON_CALLER_DIED, NULL);
	/* Nobody is left who would send more. */
	if (r == 0 && shim->caller.has_ended)
		shim->stdin_has_ended = true;
	if (r == 0)
		r = channel_update(&shim->caller);
	return r < 0 ? r : shim_feed_guest(shim);
}
