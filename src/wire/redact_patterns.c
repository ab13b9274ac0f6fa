/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a credential looks like is told by a scanner per pattern.  A scanner starts at one byte, reads on
 * through a cursor, and says whether a credential is there, from where to where, and of which bytes it goes on
 * (its tail, which may be of any length and is dropped as it comes).  If the cursor ran dry on the way the
 * answer does not count: the scanner is asked again, from the same byte, when more is there.  So the
 * answer never depends on how the text was split; and since every scanner gives up after a bounded number of
 * bytes, so is what is held back.
 *
 * Three tables over three successive bytes find the few places where a scanner is worth asking.
 */
#include <string.h>
#include <strings.h>

#include "wire/redact.h"
#include "wire/redact_patterns.h"

enum {
	SLICE = 16 * 1024,       /* bytes looked at before what is sure goes out */
	CONTEXT = 2,             /* bytes before a candidate that a scanner looks at */
	BLANKS_MAX = 16,         /* around a separator */
	SCHEME_MAX = 32,         /* bytes of the first word of an authorization header */
	GITHUB_MIN = 20,         /* characters behind "ghp_" */
	JWT_PART_MIN = 10,       /* characters of each of its three parts, "eyJ" not counted */
	JWT_HEAD_MAX = 8 * 1024, /* characters up to the second dot */
	URL_USER_MAX = 256,      /* bytes */
	URL_PASSWORD_MAX = 1024, /* bytes */
};

/* Where a scanner stands. */
struct cursor {
	const uint8_t *at, *end;
	const uint8_t *before; /* start of what may be looked at in front of the first byte */
	bool is_end;           /* nothing comes behind `end` */
	bool is_dry;           /* a byte behind `end` was asked for and may still come */
	const uint8_t *fixed;  /* up to here the bytes go out whatever the answer will be */
	const uint8_t *idle;   /* up to here they may go out when a prompt must be seen */
};

/* What a scanner found. */
struct finding {
	const uint8_t *from, *to; /* what is replaced, the tail not counted */
	struct pattern_tail tail;
};

/* The byte at the cursor, -1 when there is none. */
static int peek(struct cursor *cursor)
{
	if (cursor->at < cursor->end)
		return *cursor->at;
	if (!cursor->is_end)
		cursor->is_dry = true;
	return -1;
}

static bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_alnum(uint8_t c)
{
	return is_letter(c) || is_digit(c);
}

static bool is_word(uint8_t c)
{
	return is_alnum(c) || c == '_';
}

static bool is_base64url(uint8_t c)
{
	return is_word(c) || c == '-';
}

static bool is_quote(int c)
{
	return c == '"' || c == '\'' || c == '`';
}

static bool is_blank(int c)
{
	return c == ' ' || c == '\t';
}

static bool is_in_line(uint8_t c)
{
	return c != '\n' && c != '\r';
}

/* A value without quotes: up to white space, a control character, a quote or a backslash. */
static bool is_bare(uint8_t c)
{
	return c > ' ' && c != 0x7f && c != '\\' && !is_quote(c);
}

static bool is_bare_before_host(uint8_t c)
{
	return is_bare(c) && c != '@';
}

/* A value in quotes that stand escaped in a string themselves. */
static bool is_in_escaped_quotes(uint8_t c)
{
	return is_in_line(c) && c != '\\';
}

/* How many bytes (up to max) from the cursor on are of a kind; the cursor is moved behind them. */
static size_t take_while(struct cursor *cursor, bool (*is_kind)(uint8_t), size_t max)
{
	size_t n = 0;
	int c;

	while (n < max && (c = peek(cursor)) >= 0 && is_kind((uint8_t) c)) {
		cursor->at++;
		n++;
	}
	return n;
}

static void take_blanks(struct cursor *cursor)
{
	for (int i = 0; i < BLANKS_MAX && is_blank(peek(cursor)); i++)
		cursor->at++;
}

static bool take_byte(struct cursor *cursor, char byte)
{
	if (peek(cursor) != (uint8_t) byte)
		return false;
	cursor->at++;
	return true;
}

static bool take_text(struct cursor *cursor, const char *text)
{
	for (; *text; text++) {
		if (!take_byte(cursor, *text))
			return false;
	}
	return true;
}

