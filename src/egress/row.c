/* SPDX-License-Identifier: Apache-2.0 */
/* row.c - rows are written in one order and read in any; one table of members serves both kinds of lines. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "egress/row.h"
#include "wire/json_scan.h"
#include "wire/json_text.h"

static const char *const protocols[EGRESS_PROTOCOL_COUNT] = {
	[EGRESS_PROTOCOL_NONE] = "none",
	[EGRESS_PROTOCOL_TLS] = "tls",
	[EGRESS_PROTOCOL_HTTP] = "http",
	[EGRESS_PROTOCOL_DNS] = "dns",
};

static const char *const decisions[EGRESS_DECISION_COUNT] = {
	[EGRESS_ALLOWED] = "allowed",
	[EGRESS_REFUSED] = "refused",
	[EGRESS_FAILED] = "failed",
};

const char *egress_protocol_name(enum egress_protocol protocol)
{
	return (unsigned) protocol < EGRESS_PROTOCOL_COUNT ? protocols[protocol] : NULL;
}

const char *egress_decision_name(enum egress_decision decision)
{
	return (unsigned) decision < EGRESS_DECISION_COUNT ? decisions[decision] : NULL;
}

void egress_row_text(char *text, size_t size, const void *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *at = bytes;
	size_t used = 0;

	for (size_t i = 0; i < len; i++) {
		bool is_plain = at[i] >= ' ' && at[i] < 0x7f && at[i] != '\\';
		const char escape[] = { '\\', 'x', digits[at[i] >> 4], digits[at[i] & 15] };

		if (used + (is_plain ? 1 : sizeof(escape)) > size - 1)
			break;
		if (is_plain) {
			text[used++] = (char) at[i];
			continue;
		}
		memcpy(text + used, escape, sizeof(escape));
		used += sizeof(escape);
	}
	text[used] = '\0';
}

static int add_number(struct buf *out, const char *key, uint64_t value)
{
	int r = buf_addf(out, ",\"%s\":", key);

	return r < 0 ? r : json_add_u64(out, value);
}

static int add_cut_member(struct buf *out, const char *key, const char *text, size_t max)
{
	int r = buf_addf(
		out, "%s\"%s\":", out->len > 0 && out->data[out->len - 1] == '{' ? "" : ",", key);

	return r < 0 ? r : json_add_string(out, text, strnlen(text, max), NULL);
}

/* With at most so many characters of the names and of the detail. */
static int write_cut(const struct egress_row *row, size_t name_max, size_t detail_max,
                     struct buf *out)
{
	int r = buf_add_str(out, "{");

	if (r == 0)
		r = add_cut_member(out, "name", row->name, name_max);
	if (r == 0)
		r = add_cut_member(out, "sni", row->sni, name_max);
	if (r == 0)
		r = add_number(out, "port", row->port);
	if (r == 0)
		r = json_add_member(out, "protocol", protocols[row->protocol]);
	if (r == 0)
		r = json_add_member(out, "decision", decisions[row->decision]);
	if (r == 0)
		r = json_add_member(out, "reason", egress_reason_name(row->reason));
	if (r == 0)
		r = json_add_member(out, "address", row->address);
	if (r == 0)
		r = add_number(out, "bytes_up", row->bytes_up);
	if (r == 0)
		r = add_number(out, "bytes_down", row->bytes_down);
	if (r == 0)
		r = add_number(out, "duration_ms", row->duration_ms);
	if (r == 0)
		r = add_cut_member(out, "detail", row->detail, detail_max);
	return r < 0 ? r : buf_add_str(out, "}");
}

/* Names of hosts and most details fit easily; for what does not, there are smaller and smaller bounds. */
int egress_row_write(const struct egress_row *row, struct buf *out)
{
	static const struct {
		size_t name, detail; /* characters */
	} bounds[] = { { EGRESS_ROW_NAME_MAX, EGRESS_ROW_DETAIL_MAX },
		       { EGRESS_ROW_NAME_MAX, 100 },
		       { 255, 100 } };
	CLEANUP(buf_done) struct buf json = BUF_INIT(EGRESS_ROW_MAX);
	int r = -E2BIG;

	for (size_t i = 0; r == -E2BIG && i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		buf_clear(&json);
		r = write_cut(row, bounds[i].name, bounds[i].detail, &json);
	}
	return r < 0 ? r : buf_add(out, json.data, json.len);
}

