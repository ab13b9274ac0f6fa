/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_head.c - a head is looked at only when it is whole; its bytes were checked one by one as they came.  What a
 * server may read in two ways is refused, not repaired.
 */
#include <string.h>
#include <strings.h>

#include "base/span.h"
#include "egress/http_head.h"

enum {
	METHOD_MAX = 32,    /* bytes */
	CHUNK_DIGITS = 15,  /* so that a size is below 2^60 */
	LENGTH_DIGITS = 18, /* so that one is below 10^18 */
};

enum state {
	STATE_HEAD,
	STATE_BODY,       /* of a known length */
	STATE_CHUNK_LINE, /* the size of a chunk */
	STATE_CHUNK,
	STATE_CHUNK_END, /* CR LF behind it */
	STATE_TRAILER,
};

void http_head_init(struct http_head *head, const struct egress_name *name, uint16_t port)
{
	*head = (struct http_head){ .name = *name, .port = port, .state = STATE_HEAD };
}

bool http_head_is_between(const struct http_head *head)
{
	return head->state == STATE_HEAD && head->seen == 0;
}

static bool is_text(struct span span, const char *text)
{
	return span.len == strlen(text) && strncasecmp(span.at, text, span.len) == 0;
}

static bool is_token_byte(char c)
{
	if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))
		return true;
	return c && strchr("!#$%&'*+-.^_`|~", c);
}

static bool is_token(struct span span)
{
	for (size_t i = 0; i < span.len; i++) {
		if (!is_token_byte(span.at[i]))
			return false;
	}
	return span.len > 0;
}

/* Take what is before the byte off, and the byte; all of it if there is none. */
static struct span take_until(struct span *rest, char byte)
{
	const char *end = memchr(rest->at, byte, rest->len);
	struct span part = { rest->at, end ? (size_t) (end - rest->at) : rest->len };
	size_t used = part.len + (end ? 1 : 0);

	rest->at += used;
	rest->len -= used;
	return part;
}

/* One line without its CR LF; the block was checked to have no other ends. */
static struct span take_line(struct span *rest)
{
	struct span line = take_until(rest, '\n');

	line.len--;
	return line;
}

/* What is said of the body, and of the host. */
struct fields {
	size_t hosts, lengths, encodings;
	uint64_t length;
	bool is_http_1_0;
};

/* A number of at most `digits` digits and nothing else. */
static bool read_decimal(struct span text, size_t digits, uint64_t *ret_number)
{
	*ret_number = 0;
	for (size_t i = 0; i < text.len; i++) {
		if (text.at[i] < '0' || text.at[i] > '9')
			return false;
		*ret_number = *ret_number * 10 + (uint64_t) (text.at[i] - '0');
		if (i == digits)
			return false;
	}
	return text.len > 0;
}

static enum egress_reason check_host(const struct http_head *head, struct span value)
{
	struct span host = value;
	const char *colon = memchr(value.at, ':', value.len);
	struct egress_name name;
	uint64_t port;

	if (colon) {
		struct span digits = { colon + 1, value.len - (size_t) (colon + 1 - value.at) };

		host.len = (size_t) (colon - value.at);
		if (!read_decimal(digits, 5, &port) || port != head->port)
			return EGRESS_HTTP_HOST_OTHER;
	}
	if (egress_name_parse(host.at, host.len, &name) != EGRESS_NONE ||
	    strcmp(name.text, head->name.text) != 0)
		return EGRESS_HTTP_HOST_OTHER;
	return EGRESS_NONE;
}

/* A connection that is to be changed, or fields that a proxy on the far side is to drop. */
static enum egress_reason check_connection(struct span value)
{
	while (value.len > 0) {
		struct span option = span_trim(take_until(&value, ','), " \t");

		if (is_text(option, "upgrade") || is_text(option, "http2-settings"))
			return EGRESS_HTTP_UPGRADE;
		if (is_text(option, "host") || is_text(option, "content-length") ||
		    is_text(option, "transfer-encoding"))
			return EGRESS_HTTP_MALFORMED;
	}
	return EGRESS_NONE;
}

