/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * dotenv.h - KEY=VALUE lines (contract section 5): optional "export ", comments, one pair of matching
 * quotes, no expansion.  Pure.
 */

#include <stddef.h>

#include "base/buf.h"
#include "resoluto/err.h"

enum { DOTENV_MAX = 4 * 1024 * 1024 }; /* bytes of a file */

/* Append "KEY=VALUE" for each line; a later line wins over an earlier one of the same key.  -EINVAL
 * names the line number and what is wrong. */
int dotenv_parse(const char *text, size_t len, struct strv *ret_env, struct resoluto_err *err);
