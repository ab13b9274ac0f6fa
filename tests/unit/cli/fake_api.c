/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_api.h"
#include "resoluto/version.h"
#include "runtime/microvm/rundir.h"
#include "runtime/microvm/slots.h"

struct fake_api fake_api;

static void record(const struct resoluto_run_options *options)
{
	fake_api.runs++;
	fake_api.options = *options;
	fake_api.argc = 0;
	for (const char *const *at = options->argv; *at && fake_api.argc < FAKE_WORDS; at++)
		snprintf(fake_api.argv[fake_api.argc++], sizeof(fake_api.argv[0]), "%s", *at);
}

static void stream(const struct resoluto_run_options *options, bool is_stderr, const char *bytes)
{
	int r;

	if (!bytes || !options->stream || fake_api.stream_code < 0)
		return;
	r = options->stream(options->ctx, is_stderr, bytes, strlen(bytes));
	if (r < 0)
		fake_api.stream_code = r;
}

int resoluto_sandbox_run(const struct resoluto_run_options *options,
                         struct resoluto_result **ret_result, struct resoluto_err *err)
{
	record(options);
	if (options->progress)
		options->progress(options->ctx, "boot", 0, 0);
	stream(options, false, fake_api.out);
	stream(options, true, fake_api.errors);
	if (fake_api.run_code < 0)
		return resoluto_fail(err, fake_api.run_code, "%s", fake_api.run_text);
	*ret_result = &fake_api.result;
	return 0;
}

void resoluto_result_free(struct resoluto_result *result)
{
}

char *resoluto_result_to_json(const struct resoluto_result *result)
{
	return strdup(fake_api.json);
}

const char *resoluto_disposition_name(enum resoluto_disposition disposition)
{
	return disposition == RESOLUTO_COMPLETED ? "completed" : "silent";
}

const char *resoluto_version(void)
{
	return RESOLUTO_VERSION;
}

static int image_call(const char *first, const char *second, struct resoluto_err *err)
{
	snprintf(fake_api.image_words[0], sizeof(fake_api.image_words[0]), "%s", first);
	snprintf(fake_api.image_words[1], sizeof(fake_api.image_words[1]), "%s", second);
	if (fake_api.image_code < 0)
		return resoluto_fail(err, fake_api.image_code, "no image %s", first);
	return 0;
}

static const struct resoluto_image image = {
	.ref = "mine:1",
	.digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	.path = "/cache/images/sha256-0123.squashfs",
	.size_bytes = 3 << 20,
	.created = 1.0,
};

int resoluto_image_get(const char *ref, const struct resoluto_image_options *options,
                       struct resoluto_image *ret_image, struct resoluto_err *err)
{
	fake_api.pull = options->pull;
	*ret_image = image;
	return image_call(ref, "", err);
}

void resoluto_image_done(struct resoluto_image *done)
{
}

int resoluto_image_list(const struct resoluto_image_options *options,
                        int (*each)(void *ctx, const struct resoluto_image *image), void *ctx,
                        struct resoluto_err *err)
{
	int r = image_call("", "", err);

	return r < 0 ? r : each(ctx, &image);
}

int resoluto_image_tag(const char *ref, const char *name,
                       const struct resoluto_image_options *options, struct resoluto_err *err)
{
	return image_call(ref, name, err);
}

int resoluto_image_remove(const char *ref, const struct resoluto_image_options *options,
                          struct resoluto_err *err)
{
	return image_call(ref, "", err);
}

int64_t resoluto_image_prune(const struct resoluto_image_options *options, struct resoluto_err *err)
{
	int r = image_call("", "", err);

	return r < 0 ? r : 3 << 20;
}

int rundir_sweep_dead(const char *state_dir, struct resoluto_err *err)
{
	return 0;
}

int slot_count(const char *configured, uint64_t available_bytes, unsigned *ret_count,
               struct resoluto_err *err)
{
	*ret_count = 2;
	return 0;
}

int uid_range_parse(const char *text, struct uid_range *ret_range, struct resoluto_err *err)
{
	*ret_range = (struct uid_range){ 520000, 520099 };
	return 0;
}
