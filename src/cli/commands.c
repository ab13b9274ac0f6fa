/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/milestones.h"

static const struct command attach = {
	.name = "attach",
	.summary = "Follow a detached run",
	.later = LATER_DURABLE,
};
static const struct command logs = {
	.name = "logs",
	.summary = "Print the output of a run",
	.later = LATER_DURABLE,
};
static const struct command ps = {
	.name = "ps",
	.summary = "List the runs",
	.later = LATER_DURABLE,
};
static const struct command wait = {
	.name = "wait",
	.summary = "Wait for the end of a run",
	.later = LATER_DURABLE,
};
static const struct command kill = {
	.name = "kill",
	.summary = "Send a signal to a run",
	.later = LATER_DURABLE,
};
static const struct command collect = {
	.name = "collect",
	.summary = "Fetch the outputs of a run",
	.later = LATER_DURABLE,
};
static const struct command sweep = {
	.name = "sweep",
	.summary = "Remove what dead runs left",
	.later = LATER_DURABLE,
};
static const struct command rm = {
	.name = "rm",
	.summary = "Remove a run",
	.later = LATER_DURABLE,
};
static const struct command store = {
	.name = "store",
	.summary = "Look into a store",
	.later = LATER_STORES,
};
static const struct command pool = {
	.name = "pool",
	.summary = "Manage warm sandboxes",
	.later = LATER_WARM,
};

const struct command *const cli_commands[] = {
	&command_run,
	&command_doctor,
	&command_image,
	&command_version,
	&command_help,
	&command_generate,
	&attach,
	&logs,
	&ps,
	&wait,
	&kill,
	&collect,
	&sweep,
	&rm,
	&store,
	&pool,
	NULL,
};
