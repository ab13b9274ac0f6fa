/* SPDX-License-Identifier: Apache-2.0 */
/* image.c - the calls of resoluto/image.h, with a cache of their own and a skopeo that only prints a configuration. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "check.h"
#include "image/store.h"
#include "resoluto/image.h"

#define CONFIG "{\"os\":\"linux\",\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[]}}"

struct place {
	char dir[64], cache[80], digest[DIGEST_SIZE];
	struct store store;
	struct resoluto_image_options options;
};

static void write_file(const struct place *place, const char *name, mode_t mode, const char *text)
{
	CLEANUP(file_close) FILE *file = NULL;
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", place->dir, name);
	file = fopen(path, "w");
	CHECK(file && fputs(text, file) >= 0 && fchmod(fileno(file), mode) == 0);
}

/* What squashfs_check() takes for an image, without a name in the cache. */
static void publish(struct place *place)
{
	CLEANUP(store_part_done) struct store_part part = STORE_PART_NONE;
	char bytes[5000] = "hsqs", file[PATH_MAX + 16];
	uint64_t used = sizeof(bytes);
	FILE *out;

	bytes[28] = 4;
	memcpy(bytes + 40, &used, sizeof(used));
	CHECK(store_part_new(&place->store, &part, NULL) == 0);
	snprintf(file, sizeof(file), "%s/x", part.path);
	out = fopen(file, "w");
	CHECK(out && fwrite(bytes, sizeof(bytes), 1, out) == 1 && fclose(out) == 0);
	digest_of(CONFIG, strlen(CONFIG), place->digest);
	CHECK(store_publish(&place->store, file,
	                    &(struct store_entry){ .digest = place->digest, .created = 1 },
	                    NULL) == 0);
}

static void place_make(struct place *place)
{
	char config[80];

	*place = (struct place){ .dir = "/tmp/resoluto-image-XXXXXX" };
	CHECK(mkdtemp(place->dir));
	snprintf(place->cache, sizeof(place->cache), "%s/cache", place->dir);
	place->options = (struct resoluto_image_options){ .struct_size = sizeof(place->options),
		                                          .cache_dir = place->cache };
	CHECK(store_init(&place->store, place->cache, NULL, NULL) == 0);
	write_file(place, "local.env", 0600, "");
	write_file(place, "skopeo", 0700, "#!/bin/sh\nprintf '%s' '" CONFIG "'\n");
	snprintf(config, sizeof(config), "%s/local.env", place->dir);
	setenv("RESOLUTO_LOCAL_ENV", config, 1);
	setenv("PATH", place->dir, 1);
	setenv("RESOLUTO_SANDBOX_REGISTRY", "localhost:1", 1);
}

static void place_done(struct place *place)
{
	if (place->dir[0])
		(void) remove_tree_at(AT_FDCWD, place->dir);
}

static int count(void *ctx, const struct resoluto_image *image)
{
	++*(int *) ctx;
	return 0;
}

static void an_empty_cache_is_no_failure(void)
{
	CLEANUP(place_done) struct place place;
	struct resoluto_err err = { 0 };
	int images = 0;

	place_make(&place);
	CHECK(resoluto_image_list(&place.options, count, &images, &err) == 0 && images == 0);
	CHECK_STR(err.text, "");
	CHECK(err.code == 0);
}

/* Neither what the cache lacks is told then, nor that it has no names yet. */
static void what_is_fetched_is_no_failure(void)
{
	static const char *const refs[] = { "x:1", "localhost:1/y:1" };

	for (size_t i = 0; i < sizeof(refs) / sizeof(refs[0]); i++) {
		CLEANUP(place_done) struct place place;
		CLEANUP(resoluto_image_done) struct resoluto_image image = { 0 };
		struct resoluto_err err = { 0 };

		place_make(&place);
		publish(&place);
		CHECK(resoluto_image_get(refs[i], &place.options, &image, &err) == 0);
		CHECK_STR(image.digest, place.digest);
		CHECK_STR(err.text, "");
		CHECK(err.code == 0);
	}
}

