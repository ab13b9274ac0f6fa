/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "check.h"

#include "base/cleanup.h"
#include "egress/row.h"

static struct resoluto_err err;

static const struct egress_row full = {
	.name = "pypi.org",
	.sni = "pypi.org",
	.port = 443,
	.protocol = EGRESS_PROTOCOL_TLS,
	.decision = EGRESS_ALLOWED,
	.reason = EGRESS_NONE,
	.address = "151.101.0.223",
	.bytes_up = 517,
	.bytes_down = 9223372036854775807,
	.duration_ms = 12,
	.detail = "refused: 10.0.0.1 (private)",
};

static void writes_as_documented(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(8192);

	CHECK(egress_row_write(&full, &out) == 0);
	CHECK_STR(out.data,
	          "{\"name\":\"pypi.org\",\"sni\":\"pypi.org\",\"port\":443,\"protocol\":\"tls\","
	          "\"decision\":\"allowed\",\"reason\":\"none\",\"address\":\"151.101.0.223\","
	          "\"bytes_up\":517,\"bytes_down\":9223372036854775807,\"duration_ms\":12,"
	          "\"detail\":\"refused: 10.0.0.1 (private)\"}");
}

static void check_same(const struct egress_row *a, const struct egress_row *b)
{
	CHECK_STR(a->name, b->name);
	CHECK_STR(a->sni, b->sni);
	CHECK_STR(a->address, b->address);
	CHECK_STR(a->detail, b->detail);
	CHECK(a->port == b->port && a->protocol == b->protocol && a->decision == b->decision);
	CHECK(a->reason == b->reason && a->bytes_up == b->bytes_up);
	CHECK(a->bytes_down == b->bytes_down && a->duration_ms == b->duration_ms);
}

static void reads_what_was_written(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(8192);
	struct egress_line line = { .kind = EGRESS_LINE_ROW, .row = full }, again;

	for (int i = 0; i < EGRESS_REASON_COUNT; i++) {
		line.row.reason = (enum egress_reason) i;
		line.row.protocol = (enum egress_protocol)(i % EGRESS_PROTOCOL_COUNT);
		line.row.decision = (enum egress_decision)(i % EGRESS_DECISION_COUNT);
		buf_clear(&out);
		CHECK(egress_line_write(&line, &out) == 0);
		CHECK(out.data[out.len - 1] == '\n');
		CHECK(egress_line_parse(out.data, out.len - 1, &again, &err) == 0);
		CHECK(again.kind == EGRESS_LINE_ROW);
		check_same(&again.row, &line.row);
	}
}

static void begins_and_ends(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(8192);
	struct egress_line line = { .kind = EGRESS_LINE_STARTED }, again;

	CHECK(egress_line_write(&line, &out) == 0);
	CHECK_STR(out.data, "{\"gateway\":\"started\"}\n");
	CHECK(egress_line_parse(out.data, out.len - 1, &again, &err) == 0);
	CHECK(again.kind == EGRESS_LINE_STARTED);
	line = (struct egress_line){ EGRESS_LINE_ENDED, .bytes_up = 1, .bytes_down = 2,
		                     .rows_dropped = 3 };
	buf_clear(&out);
	CHECK(egress_line_write(&line, &out) == 0);
	CHECK_STR(out.data, "{\"gateway\":\"ended\",\"up\":1,\"down\":2,\"rows_dropped\":3}\n");
	CHECK(egress_line_parse(out.data, out.len - 1, &again, &err) == 0);
	CHECK(again.kind == EGRESS_LINE_ENDED && again.bytes_up == 1 && again.bytes_down == 2);
	CHECK(again.rows_dropped == 3);
}

static void text_is_printable(void)
{
	char text[32], small[6];

	egress_row_text(text, sizeof(text), "a.org\0\n\x1b\xc3\\\x7f ", 12);
	CHECK_STR(text, "a.org\\x00\\x0a\\x1b\\xc3\\x5c\\x7f ");
	egress_row_text(small, sizeof(small), "abcdefgh", 8);
	CHECK_STR(small, "abcde");
	egress_row_text(small, sizeof(small), "ab\n", 3);
	CHECK_STR(small, "ab");
	egress_row_text(small, sizeof(small), "a\nb", 3);
	CHECK_STR(small, "a\\x0a");
	egress_row_text(small, sizeof(small), "", 0);
	CHECK_STR(small, "");
}

/* The worst that can be in a row, and more than that. */
static void rows_are_bounded(void)
{
	static const char fills[] = { 'x', '"', '\\', '\n', '\x01' };
	CLEANUP(buf_done) struct buf out = BUF_INIT(8192);
	struct egress_line line = { .kind = EGRESS_LINE_ROW, .row = full }, again;
	char bytes[4096];

	for (size_t i = 0; i < sizeof(fills); i++) {
		memset(bytes, fills[i], sizeof(bytes));
		egress_row_text(line.row.name, sizeof(line.row.name), bytes, 255);
		egress_row_text(line.row.sni, sizeof(line.row.sni), bytes, 255);
		egress_row_text(line.row.detail, sizeof(line.row.detail), bytes, sizeof(bytes));
		egress_row_text(line.row.address, sizeof(line.row.address), bytes, sizeof(bytes));
		buf_clear(&out);
		CHECK(egress_row_write(&line.row, &out) == 0);
		CHECK(out.len <= EGRESS_ROW_MAX);
		CHECK(egress_line_parse(out.data, out.len, &again, &err) == 0);
		CHECK_STR(again.row.name, line.row.name);
		CHECK(strncmp(again.row.detail, line.row.detail, 100) == 0);
		/* Fields filled to the brim by hand. */
		memset(line.row.name, fills[i], sizeof(line.row.name) - 1);
		memset(line.row.sni, fills[i], sizeof(line.row.sni) - 1);
		memset(line.row.detail, fills[i], sizeof(line.row.detail) - 1);
		buf_clear(&out);
		CHECK(egress_row_write(&line.row, &out) == 0);
		CHECK(out.len <= EGRESS_ROW_MAX && out.len > 600);
		memset(&line.row.name, 0, sizeof(line.row.name));
		memset(&line.row.sni, 0, sizeof(line.row.sni));
	}
}

