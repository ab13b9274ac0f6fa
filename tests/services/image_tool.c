/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_tool.c - the image part of the library on its own, for tests: each call prints one JSON line.
 *
 *	image_tool CACHE get|get-always|get-never REF [PLATFORM [AUTHFILE]]
 *	image_tool CACHE ls | rm REF | tag REF NAME | prune
 *
 * CACHE "-" is the configured one.  Progress goes to stderr: "STEP DONE TOTAL".  Exit code 1 and
 * {"error": NAME, "text": ...} on failure.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resoluto/image.h"

static void progress(void *ctx, const char *step, uint64_t done, uint64_t total)
{
	fprintf(stderr, "%s %llu %llu\n", step, (unsigned long long) done,
	        (unsigned long long) total);
}

static int print(json_t *json)
{
	json_dumpf(json, stdout, JSON_COMPACT | JSON_SORT_KEYS);
	putchar('\n');
	json_decref(json);
	return 0;
}

static int fail(const struct resoluto_err *err, int code)
{
	const char *name = strerrorname_np(-code);

	print(json_pack("{s:s, s:s}", "error", name ? name : "", "text", err->text));
	return 1;
}

static json_t *describe(const struct resoluto_image *image)
{
	json_t *env = json_array();

	for (char **at = image->env; at && *at; at++)
		json_array_append_new(env, json_string(*at));
	return json_pack("{s:s, s:s, s:s, s:I, s:f, s:o, s:s?, s:s?, s:s?}", "ref", image->ref,
	                 "digest", image->digest, "path", image->path, "size",
	                 (json_int_t) image->size_bytes, "created", image->created, "env", env,
	                 "workdir", image->workdir, "user", image->user, "version_label",
	                 image->version_label);
}

static int list_one(void *ctx, const struct resoluto_image *image)
{
	return print(describe(image));
}

static int get(const char *ref, const struct resoluto_image_options *options)
{
	struct resoluto_image image = { 0 };
	struct resoluto_err err = { 0 };
	int r = resoluto_image_get(ref, options, &image, &err);

	if (r < 0)
		return fail(&err, r);
	print(describe(&image));
	resoluto_image_done(&image);
	return 0;
}

static int change(int argc, char **argv, const struct resoluto_image_options *options)
{
	struct resoluto_err err = { 0 };
	const char *verb = argv[2];
	int64_t r = -EINVAL;

	if (strcmp(verb, "ls") == 0)
		r = resoluto_image_list(options, list_one, NULL, &err);
	else if (strcmp(verb, "rm") == 0 && argc == 4)
		r = resoluto_image_remove(argv[3], options, &err);
	else if (strcmp(verb, "tag") == 0 && argc == 5)
		r = resoluto_image_tag(argv[3], argv[4], options, &err);
	else if (strcmp(verb, "prune") == 0)
		r = resoluto_image_prune(options, &err);
	if (r < 0)
		return fail(&err, (int) r);
	return strcmp(verb, "ls") == 0 ? 0 : print(json_pack("{s:I}", "ok", (json_int_t) r));
}

int main(int argc, char **argv)
{
	struct resoluto_image_options options = { .struct_size = sizeof(options),
		                                  .progress = progress };

	if (argc < 3)
		return 2;
	options.cache_dir = strcmp(argv[1], "-") == 0 ? NULL : argv[1];
	if (strncmp(argv[2], "get", 3) != 0)
		return change(argc, argv, &options);
	if (argc < 4)
		return 2;
	if (strcmp(argv[2], "get-always") == 0)
		options.pull = RESOLUTO_PULL_ALWAYS;
	if (strcmp(argv[2], "get-never") == 0)
		options.pull = RESOLUTO_PULL_NEVER;
	options.platform = argc > 4 && argv[4][0] ? argv[4] : NULL;
	options.authfile = argc > 5 ? argv[5] : NULL;
	return get(argv[3], &options);
}
