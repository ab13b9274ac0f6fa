/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * audit.h - egress.jsonl: what was decided, one row a line, written as it is known.  The first line says that the
 * gateway runs, the last that it ended as it should; what is between them is the truth as far as the
 * gateway lived.  docs/design/egress.md has the members.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "egress/policy.h"
#include "egress/row.h"
#include "resoluto/err.h"

enum {
	/* Of EGRESS_ROWS_MAX, these are kept for what was connected: a guest that asks for ten thousand names must not
	 * be able to hide that by it. */
	AUDIT_KEPT_FOR_ALLOWED = 2000,
};

struct audit {
	int fd; /* borrowed; append-only */
	/* What else is told of a row; NULL: nobody. */
	void (*on_row)(void *ctx, const char *json, size_t len);
	void *ctx;
	uint64_t rows, dropped, up, down;
	bool is_torn; /* the last line was not written to its end */
	/* Names that were asked for, as keyed hashes: a table with open addressing. */
	uint64_t *asked;
	size_t asked_count, asked_size;
	uint64_t key;
};

/* Takes the lock that says that the rows are being written.  -EWOULDBLOCK: somebody else has it. */
int audit_start(struct audit *audit, int fd, struct resoluto_err *err);
/* The first line. */
int audit_begin(struct audit *audit, struct resoluto_err *err);
void audit_add(struct audit *audit, const struct egress_row *row);
/* A name that the guest's responder refused: decided here, and said once. */
void audit_asked(struct audit *audit, const struct egress_policy *policy, const void *name,
                 size_t len);
/* The guest broke the rules of the port. */
void audit_protocol(struct audit *audit, const char *rule);
/* The last line. */
void audit_end(struct audit *audit);
void audit_done(struct audit *audit);
