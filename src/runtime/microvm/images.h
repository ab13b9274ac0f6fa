/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * images.h - the files a microVM boots, opened and looked at: a truncated one is refused here with
 * its name, not by a guest that dies in silence.
 */

#include <stdbool.h>

#include "resoluto/err.h"

enum image_kind {
	IMAGE_KERNEL, /* ELF with its segments whole, or any other non-empty file (aarch64's Image) */
	IMAGE_INITRD, /* a plain cpio archive up to its end, or any other non-empty file (a packed one) */
	IMAGE_ROOTFS, /* a squashfs that is whole */
};

/*
 * Open for reading.  for_others: another user will open it again by /proc/self/fd, so its mode must
 * let everyone read.
 */
int image_open(const char *path, enum image_kind kind, bool for_others, int *ret_fd,
               struct resoluto_err *err);