static enum egress_reason read_field(const struct http_head *head, struct span name,
                                     struct span value, struct fields *fields)
{
	if (is_text(name, "host")) {
		fields->hosts++;
		return check_host(head, value);
	}
	if (is_text(name, "content-length")) {
		fields->lengths++;
		return read_decimal(value, LENGTH_DIGITS, &fields->length) ? EGRESS_NONE
		                                                           : EGRESS_HTTP_MALFORMED;
	}
	if (is_text(name, "transfer-encoding")) {
		fields->encodings++;
		return is_text(value, "chunked") ? EGRESS_NONE : EGRESS_HTTP_MALFORMED;
	}
	if (is_text(name, "expect")) /* anything else makes some servers skip the body */
		return is_text(value, "100-continue") ? EGRESS_NONE : EGRESS_HTTP_MALFORMED;
	if (is_text(name, "upgrade") || is_text(name, "http2-settings"))
		return EGRESS_HTTP_UPGRADE;
	return is_text(name, "connection") ? check_connection(value) : EGRESS_NONE;
}

/* The lines up to the empty one. */
static enum egress_reason read_fields(const struct http_head *head, struct span rest,
                                      struct fields *fields)
{
	for (;;) {
		struct span line = take_line(&rest), name;
		enum egress_reason reason;

		if (line.len == 0)
			return EGRESS_NONE;
		if (!memchr(line.at, ':', line.len))
			return EGRESS_HTTP_MALFORMED;
		name = take_until(&line, ':');
		if (!is_token(name)) /* also a line that goes on with the one before */
			return EGRESS_HTTP_MALFORMED;
		reason = read_field(head, name, span_trim(line, " \t"), fields);
		if (reason != EGRESS_NONE)
			return reason;
	}
}

static enum egress_reason check_target(struct span target)
{
	if (target.len == 0)
		return EGRESS_HTTP_MALFORMED;
	if (target.at[0] != '/')
		return EGRESS_HTTP_FORM;
	for (size_t i = 0; i < target.len; i++) {
		if (target.at[i] <= ' ' || target.at[i] > '~' || target.at[i] == '#')
			return EGRESS_HTTP_MALFORMED;
	}
	return EGRESS_NONE;
}

static enum egress_reason read_request_line(struct span line, struct fields *fields)
{
	struct span method = take_until(&line, ' ');
	struct span target = take_until(&line, ' ');

	if (!is_token(method) || method.len > METHOD_MAX)
		return EGRESS_HTTP_MALFORMED;
	if (line.len == 8 && memcmp(line.at, "HTTP/2.0", 8) == 0)
		return EGRESS_HTTP_UPGRADE; /* its preface */
	if (line.len != 8 || memcmp(line.at, "HTTP/1.", 7) != 0 ||
	    (line.at[7] != '0' && line.at[7] != '1'))
		return EGRESS_HTTP_MALFORMED;
	fields->is_http_1_0 = line.at[7] == '0';
	if (is_text(method, "connect"))
		return EGRESS_HTTP_FORM;
	return check_target(target);
}

/* A whole head: what it asks for, and the body that follows. */
static enum egress_reason read_head(struct http_head *head, struct span block)
{
	struct fields fields = { 0 };
	enum egress_reason reason = read_request_line(take_line(&block), &fields);

	if (reason == EGRESS_NONE)
		reason = read_fields(head, block, &fields);
	if (reason != EGRESS_NONE)
		return reason;
	if (fields.hosts != 1)
		return EGRESS_HTTP_HOST_OTHER;
	if (fields.lengths + fields.encodings > 1 || (fields.encodings && fields.is_http_1_0))
		return EGRESS_HTTP_MALFORMED;
	head->left = fields.length;
	if (fields.encodings)
		head->state = STATE_CHUNK_LINE;
	else if (fields.length > 0)
		head->state = STATE_BODY;
	head->requests++;
	return EGRESS_NONE;
}

/* A whole trailer: nothing in it that belongs into a head. */
static enum egress_reason read_trailer(struct http_head *head, struct span block)
{
	struct fields fields = { 0 };
	enum egress_reason reason = read_fields(head, block, &fields);

	if (reason == EGRESS_NONE && (fields.hosts || fields.lengths || fields.encodings))
		reason = EGRESS_HTTP_MALFORMED;
	head->state = STATE_HEAD;
	return reason;
}

/*
 * Look at the bytes of a block that were not looked at yet, up to and with the empty line that ends it.  Lines
 * end in CR LF only, and there are no other controls but tabs.
 */
static enum egress_reason scan_block(struct http_head *head, struct span bytes, bool *ret_is_whole)
{
	size_t i = head->seen;

