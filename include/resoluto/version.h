/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* version.h - which library this is (seed 002: image and runner are told apart by it).  The program compiled against RESOLUTO_VERSION may meet
 * another one at run time: resoluto_version() tells. */

#ifdef __cplusplus
extern "C" {
#endif

#define RESOLUTO_VERSION "0.1.0"

/** The version of the library that is running, "MAJOR.MINOR.PATCH"; static. */
const char *resoluto_version(void);

/**
 * The version guard (seed 002, "Images"): an image that carries a runner states the version it was
 * made for, and MAJOR.MINOR must equal ours, whatever follows behind '.', '-' or '+'.
 *
 * Returns 0, -EINVAL if image_version is no version, -EPROTO if it does not fit.
 */
struct resoluto_err;
int resoluto_version_guard(const char *image_version, struct resoluto_err *err);

#ifdef __cplusplus
}
#endif
