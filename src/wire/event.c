/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "wire/base64.h"
#include "wire/event.h"
#include "wire/json_scan.h"
#include "wire/json_text.h"

enum {
	MICROSECONDS = 1000 * 1000, /* a second */
	TEXT_SLACK = 64,            /* bytes for the 0s behind the strings of a line */
	HEAD_SLACK = 256,           /* bytes of a line's fixed text, numbers included */
};

static const double LAST_SECOND = 253402300799.0; /* end of the year 9999 */

static int add_timestamp(struct buf *out, double ts)
{
	uint64_t micros, fraction;
	char digits[7] = ".000000";
	int r;

	if (!(ts >= 0)) /* NaN too */
		ts = 0;
	micros = (uint64_t) ((ts < LAST_SECOND ? ts : LAST_SECOND) * MICROSECONDS + 0.5);
	r = json_add_u64(out, micros / MICROSECONDS);
	if (r < 0)
		return r;
	fraction = micros % MICROSECONDS;
	for (int i = 6; i > 0; i--, fraction /= 10)
		digits[i] = (char) ('0' + fraction % 10);
	return buf_add(out, digits, sizeof(digits));
}

/* Everything up to and including "data": */
static int add_head(struct buf *out, const struct event_head *head)
{
	int r = buf_reserve(out, HEAD_SLACK);

	if (r == 0)
		r = buf_add(out, "{", 1);
	if (r == 0)
		r = json_add_member(out, "run_id", head->run_id);
	if (r == 0)
		r = json_add_member(out, "span_id", head->span_id);
	if (r == 0)
		r = json_add_member(out, "parent_span_id", head->parent_span_id);
	if (r == 0)
		r = json_add_member(out, "kind", head->kind);
	if (r == 0)
		r = json_add_member(out, "name", head->name);
	if (r == 0)
		r = json_add_member(out, "event", head->event);
	if (r == 0)
		r = json_add_member(out, "status", head->status);
	if (r == 0)
		r = buf_add_str(out, ",\"ts\":");
	if (r == 0)
		r = add_timestamp(out, head->ts);
	return r < 0 ? r : buf_add_str(out, ",\"data\":");
}

/* On failure the buffer is as it was. */
static int finish_line(struct buf *out, size_t start, int r)
{
	if (r == 0)
		r = buf_add(out, "}\n", 2);
	if (r == 0 && out->len - start > EVENT_JSON_MAX)
		r = -E2BIG;
	if (r < 0)
		buf_cut(out, start);
	return r;
}

int event_write(struct buf *out, const struct event_head *head, const char *data_json)
{
	size_t start = out->len;
	int r = add_head(out, head);

	if (r == 0)
		r = json_add_text(out, data_json ? data_json : "{}");
	return finish_line(out, start, r);
}

static int add_base64(struct buf *out, const void *bytes, size_t len)
{
	int r = buf_add_str(out, ",\"b64\":\"");

	if (r == 0)
		r = base64_add(out, bytes, len);
	return r < 0 ? r : buf_add(out, "\"", 1);
}

static int add_piece(struct buf *out, const struct event_piece *piece)
{
	bool is_exact = true;
	int r = buf_add_str(out, "{\"line\":");

	if (r == 0)
		r = json_add_string(out, piece->bytes, piece->len, &is_exact);
	if (r == 0)
		r = buf_add_str(out, piece->is_stderr ? ",\"stream\":\"stderr\",\"seq\":"
		                                      : ",\"stream\":\"stdout\",\"seq\":");
	if (r == 0)
		r = json_add_u64(out, piece->seq);
	if (r == 0 && !is_exact)
		r = add_base64(out, piece->bytes, piece->len);
	if (r == 0 && !piece->has_newline)
		r = buf_add_str(out, ",\"nl\":false");
	return r < 0 ? r : buf_add(out, "}", 1);
}

int event_write_piece(struct buf *out, const struct event_head *head,
                      const struct event_piece *piece)
{
	size_t start = out->len;
	int r;

	if (piece->len > EVENT_LINE_BYTES)
		return -E2BIG;
	r = add_head(out, head);
	if (r == 0)
		r = add_piece(out, piece);
	return finish_line(out, start, r);
}

/* Members of an event, of which the first REQUIRED ones must be there. */
enum member {
	RUN_ID,
	SPAN_ID,
	KIND,
	EVENT,
	TS,
	REQUIRED,
	PARENT_SPAN_ID = REQUIRED,
	NAME,
	STATUS,
	DATA,
	MEMBERS,
};

