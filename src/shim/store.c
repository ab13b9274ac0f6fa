/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "shim/store.h"

int store_init(struct store *store, int prefix_fd, const struct resoluto_quotas *quotas,
               struct resoluto_err *err)
{
	struct statvfs fs;
	uint64_t available;

	if (fstatvfs(prefix_fd, &fs) < 0)
		return resoluto_fail(err, -errno, "look at the free space of the conduit");
	available = (uint64_t) fs.f_bavail * fs.f_frsize;
	*store = (struct store){
		.prefix_fd = prefix_fd,
		.room = available > STORE_RESERVE ? available - STORE_RESERVE : 0,
		.limits = quota_limits(quotas),
	};
	for (int i = 0; i < DEMUX_PUTS_MAX; i++)
		store->writers[i] = LOCAL_WRITER_NONE;
	return 0;
}

/* Of more than STORE_KEPT_MAX none is kept. */
static void forget_unflushed(struct store *store)
{
	for (unsigned i = 0; store->unflushed <= STORE_KEPT_MAX && i < store->unflushed; i++)
		fd_close(&store->kept[i]);
	store->unflushed = 0;
}

void store_done(struct store *store)
{
	for (unsigned i = 0; i < DEMUX_PUTS_MAX; i++)
		store_abort(store, i);
	forget_unflushed(store);
}

void store_abort(struct store *store, unsigned slot)
{
	local_writer_abort(&store->writers[slot]);
}

static enum reason trouble_of(int code)
{
	return code == -ENOSPC ? REASON_STORE_FULL : REASON_STORE_FAILED;
}

static int refuse(struct store *store, unsigned slot, int code)
{
	store_abort(store, slot);
	store->trouble = trouble_of(code);
	return code == -ENOSPC ? FRAME_NAK_FULL : FRAME_NAK_STORE;
}

static int exceed(const struct store *store, enum quota quota, struct resoluto_err *err)
{
	char text[QUOTA_TEXT];

	quota_explain(quota, quota_limit(&store->limits, quota), text);
	return resoluto_fail(err, -EDQUOT, "%s", text);
}

/* Of bytes on the disk: the run's quota, and what the place has left. */
static int charge(struct store *store, unsigned slot, uint64_t cost, struct resoluto_err *err)
{
	if (cost > store->limits.bytes - store->bytes)
		return exceed(store, QUOTA_BYTES, err);
	if (cost > store->room) {
		resoluto_fail(err, -ENOSPC, "the place of the run is full");
		return refuse(store, slot, -ENOSPC);
	}
	store->bytes += cost;
	store->room -= cost;
	return 0;
}

/* What a guest announces it need not send. */
static int check_size(const struct store *store, const struct demux_put *put,
                      struct resoluto_err *err)
{
	if (put->kind != KEY_IS_OUTBOX || put->size == UINT64_MAX)
		return 0;
	if (put->size > store->limits.archive_bytes)
		return exceed(store, QUOTA_ARCHIVE_BYTES, err);
	return quota_cost(put->size) > store->limits.bytes - store->bytes
	               ? exceed(store, QUOTA_BYTES, err)
	               : 0;
}

int store_begin(struct store *store, unsigned slot, const struct demux_put *put,
                struct resoluto_err *err)
{
	int r = check_size(store, put, err);

	if (r == 0 && store->objects >= store->limits.objects)
		r = exceed(store, QUOTA_OBJECTS, err);
	if (r == 0)
		r = charge(store, slot, QUOTA_NAME_COST, err);
	if (r != 0)
		return r;
	store->objects++;
	store->written[slot] = 0;
	store->kind[slot] = put->kind;
	r = local_writer_begin(&store->writers[slot], store->prefix_fd, put->key, err);
	return r < 0 ? refuse(store, slot, r) : 0;
}

int store_write(struct store *store, unsigned slot, const void *bytes, size_t len,
                struct resoluto_err *err)
{
	const uint64_t before = store->written[slot], after = before + len;
	int r;

	if (store->kind[slot] == KEY_IS_OUTBOX && after > store->limits.archive_bytes)
		return exceed(store, QUOTA_ARCHIVE_BYTES, err);
	r = charge(store, slot, quota_blocks(after) - quota_blocks(before), err);
	if (r != 0)
		return r;
	r = local_writer_write(&store->writers[slot], bytes, len, err);
	if (r < 0)
		return refuse(store, slot, r);
	store->written[slot] = after;
	return 0;
}

/* result.json counts with the manifest alone, and is flushed with it. */
static bool must_be_flushed(const struct store *store, enum key_kind kind)
{
	return kind == KEY_IS_OUTBOX || (kind == KEY_IS_MANIFEST && !store->is_lazy);
}

int store_flush(struct store *store, struct resoluto_err *err)
{
	int r = 0;

	if (store->unflushed == 0)
		return 0;
	if (store->unflushed > STORE_KEPT_MAX) {
		r = conduit_local_flush_all(store->prefix_fd, err);
	} else {
		for (unsigned i = 0; r == 0 && i < store->unflushed; i++)
			r = fsync(store->kept[i]) < 0 ? -errno : 0;
		/* Their names. */
		if (r == 0 && fsync(store->prefix_fd) < 0)
			r = -errno;
		if (r < 0)
			r = resoluto_fail(err, local_code(r), "flush what was stored before");
	}
	store->has_lost = r < 0;
	if (r < 0)
		store->trouble = trouble_of(r);
	else
		forget_unflushed(store);
	return r;
}

/* Of an object about to be put in its place.  One that cannot be kept open counts as too many. */
static void keep_unflushed(struct store *store, const struct local_writer *writer)
{
	int fd;

	if (store->unflushed > STORE_KEPT_MAX)
		return;
	fd = store->unflushed < STORE_KEPT_MAX ? fcntl(writer->fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (fd >= 0) {
		store->kept[store->unflushed++] = fd;
		return;
	}
	forget_unflushed(store);
	store->unflushed = STORE_KEPT_MAX + 1;
}

int store_commit(struct store *store, unsigned slot, enum key_kind kind, struct resoluto_err *err)
{
	const bool flush = must_be_flushed(store, kind);
	int r = 0;

	/* First what came before, then the object that says that all of it is there. */
	if (flush)
		r = store_flush(store, err);
	else
		keep_unflushed(store, &store->writers[slot]);
	if (r == 0)
		r = local_writer_commit(&store->writers[slot],
		                        flush ? LOCAL_FLUSHED : LOCAL_RENAME_ONLY, err);
	if (r < 0 && kind == KEY_IS_MANIFEST)
		/* In place, and perhaps not for long: a run that has it is complete, and this one is not. */
		(void) unlinkat(store->prefix_fd, KEY_MANIFEST, 0);
	if (r < 0)
		return refuse(store, slot, r);
	store->trouble = REASON_NONE;
	return 0;
}
