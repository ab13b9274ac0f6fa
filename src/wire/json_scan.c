/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "wire/json_scan.h"
#include "wire/utf8.h"

enum {
	DEL = 0x7f,
	DIGITS_MAX = 18,         /* decimal digits that surely fit 64 bits with sign */
	EXPONENT_MAX = 300,      /* numbers of 1e300 and more are refused */
	EXPONENT_CLAMP = 100000, /* larger ones are the same: 0 or far too large */
};

static bool is_digit(const struct json_scan *scan)
{
	return scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9';
}

int json_scan_peek(struct json_scan *scan)
{
	if (scan->at<scan->end && * scan->at> ' ') /* nearly always */
		return *scan->at;
	while (scan->at < scan->end &&
	       (*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\n' || *scan->at == '\r'))
		scan->at++;
	return scan->at < scan->end ? (unsigned char) *scan->at : -1;
}

static bool take(struct json_scan *scan, char c)
{
	if (json_scan_peek(scan) != c)
		return false;
	scan->at++;
	return true;
}

static int open_level(struct json_scan *scan, char bracket)
{
	if (!take(scan, bracket) || scan->depth >= JSON_DEPTH_MAX)
		return -EBADMSG;
	scan->depth++;
	return 0;
}

int json_scan_object(struct json_scan *scan)
{
	return open_level(scan, '{');
}

int json_scan_array(struct json_scan *scan)
{
	return open_level(scan, '[');
}

int json_scan_item(struct json_scan *scan, bool is_first)
{
	if (take(scan, ']')) {
		scan->depth--;
		return 0;
	}
	return is_first || take(scan, ',') ? 1 : -EBADMSG;
}

int json_scan_end(struct json_scan *scan)
{
	return json_scan_peek(scan) < 0 ? 0 : -EBADMSG;
}

static int add(struct buf *text, const void *bytes, size_t len)
{
	return text && len > 0 ? buf_add(text, bytes, len) : 0;
}

/* Four hex digits at the cursor, or -1. */
static int32_t take_unit(struct json_scan *scan)
{
	int32_t unit = 0;

	if (scan->end - scan->at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char c = *scan->at++;
		int digit = c >= '0' && c <= '9'
		                    ? c - '0'
		                    : ((c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
		                                                          : -1);

		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

/* The character of a \u escape behind its u, both halves of a pair, or -1. */
static int32_t take_unicode(struct json_scan *scan)
{
	int32_t high = take_unit(scan), low;

	if (high < 0xd800 || high > 0xdfff)
		return high;
	if (high > 0xdbff || scan->end - scan->at < 2 || scan->at[0] != '\\' || scan->at[1] != 'u')
		return -1;
	scan->at += 2;
	low = take_unit(scan);
	return low < 0xdc00 || low > 0xdfff ? -1 : 0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff);
}

static int add_char(struct buf *text, int32_t c)
{
	char bytes[4];
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	bytes[0] = (char) (n == 1 ? c : (0xf00 >> n & 0xff) | c >> (6 * (n - 1)));
	for (size_t i = 1; i < n; i++)
		bytes[i] = (char) (0x80 | (c >> (6 * (n - 1 - i)) & 0x3f));
	return add(text, bytes, n);
}

/* What follows a backslash. */
static int scan_escape(struct json_scan *scan, struct buf *text)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *found;
	int32_t c;

	if (scan->at == scan->end)
		return -EBADMSG;
	c = (unsigned char) *scan->at++;
	if (c == 'u') {
		c = take_unicode(scan);
		scan->has_nul |= c == 0;
		return c < 0 ? -EBADMSG : add_char(text, c);
	}
	found = c ? strchr(from, c) : NULL;
	return found ? add(text, &to[found - from], 1) : -EBADMSG;
}

static int scan_utf8(struct json_scan *scan, struct buf *text)
{
	uint32_t c;
	bool valid;
	size_t n = utf8_decode((const uint8_t *) scan->at, (size_t) (scan->end - scan->at), &c,
	                       &valid);

	scan->at += n;
	return valid ? add(text, scan->at - n, n) : -EBADMSG;
}

int json_scan_string(struct json_scan *scan, struct buf *text)
{
	scan->has_nul = false;
	if (!take(scan, '"'))
		return -EBADMSG;
	for (;;) {
		size_t n = json_plain_run(scan->at, (size_t) (scan->end - scan->at));
		unsigned char c;
		int r = add(text, scan->at, n);

		scan->at += n;
		if (r < 0)
			return r;
		if (scan->at == scan->end)
			return -EBADMSG;
		c = (unsigned char) *scan->at;
		if (c < 0x80)
			scan->at++;
		if (c == '"')
			return 0;
		if (c == '\\')
			r = scan_escape(scan, text);
		else if (c >= 0x80)
			r = scan_utf8(scan, text);
		else
			r = c == DEL ? add(text, "\x7f", 1) : -EBADMSG;
		if (r < 0)
			return r;
	}
}

/* A key without escapes is used where it stands. */
static int scan_name(struct json_scan *scan, struct buf *scratch, struct json_name *ret_name)
{
	size_t len;
	int r;

	if (json_scan_peek(scan) != '"')
		return -EBADMSG;
	len = json_plain_run(scan->at + 1, (size_t) (scan->end - scan->at - 1));
	if (scan->at + 1 + len < scan->end && scan->at[1 + len] == '"') {
		*ret_name = (struct json_name){ scan->at + 1, len };
		scan->at += len + 2;
		return 0;
	}
	buf_clear(scratch);
	r = json_scan_string(scan, scratch);
	*ret_name = (struct json_name){ scratch->data, scratch->len };
	return r < 0 ? r : scan->has_nul ? -EBADMSG : 0;
}

int json_scan_key(struct json_scan *scan, bool is_first, struct buf *scratch,
                  struct json_name *ret_key)
{
	int r;

	if (take(scan, '}')) {
		scan->depth--;
		return 0;
	}
	if (!is_first && !take(scan, ','))
		return -EBADMSG;
	r = scan_name(scan, scratch, ret_key);
	if (r < 0)
		return r;
	return take(scan, ':') ? 1 : -EBADMSG;
}

/* A number taken apart. */
struct decimal {
	bool is_negative, is_integer, is_too_long;
	uint64_t mantissa; /* of its first digits */
	unsigned digits;   /* in the mantissa, leading zeros not counted */
	long exponent;     /* the number is mantissa * 10^exponent */
};

static void take_digits(struct json_scan *scan, struct decimal *decimal, bool is_fraction)
{
	for (; is_digit(scan); scan->at++) {
		unsigned digit = (unsigned) (*scan->at - '0');

		if (decimal->digits < DIGITS_MAX) {
			decimal->mantissa = decimal->mantissa * 10 + digit;
			decimal->digits += decimal->mantissa > 0;
			decimal->exponent -= is_fraction;
		} else {
			decimal->is_too_long = true;
			decimal->exponent += !is_fraction;
		}
	}
}

static int take_exponent(struct json_scan *scan, struct decimal *decimal)
{
	bool is_negative = scan->at < scan->end && *scan->at == '-';
	long exponent = 0;

	if (scan->at < scan->end && (*scan->at == '-' || *scan->at == '+'))
		scan->at++;
	if (!is_digit(scan))
		return -EBADMSG;
	for (; is_digit(scan); scan->at++) {
		if (exponent < EXPONENT_CLAMP)
			exponent = exponent * 10 + (*scan->at - '0');
	}
	decimal->exponent += is_negative ? -exponent : exponent;
	return 0;
}

static int take_decimal(struct json_scan *scan, struct decimal *decimal)
{
	*decimal = (struct decimal){ .is_integer = true };
	decimal->is_negative = take(scan, '-');
	if (!is_digit(scan))
		return -EBADMSG;
	if (*scan->at == '0')
		scan->at++;
	else
		take_digits(scan, decimal, false);
	if (scan->at < scan->end && *scan->at == '.') {
		scan->at++;
		decimal->is_integer = false;
		if (!is_digit(scan))
			return -EBADMSG;
		take_digits(scan, decimal, true);
	}
	if (scan->at < scan->end && (*scan->at == 'e' || *scan->at == 'E')) {
		scan->at++;
		decimal->is_integer = false;
		return take_exponent(scan, decimal);
	}
	return 0;
}

/* 10^n for n of 0 and more, in long double: exact up to 10^27, and close above. */
static long double power_of_ten(unsigned long n)
{
	long double power = 1, base = 10;

	for (; n > 0; n >>= 1, base *= base) {
		if (n & 1)
			power *= base;
	}
	return power;
}

static double to_double(const struct decimal *decimal)
{
	static const double exact[] = { 1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
		                        1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15 };
	long double value = (long double) decimal->mantissa;

	/* both exact as double, so that the quotient is rounded once: times are like that */
	if (decimal->mantissa < 1ull << 53 && decimal->exponent <= 0 && decimal->exponent > -16) {
		double quotient = (double) decimal->mantissa / exact[-decimal->exponent];

		return decimal->is_negative ? -quotient : quotient;
	}
	if (decimal->exponent < -4900) /* below the smallest long double */
		value = 0;
	else if (decimal->exponent < 0)
		value /= power_of_ten((unsigned long) -decimal->exponent);
	else
		value *= power_of_ten((unsigned long) decimal->exponent);
	return (double) (decimal->is_negative ? -value : value);
}

/* Integers of more than DIGITS_MAX digits: read again, exactly. */
static int read_long_integer(const char *at, const char *end, int64_t *ret_value)
{
	bool is_negative = *at == '-';
	int64_t value = 0;

	for (at += is_negative; at < end; at++) {
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, is_negative ? '0' - *at : *at - '0', &value))
			return -EBADMSG;
	}
	*ret_value = value;
	return 0;
}

int json_scan_number(struct json_scan *scan, struct json_number *ret_number)
{
	struct decimal decimal;
	const char *start;
	int r;

	(void) json_scan_peek(scan);
	start = scan->at;
	r = take_decimal(scan, &decimal);
	if (r < 0)
		return r;
	if (decimal.mantissa > 0 && (long) decimal.digits + decimal.exponent > EXPONENT_MAX)
		return -EBADMSG;
	*ret_number = (struct json_number){
		.real = decimal.mantissa > 0 ? to_double(&decimal) : 0,
		.is_integer = decimal.is_integer,
		.integer = decimal.is_negative ? -(int64_t) decimal.mantissa
		                               : (int64_t) decimal.mantissa,
	};
	if (decimal.is_integer && decimal.is_too_long)
		return read_long_integer(start, scan->at, &ret_number->integer);
	return 0;
}

static int scan_word(struct json_scan *scan, const char *word)
{
	size_t len = strlen(word);

	if ((size_t) (scan->end - scan->at) < len || memcmp(scan->at, word, len) != 0)
		return -EBADMSG;
	scan->at += len;
	return 0;
}

static int skip_object(struct json_scan *scan)
{
	int r = open_level(scan, '{');

	for (bool is_first = true; r == 0; is_first = false) {
		if (take(scan, '}')) {
			scan->depth--;
			return 0;
		}
		if (!is_first && !take(scan, ','))
			return -EBADMSG;
		r = json_scan_string(scan, NULL);
		if (r == 0)
			r = !scan->has_nul && take(scan, ':') ? json_scan_skip(scan) : -EBADMSG;
	}
	return r;
}

static int skip_array(struct json_scan *scan)
{
	int r = json_scan_array(scan);

	for (bool is_first = true; r == 0; is_first = false) {
		r = json_scan_item(scan, is_first);
		if (r <= 0)
			return r;
		r = json_scan_skip(scan);
	}
	return r;
}

int json_scan_skip(struct json_scan *scan)
{
	struct json_number number;

	switch (json_scan_peek(scan)) {
	case '{':
		return skip_object(scan);
	case '[':
		return skip_array(scan);
	case '"':
		return json_scan_string(scan, NULL);
	case 't':
		return scan_word(scan, "true");
	case 'f':
		return scan_word(scan, "false");
	case 'n':
		return scan_word(scan, "null");
	default:
		return json_scan_number(scan, &number);
	}
}
