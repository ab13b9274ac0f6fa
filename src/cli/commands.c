/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/milestones.h"

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
	&command_run,   &command_attach,   &command_logs,    &command_ps,
	&command_wait,  &command_kill,     &command_collect, &command_rm,
	&command_sweep, &command_doctor,   &command_image,   &command_version,
	&command_help,  &command_generate, &store,           &pool,
	NULL,
};
