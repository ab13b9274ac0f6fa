/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "egress/name.h"

enum { LABEL_MAX = 63 };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Does it look like an IPv6 literal, with brackets and zone or without? */
static bool is_ipv6(const char *text, size_t len)
{
	size_t colons = 0;

	if (len > 0 && text[0] == '[') {
		text++;
		len--;
	}
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '%' || text[i] == ']')
			break;
		if (!is_hex(text[i]) && text[i] != ':' && text[i] != '.')
			return false;
		colons += text[i] == ':';
	}
	return colons >= 2;
}

/* What inet_aton() and browsers take for the end of an IPv4 address: all digits, or 0x and hex digits. */
static bool is_number(const char *label, size_t len)
{
	bool is_hexadecimal = len >= 2 && label[0] == '0' && label[1] == 'x';

	for (size_t i = is_hexadecimal ? 2 : 0; i < len; i++) {
		if (is_hexadecimal ? !is_hex(label[i]) : !is_digit(label[i]))
			return false;
	}
	return len > 0;
}

static bool is_label(const char *label, size_t len)
{
	return len >= 1 && len <= LABEL_MAX && label[0] != '-' && label[len - 1] != '-';
}

/* One byte in lower case; 0: it has no place in a name. */
static char folded(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char) (c - 'A' + 'a');
	return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '.' ? c : '\0';
}

static enum egress_reason parse(const char *text, size_t len, struct egress_name *name)
{
	size_t label = 0;

	for (size_t i = 0; i < len; i++) {
		name->text[i] = folded(text[i]);
		if (!name->text[i])
			return EGRESS_NAME_MALFORMED;
		if (text[i] != '.')
			continue;
		if (!is_label(name->text + label, i - label))
			return EGRESS_NAME_MALFORMED;
		label = i + 1;
	}
	name->text[len] = '\0';
	if (!is_label(name->text + label, len - label))
		return EGRESS_NAME_MALFORMED;
	return is_number(name->text + label, len - label) ? EGRESS_NAME_ADDRESS : EGRESS_NONE;
}

enum egress_reason egress_name_parse(const void *bytes, size_t len, struct egress_name *ret_name)
{
	const char *text = bytes;
	struct egress_name name;
	enum egress_reason reason;

	if (is_ipv6(text, len))
		return EGRESS_NAME_ADDRESS;
	if (len > 0 && text[len - 1] == '.')
		len--;
	if (len == 0 || len > EGRESS_NAME_MAX)
		return EGRESS_NAME_MALFORMED;
	reason = parse(text, len, &name);
	if (reason == EGRESS_NONE)
		memcpy(ret_name->text, name.text, len + 1);
	return reason;
}