static const struct {
	const char *key;
	size_t offset; /* of a string in struct resoluto_event */
} members[MEMBERS] = {
	[RUN_ID] = { "run_id", offsetof(struct resoluto_event, run_id) },
	[SPAN_ID] = { "span_id", offsetof(struct resoluto_event, span_id) },
	[KIND] = { "kind", offsetof(struct resoluto_event, kind) },
	[EVENT] = { "event", offsetof(struct resoluto_event, event) },
	[TS] = { "ts", 0 },
	[PARENT_SPAN_ID] = { "parent_span_id", offsetof(struct resoluto_event, parent_span_id) },
	[NAME] = { "name", offsetof(struct resoluto_event, name) },
	[STATUS] = { "status", offsetof(struct resoluto_event, status) },
	[DATA] = { "data", 0 },
};

/* Members of data that make a piece of output. */
enum piece_member {
	LINE,
	EXACT,
	STREAM,
	SEQ,
	NEWLINE,
	PIECE_MEMBERS,
};

static const char *const piece_members[PIECE_MEMBERS] = {
	[LINE] = "line", [EXACT] = "b64", [STREAM] = "stream", [SEQ] = "seq", [NEWLINE] = "nl",
};

struct reader {
	struct json_scan scan;
	struct event_line *line;
	unsigned seen, piece_seen; /* bits of members */
	const char *exact;         /* text of b64, in line->text; NULL: none */
	size_t exact_len;
	bool has_line, has_newline;
};

/* Bits of members, so that none comes twice. */
static int note_member(unsigned *seen, unsigned member)
{
	if (*seen & 1u << member)
		return -EBADMSG;
	*seen |= 1u << member;
	return 0;
}

static bool is_key(const struct json_name *key, const char *name)
{
	return *name == *key->text && strlen(name) == key->len &&
	       memcmp(name, key->text, key->len) == 0;
}

/* Put a 0 behind the last string.  There is room (event_parse), so what was read before stays where it is. */
static void end_text(struct buf *text)
{
	text->data[text->len++] = '\0';
	text->data[text->len] = '\0';
}

/* A string with a 0 behind it. */
static int read_text(struct reader *reader, const char **ret_text, size_t *ret_len)
{
	struct buf *text = &reader->line->text;
	size_t start = text->len;
	int r = json_scan_string(&reader->scan, text);

	if (r < 0)
		return r;
	*ret_text = text->data + start;
	*ret_len = text->len - start;
	end_text(text);
	return 0;
}

static int read_head_string(struct reader *reader, size_t offset)
{
	const char **place = (const char **) ((char *) &reader->line->event + offset);
	size_t len;
	int r = read_text(reader, place, &len);

	return r == 0 && reader->scan.has_nul ? -EBADMSG : r;
}

static int read_line_text(struct reader *reader)
{
	reader->has_line = true;
	buf_clear(&reader->line->bytes);
	return json_scan_string(&reader->scan, &reader->line->bytes);
}

static int read_stream(struct reader *reader)
{
	const char *stream;
	size_t len;
	int r = read_text(reader, &stream, &len);

	reader->line->event.is_stderr = r == 0 && strcmp(stream, "stderr") == 0;
	return r;
}

static int read_seq(struct reader *reader)
{
	struct json_number seq;
	int r = json_scan_number(&reader->scan, &seq);

	if (r == 0 && seq.is_integer && seq.integer > 0)
		reader->line->event.seq = (uint64_t) seq.integer;
	return r;
}

/* The value of a member of data.  One of a wrong type counts as absent. */
static int read_piece_member(struct reader *reader, enum piece_member member)
{
	int next = json_scan_peek(&reader->scan);

	if (member == LINE && next == '"')
		return read_line_text(reader);
	if (member == EXACT && next == '"')
		return read_text(reader, &reader->exact, &reader->exact_len);
	if (member == STREAM && next == '"')
		return read_stream(reader);
	if (member == SEQ && (next == '-' || (next >= '0' && next <= '9')))
		return read_seq(reader);
	if (member == NEWLINE)
		reader->has_newline = next != 'f';
	return json_scan_skip(&reader->scan);
}

static int read_data_value(struct reader *reader, const struct json_name *key)
{
	unsigned member = 0;
	int r;

	while (member < PIECE_MEMBERS && !is_key(key, piece_members[member]))
		member++;
	if (member == PIECE_MEMBERS)
		return json_scan_skip(&reader->scan);
	r = note_member(&reader->piece_seen, member);
	return r < 0 ? r : read_piece_member(reader, (enum piece_member) member);
}

