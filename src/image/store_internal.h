/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* store_internal.h - what the files of the store share: refs.json and the descriptions of images. */

#include <jansson.h>

#include "image/store.h"

static inline void store_json_release(json_t **json)
{
	json_decref(*json);
}

/* The names of one cache, an object of objects; empty when there is no file.  -EBADMSG: damaged, or written
 * by a newer version. */
int store_refs_load(const char *cache_dir, json_t **ret_refs, struct resoluto_err *err);
/* Replaces the file; the caller holds the lock. */
int store_refs_save(const char *cache_dir, json_t *refs, struct resoluto_err *err);
/* "" unless well-formed. */
const char *store_ref_digest(const json_t *ref);
/* Is digest named by any of refs? */
bool store_refs_have(const json_t *refs, const char *digest);
/* images/ of our cache, made if it is not there. */
int store_open_images(const struct store *store, struct resoluto_err *err);
/* Hold .lock of images/; the descriptor releases it. */
int store_lock(const struct store *store, int images, struct resoluto_err *err);
/* The image of a digest in one cache. */
int store_load_image(const char *cache_dir, const char *digest, struct resoluto_image *ret_image,
                     struct resoluto_err *err);