	*ret_is_whole = false;
	for (; i < bytes.len && !*ret_is_whole; i++) {
		const unsigned char c = (unsigned char) bytes.at[i];

		if (i >= HTTP_HEAD_MAX)
			return EGRESS_HTTP_MALFORMED;
		if ((c < ' ' && c != '\t' && c != '\r' && c != '\n') || c == 0x7f)
			return EGRESS_HTTP_MALFORMED;
		if ((i > 0 && bytes.at[i - 1] == '\r') != (c == '\n'))
			return EGRESS_HTTP_MALFORMED;
		*ret_is_whole = c == '\n' && (i == 1 || bytes.at[i - 2] == '\n');
	}
	head->seen = i;
	return EGRESS_NONE;
}

static enum egress_reason go_on_with_block(struct http_head *head, struct span bytes,
                                           size_t *ret_pass)
{
	bool is_whole;
	enum egress_reason reason;

	/* Nothing before a request line, no empty line either. */
	if (head->state == STATE_HEAD && !is_token_byte(bytes.at[0]))
		return EGRESS_HTTP_MALFORMED;
	reason = scan_block(head, bytes, &is_whole);
	if (reason != EGRESS_NONE || !is_whole)
		return reason;
	bytes.len = head->seen;
	reason = head->state == STATE_HEAD ? read_head(head, bytes) : read_trailer(head, bytes);
	if (reason != EGRESS_NONE)
		return reason;
	*ret_pass = head->seen;
	head->seen = 0;
	return EGRESS_NONE;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Digits and CR LF: extensions are not known to anybody, but read differently. */
static enum egress_reason read_chunk_line(struct http_head *head, struct span bytes,
                                          size_t *ret_pass)
{
	size_t i = 0;

	head->left = 0;
	for (; i < bytes.len && hex_digit(bytes.at[i]) >= 0; i++) {
		if (i == CHUNK_DIGITS)
			return EGRESS_HTTP_MALFORMED;
		head->left = head->left << 4 | (unsigned) hex_digit(bytes.at[i]);
	}
	if (i < bytes.len && (i == 0 || bytes.at[i] != '\r'))
		return EGRESS_HTTP_MALFORMED;
	if (i + 1 < bytes.len && bytes.at[i + 1] != '\n')
		return EGRESS_HTTP_MALFORMED;
	if (i + 1 >= bytes.len)
		return EGRESS_NONE;
	head->state = head->left > 0 ? STATE_CHUNK : STATE_TRAILER;
	*ret_pass = i + 2;
	return EGRESS_NONE;
}

static enum egress_reason read_chunk_end(struct http_head *head, struct span bytes,
                                         size_t *ret_pass)
{
	if (bytes.at[0] != '\r' || (bytes.len > 1 && bytes.at[1] != '\n'))
		return EGRESS_HTTP_MALFORMED;
	if (bytes.len > 1) {
		*ret_pass = 2;
		head->state = STATE_CHUNK_LINE;
	}
	return EGRESS_NONE;
}

static void pass_body(struct http_head *head, size_t len, size_t *ret_pass)
{
	*ret_pass = head->left < len ? (size_t) head->left : len;
	head->left -= *ret_pass;
	if (head->left == 0)
		head->state = head->state == STATE_CHUNK ? STATE_CHUNK_END : STATE_HEAD;
}

/* One step; *ret_pass == 0: wait for more. */
static enum egress_reason go_on(struct http_head *head, struct span bytes, size_t *ret_pass)
{
	switch ((enum state) head->state) {
	case STATE_HEAD:
	case STATE_TRAILER:
		return go_on_with_block(head, bytes, ret_pass);
	case STATE_CHUNK_LINE:
		return read_chunk_line(head, bytes, ret_pass);
	case STATE_CHUNK_END:
		return read_chunk_end(head, bytes, ret_pass);
	case STATE_BODY:
	case STATE_CHUNK:
		break;
	}
	pass_body(head, bytes.len, ret_pass);
	return EGRESS_NONE;
}

enum egress_reason http_head_look(struct http_head *head, const void *bytes, size_t len,
                                  size_t *ret_pass)
{
	struct span rest = { bytes, len };
	enum egress_reason reason = EGRESS_NONE;

	*ret_pass = 0;
	while (reason == EGRESS_NONE && rest.len > 0) {
		size_t passed = 0;

		reason = go_on(head, rest, &passed);
		if (passed == 0)
			break;
		*ret_pass += passed;
		rest.at += passed;
		rest.len -= passed;
	}
	return reason;
}
