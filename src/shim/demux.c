/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "shim/demux.h"
#include "wire/result.h"

static const uint64_t size_limits[] = {
	[KEY_IS_CANARY] = DEMUX_CANARY_MAX,     [KEY_IS_CHUNK] = DEMUX_CHUNK_MAX,
	[KEY_IS_RESULT] = DEMUX_RESULT_MAX,     [KEY_IS_OUTBOX] = UINT64_MAX, /* the store counts */
	[KEY_IS_MANIFEST] = DEMUX_MANIFEST_MAX,
};

static int wrong(struct resoluto_err *err, const char *what)
{
	return resoluto_fail(err, -EPROTO, "the guest sent %s", what);
}

static struct demux_put *find_put(struct demux *demux, uint32_t stream)
{
	for (int i = 0; i < DEMUX_PUTS_MAX; i++) {
		if (demux->puts[i].is_open && demux->puts[i].stream == stream)
			return &demux->puts[i];
	}
	return NULL;
}

/* A free place; else that of a refused put, which its guest may never end. */
static struct demux_put *free_put(struct demux *demux)
{
	struct demux_put *refused = NULL;

	for (int i = 0; i < DEMUX_PUTS_MAX; i++) {
		if (!demux->puts[i].is_open)
			return &demux->puts[i];
		if (demux->puts[i].is_void && !refused)
			refused = &demux->puts[i];
	}
	if (refused) {
		demux->gone[demux->gone_next] = refused->stream;
		demux->gone_next = (demux->gone_next + 1) % DEMUX_GONE_MAX;
	}
	return refused;
}

/* What was under way when the guest learned of the NAK. */
static bool is_gone(const struct demux *demux, uint32_t stream)
{
	for (int i = 0; i < DEMUX_GONE_MAX; i++) {
		if (stream && demux->gone[i] == stream)
			return true;
	}
	return false;
}

static bool outbox_is_stored(const struct demux *demux, const char *key)
{
	for (unsigned i = 0; i < demux->outbox_count; i++) {
		if (strcmp(demux->outboxes[i], key) == 0)
			return true;
	}
	return false;
}

/* Another put of the same object, or of any chunk, is on its way. */
static bool is_on_its_way(const struct demux *demux, const struct demux_put *put)
{
	for (int i = 0; i < DEMUX_PUTS_MAX; i++) {
		const struct demux_put *other = &demux->puts[i];

		if (other != put && other->is_open && !other->is_void && other->kind == put->kind &&
		    (put->kind == KEY_IS_CHUNK || strcmp(other->key, put->key) == 0))
			return true;
	}
	return false;
}

static bool others_are_open(const struct demux *demux, const struct demux_put *put)
{
	for (int i = 0; i < DEMUX_PUTS_MAX; i++) {
		if (&demux->puts[i] != put && demux->puts[i].is_open && !demux->puts[i].is_void)
			return true;
	}
	return false;
}

/* Stored, and on their way. */
static unsigned count_outboxes(const struct demux *demux, const struct demux_put *put)
{
	unsigned count = demux->outbox_count;

	for (int i = 0; i < DEMUX_PUTS_MAX; i++) {
		const struct demux_put *other = &demux->puts[i];

		if (other != put && other->is_open && !other->is_void &&
		    other->kind == KEY_IS_OUTBOX)
			count++;
	}
	return count;
}

static int check_chunk_order(struct demux *demux, struct demux_put *put, struct resoluto_err *err)
{
	if (put->chunk == demux->chunks + 1)
		return 0;
	/* Sent before the guest could know that an earlier one failed. */
	if (demux->failed_chunk && put->chunk > demux->failed_chunk) {
		put->is_void = true;
		return 0;
	}
	return wrong(err, "a chunk out of order");
}

