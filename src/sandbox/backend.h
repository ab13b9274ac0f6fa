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

#define PLACE_LAUNCH "launch" /* the prefix of what was asked for, beside "run" */

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
	struct resoluto_conduit *own_records; /* owned; place_records() */
};

/* Put the parts together and claim the id.  -EEXIST: there is such a run. */
int place_open(struct place *place, const struct resoluto_backend *backend, const char *id,
               struct resoluto_err *err);
/* The parts for a run that is there; nothing is claimed.  -ENOENT: there is none of this id.  id NULL: for a
 * listing, the runtime alone. */
int place_open_existing(struct place *place, const struct resoluto_backend *backend, const char *id,
                        struct resoluto_err *err);
/* The conduit that holds what was asked for, out of the guest's reach (request.h); borrowed. */
int place_records(struct place *place, struct resoluto_conduit **ret_records,
                  struct resoluto_err *err);
/* Whether anything is stored of it: 1, 0 or a failure. */
int place_has_objects(const struct place *place, struct resoluto_err *err);
/* Remove all that is stored of a run whose sandbox is destroyed. */
int place_remove(struct place *place, struct resoluto_err *err);
/* Give the claim back, with all objects of the run unless they are to be kept. */
void place_close(struct place *place, bool keep);
