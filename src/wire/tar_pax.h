/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* tar_pax.h - what a PAX header says about the member behind it; for tar_read.c only.  Pure. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "resoluto/err.h"
#include "wire/tar.h"

struct tar_extents {
	struct tar_extent *items; /* owned */
	size_t count, cap;
};

/* -E2BIG over TAR_EXTENTS_MAX. */
int tar_extents_add(struct tar_extents *extents, uint64_t offset, uint64_t len);

/* What stands in special headers (PAX, GNU long names) and replaces fields of the member's own. */
struct tar_overrides {
	char *path, *target, *sparse_name; /* owned; NULL: not given */
	bool has_size, has_mtime, has_real_size;
	uint64_t size, real_size; /* bytes */
	struct timespec mtime;
	/* GNU.sparse: 0.x has the extents here, 1.0 at the start of the content. */
	bool has_version, has_map;
	uint64_t major, minor;
	uint64_t pending_offset; /* 0.0: of the extent whose length comes next */
	struct tar_extents extents;
};

/* Take in the records of one header; those that do not matter here are passed over.  -EBADMSG. */
int tar_pax_parse(const char *bytes, size_t len, struct tar_overrides *overrides,
                  struct resoluto_err *err);
void tar_overrides_done(struct tar_overrides *overrides);
