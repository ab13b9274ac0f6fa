/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "guest/outputs.h"
#include "wire/keys.h"

/* The sink of the packer.  The put begins only when the archive has become larger than what is held. */
struct outbox {
	struct ship *ship;
	struct buf held;
	uint32_t put;
	bool has_begun, is_over; /* is_over: the put means nothing any more */
	struct resoluto_err *err;
};

static int begin(struct outbox *outbox)
{
	int r = outbox->ship->ops->begin(outbox->ship, KEY_OUTBOX_OUTPUT, SHIP_SIZE_UNKNOWN,
	                                 &outbox->put, outbox->err);

	outbox->has_begun = r == 0;
	if (r == 0 && outbox->held.len > 0)
		r = outbox->ship->ops->data(outbox->ship, outbox->put, outbox->held.data,
		                            outbox->held.len, outbox->err);
	buf_clear(&outbox->held);
	return r;
}

static int write_outbox(void *ctx, const void *bytes, size_t len)
{
	struct outbox *outbox = ctx;
	int r;

	if (!outbox->has_begun && buf_add(&outbox->held, bytes, len) == 0)
		return 0;
	if (!outbox->has_begun) {
		r = begin(outbox);
		if (r < 0)
			return r;
	}
	return outbox->ship->ops->data(outbox->ship, outbox->put, bytes, len, outbox->err);
}

static int finish(struct outbox *outbox)
{
	int r = outbox->has_begun ? 0 : begin(outbox);

	if (r == 0)
		r = outbox->ship->ops->end(outbox->ship, outbox->put, outbox->err);
	if (r < 0)
		return r;
	outbox->is_over = true;
	return outbox->ship->ops->wait(outbox->ship, outbox->put, outbox->err);
}

/* Half an archive must not become an object; r says what went wrong before. */
static int abandon(struct outbox *outbox, int r)
{
	int broken = outbox->ship->ops->abandon(outbox->ship, outbox->put, NULL);

	return broken < 0 ? broken : r;
}

static int ship_once(int workspace_fd, const struct strv *globs, struct ship *ship,
                     void (*progress)(void *ctx, uint64_t done), void *ctx,
                     struct pack_report *ret_report, struct resoluto_err *err)
{
	struct outbox outbox = { .ship = ship, .held = BUF_INIT(OUTPUTS_HELD), .err = err };
	const struct pack_options options = { .globs = (const char *const *) globs->items,
		                              .skip_unreadable = true,
		                              .progress = progress,
		                              .ctx = ctx };
	const struct resoluto_sink sink = { .write = write_outbox, .ctx = &outbox };
	int r;

	*ret_report = (struct pack_report){ 0 };
	r = pack_tree(workspace_fd, &options, &sink, ret_report, err);
	if (r == 0 && (ret_report->entries > 0 || outbox.has_begun)) {
		r = finish(&outbox);
		r = r == 0 ? 1 : r;
	}
	buf_done(&outbox.held);
	return r < 0 && outbox.has_begun && !outbox.is_over ? abandon(&outbox, r) : r;
}

int outputs_ship(int workspace_fd, const struct strv *globs, struct ship *ship,
                 void (*progress)(void *ctx, uint64_t done), void *ctx,
                 struct pack_report *ret_report, struct resoluto_err *err)
{
	int r = -EAGAIN;

	for (int tries = 0; tries < OUTPUTS_TRIES && r == -EAGAIN; tries++) {
		if (tries > 0) {
			r = ship->ops->pause(ship, SHIP_AGAIN_MS << tries, err);
			if (r < 0)
				return r;
		}
		r = ship_once(workspace_fd, globs, ship, progress, ctx, ret_report, err);
	}
	return r;
}
