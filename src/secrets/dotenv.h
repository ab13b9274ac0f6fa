/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * dotenv.h - KEY=VALUE lines (contract section 5).  Pure.
 *
 *	# a comment: only as a whole line, since '#' is an ordinary byte of a value
 *	NAME=value up to the end of the line, without the blanks around it
 *	export NAME="one pair of quotes, ' or "", is taken off; what is between them stays as it is"
 *	EMPTY=
 *
 * Nothing is expanded: no $NAME, no backslash.  A value that begins with a quote must end with the
 * same one, on the same line.  Lines may end in CR LF, the text may begin with a UTF-8 byte order
 * mark.  A NAME is [A-Za-z_][A-Za-z0-9_]*, with no blank between it and '='.
 */

#include <stddef.h>

#include "base/buf.h"
#include "resoluto/err.h"

enum { DOTENV_MAX = 4 * 1024 * 1024 }; /* bytes of a file */

/*
 * Append "KEY=VALUE" for each name, in the order of the lines; of two lines with one name the later
 * wins.  What the list held before is not looked at.
 *
 * -EINVAL names the line number and what is wrong, never the value.  -E2BIG: over DOTENV_MAX.  After a
 * failure the list is as it was.
 */
int dotenv_parse(const char *text, size_t len, struct strv *ret_env, struct resoluto_err *err);
