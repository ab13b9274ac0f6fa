/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * rootdir.h - a root file system in a directory, as a tar stream.
 *
 * No link is followed and no other file system is entered.  Sockets, and devices beneath /dev, are left
 * out; other devices, and what cannot be read, are errors that name the file.  Not being root, the
 * caller's own files become root's: whoever unpacks an image without root loses its owners that way.
 * The order is fixed, so that the same tree gives the same bytes.
 */

#include "image/digest.h"
#include "image/flatten.h"
#include "resoluto/err.h"

/* Names, kinds, owners, modes, sizes and change times of all files, as one digest: no file has changed
 * as long as it is the same. */
int rootdir_fingerprint(const char *path, const struct caller *caller, char ret_digest[DIGEST_SIZE],
                        struct resoluto_err *err);
int rootdir_flatten(const char *path, const struct flatten_sink *sink, const struct caller *caller,
                    struct resoluto_err *err);
