/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_hello.c - first the records that one message came in are walked over, a step for each call; once all are
 * there the message is read through a cursor that steps over the headers between its fragments.
 *
 * After the first hello every record is looked at from outside, and let go as soon as it cannot matter any more:
 * what the client then says is encrypted, or no hello.  Until then it may be another hello, the answer to a
 * HelloRetryRequest, with a ChangeCipherSpec or early data before it.
 */
#include <string.h>

#include "egress/client_hello.h"

enum {
	RECORD_HEADER = 5, /* bytes: type, version, length */
	RECORD_PLAIN_MAX = 16384,
	RECORD_MAX = RECORD_PLAIN_MAX + 2048, /* encrypted */
	RECORD_CHANGE_CIPHER_SPEC = 20,
	RECORD_ALERT = 21,
	RECORD_HANDSHAKE = 22,
	RECORD_DATA = 23,
	MESSAGE_HEADER = 4, /* bytes: type, length */
	MESSAGE_HELLO = 1,
	/* An encrypted Finished of TLS 1.2 is longer. */
	FINISHED_MIN = 32,
	EXTENSION_SERVER_NAME = 0,
	EXTENSION_EARLY_DATA = 42,
	SESSION_ID_MAX = 32,
	NAME_MAX_RAW = 255,
};

enum state {
	STATE_FIRST,  /* the first hello comes */
	STATE_BEYOND, /* between records that follow */
	STATE_SECOND, /* another hello comes */
	STATE_OVER,   /* what comes is no business of ours */
};

void client_hello_init(struct client_hello *hello, uint64_t deadline_ms)
{
	*hello = (struct client_hello){ .deadline_ms = deadline_ms, .state = STATE_FIRST };
}

static size_t get16(const uint8_t *at)
{
	return (size_t) at[0] << 8 | at[1];
}

/* A place in the message.  All of its records are there, and were checked. */
struct cursor {
	const uint8_t *at;
	size_t in_record; /* bytes left of this record */
	size_t left;      /* bytes left of the message, or of a part of it */
};

/* Go on by n bytes, over records; `to` gets them unless it is NULL.  False: there are fewer. */
static bool take(struct cursor *cursor, uint8_t *to, size_t n)
{
	if (n > cursor->left)
		return false;
	cursor->left -= n;
	while (n > 0) {
		size_t part;

		if (cursor->in_record == 0) {
			cursor->in_record = get16(cursor->at + 3);
			cursor->at += RECORD_HEADER;
		}
		part = n < cursor->in_record ? n : cursor->in_record;
		if (to) {
			memcpy(to, cursor->at, part);
			to += part;
		}
		cursor->at += part;
		cursor->in_record -= part;
		n -= part;
	}
	return true;
}

/* A number of one or two bytes. */
static bool take_number(struct cursor *cursor, size_t width, size_t *ret_number)
{
	uint8_t bytes[2] = { 0 };

	if (!take(cursor, bytes + 2 - width, width))
		return false;
	*ret_number = get16(bytes);
	return true;
}

/* A stretch of bytes with its length, of `width` bytes, before it. */
static bool skip_vector(struct cursor *cursor, size_t width, size_t min, size_t max)
{
	size_t len;

	return take_number(cursor, width, &len) && len >= min && len <= max &&
	       take(cursor, NULL, len);
}

/* The extension's body is the next len bytes, and they are there. */
static enum egress_reason read_server_name(struct cursor *cursor, size_t len,
                                           struct egress_name *ret_name)
{
	uint8_t text[NAME_MAX_RAW];
	size_t list_len, type, name_len;

	if (len < 2 || !take_number(cursor, 2, &list_len) || list_len != len - 2 || list_len < 3)
		return EGRESS_SNI_MALFORMED;
	if (!take_number(cursor, 1, &type) || !take_number(cursor, 2, &name_len) || type != 0)
		return EGRESS_SNI_MALFORMED;
	if (name_len < list_len - 3)
		return EGRESS_SNI_TWICE;
	if (name_len > list_len - 3 || name_len > sizeof(text) || !take(cursor, text, name_len))
		return EGRESS_SNI_MALFORMED;
	if (egress_name_parse(text, name_len, ret_name) != EGRESS_NONE)
		return EGRESS_SNI_MALFORMED;
	return EGRESS_NONE;
}

/* What of a hello is of interest. */
struct content {
	struct egress_name name;
	bool has_name, has_early_data;
};

