/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "runtime/microvm/microvm.h"
#include "sandbox/backend.h"
#include "sandbox/options.h"
#include "wire/contract.h"

#define STORE_ENV_PREFIX "RESOLUTO_STORE_"

static int check_store_env(const char *const *env, struct resoluto_err *err)
{
	for (; env && *env; env++) {
		if (strncmp(*env, STORE_ENV_PREFIX, strlen(STORE_ENV_PREFIX)) != 0 ||
		    !strchr(*env, '='))
			return resoluto_fail(err, -EINVAL,
			                     "store_env: '%.*s' is not " STORE_ENV_PREFIX
			                     "NAME=VALUE",
			                     (int) strcspn(*env, "="), *env);
	}
	return 0;
}

static int check_parts(const struct resoluto_backend_options *options, struct resoluto_err *err)
{
	if (!options->runtime || !options->conduit)
		return resoluto_fail(err, -EINVAL, "a backend needs a runtime and a conduit");
	if (!options->image || !options->image[0])
		return resoluto_fail(err, -EINVAL, "a backend needs an image");
	return check_store_env(options->store_env, err);
}

int resoluto_backend_new(const struct resoluto_backend_options *given,
                         struct resoluto_backend **ret_backend, struct resoluto_err *err)
{
	struct resoluto_backend_options options;
	struct resoluto_backend *backend;
	int r = options_copy(&options, sizeof(options), given, err);

	if (r == 0 && !ret_backend)
		r = resoluto_fail(err, -EINVAL, "no place for the backend is given");
	if (r == 0)
		r = check_parts(&options, err);
	if (r < 0)
		return r;
	backend = calloc(1, sizeof(*backend));
	if (!backend)
		return resoluto_fail(err, -ENOMEM, "make a backend");
	backend->runtime = options.runtime;
	backend->conduit = options.conduit;
	backend->resources = options.resources;
	backend->dead_after_ms = options.dead_after_ms;
	backend->image = strdup(options.image);
	if (!backend->image || strv_add_all(&backend->store_env, options.store_env) < 0) {
		resoluto_backend_free(backend);
		return resoluto_fail(err, -ENOMEM, "make a backend");
	}
	*ret_backend = backend;
	return 0;
}

void resoluto_backend_free(struct resoluto_backend *backend)
{
	if (!backend)
		return;
	free(backend->image);
	strv_done(&backend->store_env);
	free(backend);
}

static int found_one(void *ctx, const struct resoluto_object *object)
{
	bool *found = ctx;

	*found = true;
	return 1;
}

int place_has_objects(const struct place *place, struct resoluto_err *err)
{
	char beneath[PLACE_PREFIX_SIZE + 1];
	bool found = false;
	int r;

	snprintf(beneath, sizeof(beneath), "%s/", place->prefix);
	r = resoluto_conduit_list(place->conduit, beneath, found_one, &found, err);
	return r < 0 ? r : found;
}

/* The id of a run that is there, or whose objects were kept, is taken. */
static int claim_prefix(struct place *place, struct resoluto_err *err)
{
	int r = place_has_objects(place, err);

	if (r < 0)
		return resoluto_fail_in(err, r, "claim run %s", place->id);
	if (r == 1)
		return resoluto_fail(err, -EEXIST, "there is a run '%s' in this conduit already",
		                     place->id);
	place->is_claimed = true;
	return 0;
}

static void use_injected(struct place *place, const struct resoluto_backend *backend)
{
	place->runtime = backend->runtime;
	place->conduit = backend->conduit;
	place->image_ref = backend->image;
	place->store_env = (const char *const *) backend->store_env.items;
	place->resources = backend->resources;
	place->dead_after_ms = backend->dead_after_ms;
	place->boots_squashfs = strcmp(backend->runtime->ops->name, "microvm") == 0;
}

static int open_injected(struct place *place, const struct resoluto_backend *backend,
                         struct resoluto_err *err)
{
	use_injected(place, backend);
	return claim_prefix(place, err);
}

static int open_local_conduit(struct place *place, const char *run_dir, struct resoluto_err *err)
{
	CLEANUP(mem_free) char *url = NULL;
	int r;

	if (asprintf(&url, "localfs://%s/conduit", run_dir) < 0)
		return resoluto_fail(err, -ENOMEM, "open the conduit of the run");
	r = resoluto_conduit_open_url(url, &place->own_conduit, err);
	place->conduit = place->own_conduit;
	return r;
}

/* Another posture than the configured one is never chosen silently. */
static int check_local_runtime(const struct config *config, struct resoluto_err *err)
{
	const char *name = config_get(config, "RESOLUTO_LOCAL_RUNTIME");

	if (!name || !name[0] || strcmp(name, "microvm") == 0)
		return 0;
	return resoluto_fail(err, -EOPNOTSUPP,
	                     "RESOLUTO_LOCAL_RUNTIME is '%s' (%s); this version has microvm only",
	                     name, config_origin(config, "RESOLUTO_LOCAL_RUNTIME"));
}