/* Letters in any case; `lower` is in lower case. */
static bool take_keyword(struct cursor *cursor, const char *lower)
{
	for (; *lower; lower++) {
		int c = peek(cursor);

		if ((c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c) != (uint8_t) *lower)
			return false;
		cursor->at++;
	}
	return true;
}

/* Between a key and its value: the key's closing quote, a separator with blanks around it. */
static bool take_separator(struct cursor *cursor)
{
	bool is_escaped = take_byte(cursor, '\\');

	if (is_quote(peek(cursor)))
		cursor->at++;
	else if (is_escaped)
		return false;
	take_byte(cursor, ']');
	take_blanks(cursor);
	if (!take_byte(cursor, ':') && !take_byte(cursor, '='))
		return false;
	if (peek(cursor) == '=' || peek(cursor) == '>')
		cursor->at++;
	take_blanks(cursor);
	return true;
}

/* Before a value: brackets of a list, one quote, perhaps escaped or with Python's b.  *ret_tail is what the
 * value is then made of. */
static void take_opening(struct cursor *cursor, struct pattern_tail *ret_tail)
{
	bool is_escaped;

	*ret_tail = (struct pattern_tail){ .is_part = is_bare };
	while (take_byte(cursor, '[') || take_byte(cursor, '('))
		;
	if (peek(cursor) == 'b' && cursor->at + 1 < cursor->end && is_quote(cursor->at[1]))
		cursor->at++;
	else if (peek(cursor) == 'b' && cursor->at + 1 == cursor->end && !cursor->is_end)
		cursor->is_dry = true;
	is_escaped = take_byte(cursor, '\\');
	if (!is_quote(peek(cursor)))
		return;
	*ret_tail = is_escaped
	                    ? (struct pattern_tail){ .is_part = is_in_escaped_quotes }
	                    : (struct pattern_tail){ .is_part = is_in_line, .quote = *cursor->at };
	cursor->at++;
}

static bool is_value_start(struct cursor *cursor, const struct pattern_tail *tail)
{
	int c = peek(cursor);

	return c >= 0 && c != tail->quote && tail->is_part((uint8_t) c);
}

/* JSON and its like say so when there is no value. */
static bool is_no_value(struct cursor *cursor)
{
	static const char *const words[] = { "null", "none", "true", "false" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct cursor ahead = *cursor;
		bool is_it = take_keyword(&ahead, words[i]) && !is_word((uint8_t) peek(&ahead));

		cursor->is_dry |= ahead.is_dry;
		if (is_it)
			return true;
	}
	return false;
}

static bool scan_assignment(struct cursor *cursor, struct finding *ret_finding)
{
	struct pattern_tail tail = { 0 };
	bool is_assignment = take_separator(cursor);

	if (is_assignment)
		take_opening(cursor, &tail);
	cursor->fixed = cursor->at;
	if (!is_assignment)
		return false;
	if (!is_value_start(cursor, &tail) || (tail.is_part == is_bare && is_no_value(cursor)))
		return false;
	*ret_finding = (struct finding){ cursor->at, cursor->at, tail };
	return true;
}

/* "x-access-token:TOKEN@host" as in a URL, and as a header. */
static bool scan_access_token(struct cursor *cursor, struct finding *ret_finding)
{
	if (!scan_assignment(cursor, ret_finding))
		return false;
	if (ret_finding->tail.is_part != is_bare)
		return true;
	ret_finding->tail.is_part = is_bare_before_host;
	return is_bare_before_host(*ret_finding->from);
}

enum scheme {
	SCHEME_NONE,
	SCHEME_TOKEN,      /* one word follows */
	SCHEME_PARAMETERS, /* all the rest of the line belongs to it */
};

static enum scheme find_scheme(const uint8_t *word, size_t len)
{
	static const struct {
		const char *name;
		enum scheme scheme;
	} schemes[] = {
		{ "bearer", SCHEME_TOKEN },         { "basic", SCHEME_TOKEN },
		{ "token", SCHEME_TOKEN },          { "apikey", SCHEME_TOKEN },
		{ "api-key", SCHEME_TOKEN },        { "negotiate", SCHEME_TOKEN },
		{ "ntlm", SCHEME_TOKEN },           { "dpop", SCHEME_TOKEN },
		{ "digest", SCHEME_PARAMETERS },    { "aws4-hmac-sha256", SCHEME_PARAMETERS },
		{ "hawk", SCHEME_PARAMETERS },      { "oauth", SCHEME_PARAMETERS },
		{ "signature", SCHEME_PARAMETERS }, { "mac", SCHEME_PARAMETERS },
		{ "sharedkey", SCHEME_PARAMETERS }, { "scram-sha-256", SCHEME_PARAMETERS },
	};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		if (strlen(schemes[i].name) == len &&
		    strncasecmp(schemes[i].name, (const char *) word, len) == 0)
			return schemes[i].scheme;
	}
	return SCHEME_NONE;
}

