/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * egress_files.h - the files by which a C library finds who answers names: resolv.conf and nsswitch.conf of the
 * image, replaced in the layer above it.
 */

#include "base/buf.h"
#include "resoluto/err.h"

/* What nsswitch.conf must be instead of text (NULL: there is none): other lines stay, `hosts` is files, then
 * DNS.  Pure. */
int egress_nsswitch(const char *text, struct buf *out);
/* Inside the root. */
int egress_files_write(struct resoluto_err *err);
