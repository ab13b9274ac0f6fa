/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * kernel.h - which guest kernel a file is: by what provisioning wrote beside it (scripts/lib/kernel-dir.sh).
 */

#include "base/buf.h"
#include "resoluto/err.h"
#include "runtime/microvm/cmdline.h"

enum {
	KERNEL_NAME_MAX = 256,          /* bytes, the 0 included */
	KERNEL_BESIDE_MAX = 256 * 1024, /* bytes of a file beside it */
};

/* "6.1.0-44-cloud-amd64 0123456789abcdef (debian)": version and hash as the file VERSION beside it has them, and whose
 * kernel the row is for.  Without VERSION the name of the file stands for both. */
void kernel_describe(const char *path, const struct machine_row *row, char ret[KERNEL_NAME_MAX]);

/* The row of the machine table: that of this name (RESOLUTO_LOCAL_MACHINE; NULL or "": none), else the one that the file
 * MACHINE beside the kernel names (path may be NULL), else that of this CPU.  -EOPNOTSUPP: no such row. */
int kernel_row(const char *path, const char *name, const struct machine_row **ret_row,
               struct resoluto_err *err);

/* The content of a file in the kernel's own folder, links followed.  -ENOENT. */
int kernel_read_beside(const char *path, const char *name, struct buf *text);