static enum egress_reason read_extensions(struct cursor *cursor, struct content *content)
{
	while (cursor->left > 0) {
		enum egress_reason reason = EGRESS_NONE;
		size_t type, len;

		if (!take_number(cursor, 2, &type) || !take_number(cursor, 2, &len) ||
		    len > cursor->left)
			return EGRESS_HELLO_MALFORMED;
		if (type == EXTENSION_SERVER_NAME) {
			if (content->has_name)
				return EGRESS_SNI_TWICE;
			content->has_name = true;
			reason = read_server_name(cursor, len, &content->name);
		} else {
			content->has_early_data |= type == EXTENSION_EARLY_DATA;
			(void) take(cursor, NULL, len);
		}
		if (reason != EGRESS_NONE)
			return reason;
	}
	return content->has_name ? EGRESS_NONE : EGRESS_SNI_MISSING;
}

static enum egress_reason read_hello(const uint8_t *records, size_t len, struct content *content)
{
	struct cursor cursor = { .at = records, .left = len };
	size_t version, rest;

	if (!take(&cursor, NULL, MESSAGE_HEADER) || !take_number(&cursor, 2, &version))
		return EGRESS_HELLO_MALFORMED;
	if (version == 0x0300)
		return EGRESS_NOT_TLS; /* SSL 3.0 */
	if (version < 0x0301 || version > 0x0304)
		return EGRESS_HELLO_MALFORMED;
	if (!take(&cursor, NULL, 32) || !skip_vector(&cursor, 1, 0, SESSION_ID_MAX) ||
	    !skip_vector(&cursor, 2, 2, SIZE_MAX) || !skip_vector(&cursor, 1, 1, SIZE_MAX))
		return EGRESS_HELLO_MALFORMED;
	if (cursor.left == 0)
		return EGRESS_SNI_MISSING;
	if (!take_number(&cursor, 2, &rest) || rest != cursor.left)
		return EGRESS_HELLO_MALFORMED;
	return read_extensions(&cursor, content);
}

/* Is this the header of a record that may hold a piece of a hello?  It may be cut short. */
static bool is_hello_record(const uint8_t *at, size_t len)
{
	if (len >= 1 && at[0] != RECORD_HANDSHAKE)
		return false;
	if (len >= 2 && at[1] != 3)
		return false;
	return len < 3 || (at[2] >= 1 && at[2] <= 4);
}

/* Remember the first bytes of the message, which may be spread, and learn its size from them. */
static enum egress_reason note_start(struct client_hello *hello, const uint8_t *bytes, size_t len)
{
	size_t size;

	for (size_t i = 0; i < len && hello->message + i < MESSAGE_HEADER; i++)
		hello->start[hello->message + i] = bytes[i];
	hello->message += len;
	if (hello->start[0] != MESSAGE_HELLO)
		return EGRESS_HELLO_MALFORMED;
	if (hello->message < MESSAGE_HEADER)
		return EGRESS_NONE;
	size = (size_t) hello->start[1] << 16 | get16(hello->start + 2);
	if (size > CLIENT_HELLO_MAX - MESSAGE_HEADER)
		return EGRESS_HELLO_TOO_LONG;
	hello->want = MESSAGE_HEADER + size;
	return hello->message > hello->want ? EGRESS_HELLO_MALFORMED : EGRESS_NONE;
}

/* Walk over the records of a hello that have come whole. */
static enum egress_reason collect(struct client_hello *hello, const uint8_t *bytes, size_t len)
{
	while (hello->want == 0 || hello->message < hello->want) {
		const uint8_t *at = bytes + hello->record;
		const size_t left = len - hello->record;
		enum egress_reason reason;
		size_t size;

		if (!is_hello_record(at, left))
			return hello->record == 0 && !hello->is_whole ? EGRESS_NOT_TLS
			                                              : EGRESS_HELLO_MALFORMED;
		size = left < RECORD_HEADER ? 1 : get16(at + 3);
		if (size == 0 || size > RECORD_PLAIN_MAX)
			return EGRESS_HELLO_MALFORMED;
		if (left < RECORD_HEADER + size)
			return len > CLIENT_HELLO_RAW_MAX ? EGRESS_HELLO_TOO_LONG : EGRESS_NONE;
		reason = note_start(hello, at + RECORD_HEADER, size);
		if (reason != EGRESS_NONE)
			return reason;
		hello->record += RECORD_HEADER + size;
		if (hello->record > CLIENT_HELLO_RAW_MAX)
			return EGRESS_HELLO_TOO_LONG;
	}
	return EGRESS_NONE;
}

static enum egress_reason accept_hello(struct client_hello *hello, const uint8_t *bytes,
                                       bool is_first)
{
	struct content content = { .has_name = false };
	enum egress_reason reason = read_hello(bytes, hello->want, &content);

	if (reason != EGRESS_NONE)
		return reason;
	if (!is_first && strcmp(content.name.text, hello->name.text) != 0)
		return EGRESS_SNI_OTHER;
	hello->name = content.name;
	hello->has_early_data = is_first && content.has_early_data;
	hello->is_whole = true;
	return EGRESS_NONE;
}

