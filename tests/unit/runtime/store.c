/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - what the objects of a guest cost it, and where that ends. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "check.h"
#include "shim/store.h"

static struct {
	char path[80];
	int fd;
	struct store store;
	struct resoluto_err err;
} at;

static void open_store(const struct resoluto_quotas *quotas)
{
	const char *temp = getenv("TMPDIR");

	snprintf(at.path, sizeof(at.path), "%.40s/store-XXXXXX", temp ? temp : "/tmp");
	CHECK(mkdtemp(at.path));
	at.fd = open(at.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(at.fd >= 0 && store_init(&at.store, at.fd, quotas, &at.err) == 0);
}

static void close_store(void)
{
	store_done(&at.store);
	close(at.fd);
	CHECK(remove_tree_at(AT_FDCWD, at.path) == 0);
}

static struct demux_put put_of(const char *key, uint64_t size)
{
	struct demux_put put = { .size = size };

	put.kind = key_classify(key, strlen(key), &put.chunk);
	memcpy(put.key, key, strlen(key) + 1);
	return put;
}

static int begin(const char *key, uint64_t size)
{
	const struct demux_put put = put_of(key, size);

	at.err = (struct resoluto_err){ 0 };
	return store_begin(&at.store, 0, &put, &at.err);
}

static int write_zeros(size_t len)
{
	static const char zeros[FRAME_PAYLOAD_MAX];

	return store_write(&at.store, 0, zeros, len, &at.err);
}

static int put_as(enum key_kind kind, const char *key, size_t len)
{
	int r = begin(key, len);

	if (r == 0 && len > 0)
		r = write_zeros(len);
	return r != 0 ? r : store_commit(&at.store, 0, kind, &at.err);
}

static int put(const char *key, size_t len)
{
	return put_as(KEY_IS_CHUNK, key, len);
}

static bool is_there(const char *key)
{
	return faccessat(at.fd, key, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void is_over(int r, const char *name)
{
	CHECK(r == -EDQUOT && at.err.code == -EDQUOT);
	CHECK_STR(quota_name(quota_told(at.err.text)), name);
}

/* Four of them fit by their bytes a thousand times; by what they take, twice. */
static void tiny_objects_cost_their_blocks(void)
{
	open_store(&(struct resoluto_quotas){ .bytes = 2 * 5120 });
	CHECK(put("events-000001.jsonl", 3) == 0 && at.store.bytes == 5120);
	CHECK(put("events-000002.jsonl", 3) == 0 && at.store.bytes == 2 * 5120);
	is_over(put("events-000003.jsonl", 0), "bytes");
	CHECK(is_there("events-000002.jsonl") && !is_there("events-000003.jsonl"));
	close_store();
}

static void empty_objects_cost_their_names(void)
{
	open_store(&(struct resoluto_quotas){ .bytes = 2048 });
	CHECK(put("events-000001.jsonl", 0) == 0 && put("events-000002.jsonl", 0) == 0);
	is_over(put("events-000003.jsonl", 0), "bytes");
	close_store();
}

static void growing_within_a_block_is_free(void)
{
	open_store(NULL);
	CHECK(begin("outbox/a.tar.gz", UINT64_MAX) == 0 && at.store.bytes == 1024);
	CHECK(write_zeros(1) == 0 && at.store.bytes == 5120);
	CHECK(write_zeros(4095) == 0 && at.store.bytes == 5120);
	CHECK(write_zeros(1) == 0 && at.store.bytes == 9216);
	close_store();
}

static void objects_are_counted(void)
{
	open_store(&(struct resoluto_quotas){ .objects = 2 });
	CHECK(put("_canary_ok", 2) == 0 && put("events-000001.jsonl", 1) == 0);
	is_over(put("events-000002.jsonl", 1), "objects");
	close_store();
}

/* To begin and spoil them without end must end, too. */
static void what_was_spoiled_is_not_given_back(void)
{
	int r = 0, count = 0;

	open_store(&(struct resoluto_quotas){ .bytes = 10 * 5120 });
	for (; r == 0 && count < 100; count++) {
		r = begin("events-000001.jsonl", 1);
		if (r == 0)
			r = write_zeros(1);
		store_abort(&at.store, 0);
	}
	CHECK(count == 11);
	is_over(r, "bytes");
	close_store();
}

static void archives_have_a_size_of_their_own(void)
{
	open_store(&(struct resoluto_quotas){ .archive_bytes = 5000 });
	is_over(begin("outbox/a.tar.gz", 5001), "archive-bytes");
	CHECK(at.store.objects == 0 && at.store.bytes == 0);
	CHECK(begin("outbox/a.tar.gz", 5000) == 0 && write_zeros(5000) == 0);
	is_over(write_zeros(1), "archive-bytes");
	store_abort(&at.store, 0);
	CHECK(put("events-000001.jsonl", 6000) == 0);
	close_store();
}

/* Told at once, not when the disk has taken most of it. */
static void an_announced_size_counts_at_once(void)
{
	open_store(&(struct resoluto_quotas){ .bytes = 1 << 20 });
	is_over(begin("outbox/a.tar.gz", 1 << 20), "bytes");
	is_over(begin("outbox/a.tar.gz", UINT64_MAX - 1), "archive-bytes");
	CHECK(begin("outbox/a.tar.gz", 1 << 19) == 0);
	close_store();
}

/* That is nobody's quota: the guest is told, and may try again. */
static void a_full_place_is_another_thing(void)
{
	open_store(NULL);
	at.store.room = 5119;
	CHECK(put("events-000001.jsonl", 1) == FRAME_NAK_FULL);
	CHECK(at.store.trouble == REASON_STORE_FULL && !is_there("events-000001.jsonl"));
	CHECK(begin("events-000001.jsonl", 0) == 0);
	close_store();
}

/* The linker sends these calls here: one of them fails, as after a disk's error, and the next would work. */
static int flushes_until_failure; /* 0: none fails */

static int flush_code(void)
{
	if (flushes_until_failure == 0 || --flushes_until_failure > 0)
		return 0;
	errno = EIO;
	return -1;
}

int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
	return flush_code();
}

int __wrap_syncfs(int fd);
int __wrap_syncfs(int fd)
{
	return flush_code();
}

/* What was acknowledged before can never be known to be there: few chunks (fsync) and many (syncfs). */
static void a_failed_flush_of_older_objects_is_final(void)
{
	for (unsigned chunks = 1; chunks <= STORE_KEPT_MAX + 1; chunks += STORE_KEPT_MAX) {
		char key[KEY_SIZE];

		open_store(NULL);
		for (unsigned i = 1; i <= chunks; i++) {
			key_chunk(i, key);
			CHECK(put(key, 10) == 0);
		}
		flushes_until_failure = 1;
		CHECK(put_as(KEY_IS_MANIFEST, KEY_MANIFEST, 2) == FRAME_NAK_STORE);
		CHECK(at.store.trouble == REASON_STORE_FAILED && at.store.has_lost &&
		      !is_there(KEY_MANIFEST));
		CHECK_STR(at.err.text, chunks == 1 ? "flush what was stored before" : "flush");
		close_store();
	}
}

/* Nobody reads it without a manifest: it waits for that one's flush. */
static void a_result_is_flushed_with_the_manifest(void)
{
	open_store(NULL);
	flushes_until_failure = 1;
	CHECK(put_as(KEY_IS_RESULT, KEY_RESULT, 2) == 0 && is_there(KEY_RESULT));
	CHECK(put_as(KEY_IS_MANIFEST, KEY_MANIFEST, 2) == FRAME_NAK_STORE && at.store.has_lost);
	close_store();
}

/* It may be in its place by then. */
static void a_manifest_that_is_not_kept_is_not_there(void)
{
	for (int flushes = 1; flushes <= 2; flushes++) {
		open_store(NULL);
		flushes_until_failure = flushes;
		CHECK(put_as(KEY_IS_MANIFEST, KEY_MANIFEST, 2) == FRAME_NAK_STORE);
		CHECK(!at.store.has_lost && !is_there(KEY_MANIFEST));
		close_store();
	}
}

/* Its own bytes are still in the guest, which sends them again. */
static void a_failed_flush_of_itself_is_tried_again(void)
{
	open_store(NULL);
	flushes_until_failure = 1;
	CHECK(put_as(KEY_IS_OUTBOX, KEY_OUTBOX_OUTPUT, 2) == FRAME_NAK_STORE);
	CHECK(!at.store.has_lost && !is_there(KEY_OUTBOX_OUTPUT));
	CHECK(put_as(KEY_IS_OUTBOX, KEY_OUTBOX_OUTPUT, 2) == 0 && is_there(KEY_OUTBOX_OUTPUT));
	close_store();
}

/* Its archives are, as any: they are large, and the guest forgets them. */
static void a_run_that_is_dropped_need_not_be_flushed(void)
{
	open_store(NULL);
	at.store.is_lazy = true;
	flushes_until_failure = 1;
	CHECK(put_as(KEY_IS_RESULT, KEY_RESULT, 2) == 0);
	CHECK(put_as(KEY_IS_MANIFEST, KEY_MANIFEST, 2) == 0 && is_there(KEY_MANIFEST));
	CHECK(store_flush(&at.store, &at.err) == -EIO);
	CHECK(at.store.has_lost && at.store.trouble == REASON_STORE_FAILED);
	flushes_until_failure = 1;
	CHECK(put_as(KEY_IS_OUTBOX, KEY_OUTBOX_OUTPUT, 2) == FRAME_NAK_STORE);
	close_store();
}

/* It was let go: everything is flushed, then and with the manifest. */
static void what_was_not_flushed_can_be_flushed_later(void)
{
	open_store(NULL);
	at.store.is_lazy = true;
	CHECK(put_as(KEY_IS_RESULT, KEY_RESULT, 2) == 0 && at.store.unflushed == 1);
	CHECK(put_as(KEY_IS_MANIFEST, KEY_MANIFEST, 2) == 0 && at.store.unflushed == 2);
	CHECK(store_flush(&at.store, &at.err) == 0 && at.store.unflushed == 0);
	flushes_until_failure = 1;
	CHECK(store_flush(&at.store, &at.err) == 0 && flushes_until_failure == 1);
	flushes_until_failure = 0;
	close_store();
}

int main(void)
{
	RUN(tiny_objects_cost_their_blocks);
	RUN(empty_objects_cost_their_names);
	RUN(growing_within_a_block_is_free);
	RUN(objects_are_counted);
	RUN(what_was_spoiled_is_not_given_back);
	RUN(archives_have_a_size_of_their_own);
	RUN(an_announced_size_counts_at_once);
	RUN(a_full_place_is_another_thing);
	RUN(a_failed_flush_of_older_objects_is_final);
	RUN(a_result_is_flushed_with_the_manifest);
	RUN(a_manifest_that_is_not_kept_is_not_there);
	RUN(a_failed_flush_of_itself_is_tried_again);
	RUN(a_run_that_is_dropped_need_not_be_flushed);
	RUN(what_was_not_flushed_can_be_flushed_later);
	return check_done();
}
