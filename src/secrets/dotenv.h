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
 * mark.  A NAME is what dotenv_is_name() takes, so there is no blank between it and '='.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "resoluto/err.h"

enum { DOTENV_MAX = 4 * 1024 * 1024 }; /* bytes of a file */

/* Of a variable, wherever it was given: neither empty nor with a '=', a blank or a control character.  A
 * kernel takes the latter, too, but no program asks for such a name: they come of a slip. */
bool dotenv_is_name(const char *text, size_t len);

/* Whether a variable, "KEY=VALUE", may be given: 0, or a failure, which is recorded. */
typedef int dotenv_check_fn(const char *entry, struct resoluto_err *err);

/*
 * Append "KEY=VALUE" for each name, in the order of the lines; of two lines with one name the later
 * wins, and check (NULL: all may be given) is asked about that one.  What the list held before is not looked at.
 *
 * A failure, -EINVAL unless it is check's, names the line number and what is wrong, never the value.  -E2BIG:
 * over DOTENV_MAX.  After a failure the list is as it was.
 */
int dotenv_parse(const char *text, size_t len, dotenv_check_fn *check, struct strv *ret_env,
                 struct resoluto_err *err);
