/* SPDX-License-Identifier: Apache-2.0 */
/* door.c - requests of processes that did not launch the run (runtime/microvm/door.h). */
#include <errno.h>
#include <unistd.h>

#include "runtime/microvm/door.h"
#include "shim/shim.h"

enum { DOOR_READ_MAX = 16 * DOOR_FRAME_MAX };

/* Whole frames only come in; what is none was written by somebody who knows better, and is dropped with
 * what stands behind it: it must not end the run. */
static int take_requests(struct shim *shim)
{
	struct buf *in = &shim->door_in;
	size_t at = 0;
	int r = 0;

	while (r == 0 && at < in->len) {
		struct frame frame;
		size_t used;

		r = frame_parse(in->data + at, in->len - at, &frame, &used);
		if (r == -EAGAIN && in->len - at < DOOR_FRAME_MAX) {
			r = 0;
			break;
		}
		if (r < 0) {
			r = 0;
			at = in->len;
			break;
		}
		at += used;
		r = shim_take_request(shim, &frame);
	}
	buf_drop_front(in, at);
	return r;
}

int shim_door_event(struct loop_watch *watch, uint32_t events)
{
	struct shim *shim = watch->ctx;
	struct buf *in = &shim->door_in;
	ssize_t n;
	int r = buf_reserve(in, DOOR_READ_MAX);

	if (r < 0)
		return r;
	n = read(watch->fd, in->data + in->len, DOOR_READ_MAX);
	if (n <= 0)
		return 0; /* it was emptied already; it has no end */
	in->len += (size_t) n;
	r = take_requests(shim);
	return r < 0 ? r : shim_feed_guest(shim);
}
