/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * row.h - one decision of the gateway, and the lines of egress.jsonl.  Pure.
 * docs/design/egress.md has the format.
 *
 * All text in a row is printable ASCII: what is not was written as \xNN (egress_row_text()).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "egress/reason.h"
#include "resoluto/err.h"

enum {
	EGRESS_ROW_NAME_MAX = 4 * 255, /* characters */
	EGRESS_ROW_ADDRESS_MAX = 63,   /* characters */
	EGRESS_ROW_DETAIL_MAX = 512,   /* characters */
	EGRESS_ROW_MAX = 4096,         /* bytes of JSON, whatever is in it */
	EGRESS_ROWS_MAX = 10000,       /* in a run */
};

enum egress_protocol {
	EGRESS_PROTOCOL_NONE,
	EGRESS_PROTOCOL_TLS,
	EGRESS_PROTOCOL_HTTP,
	EGRESS_PROTOCOL_DNS,
	EGRESS_PROTOCOL_COUNT,
};

enum egress_decision {
	EGRESS_ALLOWED,
	EGRESS_REFUSED,
	EGRESS_FAILED, /* allowed, but it did not work */
	EGRESS_DECISION_COUNT,
};

struct egress_row {
	char name[EGRESS_ROW_NAME_MAX + 1]; /* as asked */
	char sni[EGRESS_ROW_NAME_MAX + 1];  /* "" unless there was one */
	uint16_t port;                      /* 0: a name was asked for, not a connection */
	enum egress_protocol protocol;
	enum egress_decision decision;
	enum egress_reason reason;
	char address[EGRESS_ROW_ADDRESS_MAX + 1]; /* "" unless it was dialled */
	uint64_t bytes_up, bytes_down;
	uint64_t duration_ms;
	char detail[EGRESS_ROW_DETAIL_MAX + 1];
};

/* Copy foreign bytes so that they are printable ASCII; what is over size - 1 characters is cut. */
void egress_row_text(char *text, size_t size, const void *bytes, size_t len);

const char *egress_protocol_name(enum egress_protocol protocol); /* "tls" */
const char *egress_decision_name(enum egress_decision decision); /* "allowed" */

/* Append one JSON object of at most EGRESS_ROW_MAX bytes, without a newline. */
int egress_row_write(const struct egress_row *row, struct buf *out);

/* A line of egress.jsonl. */
enum egress_line_kind { EGRESS_LINE_STARTED, EGRESS_LINE_ROW, EGRESS_LINE_ENDED };

struct egress_line {
	enum egress_line_kind kind;
	struct egress_row row;                       /* EGRESS_LINE_ROW */
	uint64_t bytes_up, bytes_down, rows_dropped; /* EGRESS_LINE_ENDED */
};

/* Append a line with its newline. */
int egress_line_write(const struct egress_line *line, struct buf *out);
/* One line without its newline, or the payload of DECISION.  -EBADMSG: it is none; members we do not know are passed over. */
int egress_line_parse(const char *text, size_t len, struct egress_line *ret_line,
                      struct resoluto_err *err);
