/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* environment.h - the variables that matter to the command line: for the man page, and to tell
 * misspelt keys of a configuration file.  All of them are in docs/environment.md. */

#include <stdbool.h>

struct variable {
	const char *name;    /* NULL behind the last one */
	const char *meaning; /* for the man page */
};

extern const struct variable environment_table[];

/* A key of a configuration file that looks like one of ours and is none. */
bool environment_is_unknown(const char *entry); /* KEY=VALUE */