int egress_line_write(const struct egress_line *line, struct buf *out)
{
	const size_t before = out->len;
	int r = 0;

	switch (line->kind) {
	case EGRESS_LINE_STARTED:
		r = buf_add_str(out, "{\"gateway\":\"started\"}");
		break;
	case EGRESS_LINE_ROW:
		r = egress_row_write(&line->row, out);
		break;
	case EGRESS_LINE_ENDED:
		r = buf_add_str(out, "{\"gateway\":\"ended\"");
		if (r == 0)
			r = add_number(out, "up", line->bytes_up);
		if (r == 0)
			r = add_number(out, "down", line->bytes_down);
		if (r == 0)
			r = add_number(out, "rows_dropped", line->rows_dropped);
		if (r == 0)
			r = buf_add_str(out, "}");
		break;
	}
	if (r == 0)
		r = buf_add_str(out, "\n");
	if (r < 0)
		buf_cut(out, before);
	return r;
}

/* A line as it is read. */
struct reader {
	struct json_scan scan;
	struct buf key, text;
	uint32_t seen; /* members, one bit each */
	struct egress_line *line;
};

enum member_kind { TEXT, NUMBER, PORT, PROTOCOL, DECISION, REASON, GATEWAY };

enum {
	IS_OF_ROW = 1,
	IS_OF_GATEWAY = 2,
	IS_NEEDED = 4,
};

#define PLACE(member) \
	offsetof(struct egress_line, member), sizeof(((struct egress_line *) 0)->member)

static const struct member {
	const char *key;
	enum member_kind kind;
	unsigned flags;
	size_t offset, size;
} members[] = {
	{ "name", TEXT, IS_OF_ROW | IS_NEEDED, PLACE(row.name) },
	{ "sni", TEXT, IS_OF_ROW, PLACE(row.sni) },
	{ "port", PORT, IS_OF_ROW | IS_NEEDED, PLACE(row.port) },
	{ "protocol", PROTOCOL, IS_OF_ROW | IS_NEEDED, PLACE(row.protocol) },
	{ "decision", DECISION, IS_OF_ROW | IS_NEEDED, PLACE(row.decision) },
	{ "reason", REASON, IS_OF_ROW | IS_NEEDED, PLACE(row.reason) },
	{ "address", TEXT, IS_OF_ROW, PLACE(row.address) },
	{ "bytes_up", NUMBER, IS_OF_ROW, PLACE(row.bytes_up) },
	{ "bytes_down", NUMBER, IS_OF_ROW, PLACE(row.bytes_down) },
	{ "duration_ms", NUMBER, IS_OF_ROW, PLACE(row.duration_ms) },
	{ "detail", TEXT, IS_OF_ROW, PLACE(row.detail) },
	{ "gateway", GATEWAY, IS_OF_GATEWAY | IS_NEEDED, PLACE(kind) },
	{ "up", NUMBER, IS_OF_GATEWAY, PLACE(bytes_up) },
	{ "down", NUMBER, IS_OF_GATEWAY, PLACE(bytes_down) },
	{ "rows_dropped", NUMBER, IS_OF_GATEWAY, PLACE(rows_dropped) },
};

enum { MEMBERS = sizeof(members) / sizeof(members[0]) };

/* The bits of all members that have one of the flags. */
static uint32_t members_with(unsigned flags)
{
	uint32_t bits = 0;

	for (unsigned i = 0; i < MEMBERS; i++) {
		if ((members[i].flags & flags) == flags)
			bits |= (uint32_t) 1 << i;
	}
	return bits;
}

/* Only what egress_row_text() lets through. */
static bool is_printable(const struct buf *text)
{
	for (size_t i = 0; i < text->len; i++) {
		if (text->data[i] < ' ' || text->data[i] > '~')
			return false;
	}
	return true;
}

static int read_text(struct reader *reader)
{
	int r;

	buf_clear(&reader->text);
	r = buf_add_str(&reader->text, "");
	if (r == 0)
		r = json_scan_string(&reader->scan, &reader->text);
	if (r < 0)
		return r == -ENOMEM ? r : -EBADMSG;
	return is_printable(&reader->text) ? 0 : -EBADMSG;
}

static int read_number(struct reader *reader, uint64_t max, uint64_t *ret_number)
{
	struct json_number number;
	int r = json_scan_number(&reader->scan, &number);

	if (r < 0)
		return r;
	if (!number.is_integer || number.integer < 0 || (uint64_t) number.integer > max)
		return -EBADMSG;
	*ret_number = (uint64_t) number.integer;
	return 0;
}