/* Another piece of a hello, and perhaps the last. */
static enum egress_reason go_on_with_hello(struct client_hello *hello, const uint8_t *bytes,
                                           size_t len, size_t *ret_pass)
{
	enum egress_reason reason = collect(hello, bytes, len);

	if (reason != EGRESS_NONE || hello->want == 0 || hello->message < hello->want)
		return reason;
	reason = accept_hello(hello, bytes, hello->state == STATE_FIRST);
	if (reason != EGRESS_NONE)
		return reason;
	*ret_pass = hello->record;
	hello->record = hello->message = hello->want = 0;
	hello->state = STATE_BEYOND;
	hello->has_ccs = false;
	return EGRESS_NONE;
}

/*
 * The first message in a record of a handshake: is it a hello?  After a ChangeCipherSpec it may be a Finished of
 * TLS 1.2 instead, in random bytes: there a hello is also known by its version, and by a length that some server
 * takes (OpenSSL: 131,396 bytes).  One that is too long for us must be seen, too, to be refused.
 */
static bool begins_hello(const struct client_hello *hello, const uint8_t *at, size_t size)
{
	if (at[RECORD_HEADER] != MESSAGE_HELLO)
		return false;
	if (!hello->has_ccs || size < FINISHED_MIN)
		return true;
	return at[RECORD_HEADER + 1] <= 2 && at[RECORD_HEADER + MESSAGE_HEADER] == 3;
}

/* The next record, of which at least the header has come. */
static enum egress_reason look_at_record(struct client_hello *hello, const uint8_t *at, size_t len)
{
	const size_t size = get16(at + 3);

	if (at[1] != 3 || size > RECORD_MAX || at[0] < RECORD_CHANGE_CIPHER_SPEC ||
	    at[0] > RECORD_DATA)
		return EGRESS_HELLO_MALFORMED;
	if (at[0] == RECORD_HANDSHAKE) {
		if (size == 0)
			return EGRESS_HELLO_MALFORMED;
		if (len < RECORD_HEADER + MESSAGE_HEADER + 1 && len < RECORD_HEADER + size)
			return EGRESS_NONE; /* wait */
		hello->state = begins_hello(hello, at, size) ? STATE_SECOND : STATE_OVER;
		return EGRESS_NONE;
	}
	if (at[0] == RECORD_DATA && !hello->has_early_data) {
		hello->state = STATE_OVER;
		return EGRESS_NONE;
	}
	hello->has_ccs |= at[0] == RECORD_CHANGE_CIPHER_SPEC;
	hello->skip = RECORD_HEADER + size;
	return EGRESS_NONE;
}

/* One step beyond the first hello; *ret_pass == 0 and the same state: wait for more. */
static enum egress_reason go_on_beyond(struct client_hello *hello, const uint8_t *bytes, size_t len,
                                       size_t *ret_pass)
{
	enum egress_reason reason;

	if (hello->skip == 0) {
		if (len < RECORD_HEADER)
			return EGRESS_NONE;
		reason = look_at_record(hello, bytes, len);
		if (reason != EGRESS_NONE)
			return reason;
	}
	*ret_pass = hello->skip < len ? hello->skip : len;
	hello->skip -= *ret_pass;
	return EGRESS_NONE;
}

enum egress_reason client_hello_look(struct client_hello *hello, const void *bytes, size_t len,
                                     uint64_t now_ms, size_t *ret_pass)
{
	enum egress_reason reason = client_hello_tick(hello, now_ms);

	*ret_pass = 0;
	while (reason == EGRESS_NONE && *ret_pass < len) {
		const uint8_t *at = (const uint8_t *) bytes + *ret_pass;
		const uint8_t state = hello->state;
		size_t passed = 0;

		if (state == STATE_OVER)
			passed = len - *ret_pass;
		else if (state == STATE_BEYOND)
			reason = go_on_beyond(hello, at, len - *ret_pass, &passed);
		else
			reason = go_on_with_hello(hello, at, len - *ret_pass, &passed);
		if (passed == 0 && hello->state == state)
			break;
		*ret_pass += passed;
	}
	return reason;
}

enum egress_reason client_hello_end(const struct client_hello *hello)
{
	return hello->state == STATE_FIRST || hello->state == STATE_SECOND ? EGRESS_HELLO_CUT
	                                                                   : EGRESS_NONE;
}

enum egress_reason client_hello_tick(const struct client_hello *hello, uint64_t now_ms)
{
	return !hello->is_whole && now_ms >= hello->deadline_ms ? EGRESS_HELLO_TIMEOUT
	                                                        : EGRESS_NONE;
}