static bool is_scheme_byte(uint8_t c)
{
	return is_alnum(c) || c == '-';
}

/* "Authorization: Bearer x" and its like: the scheme stays, the credential goes.  With a scheme that
 * is not known both go. */
static bool scan_authorization(struct cursor *cursor, struct finding *ret_finding)
{
	struct finding *found = ret_finding;
	enum scheme scheme;
	const uint8_t *word;
	size_t len;

	if (!scan_assignment(cursor, found))
		return false;
	word = cursor->at;
	len = take_while(cursor, is_scheme_byte, SCHEME_MAX + 1);
	scheme = len <= SCHEME_MAX ? find_scheme(word, len) : SCHEME_NONE;
	if (len > SCHEME_MAX || len == 0 || !is_blank(peek(cursor)))
		return scheme == SCHEME_NONE; /* the one word is the credential */
	take_blanks(cursor);
	if (!is_value_start(cursor, &found->tail))
		return scheme == SCHEME_NONE;
	found->to = cursor->at;
	if (scheme != SCHEME_NONE)
		found->from = cursor->at;
	if (scheme == SCHEME_PARAMETERS && found->tail.is_part == is_bare)
		found->tail.is_part = is_in_line;
	return true;
}

struct keyword {
	const char *lower;
	bool (*scan)(struct cursor *cursor, struct finding *ret_finding);
};

/* What may stand before a value.  No beginning of one of these is the beginning of another pattern that
 * is replaced as a whole, so they go out as they come. */
static const struct keyword keywords[] = {
	{ "authorization", scan_authorization },
	{ "aws_secret_access_key", scan_assignment },
	{ "aws_session_token", scan_assignment },
	{ "aws_security_token", scan_assignment },
	{ "x-access-token", scan_access_token },
	{ "secretaccesskey", scan_assignment }, /* what AWS itself answers, and programs log */
	{ "sessiontoken", scan_assignment },
};

static bool scan_keywords(struct cursor *cursor, struct finding *ret_finding)
{
	bool is_dry = false;

	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++) {
		struct cursor ahead = *cursor;

		if (take_keyword(&ahead, keywords[i].lower)) {
			*cursor = ahead;
			return keywords[i].scan(cursor, ret_finding);
		}
		is_dry |= ahead.is_dry;
	}
	cursor->is_dry = is_dry;
	cursor->fixed = cursor->end;
	return false;
}

static bool take_github_prefix(struct cursor *cursor, bool (**ret_is_part)(uint8_t))
{
	cursor->at++; /* the g */
	*ret_is_part = is_word;
	if (!take_byte(cursor, 'h'))
		return take_text(cursor, "ithub_pat_");
	*ret_is_part = is_alnum;
	if (peek(cursor) < 0 || !strchr("pousr", peek(cursor)) || peek(cursor) == 0)
		return false;
	cursor->at++;
	return take_byte(cursor, '_');
}

static bool scan_github(struct cursor *cursor, struct finding *ret_finding)
{
	const uint8_t *start = cursor->at;
	bool (*is_part)(uint8_t);
	bool has_prefix = take_github_prefix(cursor, &is_part);

	cursor->idle = cursor->at;
	if (!has_prefix || take_while(cursor, is_part, GITHUB_MIN) < GITHUB_MIN)
		return false;
	*ret_finding = (struct finding){ start, cursor->at, { .is_part = is_part } };
	return true;
}

/* Not inside of a word; but behind "\n" as strings write it. */
static bool is_word_start(const struct cursor *cursor)
{
	ptrdiff_t n = cursor->at - cursor->before;

	if (n == 0 || !is_word(cursor->at[-1]))
		return true;
	return n >= 2 && cursor->at[-2] == '\\' && strchr("nrtbf", cursor->at[-1]);
}

