/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conduit.c - the front of all conduits: checks arguments, hands over to the backend, and says in
 * front of its message which operation on which object failed.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "conduit/conduit_backend.h"
#include "conduit/local.h"

enum {
	BATCH_BYTES = 4 * 1024 * 1024, /* of keys held at once while a prefix is copied */
};

static const struct {
	const char *scheme; /* what stands before "://" */
	const struct conduit_ops *ops;
} backends[] = {
	{ "localfs", &conduit_local },
	{ "file", &conduit_local },
	{ "memory", &conduit_memory },
	{ "stdout", &conduit_stdout },
};

ssize_t conduit_read_source(const struct resoluto_source *source, void *bytes, size_t cap,
                            struct resoluto_err *err)
{
	ssize_t n = source->read(source->ctx, bytes, cap);

	if (n < 0)
		return resoluto_fail(err, (int) n, "read the source");
	if ((size_t) n > cap)
		return resoluto_fail(err, -EIO,
		                     "the source gave %zd bytes where %zu were asked for", n, cap);
	return n;
}

int conduit_write_sink(const struct resoluto_sink *sink, const void *bytes, size_t len,
                       struct resoluto_err *err)
{
	int r = len > 0 ? sink->write(sink->ctx, bytes, len) : 0;

	return r < 0 ? resoluto_fail(err, r, "deliver") : 0;
}

static int is_null(const char *what, struct resoluto_err *err)
{
	return resoluto_fail(err, -EINVAL, "%s: an argument is NULL", what);
}

/* A prefix may end in '/' (the contract's do); the key it is does not. */
static int key_of_prefix(const char *prefix, char ret_key[RESOLUTO_KEY_MAX + 1],
                         struct resoluto_err *err)
{
	size_t len = strnlen(prefix, RESOLUTO_KEY_MAX + 2);

	if (len > 0 && prefix[len - 1] == '/')
		len--;
	if (len > RESOLUTO_KEY_MAX)
		return resoluto_fail(err, -EINVAL, "prefix is longer than %d bytes",
		                     RESOLUTO_KEY_MAX);
	memcpy(ret_key, prefix, len);
	ret_key[len] = '\0';
	return local_check_key(ret_key, err);
}

int resoluto_conduit_open_url(const char *url, struct resoluto_conduit **ret_conduit,
                              struct resoluto_err *err)
{
	const char *sep;

	if (!url || !ret_conduit)
		return is_null("open a conduit", err);
	sep = strstr(url, "://");
	for (size_t i = 0; sep && i < sizeof(backends) / sizeof(backends[0]); i++) {
		size_t len = strlen(backends[i].scheme);
		int r;

		if (len != (size_t) (sep - url) || strncmp(url, backends[i].scheme, len) != 0)
			continue;
		r = backends[i].ops->open(sep + 3, ret_conduit, err);
		return r < 0 ? resoluto_fail_in(err, r, "open %s", url) : 0;
	}
	return resoluto_fail(err, -EINVAL,
	                     "'%s' is not the URL of a conduit "
	                     "(localfs:///DIR, file:///DIR, memory://, stdout://)",
	                     url);
}

void resoluto_conduit_close(struct resoluto_conduit *conduit)
{
	if (conduit)
		conduit->ops->close(conduit);
}

int resoluto_conduit_put(struct resoluto_conduit *conduit, const char *key,
                         const struct resoluto_source *source, struct resoluto_err *err)
{
	int r;

	if (!conduit || !key || !source || !source->read)
		return is_null("put", err);
	r = local_check_key(key, err);
	if (r == 0)
		r = conduit->ops->put(conduit, key, source, err);
	return r < 0 ? resoluto_fail_in(err, r, "put %.*s", RESOLUTO_KEY_MAX, key) : 0;
}

struct bytes_left {
	const char *at;
	size_t len;
};

static ssize_t read_bytes(void *ctx, void *buf, size_t cap)
{
	struct bytes_left *left = ctx;
	size_t n = left->len < cap ? left->len : cap;

	if (n > 0)
		memcpy(buf, left->at, n);
	left->at += n;
	left->len -= n;
	return (ssize_t) n;
}