#define ROW "\"port\":443,\"protocol\":\"tls\",\"decision\":\"refused\",\"reason\":\"not-allowed\""

static int parse(const char *text)
{
	struct egress_line line;

	memset(&err, 0, sizeof(err));
	return egress_line_parse(text, strlen(text), &line, &err);
}

static void takes_rows_of_later_versions(void)
{
	struct egress_line line;
	static const char text[] = " { \"new\" : [1,{\"a\":null}], \"name\":\"a.org\"," ROW
				   ",\"up\\u0064\":true } ";

	CHECK(parse("{\"name\":\"a.org\"," ROW "}") == 0);
	CHECK(egress_line_parse(text, sizeof(text) - 1, &line, &err) == 0);
	CHECK_STR(line.row.name, "a.org");
	CHECK(line.row.reason == EGRESS_NOT_ALLOWED && line.row.decision == EGRESS_REFUSED);
	CHECK(line.row.bytes_up == 0 && !line.row.sni[0] && !line.row.detail[0]);
}

static void refuses_what_no_gateway_writes(void)
{
	static const char *const texts[] = {
		"",
		"{",
		"{}",
		"[]",
		"null",
		"x",
		"{\"gateway\":\"stopped\"}",
		"{\"gateway\":1}",
		"{\"gateway\":\"ended\",\"up\":-1}",
		"{\"gateway\":\"ended\",\"up\":1.5}",
		"{\"gateway\":\"ended\",\"up\":9223372036854775808}",
		"{\"gateway\":\"ended\",\"up\":\"1\"}",
		"{\"gateway\":\"started\",\"name\":\"a\"}",
		"{\"up\":1}",
		"{\"name\":\"a.org\"}",
		"{" ROW "}",
		"{\"name\":\"a.org\",\"up\":1," ROW "}",
		"{\"name\":\"a\",\"name\":\"b\"," ROW "}",
		"{\"name\":1," ROW "}",
		"{\"name\":null," ROW "}",
		"{\"name\":\"a\\n\"," ROW "}",
		"{\"name\":\"a\\u0000\"," ROW "}",
		"{\"name\":\"\xc3\xbc\"," ROW "}",
		"{\"name\":\"\\u001b[2J\"," ROW "}",
		"{\"name\":\"\x7f\"," ROW "}",
		"{\"name\":\"a\"," ROW "} x",
		"{\"name\":\"a\"," ROW ",}",
		"{\"name\":\"a\"," ROW ",\"port\":1}",
		"{\"name\":\"a\",\"port\":65536,\"protocol\":\"tls\",\"decision\":\"refused\","
		"\"reason\":\"none\"}",
		"{\"name\":\"a\",\"port\":1,\"protocol\":\"udp\",\"decision\":\"refused\","
		"\"reason\":\"none\"}",
		"{\"name\":\"a\",\"port\":1,\"protocol\":\"tls\",\"decision\":\"\","
		"\"reason\":\"none\"}",
		"{\"name\":\"a\",\"port\":1,\"protocol\":\"tls\",\"decision\":\"refused\","
		"\"reason\":\"because\"}",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (parse(texts[i]) != -EBADMSG)
			CHECK_STR(texts[i], "refused");
		CHECK(err.code == -EBADMSG && err.text[0]);
	}
}

static void long_ones_are_refused(void)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(65536);
	struct egress_line line;

	CHECK(buf_add_str(&text, "{\"name\":\"") == 0);
	for (int i = 0; i < EGRESS_ROW_NAME_MAX; i++)
		CHECK(buf_add_str(&text, "n") == 0);
	CHECK(buf_add_str(&text, "\"," ROW "}") == 0);
	CHECK(egress_line_parse(text.data, text.len, &line, &err) == 0);
	CHECK(strlen(line.row.name) == EGRESS_ROW_NAME_MAX);
	buf_clear(&text);
	CHECK(buf_add_str(&text, "{\"address\":\"") == 0);
	for (int i = 0; i < EGRESS_ROW_ADDRESS_MAX + 1; i++)
		CHECK(buf_add_str(&text, "n") == 0);
	CHECK(buf_add_str(&text, "\",\"name\":\"a\"," ROW "}") == 0);
	CHECK(egress_line_parse(text.data, text.len, &line, &err) == -EBADMSG);
	buf_clear(&text);
	CHECK(buf_add_str(&text, "{\"name\":\"a\"," ROW) == 0);
	while (text.len < EGRESS_ROW_MAX)
		CHECK(buf_add_str(&text, " ") == 0);
	CHECK(buf_add_str(&text, "}") == 0);
	CHECK(egress_line_parse(text.data, text.len, &line, &err) == -EBADMSG);
}

int main(void)
{
	RUN(writes_as_documented);
	RUN(reads_what_was_written);
	RUN(begins_and_ends);
	RUN(text_is_printable);
	RUN(rows_are_bounded);
	RUN(takes_rows_of_later_versions);
	RUN(refuses_what_no_gateway_writes);
	RUN(long_ones_are_refused);
	return check_done();
}