/* A bare name may be the registry's, a bare path a root directory's or a tar's. */
static void what_goes_under_its_second_name_is_no_failure(void)
{
	CLEANUP(place_done) struct place place;
	struct resoluto_err err = { 0 };

	place_make(&place);
	publish(&place);
	CHECK(store_set_ref(&place.store, "localhost:1/x:1", place.digest, NULL, NULL) == 0);
	CHECK(store_set_ref(&place.store, "tar:/gone/x.tar", place.digest, NULL, NULL) == 0);
	CHECK(resoluto_image_remove("x:1", &place.options, &err) == 0);
	CHECK(resoluto_image_remove("/gone/x.tar", &place.options, &err) == 0);
	CHECK_STR(err.text, "");
	CHECK(err.code == 0);
	CHECK(resoluto_image_remove("x:1", &place.options, &err) == -ENOENT);
	CHECK(strstr(err.text, "the cache has no image 'x:1'"));
	CHECK(resoluto_image_remove("/gone/x.tar", &place.options, &err) == -ENOENT);
	CHECK(strstr(err.text, "/gone/x.tar"));
}

static void a_registry_that_was_not_asked_is_not_blamed(void)
{
	CLEANUP(place_done) struct place place;
	struct resoluto_image image = { 0 };
	struct resoluto_err err = { 0 };

	place_make(&place);
	place.options.pull = RESOLUTO_PULL_NEVER;
	CHECK(resoluto_image_get("x:1", &place.options, &image, &err) == -ENOENT);
	CHECK_STR(err.text,
	          "image x:1: it is not in the cache, and --pull never forbids to fetch it");
	CHECK(resoluto_image_get("resoluto-sandbox-base:9", &place.options, &image, &err) ==
	      -ENOENT);
	CHECK(strstr(err.text, "forbids to fetch it; bash scripts/local-backend-up.sh makes it"));
}

static void options_may_be_older_or_newer(void)
{
	CLEANUP(place_done) struct place place;
	struct {
		struct resoluto_image_options known;
		long unknown;
	} newer = { .unknown = 1 };
	struct resoluto_err err = { 0 };
	int images = 0;

	place_make(&place);
	newer.known = place.options;
	newer.known.struct_size = sizeof(newer);
	CHECK(resoluto_image_list(&newer.known, count, &images, &err) == -EINVAL);
	CHECK(strstr(err.text, "image options: the options use members"));
	newer.unknown = 0;
	CHECK(resoluto_image_list(&newer.known, count, &images, NULL) == 0);
	newer.known.struct_size = offsetof(struct resoluto_image_options, pull);
	CHECK(resoluto_image_list(&newer.known, count, &images, NULL) == 0);
	newer.known.struct_size = 0;
	CHECK(resoluto_image_list(&newer.known, count, &images, NULL) == -EINVAL);
}

static void null_is_refused(void)
{
	CLEANUP(place_done) struct place place;
	struct resoluto_image image = { 0 };
	struct resoluto_err err = { 0 };

	place_make(&place);
	CHECK(resoluto_image_get(NULL, &place.options, &image, &err) == -EINVAL);
	CHECK_STR(err.text, "image: an argument is NULL");
	CHECK(resoluto_image_get("x:1", &place.options, NULL, NULL) == -EINVAL);
	CHECK(resoluto_image_list(&place.options, NULL, NULL, NULL) == -EINVAL);
	CHECK(resoluto_image_tag(NULL, "x:1", &place.options, NULL) == -EINVAL);
	CHECK(resoluto_image_tag("x:1", NULL, &place.options, NULL) == -EINVAL);
	CHECK(resoluto_image_remove(NULL, &place.options, NULL) == -EINVAL);
	resoluto_image_done(NULL);
}

int main(void)
{
	RUN(an_empty_cache_is_no_failure);
	RUN(what_is_fetched_is_no_failure);
	RUN(what_goes_under_its_second_name_is_no_failure);
	RUN(a_registry_that_was_not_asked_is_not_blamed);
	RUN(options_may_be_older_or_newer);
	RUN(null_is_refused);
	return check_done();
}