static int open_local(struct place *place, struct resoluto_err *err)
{
	struct resoluto_microvm_options options = { .struct_size = sizeof(options) };
	CLEANUP(mem_free) char *run_dir = NULL;
	int r = config_load(&place->config, err);

	if (r == 0)
		r = check_local_runtime(place->config, err);
	if (r < 0)
		return r;
	options.state_dir = config_state_dir(place->config);
	r = resoluto_runtime_microvm_new(&options, &place->own_runtime, err);
	if (r < 0)
		return r;
	place->runtime = place->own_runtime;
	place->boots_squashfs = true;
	place->image_ref = config_get(place->config, "RESOLUTO_SANDBOX_IMAGE");
	r = strv_add(&place->own_store_env, ENV_STORE_KIND "=localfs");
	if (r < 0)
		return resoluto_fail(err, r, "compose the store's environment");
	place->store_env = (const char *const *) place->own_store_env.items;
	r = microvm_claim(place->runtime, place->id, &run_dir, err);
	if (r < 0)
		return r;
	place->is_claimed = true;
	return open_local_conduit(place, run_dir, err);
}

static void name_place(struct place *place, const char *id)
{
	*place = (struct place){ 0 };
	snprintf(place->id, sizeof(place->id), "%s", id);
	snprintf(place->prefix, sizeof(place->prefix), "run/%s", id);
}

/* A shim that was taken over may have put something else there: then nothing is stored, and nothing is followed. */
static int open_stored_conduit(struct place *place, const char *run_dir, struct resoluto_err *err)
{
	CLEANUP(mem_free) char *path = NULL;
	struct stat st;
	int r;

	if (asprintf(&path, "%s/conduit", run_dir) < 0) {
		path = NULL;
		return resoluto_fail(err, -ENOMEM, "open the conduit of the run");
	}
	if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return open_local_conduit(place, run_dir, err);
	r = resoluto_conduit_open_url("memory://", &place->own_conduit, err);
	place->conduit = place->own_conduit;
	return r;
}

/* Without an image and without QEMU: only to look at what is there. */
static int open_local_existing(struct place *place, const char *id, struct resoluto_err *err)
{
	CLEANUP(mem_free) char *run_dir = NULL;
	int r = config_load(&place->config, err);

	if (r == 0)
		r = check_local_runtime(place->config, err);
	if (r == 0)
		r = microvm_reader_new(config_state_dir(place->config), &place->own_runtime, err);
	place->runtime = place->own_runtime;
	if (r < 0 || !id)
		return r;
	r = microvm_open(place->runtime, id, &run_dir, err);
	return r < 0 ? r : open_stored_conduit(place, run_dir, err);
}

int place_open_existing(struct place *place, const struct resoluto_backend *backend, const char *id,
                        struct resoluto_err *err)
{
	int r = 0;

	name_place(place, id ? id : "");
	if (backend)
		use_injected(place, backend);
	else
		r = open_local_existing(place, id, err);
	if (r < 0)
		place_close(place, false);
	return r;
}

int place_records(struct place *place, struct resoluto_conduit **ret_records,
                  struct resoluto_err *err)
{
	CLEANUP(mem_free) char *url = NULL;
	int r = 0;

	*ret_records = place->own_runtime ? place->own_records : place->conduit;
	if (*ret_records)
		return 0;
	if (asprintf(&url, "localfs://%s", config_state_dir(place->config)) < 0) {
		url = NULL;
		return resoluto_fail(err, -ENOMEM, "open the records of runs");
	}
	r = resoluto_conduit_open_url(url, &place->own_records, err);
	*ret_records = place->own_records;
	return r;
}

int place_remove(struct place *place, struct resoluto_err *err)
{
	char launch[PLACE_PREFIX_SIZE];
	int r;

	if (place->own_runtime)
		return microvm_release(place->own_runtime, place->id, false, err);
	snprintf(launch, sizeof(launch), PLACE_LAUNCH "/%s", place->id);
	r = resoluto_conduit_delete_prefix(place->conduit, place->prefix, err);
	if (r >= 0)
		r = resoluto_conduit_delete_prefix(place->conduit, launch, err);
	return r < 0 ? r : 0;
}

int place_open(struct place *place, const struct resoluto_backend *backend, const char *id,
               struct resoluto_err *err)
{
	int r;

	name_place(place, id);
	r = backend ? open_injected(place, backend, err) : open_local(place, err);
	if (r < 0)
		place_close(place, false);
	return r;
}

void place_close(struct place *place, bool keep)
{
	/* A failure leaves what the next sweep removes; the result must not be lost over it. */
	resoluto_conduit_close(place->own_conduit);
	if (place->is_claimed && place->own_runtime)
		(void) microvm_release(place->own_runtime, place->id, keep, NULL);
	else if (place->is_claimed && !keep)
		(void) resoluto_conduit_delete_prefix(place->conduit, place->prefix, NULL);
	resoluto_runtime_close(place->own_runtime);
	resoluto_conduit_close(place->own_records);
	strv_done(&place->own_store_env);
	config_free(&place->config);
	*place = (struct place){ 0 };
}
