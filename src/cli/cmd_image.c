/* SPDX-License-Identifier: Apache-2.0 */

/* cmd_image.c - `image`: the cache of root file systems. */

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/quantity.h"
#include "cli/commands.h"
#include "cli/milestones.h"
#include "cli/progress.h"
#include "resoluto/image.h"

enum {
	AMOUNT_MAX = 32,       /* bytes of "12.0 MiB" */
	TIME_MAX = 32,         /* bytes of "2026-11-29 18:51" */
	DIGEST_SHOWN = 7 + 12, /* "sha256:" and so many digits tell images apart */
};

struct image_args {
	bool json, quiet;
	const char *platform, *authfile, *pull;
};

#define FIELD(member) .offset = offsetof(struct image_args, member)
#define HELP_ROW \
	{ \
		OPTION_HELP, 'h', .name = "help", .help = "print this text" \
	}

static const struct option no_options[] = { HELP_ROW, { .kind = OPTION_END } };

static const struct option list_options[] = {
	{ OPTION_FLAG, .name = "json", FIELD(json), .help = "print a JSON array" },
	HELP_ROW,
	{ .kind = OPTION_END },
};

static const struct option fetch_options[] = {
	{ OPTION_TEXT, .name = "platform", .value = "OS/ARCH", FIELD(platform),
	  .help = "which one of an image for several platforms (default: this machine's)" },
	{ OPTION_TEXT, .name = "authfile", .value = "FILE", FIELD(authfile), .hint = HINT_FILE,
	  .help = "credentials for private registries (default: REGISTRY_AUTH_FILE, else "
	          "~/.docker/config.json)" },
	{ OPTION_FLAG, .name = "quiet", FIELD(quiet), .help = "no progress, only errors" },
	HELP_ROW,
	{ .kind = OPTION_END },
};

/* Progress is shown on ctx; the caller erases it. */
static struct resoluto_image_options image_options(const struct image_args *args,
                                                   struct progress *progress)
{
	progress_init(progress, args->quiet, true);
	return (struct resoluto_image_options){
		.struct_size = sizeof(struct resoluto_image_options),
		.platform = args->platform,
		.authfile = args->authfile,
		.progress = progress_show,
		.ctx = progress,
	};
}

static int print_row(void *ctx, const struct resoluto_image *image)
{
	time_t seconds = (time_t) image->created;
	char amount[AMOUNT_MAX], when[TIME_MAX] = "";
	struct tm local;

	quantity_format_bytes(image->size_bytes, amount, sizeof(amount));
	if (localtime_r(&seconds, &local))
		(void) strftime(when, sizeof(when), "%Y-%m-%d %H:%M", &local);
	printf("%-19.*s  %10s  %-16s  %s%s\n", DIGEST_SHOWN, image->digest, amount, when,
	       image->ref, image->source_is_gone ? " (gone)" : "");
	return 0;
}

static int add_json_row(void *ctx, const struct resoluto_image *image)
{
	json_t *row = json_pack("{s:s, s:s, s:s, s:I, s:f, s:b}", "ref", image->ref, "digest",
	                        image->digest, "path", image->path, "size_bytes",
	                        (json_int_t) image->size_bytes, "created", image->created,
	                        "source_is_gone", image->source_is_gone);

	return json_array_append_new(ctx, row) < 0 ? -ENOMEM : 0;
}

static int list_as_json(struct resoluto_err *err)
{
	json_t *rows = json_array();
	int r = resoluto_image_list(NULL, add_json_row, rows, err);

	if (r >= 0) {
		(void) json_dumpf(rows, stdout, JSON_INDENT(2));
		putchar('\n');
	}
	json_decref(rows);
	return r;
}

static int run_list(const struct invocation *invocation, void *args)
{
	const struct image_args *given = args;
	struct resoluto_err err = { 0 };
	int r;

	if (given->json) {
		r = list_as_json(&err);
	} else {
		printf("%-19s  %10s  %-16s  %s\n", "DIGEST", "SIZE", "CREATED", "NAME");
		r = resoluto_image_list(NULL, print_row, NULL, &err);
	}
	return r < 0 ? command_failed(invocation, &err) : command_finish_output(invocation);
}