/* An object, of which event.data becomes the text. */
static int read_data(struct reader *reader)
{
	struct buf *text = &reader->line->text;
	struct json_name key;
	const char *start;
	int r;

	(void) json_scan_peek(&reader->scan);
	start = reader->scan.at;
	r = json_scan_object(&reader->scan);
	for (bool is_first = true; r == 0; is_first = false) {
		r = json_scan_key(&reader->scan, is_first, &reader->line->key, &key);
		if (r <= 0)
			break;
		r = read_data_value(reader, &key);
	}
	if (r < 0)
		return r;
	reader->line->event.data = text->data + text->len;
	r = buf_add(text, start, (size_t) (reader->scan.at - start));
	if (r == 0)
		end_text(text);
	return r;
}

static int read_ts(struct reader *reader)
{
	struct json_number ts;
	int r = json_scan_number(&reader->scan, &ts);

	if (r == 0)
		reader->line->event.ts = ts.real;
	return r;
}

static int read_value(struct reader *reader, const struct json_name *key)
{
	unsigned member = 0;
	int r;

	while (member < MEMBERS && !is_key(key, members[member].key))
		member++;
	if (member == MEMBERS)
		return json_scan_skip(&reader->scan);
	r = note_member(&reader->seen, member);
	if (r < 0)
		return r;
	if (member == TS)
		return read_ts(reader);
	return member == DATA ? read_data(reader)
	                      : read_head_string(reader, members[member].offset);
}

static int read_members(struct reader *reader)
{
	struct json_name key;
	int r = json_scan_object(&reader->scan);

	for (bool is_first = true; r == 0; is_first = false) {
		r = json_scan_key(&reader->scan, is_first, &reader->line->key, &key);
		if (r <= 0)
			break;
		r = read_value(reader, &key);
	}
	return r < 0 ? r : json_scan_end(&reader->scan);
}

/* b64 where it is valid, else line; and the newline. */
static int finish_bytes(struct reader *reader)
{
	struct resoluto_event *event = &reader->line->event;
	struct buf *bytes = &reader->line->bytes, exact = BUF_INIT(EVENT_JSON_MAX);
	bool is_log = strcmp(event->event, "log") == 0;
	int r = -EBADMSG;

	if (is_log && reader->exact)
		r = base64_add_decoded(&exact, reader->exact, reader->exact_len);
	if (r == 0) {
		buf_clear(bytes);
		r = buf_add(bytes, exact.data, exact.len);
	} else if (r == -EBADMSG) {
		r = is_log && reader->has_line ? 0 : 1;
	}
	buf_done(&exact);
	if (r == 0)
		r = buf_add(bytes, "\n", reader->has_newline);
	if (r == 0) {
		event->bytes = bytes->data;
		event->len = bytes->len;
	} else { /* what makes no output says nothing of a stream */
		event->is_stderr = false;
		event->seq = 0;
	}
	return r < 0 ? r : 0;
}

static int check_event(const struct reader *reader)
{
	const char *event = reader->line->event.event;

	if ((~reader->seen & ((1u << REQUIRED) - 1)) != 0)
		return -EBADMSG;
	return strcmp(event, "open") == 0 || strcmp(event, "close") == 0 ||
	                       strcmp(event, "log") == 0
	               ? 0
	               : -EBADMSG;
}

int event_parse(const char *line, size_t len, struct event_line *parsed)
{
	struct reader reader = {
		.scan = { .at = line, .end = line + len },
		.line = parsed,
		.has_newline = true,
	};
	int r;

	event_line_clear(parsed);
	if (len > EVENT_JSON_MAX)
		return -E2BIG;
	r = buf_reserve(&parsed->text, 2 * len + TEXT_SLACK);
	if (r == 0)
		r = read_members(&reader);
	if (r == 0)
		r = check_event(&reader);
	if (r == 0)
		r = finish_bytes(&reader);
	if (r < 0)
		event_line_clear(parsed);
	return r;
}

void event_line_clear(struct event_line *line)
{
	line->event = (struct resoluto_event){
		.run_id = "",
		.span_id = "",
		.parent_span_id = "",
		.kind = "",
		.name = "",
		.event = "",
		.status = "",
		.data = "{}",
	};
	line->text.max = 2 * EVENT_JSON_MAX + TEXT_SLACK;
	line->bytes.max = EVENT_JSON_MAX + 1;
	line->key.max = EVENT_JSON_MAX;
	buf_clear(&line->text);
	buf_clear(&line->bytes);
}

void event_line_done(struct event_line *line)
{
	buf_done(&line->text);
	buf_done(&line->bytes);
	buf_done(&line->key);
	*line = (struct event_line){ 0 };
}

void event_span_id(uint64_t bits, char ret_id[EVENT_SPAN_ID_SIZE])
{
	static const char hex[] = "0123456789abcdef";

	for (int i = EVENT_SPAN_ID_SIZE - 2; i >= 0; i--, bits >>= 4)
		ret_id[i] = hex[bits & 15];
	ret_id[EVENT_SPAN_ID_SIZE - 1] = '\0';
}