int resoluto_conduit_put_bytes(struct resoluto_conduit *conduit, const char *key, const void *bytes,
                               size_t len, struct resoluto_err *err)
{
	struct bytes_left left = { bytes, len };

	if (!bytes && len > 0)
		return is_null("put", err);
	return resoluto_conduit_put(conduit, key, &(struct resoluto_source){ read_bytes, &left },
	                            err);
}

int resoluto_conduit_get(struct resoluto_conduit *conduit, const char *key,
                         const struct resoluto_sink *sink, struct resoluto_err *err)
{
	int r;

	if (!conduit || !key || !sink || !sink->write)
		return is_null("get", err);
	r = local_check_key(key, err);
	if (r == 0)
		r = conduit->ops->get(conduit, key, sink, err);
	return r < 0 ? resoluto_fail_in(err, r, "get %.*s", RESOLUTO_KEY_MAX, key) : 0;
}

static int keep_bytes(void *ctx, const void *bytes, size_t len)
{
	int r = buf_add(ctx, bytes, len);

	return r == -E2BIG ? -EFBIG : r;
}

int resoluto_conduit_get_bytes(struct resoluto_conduit *conduit, const char *key, size_t max,
                               char **ret_bytes, size_t *ret_len, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf buf = BUF_INIT(max);
	size_t len;
	char *bytes;
	int r;

	if (!ret_bytes || !ret_len)
		return is_null("get", err);
	r = resoluto_conduit_get(conduit, key, &(struct resoluto_sink){ keep_bytes, &buf }, err);
	if (r == -EFBIG)
		return resoluto_fail(err, r, "get %s: it is larger than %zu bytes", key, max);
	if (r < 0)
		return r;
	len = buf.len;
	bytes = buf_take(&buf);
	if (!bytes)
		return resoluto_fail(err, -ENOMEM, "get %s", key);
	*ret_bytes = bytes;
	*ret_len = len;
	return 0;
}

int resoluto_conduit_list(struct resoluto_conduit *conduit, const char *prefix,
                          resoluto_object_fn *each, void *ctx, struct resoluto_err *err)
{
	char key[RESOLUTO_KEY_MAX + 1];
	int r;

	if (!conduit || !prefix || !each)
		return is_null("list", err);
	r = prefix[0] ? key_of_prefix(prefix, key, err) : 0;
	if (r == 0)
		r = conduit->ops->list(conduit, prefix, "", each, ctx, err);
	return r < 0 ? resoluto_fail_in(err, r, "list %.*s", RESOLUTO_KEY_MAX, prefix) : 0;
}

static bool has_segment(const char *path, const char *const *segments)
{
	for (;;) {
		size_t len = strcspn(path, "/");

		for (size_t i = 0; segments && segments[i]; i++) {
			if (strlen(segments[i]) == len && strncmp(segments[i], path, len) == 0)
				return true;
		}
		if (!path[len])
			return false;
		path += len + 1;
	}
}

/* The next keys to copy, relative to the prefix, each with its 0. */
struct batch {
	struct buf keys;
	size_t prefix_len;
	const char *const *exclude;
	bool is_full;
};

static void batch_done(struct batch *batch)
{
	buf_done(&batch->keys);
}

static int collect(void *ctx, const struct resoluto_object *object)
{
	struct batch *batch = ctx;
	const char *relative = object->key + batch->prefix_len;
	int r;

	if (has_segment(relative, batch->exclude))
		return 0;
	r = buf_add(&batch->keys, relative, strlen(relative) + 1);
	if (r != -E2BIG)
		return r;
	batch->is_full = true;
	return 1;
}

static int join_key(char ret_key[RESOLUTO_KEY_MAX + 1], const char *prefix, const char *relative,
                    struct resoluto_err *err)
{
	size_t head = strlen(prefix), tail = strlen(relative);

