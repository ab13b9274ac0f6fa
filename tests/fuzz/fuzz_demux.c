/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_demux.c - a guest that says anything: the first byte of each step chooses the port, frames
 * follow.  What comes out is bounded and of the protocol.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/demux.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

static void check_put(const struct demux *demux, const struct demux_action *action)
{
	uint32_t number;

	require(action->slot < DEMUX_PUTS_MAX && action->put == &demux->puts[action->slot]);
	require(action->put->is_open);
	require(key_classify(action->put->key, strlen(action->put->key), &number) ==
	        action->put->kind);
	require(action->put->kind != KEY_IS_UNKNOWN);
	require(action->put->got <= action->put->size || action->put->size == UINT64_MAX);
}

/* Store all but what the frame itself asks to fail. */
static void act(struct demux *demux, const struct demux_action *action, uint8_t luck)
{
	if (action->what >= DEMUX_BEGIN)
		check_put(demux, action);
	switch (action->what) {
	case DEMUX_BEGIN:
	case DEMUX_DATA:
		if (luck & 2)
			demux_failed(demux, action->put);
		break;
	case DEMUX_END:
		if (luck & 2) {
			demux_failed(demux, action->put);
			action->put->is_open = false;
		} else {
			demux_stored(demux, action->put);
		}
		break;
	case DEMUX_DAMAGED:
		demux_failed(demux, action->put);
		action->put->is_open = false;
		break;
	default:
		break;
	}
	require(demux->outbox_count <= DEMUX_OUTBOXES_MAX && demux->chunks <= KEY_CHUNK_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct demux *demux = calloc(1, sizeof(*demux));

	require(demux != NULL);
	while (size > 1) {
		const uint8_t luck = data[0];
		struct demux_action action;
		struct frame frame;
		size_t used;
		int r = frame_parse(data + 1, size - 1, &frame, &used);

		if (r < 0)
			break;
		r = demux_frame(demux, luck & 1 ? DEMUX_CONDUIT : DEMUX_CONTROL, &frame, &action,
		                NULL);
		require(r == 0 || r == -EPROTO || r == -EDQUOT);
		if (r < 0)
			break;
		act(demux, &action, luck);
		data += 1 + used;
		size -= 1 + used;
	}
	free(demux);
	return 0;
}
