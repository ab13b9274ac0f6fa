/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "wire/base64.h"
#include "wire/event.h"
#include "wire/json_text.h"

enum {
	MICROSECONDS = 1000 * 1000, /* a second */
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
	if (r < 0) {
		out->len = start;
		if (out->data)
			out->data[start] = '\0';
	}
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

/* The text of a member, "" when it is absent and may be.  No NUL inside: it would be cut there. */
static int get_string(const json_t *root, const char *key, bool is_required, const char **ret_text)
{
	const json_t *value = json_object_get(root, key);

	*ret_text = "";
	if (!value)
		return is_required ? -EBADMSG : 0;
	if (!json_is_string(value))
		return -EBADMSG;
	*ret_text = json_string_value(value);
	return strlen(*ret_text) == json_string_length(value) ? 0 : -EBADMSG;
}

static int read_head(const json_t *root, struct resoluto_event *event)
{
	const json_t *ts = json_object_get(root, "ts");

	if (get_string(root, "run_id", true, &event->run_id) < 0 ||
	    get_string(root, "span_id", true, &event->span_id) < 0 ||
	    get_string(root, "kind", true, &event->kind) < 0 ||
	    get_string(root, "event", true, &event->event) < 0 ||
	    get_string(root, "parent_span_id", false, &event->parent_span_id) < 0 ||
	    get_string(root, "name", false, &event->name) < 0 ||
	    get_string(root, "status", false, &event->status) < 0 || !json_is_number(ts))
		return -EBADMSG;
	event->ts = json_number_value(ts);
	if (strcmp(event->event, "open") != 0 && strcmp(event->event, "close") != 0 &&
	    strcmp(event->event, "log") != 0)
		return -EBADMSG;
	return 0;
}

/* The bytes of a piece of output, without the newline.  1: there are some (perhaps none of length). */
static int read_bytes(const json_t *data, struct buf *bytes)
{
	const json_t *exact = json_object_get(data, "b64"), *line = json_object_get(data, "line");
	int r = -EBADMSG;

	if (json_is_string(exact))
		r = base64_add_decoded(bytes, json_string_value(exact), json_string_length(exact));
	if (r == -EBADMSG && json_is_string(line))
		r = buf_add(bytes, json_string_value(line), json_string_length(line));
	return r == -EBADMSG ? 0 : r < 0 ? r : 1;
}

static int read_piece(const json_t *data, struct buf *bytes, struct resoluto_event *event)
{
	const json_t *seq = json_object_get(data, "seq");
	const char *stream = json_string_value(json_object_get(data, "stream"));
	int r = read_bytes(data, bytes);

	if (r == 1 && !json_is_false(json_object_get(data, "nl")))
		r = buf_add(bytes, "\n", 1);
	else if (r == 1) /* even an empty piece has a pointer */
		r = buf_reserve(bytes, 0);
	if (r < 0 || !bytes->data)
		return r;
	event->bytes = bytes->data;
	event->len = bytes->len;
	event->is_stderr = stream && strcmp(stream, "stderr") == 0;
	if (json_is_integer(seq) && json_integer_value(seq) > 0)
		event->seq = (uint64_t) json_integer_value(seq);
	return 0;
}

/* The object as text: the very bytes of the line, which by now are known to be valid. */
static int copy_data(const char *line, const struct json_span *span, const json_t *data,
                     char **ret_text)
{
	if (!data)
		*ret_text = strdup("{}");
	else if (span->len > 0)
		*ret_text = strndup(line + span->start, span->len);
	else /* the key was written with escapes */
		*ret_text = json_dumps(data, JSON_COMPACT | JSON_ENSURE_ASCII);
	return *ret_text ? 0 : -ENOMEM;
}

static int read_line(const char *line, size_t len, struct event_line *parsed)
{
	struct json_span span = { 0 };
	const json_t *data;
	int r;

	if (!json_is_shallow(line, len, "data", &span))
		return -EBADMSG;
	parsed->root = json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	if (!json_is_object(parsed->root))
		return -EBADMSG;
	r = read_head(parsed->root, &parsed->event);
	if (r < 0)
		return r;
	data = json_object_get(parsed->root, "data");
	if (data && !json_is_object(data))
		return -EBADMSG;
	r = copy_data(line, &span, data, &parsed->data_text);
	if (r < 0)
		return r;
	parsed->event.data = parsed->data_text;
	return strcmp(parsed->event.event, "log") == 0
	               ? read_piece(data, &parsed->bytes, &parsed->event)
	               : 0;
}

int event_parse(const char *line, size_t len, struct event_line *ret_line)
{
	int r;

	*ret_line = (struct event_line){ .bytes = BUF_INIT(EVENT_JSON_MAX + 1) };
	if (len > EVENT_JSON_MAX)
		return -E2BIG;
	r = read_line(line, len, ret_line);
	if (r < 0)
		event_line_done(ret_line);
	return r;
}

void event_line_done(struct event_line *line)
{
	json_decref(line->root);
	free(line->data_text);
	buf_done(&line->bytes);
	*line = (struct event_line){ .bytes = BUF_INIT(0) };
}

void event_span_id(uint64_t bits, char ret_id[EVENT_SPAN_ID_SIZE])
{
	static const char hex[] = "0123456789abcdef";

	for (int i = EVENT_SPAN_ID_SIZE - 2; i >= 0; i--, bits >>= 4)
		ret_id[i] = hex[bits & 15];
	ret_id[EVENT_SPAN_ID_SIZE - 1] = '\0';
}
