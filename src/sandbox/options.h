/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * options.h - is what the caller asked for possible at all?  Pure: nothing is opened here.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/options_copy.h"
#include "resoluto/sandbox.h"

/* The paths of options in the one spelling that they are checked and compared in ("./a//b/" is "a/b"): what options
 * then point to is kept here. */
struct options_plain {
	struct strv paths, exclude, protect;
	char *workdir;
};

int options_make_plain(struct resoluto_run_options *options, struct options_plain *plain,
                       struct resoluto_err *err);
void options_plain_done(struct options_plain *plain); /* a cleanup function */

/* -EINVAL with what to change. */
int options_check(const struct resoluto_run_options *options, struct resoluto_err *err);
/* The same for a launch, which has no output and needs no place for outputs yet. */
int options_check_launch(const struct resoluto_run_options *options, struct resoluto_err *err);

/* KEY=VALUE as the program may be given it, by whichever way.  -EINVAL never tells the value. */
int options_check_variable(const char *entry, struct resoluto_err *err);

/* "root", "0", "0:0", "00": the user of this image or option is uid 0. */
bool options_user_is_root(const char *user);
/* KEY=VALUE whose key begins with RESOLUTO_. */
bool options_is_reserved(const char *entry);
bool options_is_utf8(const char *text);
