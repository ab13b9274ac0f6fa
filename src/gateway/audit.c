/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/random.h"
#include "gateway/audit.h"

enum {
	ASKED_FIRST = 256,
	LOCK_MS = 300,
};

int audit_start(struct audit *audit, int fd, struct resoluto_err *err)
{
	int r;

	audit->fd = fd;
	/* A reader may hold it for a moment, to see whether somebody writes. */
	r = lock_within(fd, LOCK_EX, LOCK_MS);
	if (r < 0)
		return resoluto_fail(err, r, "lock the rows");
	return random_bytes(&audit->key, sizeof(audit->key));
}

/* A line with its end.  One that has none, since the file was full, must not spoil the next. */
static int write_text(struct audit *audit, const struct buf *text)
{
	int r = audit->is_torn ? write_all(audit->fd, "\n", 1) : 0;

	if (r == 0)
		r = write_all(audit->fd, text->data, text->len);
	audit->is_torn = r < 0;
	return r;
}

static int write_line(struct audit *audit, const struct egress_line *line)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(EGRESS_ROW_MAX + 1);
	int r = egress_line_write(line, &text);

	return r < 0 ? r : write_text(audit, &text);
}

int audit_begin(struct audit *audit, struct resoluto_err *err)
{
	const struct egress_line line = { .kind = EGRESS_LINE_STARTED };
	int r = write_line(audit, &line);

	return r < 0 ? resoluto_fail(err, r, "write the first row") : 0;
}

/* However it ended: a guest must not be able to hide what it sent by an end that counts as refused. */
static bool is_kept(const struct egress_row *row)
{
	const bool has_moved = row->bytes_up > 0 || row->bytes_down > 0;

	return row->reason == EGRESS_PROTOCOL ||
	       (row->port != 0 && (row->decision == EGRESS_ALLOWED || has_moved));
}

static bool has_room(const struct audit *audit, const struct egress_row *row)
{
	return audit->rows < EGRESS_ROWS_MAX - (is_kept(row) ? 0 : AUDIT_KEPT_FOR_ALLOWED);
}

void audit_add(struct audit *audit, const struct egress_row *row)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(EGRESS_ROW_MAX + 1);

	if (!has_room(audit, row) || egress_row_write(row, &text) < 0) {
		audit->dropped++;
		return;
	}
	audit->rows++;
	if (audit->on_row)
		audit->on_row(audit->ctx, text.data, text.len);
	if (buf_add_str(&text, "\n") < 0 || write_text(audit, &text) < 0)
		audit->dropped++;
}

static uint64_t hash(uint64_t key, const uint8_t *bytes, size_t len)
{
	uint64_t h = key ^ 0x9e3779b97f4a7c15u;

	for (size_t i = 0; i < len; i++) {
		h = (h ^ bytes[i]) * 0x100000001b3u;
		h ^= h >> 29;
	}
	h = (h ^ key) * 0xbf58476d1ce4e5b9u;
	return (h ^ h >> 32) | 1; /* 0 is an empty place */
}

/* Where the hash is, or would be. */
static uint64_t *place(uint64_t *table, size_t size, uint64_t value)
{
	size_t at = value & (size - 1);

	while (table[at] && table[at] != value)
		at = (at + 1) & (size - 1);
	return &table[at];
}

static int grow(struct audit *audit)
{
	const size_t size = audit->asked_size ? 2 * audit->asked_size : ASKED_FIRST;
	uint64_t *table = calloc(size, sizeof(*table));

	if (!table)
		return -ENOMEM;
	for (size_t i = 0; i < audit->asked_size; i++) {
		if (audit->asked[i])
			*place(table, size, audit->asked[i]) = audit->asked[i];
	}
	free(audit->asked);
	audit->asked = table;
	audit->asked_size = size;
	return 0;
}

/* Whether this is the first time. */
static bool is_new(struct audit *audit, const void *name, size_t len)
{
	const uint64_t value = hash(audit->key, name, len);
	uint64_t *at;

	/* There is no row for more of them. */
	if (audit->asked_count == EGRESS_ROWS_MAX ||
	    (2 * audit->asked_count >= audit->asked_size && grow(audit) < 0))
		return true;
	at = place(audit->asked, audit->asked_size, value);
	if (*at == value)
		return false;
	*at = value;
	audit->asked_count++;
	return true;
}

static enum egress_reason decide(const struct egress_policy *policy, const void *name, size_t len)
{
	struct egress_name parsed;
	enum egress_reason reason = egress_name_parse(name, len, &parsed);

	if (reason != EGRESS_NONE)
		return reason;
	if (policy->is_learning)
		return EGRESS_LEARNING;
	return egress_policy_has_name(policy, &parsed) ? EGRESS_NONE : EGRESS_NOT_ALLOWED;
}

void audit_asked(struct audit *audit, const struct egress_policy *policy, const void *name,
                 size_t len)
{
	const enum egress_reason reason = decide(policy, name, len);
	struct egress_row row = {
		.protocol = EGRESS_PROTOCOL_DNS,
		.decision = reason == EGRESS_NONE ? EGRESS_ALLOWED : EGRESS_REFUSED,
		.reason = reason,
	};

	if (!is_new(audit, name, len))
		return;
	egress_row_text(row.name, sizeof(row.name), name, len);
	audit_add(audit, &row);
}

void audit_protocol(struct audit *audit, const char *rule)
{
	struct egress_row row = { .decision = EGRESS_REFUSED, .reason = EGRESS_PROTOCOL };

	egress_row_text(row.detail, sizeof(row.detail), rule, strlen(rule));
	audit_add(audit, &row);
}

void audit_end(struct audit *audit)
{
	const struct egress_line line = {
		.kind = EGRESS_LINE_ENDED,
		.bytes_up = audit->up,
		.bytes_down = audit->down,
		.rows_dropped = audit->dropped,
	};

	/* Without it the rows say that the gateway was lost: that is what happened to the end of them. */
	(void) write_line(audit, &line);
}

void audit_done(struct audit *audit)
{
	free(audit->asked);
	audit->asked = NULL;
}
