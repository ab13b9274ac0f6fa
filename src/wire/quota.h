/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * quota.h - how much a run may store and bring back: names, units, defaults, and what things cost
 * (docs/design/quotas.md).  Pure.
 *
 * The shim holds the quotas of objects, whoever unpacks an archive those of its members.  Which one was exceeded
 * is told in words that begin with its name; quota_told() finds it again behind a runtime's status.
 */

#include <stddef.h>
#include <stdint.h>

#include "resoluto/err.h"
#include "resoluto/runtime.h"

enum quota {
	QUOTA_NONE,
	QUOTA_BYTES,
	QUOTA_OBJECTS,
	QUOTA_ARCHIVE_BYTES,
	QUOTA_MEMBERS,
	QUOTA_RATIO,
	QUOTA_COUNT,
};

enum {
	QUOTA_BLOCK = 4096,     /* bytes; content takes whole ones */
	QUOTA_NAME_COST = 1024, /* bytes; inode and directory entry of a file, whatever is in it */
	QUOTA_TEXT = 256,       /* bytes of an explanation, the 0 included */
};

const char *quota_name(enum quota quota); /* as in --quota; "" for QUOTA_NONE */
/* "bytes", "objects", "members", "": what its number counts. */
const char *quota_unit(enum quota quota);
/* The limit in force: what was asked for, else the default.  quotas may be NULL; not of QUOTA_NONE. */
uint64_t quota_limit(const struct resoluto_quotas *quotas, enum quota quota);
/* All limits in force. */
struct resoluto_quotas quota_limits(const struct resoluto_quotas *quotas);

/* Bytes of whole blocks. */
uint64_t quota_blocks(uint64_t bytes);
/* What a file of so many bytes costs its file system. */
uint64_t quota_cost(uint64_t bytes);

/* "members: ... --quota members=VALUE allows more". */
void quota_explain(enum quota quota, uint64_t limit, char ret_text[QUOTA_TEXT]);
/* The quota that an explanation is about; QUOTA_NONE: it is none. */
enum quota quota_told(const char *text);

/* NAME=VALUE into *quotas.  -EINVAL with the names there are, or what a value looks like. */
int quota_parse(const char *text, struct resoluto_quotas *quotas, struct resoluto_err *err);
