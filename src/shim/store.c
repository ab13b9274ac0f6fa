/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/statvfs.h>

#include "shim/store.h"

int store_init(struct store *store, int prefix_fd, struct resoluto_err *err)
{
	struct statvfs fs;
	uint64_t available;

	if (fstatvfs(prefix_fd, &fs) < 0)
		return resoluto_fail(err, -errno, "look at the free space of the conduit");
	available = (uint64_t) fs.f_bavail * fs.f_frsize;
	available = available > STORE_RESERVE ? available - STORE_RESERVE : 0;
	*store = (struct store){
		.prefix_fd = prefix_fd,
		.bytes_left = available < STORE_BYTES_MAX ? available : STORE_BYTES_MAX,
	};
	for (int i = 0; i < DEMUX_PUTS_MAX; i++)
		store->writers[i] = LOCAL_WRITER_NONE;
	return 0;
}

void store_done(struct store *store)
{
	for (unsigned i = 0; i < DEMUX_PUTS_MAX; i++)
		store_abort(store, i);
}

void store_abort(struct store *store, unsigned slot)
{
	local_writer_abort(&store->writers[slot]);
}

static int refuse(struct store *store, unsigned slot, int code)
{
	store_abort(store, slot);
	store->trouble = code == -ENOSPC ? REASON_STORE_FULL : REASON_STORE_FAILED;
	return code == -ENOSPC ? FRAME_NAK_FULL : FRAME_NAK_STORE;
}

int store_begin(struct store *store, unsigned slot, const char *key, struct resoluto_err *err)
{
	int r = local_writer_begin(&store->writers[slot], store->prefix_fd, key, err);

	return r < 0 ? refuse(store, slot, r) : 0;
}

int store_write(struct store *store, unsigned slot, const void *bytes, size_t len,
                struct resoluto_err *err)
{
	int r;

	if (len > store->bytes_left) {
		resoluto_fail(err, -ENOSPC,
		              "the run's objects are over its quota or the place is full");
		return refuse(store, slot, -ENOSPC);
	}
	r = local_writer_write(&store->writers[slot], bytes, len, err);
	if (r < 0)
		return refuse(store, slot, r);
	store->bytes_left -= len;
	return 0;
}

static bool must_be_flushed(enum key_kind kind)
{
	return kind == KEY_IS_RESULT || kind == KEY_IS_OUTBOX || kind == KEY_IS_MANIFEST;
}

int store_commit(struct store *store, unsigned slot, enum key_kind kind, struct resoluto_err *err)
{
	const bool flush = must_be_flushed(kind);
	int r = 0;

	/* First what came before, then the object that says that all of it is there. */
	if (flush && store->has_unflushed)
		r = conduit_local_flush_all(store->prefix_fd, err);
	if (r == 0)
		r = local_writer_commit(&store->writers[slot],
		                        flush ? LOCAL_FLUSHED : LOCAL_RENAME_ONLY, err);
	if (r < 0)
		return refuse(store, slot, r);
	store->has_unflushed = !flush;
	store->trouble = REASON_NONE;
	return 0;
}
