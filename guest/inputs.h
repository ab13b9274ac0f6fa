/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* inputs.h - from the inbox disk into the workspace, in bounded memory. */

#include <stdint.h>

#include "guest/users.h"
#include "resoluto/err.h"

enum { INPUTS_READ = 256 * 1024 }; /* bytes read from the disk at once, past the page cache */

struct inputs_report {
	uint32_t archives;
	uint64_t members, bytes;
};

/* The inbox disk at this path, opened, not read. */
int inputs_open_disk(const char *path, struct resoluto_err *err);
/* Called between two reads, so that a long unpacking does not look like death. */
typedef void inputs_tick_fn(void *ctx);

/* Unpack every archive of the disk beneath workspace; all becomes the user's. */
int inputs_unpack(int disk_fd, int workspace_fd, const struct user *user, inputs_tick_fn *tick,
                  void *ctx, struct inputs_report *ret_report, struct resoluto_err *err);