/* One that cannot be removed does not keep the others. */
static int run_remove(const struct invocation *invocation, void *args)
{
	int code = 0;

	for (size_t i = 0; i < invocation->words.count; i++) {
		struct resoluto_err err = { 0 };
		int one = 0;

		if (resoluto_image_remove(invocation->words.items[i], NULL, &err) < 0)
			one = command_failed(invocation, &err);
		code = code ? code : one;
	}
	return code;
}

static int run_prune(const struct invocation *invocation, void *args)
{
	struct resoluto_err err = { 0 };
	int64_t freed = resoluto_image_prune(NULL, &err);
	char amount[AMOUNT_MAX];

	if (freed < 0)
		return command_failed(invocation, &err);
	quantity_format_bytes((uint64_t) freed, amount, sizeof(amount));
	printf("freed %s\n", amount);
	return command_finish_output(invocation);
}

static int run_pull(const struct invocation *invocation, void *args)
{
	CLEANUP(resoluto_image_done) struct resoluto_image image = { 0 };
	struct progress progress;
	struct resoluto_image_options options = image_options(args, &progress);
	struct resoluto_err err = { 0 };
	int r;

	options.pull = RESOLUTO_PULL_ALWAYS;
	r = resoluto_image_get(invocation->words.items[0], &options, &image, &err);
	progress_erase(&progress);
	if (r < 0)
		return command_failed(invocation, &err);
	printf("%s\n", image.digest);
	return command_finish_output(invocation);
}

static int run_import(const struct invocation *invocation, void *args)
{
	struct progress progress;
	struct resoluto_image_options options = image_options(args, &progress);
	struct resoluto_err err = { 0 };
	int r = resoluto_image_tag(invocation->words.items[0], invocation->words.items[1], &options,
	                           &err);

	progress_erase(&progress);
	return r < 0 ? command_failed(invocation, &err) : 0;
}

static const struct command list = {
	.name = "ls",
	.summary = "List the images in the cache",
	.synopsis = "[OPTION]...",
	.description = "(gone) marks the name of a file or directory that an image was made from "
		       "and that is not there any more; `image prune` drops such names.",
	.options = list_options,
	.args_size = sizeof(struct image_args),
	.run = run_list,
};

static const struct command remove_images = {
	.name = "rm",
	.summary = "Forget images",
	.synopsis = "[OPTION]... NAME...",
	.description = "What no other name refers to is removed from the disk.",
	.options = no_options,
	.words_min = 1,
	.words_max = WORDS_ANY,
	.run = run_remove,
};

static const struct command prune = {
	.name = "prune",
	.summary = "Remove what no name refers to and what was left half done",
	.synopsis = "[OPTION]...",
	.options = no_options,
	.run = run_prune,
};

static const struct command pull = {
	.name = "pull",
	.summary = "Fetch an image, even if it is in the cache, and print its digest",
	.synopsis = "[OPTION]... REF",
	.options = fetch_options,
	.words_min = 1,
	.words_max = 1,
	.args_size = sizeof(struct image_args),
	.run = run_pull,
};

static const struct command import = {
	.name = "import",
	.summary = "Give an image, fetched if need be, a name in the cache",
	.synopsis = "[OPTION]... REF NAME",
	.description = "REF is anything that run --image takes: `image import rootfs:/srv/root "
		       "mine:1` makes `run --image mine:1` work.",
	.options = fetch_options,
	.words_min = 2,
	.words_max = 2,
	.args_size = sizeof(struct image_args),
	.run = run_import,
};

static const struct command build = {
	.name = "build",
	.summary = "Build a provider's image",
	.later = LATER_KATA,
};
static const struct command push = {
	.name = "push",
	.summary = "Push an image to the registry",
	.later = LATER_KATA,
};

static const struct command *const subcommands[] = { &list,   &remove_images, &prune, &pull,
	                                             &import, &build,         &push,  NULL };

const struct command command_image = {
	.name = "image",
	.summary = "Manage the cache of images",
	.synopsis = "COMMAND [OPTION]... [ARGUMENT]...",
	.description =
		"Any OCI image works unmodified. It is flattened once into a file system that "
		"sandboxes boot from, and kept by the digest of its content.",
	.subcommands = subcommands,
};
