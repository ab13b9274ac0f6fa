/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * store.h - the cache of images on disk.
 *
 *	<cache>/refs.json                     {"schema": 1, "refs": {KEY: {"digest", "stamp"?}}}
 *	<cache>/images/sha256-<hex>.squashfs  the root file system
 *	<cache>/images/sha256-<hex>.json      {"schema": 1, "digest", "size", "created", "env", ...}
 *	<cache>/images/.part-<id>/            work in progress; its file "lock" is held by who works
 *	<cache>/images/.lock, .lock-<n>       locks (flock)
 *
 * KEY is a name with its tag or digest, or "oci:/absolute/path" and the like, then " linux/arm64" when
 * a platform other than this machine's was asked for.  A stamp tells which state of a local file or
 * directory was imported.  Whatever has its final name is whole: files are renamed into place.
 *
 * Locks: first a slot (.lock-<n>, long: one maker per image), then .lock (short: refs.json, names in
 * images/).  The system's cache is read besides and never written.
 */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "image/caller.h"
#include "image/digest.h"
#include "image/oci.h"
#include "resoluto/image.h"

enum {
	STORE_DIR_MAX = PATH_MAX - 256, /* bytes of a cache's path: names beneath must fit too */
	STORE_KEY_MAX = PATH_MAX + 640, /* bytes of a key */
	STORE_STAMP_MAX = 160,          /* bytes of a stamp */
};

struct store {
	char dir[STORE_DIR_MAX];        /* ours */
	char system_dir[STORE_DIR_MAX]; /* ""; none */
	const struct caller
		*caller; /* borrowed: told of a wait for another process, which it may stop */
};

/* system_dir may be NULL. */
int store_init(struct store *store, const char *dir, const char *system_dir,
               struct resoluto_err *err);

/* What key names; stamp NULL: whatever stamp it has.  -ENOENT: nothing (also when the stamp differs). */
int store_find_ref(const struct store *store, const char *key, const char *stamp,
                   char ret_digest[DIGEST_SIZE], struct resoluto_err *err);
/* The image of a digest, from our cache or the system's.  ret_image->ref stays NULL.  -ENOENT: none;
 * -EBADMSG: it is there, but truncated or damaged. */
int store_find_image(const struct store *store, const char *digest,
                     struct resoluto_image *ret_image, struct resoluto_err *err);

/* Work of one maker: an empty private directory in images/, removed with all it holds by part_done. */
struct store_part {
	char path[PATH_MAX];
	int lock; /* owned; -1: nothing to remove */
};

#define STORE_PART_NONE ((struct store_part){ .lock = -1 })

int store_part_new(const struct store *store, struct store_part *ret_part,
                   struct resoluto_err *err);
void store_part_done(struct store_part *part); /* a cleanup function */

/* Be the only maker of what `what` names (a digest or key) until the descriptor is closed. */
int store_lock_slot(const struct store *store, const char *what, int *ret_fd,
                    struct resoluto_err *err);

struct store_entry {
	const char *digest;
	const struct oci_config *config; /* NULL: it has none */
	double created;
};

/* Move the squashfs `file` into the cache, with its description. */
int store_publish(const struct store *store, const char *file, const struct store_entry *entry,
                  struct resoluto_err *err);
int store_set_ref(const struct store *store, const char *key, const char *digest, const char *stamp,
                  struct resoluto_err *err);
/* -ENOENT: our cache has no such name; -EPERM: only the system's has.  The image goes with its last name. */
int store_remove_ref(const struct store *store, const char *key, struct resoluto_err *err);
/* The same for every name of a digest. */
int store_remove_digest(const struct store *store, const char *digest, struct resoluto_err *err);
/* By key; damaged images are passed over. */
int store_list(const struct store *store,
               int (*each)(void *ctx, const struct resoluto_image *image), void *ctx,
               struct resoluto_err *err);
int64_t store_prune(const struct store *store, struct resoluto_err *err);
/* Remove what killed makers left. */
void store_sweep(const struct store *store);