/* The place of a text in a list; -EBADMSG: it is not there. */
static int find(const char *text, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(text, list[i]) == 0)
			return (int) i;
	}
	return -EBADMSG;
}

static int set_gateway(struct egress_line *line, const char *text)
{
	static const char *const words[] = { "started", "ended" };
	int word = find(text, words, 2);

	line->kind = word == 1 ? EGRESS_LINE_ENDED : EGRESS_LINE_STARTED;
	return word < 0 ? word : 0;
}

static int set_word(struct egress_line *line, enum member_kind kind, const char *text)
{
	int word = 0;

	if (kind == GATEWAY)
		return set_gateway(line, text);
	if (kind == REASON) {
		line->row.reason = egress_reason_from_name(text);
		return line->row.reason == EGRESS_REASON_COUNT ? -EBADMSG : 0;
	}
	if (kind == PROTOCOL) {
		word = find(text, protocols, EGRESS_PROTOCOL_COUNT);
		line->row.protocol = word < 0 ? EGRESS_PROTOCOL_NONE : (enum egress_protocol) word;
	} else {
		word = find(text, decisions, EGRESS_DECISION_COUNT);
		line->row.decision = word < 0 ? EGRESS_REFUSED : (enum egress_decision) word;
	}
	return word < 0 ? word : 0;
}

static int read_value(struct reader *reader, const struct member *member)
{
	char *place = (char *) reader->line + member->offset;
	uint64_t number;
	int r;

	if (member->kind == NUMBER)
		return read_number(reader, INT64_MAX, (uint64_t *) (void *) place);
	if (member->kind == PORT) {
		r = read_number(reader, UINT16_MAX, &number);
		if (r == 0)
			reader->line->row.port = (uint16_t) number;
		return r;
	}
	r = read_text(reader);
	if (r < 0)
		return r;
	if (member->kind != TEXT)
		return set_word(reader->line, member->kind, reader->text.data);
	if (reader->text.len >= member->size)
		return -EBADMSG;
	memcpy(place, reader->text.data, reader->text.len + 1);
	return 0;
}

static int read_member(struct reader *reader, const struct json_name *key)
{
	unsigned i = 0;

	while (i < MEMBERS && (strlen(members[i].key) != key->len ||
	                       memcmp(members[i].key, key->text, key->len) != 0))
		i++;
	if (i == MEMBERS)
		return json_scan_skip(&reader->scan);
	if (reader->seen & (uint32_t) 1 << i)
		return -EBADMSG;
	reader->seen |= (uint32_t) 1 << i;
	return read_value(reader, &members[i]);
}

static int read_members(struct reader *reader)
{
	struct json_name key;
	int r = json_scan_object(&reader->scan);

	for (bool is_first = true; r == 0; is_first = false) {
		r = json_scan_key(&reader->scan, is_first, &reader->key, &key);
		if (r <= 0)
			break;
		r = read_member(reader, &key);
	}
	return r < 0 ? r : json_scan_end(&reader->scan);
}

/* All that its kind needs, and nothing of the other kind. */
static bool is_complete(const struct reader *reader)
{
	const unsigned kind = reader->line->kind == EGRESS_LINE_ROW ? IS_OF_ROW : IS_OF_GATEWAY;
	const uint32_t needed = members_with(kind | IS_NEEDED);

	return (reader->seen & ~members_with(kind)) == 0 && (reader->seen & needed) == needed;
}

int egress_line_parse(const char *text, size_t len, struct egress_line *ret_line,
                      struct resoluto_err *err)
{
	struct reader reader = {
		.scan = { .at = text, .end = text + len },
		.key = BUF_INIT(EGRESS_ROW_MAX),
		.text = BUF_INIT(EGRESS_ROW_MAX),
		.line = ret_line,
	};
	int r = -EBADMSG;

	*ret_line = (struct egress_line){ .kind = EGRESS_LINE_ROW };
	if (len <= EGRESS_ROW_MAX)
		r = read_members(&reader);
	buf_done(&reader.key);
	buf_done(&reader.text);
	if (r == 0 && !is_complete(&reader))
		r = -EBADMSG;
	if (r == -ENOMEM)
		return resoluto_fail(err, r, "read a row of egress");
	return r < 0 ? resoluto_fail(err, -EBADMSG, "a row of egress that no gateway writes") : 0;
}
