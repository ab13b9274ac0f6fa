/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * conduit.h - the durable key/value store through which host and sandbox meet (seeds 000, 001).
 *
 * A conduit is one open place: a local directory, memory, or standard output.  Every backend
 * keeps the promises below; tests/contract/conduit.c holds them to it.  To write a backend, read
 * src/conduit/conduit_backend.h.
 *
 * Keys       1 to RESOLUTO_KEY_MAX bytes: relative, components parted by single '/', none of
 *            them empty, "." or "..", none over 255 bytes, none beginning with ".part-" (objects on
 *            their way in); no NUL, no control characters.
 * Sizes      bytes, uint64_t.
 * Failures   a negative errno value, and *err if err is not NULL (err.h).  The ones a caller can
 *            act on:
 *              -EINVAL      bad key or URL, or NULL: a mistake in the calling program
 *              -ENOENT      no such object: a state, not a fault
 *              -EACCES      the credentials or permissions do not allow it; never told as an outage
 *              -ETIMEDOUT, -EIO   the store did not answer, or answered wrongly: try again later
 *              -ENOSPC      the place is full
 *              -EOPNOTSUPP  this kind of conduit cannot do that (stdout only writes)
 *            A ret_ argument is written on success only.
 * Ownership  arguments are borrowed for the length of the call; what a ret_ argument receives
 *            belongs to the caller.  NULL only where allowed.
 * Threads    one conduit, one thread at a time; two conduits share nothing.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "resoluto/err.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
	RESOLUTO_KEY_MAX = 1024, /* bytes, terminating 0 not counted */
};

struct resoluto_conduit;

/* Where put takes its bytes from. */
struct resoluto_source {
	/* Fill buf with up to cap bytes.  Returns how many, 0 at the end, or a negative errno
	 * value, which put then returns. */
	ssize_t (*read)(void *ctx, void *buf, size_t cap);
	void *ctx;
};

/* Where get delivers its bytes. */
struct resoluto_sink {
	/* Accept all len bytes (never 0).  Returns 0, or a negative errno value, which get then
	 * returns. */
	int (*write)(void *ctx, const void *buf, size_t len);
	void *ctx;
};

struct resoluto_object {
	const char *key; /* valid during the callback only */
	uint64_t size;   /* bytes */
};

/* Returns 0 to go on, 1 to stop early, or a negative errno value, which list then returns. */
typedef int resoluto_object_fn(void *ctx, const struct resoluto_object *object);

/**
 * Open the place named by url: "localfs:///absolute/directory" (also "file://"), "memory://" for
 * one that starts empty and is gone when closed, "stdout://" which writes each object as one JSON
 * line to standard output (at most 16 MiB of content, -EFBIG over that) and cannot read.  A
 * directory is made if its parent exists.  A localfs object's key cannot be the prefix of another's
 * ("a" and "a/b"): -EISDIR, -ENOTDIR.
 *
 * Release with resoluto_conduit_close().
 */
int resoluto_conduit_open_url(const char *url, struct resoluto_conduit **ret_conduit,
                              struct resoluto_err *err);

/** Release a conduit.  NULL is allowed. */
void resoluto_conduit_close(struct resoluto_conduit *conduit);

/**
 * Store all bytes of source under key, replacing what was there.
 *
 * A reader sees the old object or the new one, never a mixture; that also holds for what is left
 * behind when put fails.  On return the object survives a crash of the process and, but for
 * memory:// and stdout://, a power cut.
 */
int resoluto_conduit_put(struct resoluto_conduit *conduit, const char *key,
                         const struct resoluto_source *source, struct resoluto_err *err);

/** The same for bytes in memory. */
int resoluto_conduit_put_bytes(struct resoluto_conduit *conduit, const char *key, const void *bytes,
                               size_t len, struct resoluto_err *err);

/**
 * Fetch the object at key into sink.
 *
 * After a failure the sink may have received the first part of the object: throw that away.
 */
int resoluto_conduit_get(struct resoluto_conduit *conduit, const char *key,
                         const struct resoluto_sink *sink, struct resoluto_err *err);

/**
 * Fetch an object of at most max bytes whole (-EFBIG over that).  *ret_bytes is malloc'd, with a 0
 * behind its last byte; release with free().
 */
int resoluto_conduit_get_bytes(struct resoluto_conduit *conduit, const char *key, size_t max,
                               char **ret_bytes, size_t *ret_len, struct resoluto_err *err);

/**
 * Call each() once for every object whose key starts with prefix, in ascending byte order of the
 * key.  prefix is "" for all, or a key with or without a final '/'.  With the '/' only what lies
 * beneath counts; without, "run-1" also lists "run-10", as raw string prefixes do.  Objects stored
 * or replaced meanwhile may or may not appear.  each() must not use this conduit.
 */
int resoluto_conduit_list(struct resoluto_conduit *conduit, const char *prefix,
                          resoluto_object_fn *each, void *ctx, struct resoluto_err *err);

/**
 * Copy every object beneath src_prefix to the same place beneath dst_prefix (both with or without a
 * final '/'), leaving out those with a component named in exclude_segments (NULL-terminated, may be
 * NULL).  Returns how many were copied.
 */
int resoluto_conduit_copy_prefix(struct resoluto_conduit *conduit, const char *src_prefix,
                                 const char *dst_prefix, const char *const *exclude_segments,
                                 struct resoluto_err *err);

/**
 * Remove every object beneath prefix (with or without a final '/'); none is fine.  Returns how many.
 */
int resoluto_conduit_delete_prefix(struct resoluto_conduit *conduit, const char *prefix,
                                   struct resoluto_err *err);

#ifdef __cplusplus
}
#endif
