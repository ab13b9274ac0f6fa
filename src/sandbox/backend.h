/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * backend.h - the parts a run is made of: a runtime, a conduit and an image; and the claim of a run id
 * in them.
 *
 * "local" is the microVM runtime and a localfs conduit within the run's own directory; a backend of
 * the caller's brings its own parts, and its claim is that nothing lies beneath the run's prefix.
 */

#include <stdbool.h>

#include "base/buf.h"
#include "base/config.h"
#include "resoluto/sandbox.h"

struct resoluto_backend {
	struct resoluto_runtime *runtime; /* borrowed */
	struct resoluto_conduit *conduit; /* borrowed */
	char *image;
	struct strv store_env;
	struct resoluto_resources resources;
	uint64_t dead_after_ms;
};

enum { PLACE_PREFIX_SIZE = 64 }; /* "run/<id>" */

struct place {
	struct resoluto_runtime *runtime;
	struct resoluto_conduit *conduit;
	struct resoluto_runtime *own_runtime; /* owned: the same as above, if we made it */
	struct resoluto_conduit *own_conduit; /* owned */
	const char *image_ref; /* from the backend or the configuration; NULL: the default */
	const char *const *store_env;
	struct resoluto_resources resources;
	uint64_t dead_after_ms;
	bool boots_squashfs; /* the image is resolved in our cache */
	bool is_claimed;
	char id[RESOLUTO_ID_MAX + 1];
	char prefix[PLACE_PREFIX_SIZE];
	struct config *config; /* owned */
	struct strv own_store_env;
};

/* Put the parts together and claim the id.  -EEXIST: there is such a run. */
int place_open(struct place *place, const struct resoluto_backend *backend, const char *id,
               struct resoluto_err *err);
/* Give the claim back, with all objects of the run unless they are to be kept. */
void place_close(struct place *place, bool keep);
