/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * help.h - the usage line and the --help text of a command, made from its tables.
 *
 * Always 80 columns wide, whatever the terminal has: the same text for everybody.
 */

#include "cli/command.h"
#include "cli/text.h"

/* "usage: resoluto-sandbox image rm [OPTION]... NAME...\n" */
void help_usage(struct text *out, const struct command *command, const char *path);
void help_command(struct text *out, const struct command *command, const char *path);
/* What `resoluto-sandbox --help` says. */
void help_program(struct text *out, const struct command *const *commands);
