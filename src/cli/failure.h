/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * failure.h - what goes wrong, in words: "resoluto-sandbox: what: where; what to do".
 *
 * Text that came out of a sandbox (its console, its reasons) is hostile: control characters are
 * written as \xNN before a terminal sees them.
 */

#include <stdbool.h>
#include <stdio.h>

#include "cli/text.h"
#include "resoluto/err.h"
#include "resoluto/sandbox.h"

enum {
	FAILURE_CONSOLE_LINES = 15, /* of the guest's last words that a failure repeats */
};

/* One line; where ("run", "image rm") may be "".  The system's word for the error number follows
 * where it says more than the text. */
void failure_print(FILE *out, const char *where, const struct resoluto_err *err);

/* Why a run ended otherwise than by the program's own exit: nothing, one line, or one line and
 * the end of the console.  stop_signal: the last signal that asked us to stop, 0 for none. */
void failure_print_result(FILE *out, const struct resoluto_result *result, int stop_signal);

/* Of a run without a workspace whose program was looked for by its path: one line that says so. */
void failure_print_no_workspace(FILE *out, const struct resoluto_result *result,
                                const char *program);

/* Why output is missing, and what was wrong with egress.  With `all` (a person reads it) everything the run went well in spite of. */
void failure_print_warnings(FILE *out, const struct resoluto_result *result, bool all);

/* One line of words that may come out of a sandbox. */
void failure_print_text(FILE *out, const char *words);

/* Append text with control characters (but for '\t') as \xNN; UTF-8 passes. */
void failure_add_printable(struct text *out, const char *bytes, size_t len);
/* Where the last `lines` lines of text begin. */
const char *failure_last_lines(const char *text, size_t lines);