/* Each object once, in its order. */
static int check_order(struct demux *demux, struct demux_put *put, struct resoluto_err *err)
{
	if (is_on_its_way(demux, put))
		return wrong(err, "an object while it was sending it already");
	switch (put->kind) {
	case KEY_IS_CHUNK:
		return check_chunk_order(demux, put, err);
	case KEY_IS_CANARY:
		return demux->has_canary ? wrong(err, "the canary twice") : 0;
	case KEY_IS_RESULT:
		return demux->has_result ? wrong(err, "the result twice") : 0;
	case KEY_IS_OUTBOX:
		if (outbox_is_stored(demux, put->key))
			return wrong(err, "an archive twice");
		return count_outboxes(demux, put) >= DEMUX_OUTBOXES_MAX
		               ? resoluto_fail(err, -EDQUOT,
		                               "objects: the guest sent more than %d archives, "
		                               "which no --quota allows",
		                               DEMUX_OUTBOXES_MAX)
		               : 0;
	case KEY_IS_MANIFEST:
		if (others_are_open(demux, put))
			return wrong(err, "the manifest before the end of other objects");
		/* Sent before the guest could know that one of them failed. */
		put->is_void = demux->failed_chunk != 0 || demux->result_has_failed;
		return 0;
	default:
		return wrong(err, "a key that is not of the protocol");
	}
}

static int begin(struct demux *demux, const struct frame *frame, struct demux_action *action,
                 struct resoluto_err *err)
{
	struct demux_put *put;
	size_t key_len = frame->len - 8;
	int r;

	if (demux->has_manifest)
		return wrong(err, "an object after the manifest");
	if (frame->len <= 8 || key_len >= KEY_SIZE)
		return wrong(err, "a PUT_BEGIN of a wrong size");
	if (frame->stream <= demux->last_stream)
		return wrong(err, "a stream number that does not go up");
	put = free_put(demux);
	if (!put)
		return wrong(err, "too many objects at once");
	*put = (struct demux_put){ .stream = frame->stream, .size = frame_le64(frame->payload) };
	put->kind = key_classify((const char *) frame->payload + 8, key_len, &put->chunk);
	memcpy(put->key, frame->payload + 8, key_len);
	r = check_order(demux, put, err);
	if (r < 0)
		return r;
	if (put->size != UINT64_MAX && put->size > size_limits[put->kind])
		return wrong(err, "an object that is too large");
	demux->last_stream = frame->stream;
	put->is_open = true;
	action->what = put->is_void ? DEMUX_BEHIND : DEMUX_BEGIN;
	action->put = put;
	return 0;
}

static int data(struct demux *demux, const struct frame *frame, struct demux_action *action,
                struct resoluto_err *err)
{
	struct demux_put *put = find_put(demux, frame->stream);
	uint64_t limit;

	if (!put && is_gone(demux, frame->stream))
		return 0;
	if (!put)
		return wrong(err, "data of an object it had not begun");
	limit = put->size < size_limits[put->kind] ? put->size : size_limits[put->kind];
	if (frame->len > limit - put->got)
		return wrong(err, "more data than it had announced or may send");
	put->got += frame->len;
	if (put->is_void || frame->len == 0)
		return 0;
	/* What will be stored, and nothing else: a void one may be open beside it. */
	if (put->kind == KEY_IS_MANIFEST)
		memcpy(demux->manifest + put->got - frame->len, frame->payload, frame->len);
	put->crc = crc32c(put->crc, frame->payload, frame->len);
	*action = (struct demux_action){ .what = DEMUX_DATA,
		                         .put = put,
		                         .bytes = frame->payload,
		                         .len = frame->len };
	return 0;
}

static int check_manifest(const struct demux *demux, const struct demux_put *put,
                          struct resoluto_err *err)
{
	uint32_t total;
	int r = manifest_parse(demux->manifest, (size_t) put->got, &total);

	if (r == -ENOMEM)
		return resoluto_fail(err, r, "read the manifest");
	if (r < 0)
		return wrong(err, "a manifest that is none");
	if (total != demux->chunks)
		return wrong(err, "a manifest that does not count its chunks");
	return 0;
}

static int end(struct demux *demux, const struct frame *frame, struct demux_action *action,
               struct resoluto_err *err)
{
	struct demux_put *put = find_put(demux, frame->stream);
	uint32_t crc;

	if (!put && is_gone(demux, frame->stream))
		return 0;
	if (!put)
		return wrong(err, "the end of an object it had not begun");
	if (frame_get_u32(frame, &crc) < 0)
		return wrong(err, "a PUT_END of a wrong size");
	if (put->is_void) {
		put->is_open = false;
		return 0;
	}
	if (put->size != UINT64_MAX && put->got != put->size)
		return wrong(err, "less data than it had announced");
	action->put = put;
	action->what = crc == put->crc ? DEMUX_END : DEMUX_DAMAGED;
	if (action->what == DEMUX_DAMAGED || put->kind != KEY_IS_MANIFEST)
		return 0;
	return check_manifest(demux, put, err);
}