static bool scan_jwt(struct cursor *cursor, struct finding *ret_finding)
{
	const uint8_t *start = cursor->at;
	bool is_begun = is_word_start(cursor) && take_text(cursor, "eyJ");
	size_t head, body;

	cursor->idle = cursor->at;
	if (!is_begun)
		return false;
	head = take_while(cursor, is_base64url, JWT_HEAD_MAX);
	if (head < JWT_PART_MIN || !take_byte(cursor, '.'))
		return false;
	body = take_while(cursor, is_base64url, JWT_HEAD_MAX - head);
	if (body < JWT_PART_MIN || !take_byte(cursor, '.') ||
	    take_while(cursor, is_base64url, JWT_PART_MIN) < JWT_PART_MIN)
		return false;
	*ret_finding = (struct finding){ start, cursor->at, { .is_part = is_base64url } };
	return true;
}

static bool is_url_user(uint8_t c)
{
	return is_bare(c) && c != '/' && c != '@' && c != ':' && c != '<' && c != '>';
}

static bool is_url_password(uint8_t c)
{
	return is_url_user(c) || c == ':' || c == '\'';
}

static bool scan_url(struct cursor *cursor, struct finding *ret_finding)
{
	bool is_url = take_text(cursor, "://");
	const uint8_t *user = cursor->at;

	cursor->fixed = user;
	if (!is_url)
		return false;
	take_while(cursor, is_url_user, URL_USER_MAX);
	if (!take_byte(cursor, ':') || take_while(cursor, is_url_password, URL_PASSWORD_MAX) == 0 ||
	    peek(cursor) != '@')
		return false;
	*ret_finding = (struct finding){ user, cursor->at, { 0 } };
	return true;
}

static bool scan(struct cursor *cursor, struct finding *ret_finding)
{
	switch (*cursor->at) {
	case 'g':
		return scan_github(cursor, ret_finding);
	case 'e':
		return scan_jwt(cursor, ret_finding);
	case ':':
		return scan_url(cursor, ret_finding);
	default:
		return scan_keywords(cursor, ret_finding);
	}
}

/* How each pattern begins: a bit for each, set for its first, second and third byte. */
enum {
	AUT = 1, /* authorization */
	AWS = 2,
	XA = 4, /* x-access-token */
	GH = 8, /* ghp_ gho_ ghu_ ghs_ ghr_ */
	GIT = 16,
	EYJ = 32,
	URL = 64,
	SE = 128, /* secretaccesskey, sessiontoken */
};

static const uint8_t first[256] = {
	['a'] = AUT | AWS, ['A'] = AUT | AWS, ['x'] = XA, ['X'] = XA, ['g'] = GH | GIT,
	['e'] = EYJ,       [':'] = URL,       ['s'] = SE, ['S'] = SE,
};
static const uint8_t second[256] = {
	['u'] = AUT, ['U'] = AUT, ['w'] = AWS, ['W'] = AWS, ['-'] = XA, ['h'] = GH,
	['i'] = GIT, ['y'] = EYJ, ['/'] = URL, ['e'] = SE,  ['E'] = SE,
};
static const uint8_t third[256] = {
	['t'] = AUT | GIT, ['T'] = AUT, ['s'] = AWS | GH | SE,
	['S'] = AWS | SE,  ['a'] = XA,  ['A'] = XA,
	['p'] = GH,        ['o'] = GH,  ['u'] = GH,
	['r'] = GH,        ['J'] = EYJ, ['/'] = URL,
	['c'] = SE,        ['C'] = SE,
};

/* The first place from `at` on where a pattern may begin, also where its next bytes are still to come; `end`
 * when there is none. */
static const uint8_t *find_candidate(const uint8_t *at, const uint8_t *end)
{
	for (; end - at >= 3; at++) {
		if (first[at[0]] & second[at[1]] & third[at[2]])
			return at;
	}
	if (end - at == 2 && !(first[at[0]] & second[at[1]]))
		at++;
	if (end - at == 1 && !first[at[0]])
		at++;
	return at;
}

struct output {
	struct buf *out;
	uint64_t *count;
};

