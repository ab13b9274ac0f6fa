/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_row.c - a line of egress.jsonl: what parses writes to what parses to the same, and is printable. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "egress/row.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

static void require_printable(const char *text)
{
	for (; *text; text++)
		require(*text >= ' ' && *text <= '~');
}

static void check_again(const struct egress_line *line)
{
	struct buf out = BUF_INIT(2 * EGRESS_ROW_MAX);
	struct egress_line again;

	require(egress_line_write(line, &out) == 0);
	require(out.len <= EGRESS_ROW_MAX + 1 && out.data[out.len - 1] == '\n');
	require(!memchr(out.data, '\n', out.len - 1));
	require(egress_line_parse(out.data, out.len - 1, &again, NULL) == 0);
	require(again.kind == line->kind && again.rows_dropped == line->rows_dropped);
	require(again.row.port == line->row.port && again.row.reason == line->row.reason);
	require(again.row.bytes_up == line->row.bytes_up);
	require(strncmp(again.row.name, line->row.name, 255) == 0);
	buf_done(&out);
}

/* Any bytes are made printable, within their bound. */
static void check_text(const uint8_t *data, size_t size)
{
	char text[64];
	size_t room = size % sizeof(text) + 1;

	egress_row_text(text, room, data, size);
	require(strlen(text) < room);
	require_printable(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct egress_line line;
	struct resoluto_err err = { 0 };
	int r = egress_line_parse((const char *) data, size, &line, &err);

	check_text(data, size);
	require(r == 0 || (r == -EBADMSG && err.text[0]));
	if (r < 0)
		return 0;
	require_printable(line.row.name);
	require_printable(line.row.sni);
	require_printable(line.row.address);
	require_printable(line.row.detail);
	check_again(&line);
	return 0;
}
