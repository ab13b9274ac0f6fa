/* SPDX-License-Identifier: Apache-2.0 */

/* cmd_version.c - `version`: of this program, and with --json of what sandboxes run with. */

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/config.h"
#include "cli/commands.h"
#include "cli/facts.h"
#include "resoluto/version.h"

struct version_args {
	bool json;
};

static const struct option options[] = {
	{ OPTION_FLAG, .name = "json", .offset = offsetof(struct version_args, json),
	  .help = "print a JSON object, with the versions of QEMU and of the sandboxes' kernel" },
	{ OPTION_HELP, 'h', .name = "help", .help = "print this text" },
	{ .kind = OPTION_END },
};

/* {path, version}, null for what is not known. */
static json_t *describe(const char *path, const char *version)
{
	return json_pack("{s:s?, s:s?}", "path", path, "version", version);
}

static json_t *describe_qemu(const struct config *config)
{
	CLEANUP(mem_free) char *path = NULL;
	char version[FACT_MAX];
	bool is_known = fact_qemu(config, &path) == 0 && fact_program_version(path, version) == 0;

	return describe(path, is_known ? version : NULL);
}

static json_t *describe_kernel(const struct config *config)
{
	const char *path = config_get(config, "RESOLUTO_LOCAL_KERNEL");
	char version[FACT_MAX], name[KERNEL_NAME_MAX];
	bool is_known = path && fact_kernel_version(path, version) == 0;

	fact_kernel_name(config, name);
	return json_pack("{s:s?, s:s?, s:s?}", "path", path, "version", is_known ? version : NULL,
	                 "name", name[0] ? name : NULL);
}

static void print_json(const struct config *config)
{
	json_t *root = json_pack("{s:i, s:s, s:s, s:s?, s:o, s:o, s:s?}", "schema", 1, "version",
	                         RESOLUTO_VERSION, "library", resoluto_version(), "accel",
	                         config_get(config, "RESOLUTO_LOCAL_ACCEL"), "qemu",
	                         describe_qemu(config), "kernel", describe_kernel(config), "initrd",
	                         config_get(config, "RESOLUTO_LOCAL_INITRD"));

	(void) json_dumpf(root, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(root);
}

static int run(const struct invocation *invocation, void *args)
{
	const struct version_args *given = args;
	CLEANUP(config_free) struct config *config = NULL;
	struct resoluto_err err = { 0 };

	if (!given->json)
		printf("%s %s\n", PROGRAM_NAME, RESOLUTO_VERSION);
	else if (config_load(&config, &err) < 0)
		return command_failed(invocation, &err);
	else
		print_json(config);
	return command_finish_output(invocation);
}

const struct command command_version = {
	.name = "version",
	.summary = "Print the version",
	.synopsis = "[OPTION]...",
	.options = options,
	.args_size = sizeof(struct version_args),
	.run = run,
};