/* Let out the window up to an offset. */
static int emit(struct pattern_stream *stream, size_t until, struct output *output)
{
	size_t from = stream->emitted;

	if (until <= from)
		return 0;
	stream->emitted = until;
	return buf_add(output->out, stream->window.data + from, until - from);
}

static int replace(struct pattern_stream *stream, size_t from, size_t to, struct output *output)
{
	int r = emit(stream, from, output);

	stream->emitted = to;
	++*output->count;
	return r < 0 ? r : buf_add_str(output->out, REDACT_MARK);
}

/* Drop what belongs to the tail; returns the offset behind it. */
static size_t drop_tail(struct pattern_stream *stream, size_t at)
{
	struct pattern_tail *tail = &stream->tail;

	for (; at < stream->window.len; at++) {
		uint8_t c = (uint8_t) stream->window.data[at];

		if (!tail->is_part(c) || (tail->quote && c == tail->quote && !tail->is_escaped)) {
			*tail = (struct pattern_tail){ 0 };
			break;
		}
		tail->is_escaped = tail->quote && c == '\\' && !tail->is_escaped;
	}
	stream->emitted = at;
	return at;
}

/* Ask at the candidate.  1: more bytes are needed.  0: the candidate is now behind what was decided. */
static int decide(struct pattern_stream *stream, enum pattern_mode mode, struct output *output)
{
	const uint8_t *data = (const uint8_t *) stream->window.data;
	struct cursor cursor = {
		.at = data + stream->candidate,
		.end = data + stream->window.len,
		.before = data,
		.fixed = data,
		.idle = data,
		.is_end = mode == PATTERN_END,
	};
	struct finding found = { 0 };
	bool is_found = scan(&cursor, &found);
	int r;

	if (cursor.is_dry) {
		r = emit(stream, (size_t) (cursor.fixed - data), output);
		if (r == 0 && mode == PATTERN_IDLE)
			r = emit(stream, (size_t) (cursor.idle - data), output);
		return r < 0 ? r : 1;
	}
	if (!is_found) {
		stream->candidate++;
		return 0;
	}
	r = replace(stream, (size_t) (found.from - data), (size_t) (found.to - data), output);
	stream->candidate = (size_t) (found.to - data);
	stream->tail = found.tail;
	return r;
}

/* Decide what can be decided of the window. */
static int work_off(struct pattern_stream *stream, enum pattern_mode mode, struct output *output)
{
	int r = 0;

	while (r == 0) {
		const uint8_t *data = (const uint8_t *) stream->window.data;
		const uint8_t *end = data + stream->window.len;

		if (stream->tail.is_part)
			stream->candidate = drop_tail(stream, stream->candidate);
		stream->candidate = (size_t) (find_candidate(data + stream->candidate, end) - data);
		r = emit(stream, stream->candidate, output);
		if (r < 0 || stream->candidate == stream->window.len)
			break;
		r = decide(stream, mode, output);
	}
	return r < 0 ? r : 0;
}

/* Forget what is decided but for a little context. */
static void trim(struct pattern_stream *stream)
{
	size_t drop = stream->candidate > CONTEXT ? stream->candidate - CONTEXT : 0;

	buf_drop_front(&stream->window, drop);
	stream->candidate -= drop;
	stream->emitted -= drop;
}

static int feed_slice(struct pattern_stream *stream, const void *bytes, size_t len,
                      enum pattern_mode mode, struct output *output)
{
	int r = buf_add(&stream->window, bytes, len);

	if (r == 0 && stream->window.len > 0)
		r = work_off(stream, mode, output);
	trim(stream);
	return r;
}

int pattern_stream_feed(struct pattern_stream *stream, const void *bytes, size_t len,
                        enum pattern_mode mode, struct buf *out, uint64_t *count)
{
	struct output output = { .out = out, .count = count };
	const char *at = bytes;
	int r = 0;

	stream->window.max = REDACT_HOLD_MAX;
	while (r == 0 && len > SLICE) {
		r = feed_slice(stream, at, SLICE, PATTERN_FEED, &output);
		at += SLICE;
		len -= SLICE;
	}
	return r < 0 ? r : feed_slice(stream, at, len, mode, &output);
}

void pattern_stream_done(struct pattern_stream *stream)
{
	if (stream->window.data)
		explicit_bzero(stream->window.data, stream->window.cap);
	buf_done(&stream->window);
	*stream = (struct pattern_stream){ 0 };
}
