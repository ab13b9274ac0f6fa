/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* commands.h - every command of the program; the table is in commands.c. */

#include "cli/command.h"

extern const struct command command_run, command_attach, command_logs, command_ps, command_wait,
	command_kill, command_collect, command_rm, command_sweep, command_doctor, command_image,
	command_version, command_help, command_generate;
/* All of them, in the order of the help text; NULL-terminated. */
extern const struct command *const cli_commands[];