static int hello(struct demux *demux, enum demux_port port, const struct frame *frame,
                 struct demux_action *action, struct resoluto_err *err)
{
	uint32_t version;

	if (frame->type != FRAME_HELLO || frame_get_u32(frame, &version) < 0)
		return wrong(err, "something else before HELLO");
	if (version != FRAME_VERSION)
		return wrong(err, "HELLO of another version; provision guest and host together");
	demux->has_hello[port] = true;
	action->what = DEMUX_HELLO;
	return 0;
}

static int started(struct demux *demux, const struct frame *frame, struct demux_action *action,
                   struct resoluto_err *err)
{
	if (demux->has_started)
		return wrong(err, "STARTED twice");
	if (frame->len > DEMUX_STARTED_MAX)
		return wrong(err, "a STARTED that is too large");
	demux->has_started = true;
	*action = (struct demux_action){ .what = DEMUX_STARTED,
		                         .bytes = frame->payload,
		                         .len = frame->len };
	return 0;
}

static int control_frame(struct demux *demux, const struct frame *frame,
                         struct demux_action *action, struct resoluto_err *err)
{
	if (frame->flags)
		return wrong(err, "a split message where none may be");
	if (frame->type == FRAME_STARTED)
		return started(demux, frame, action, err);
	if (frame->type == FRAME_CLOCK && frame->len > 0)
		return wrong(err, "a CLOCK of its own");
	if (frame->type == FRAME_CLOCK) {
		action->what = DEMUX_CLOCK;
		return 0;
	}
	if (frame->type != FRAME_CREDIT)
		return wrong(err, "a frame that does not belong on the control port");
	if (frame_get_u32(frame, &action->number) < 0)
		return wrong(err, "a CREDIT of a wrong size");
	action->what = DEMUX_CREDIT;
	return 0;
}

static int conduit_frame(struct demux *demux, const struct frame *frame,
                         struct demux_action *action, struct resoluto_err *err)
{
	if (frame->type == FRAME_PUT_DATA)
		return data(demux, frame, action, err);
	if (frame->flags)
		return wrong(err, "a split message where none may be");
	if (frame->type == FRAME_PUT_BEGIN)
		return begin(demux, frame, action, err);
	if (frame->type == FRAME_PUT_END)
		return end(demux, frame, action, err);
	return wrong(err, "a frame that does not belong on the conduit port");
}

int demux_frame(struct demux *demux, enum demux_port port, const struct frame *frame,
                struct demux_action *ret_action, struct resoluto_err *err)
{
	struct demux_action action = { .what = DEMUX_NOTHING };
	int r;

	if (!demux->has_hello[port])
		r = hello(demux, port, frame, &action, err);
	else if (port == DEMUX_CONTROL)
		r = control_frame(demux, frame, &action, err);
	else
		r = conduit_frame(demux, frame, &action, err);
	if (r < 0)
		return r;
	if (action.put)
		action.slot = (unsigned) (action.put - demux->puts);
	*ret_action = action;
	return 0;
}

void demux_stored(struct demux *demux, struct demux_put *put)
{
	put->is_open = false;
	switch (put->kind) {
	case KEY_IS_CHUNK:
		demux->chunks = put->chunk;
		demux->failed_chunk = 0;
		break;
	case KEY_IS_CANARY:
		demux->has_canary = true;
		break;
	case KEY_IS_RESULT:
		demux->has_result = true;
		demux->result_has_failed = false;
		break;
	case KEY_IS_MANIFEST:
		demux->has_manifest = true;
		break;
	case KEY_IS_OUTBOX:
		memcpy(demux->outboxes[demux->outbox_count++], put->key, KEY_SIZE);
		break;
	case KEY_IS_UNKNOWN:
		break;
	}
}

void demux_failed(struct demux *demux, struct demux_put *put)
{
	if (put->kind == KEY_IS_CHUNK)
		demux->failed_chunk = put->chunk;
	if (put->kind == KEY_IS_RESULT)
		demux->result_has_failed = true;
	put->is_void = true;
}