	if (head + 1 + tail > RESOLUTO_KEY_MAX)
		return resoluto_fail(err, -EINVAL, "key %s/%s is longer than %d bytes", prefix,
		                     relative, RESOLUTO_KEY_MAX);
	memcpy(ret_key, prefix, head);
	ret_key[head] = '/';
	memcpy(ret_key + head + 1, relative, tail + 1);
	return 0;
}

/* Copies the batch; ret_last is the last key of it.  An object that is gone by now is passed over. */
static int copy_batch(struct resoluto_conduit *conduit, const struct batch *batch, const char *src,
                      const char *dst, char ret_last[RESOLUTO_KEY_MAX + 1],
                      struct resoluto_err *err)
{
	const char *at = batch->keys.data, *end = at + batch->keys.len;
	char to[RESOLUTO_KEY_MAX + 1];
	int count = 0;

	for (; at < end; at += strlen(at) + 1) {
		struct resoluto_err failure;
		int r = join_key(ret_last, src, at, &failure);

		if (r == 0)
			r = join_key(to, dst, at, &failure);
		if (r == 0)
			r = conduit->ops->copy(conduit, ret_last, to, &failure);
		if (r < 0 && r != -ENOENT)
			return resoluto_fail(err, r, "%s: %s", at, failure.text);
		count += r == 0;
	}
	return count;
}

static int copy_all(struct resoluto_conduit *conduit, const char *src, const char *dst,
                    const char *const *exclude, struct resoluto_err *err)
{
	CLEANUP(batch_done)
	struct batch batch = { .keys = BUF_INIT(BATCH_BYTES), .exclude = exclude };
	char prefix[RESOLUTO_KEY_MAX + 2], last[RESOLUTO_KEY_MAX + 1] = "";
	int count = 0;

	batch.prefix_len = (size_t) snprintf(prefix, sizeof(prefix), "%s/", src);
	do {
		int r;

		buf_clear(&batch.keys);
		batch.is_full = false;
		r = conduit->ops->list(conduit, prefix, last, collect, &batch, err);
		if (r == 0)
			r = copy_batch(conduit, &batch, src, dst, last, err);
		if (r < 0)
			return r;
		count += r;
	} while (batch.is_full);
	return count;
}

static bool is_within(const char *inner, const char *outer)
{
	size_t len = strlen(outer);

	return strncmp(inner, outer, len) == 0 && (inner[len] == '/' || inner[len] == '\0');
}

int resoluto_conduit_copy_prefix(struct resoluto_conduit *conduit, const char *src_prefix,
                                 const char *dst_prefix, const char *const *exclude_segments,
                                 struct resoluto_err *err)
{
	char src[RESOLUTO_KEY_MAX + 1], dst[RESOLUTO_KEY_MAX + 1];
	int r;

	if (!conduit || !src_prefix || !dst_prefix)
		return is_null("copy", err);
	r = key_of_prefix(src_prefix, src, err);
	if (r == 0)
		r = key_of_prefix(dst_prefix, dst, err);
	/* Else the copies would be copied again. */
	if (r == 0 && (is_within(src, dst) || is_within(dst, src)))
		r = resoluto_fail(err, -EINVAL, "one prefix lies within the other");
	if (r == 0)
		r = copy_all(conduit, src, dst, exclude_segments, err);
	return r < 0 ? resoluto_fail_in(err, r, "copy %.*s to %.*s", RESOLUTO_KEY_MAX, src_prefix,
	                                RESOLUTO_KEY_MAX, dst_prefix)
	             : r;
}

int resoluto_conduit_delete_prefix(struct resoluto_conduit *conduit, const char *prefix,
                                   struct resoluto_err *err)
{
	char key[RESOLUTO_KEY_MAX + 1];
	int r;

	if (!conduit || !prefix)
		return is_null("delete", err);
	r = key_of_prefix(prefix, key, err);
	if (r == 0)
		r = conduit->ops->delete_beneath(conduit, key, err);
	return r < 0 ? resoluto_fail_in(err, r, "delete %.*s", RESOLUTO_KEY_MAX, prefix) : r;
}
