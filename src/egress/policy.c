/* SPDX-License-Identifier: Apache-2.0 */
/* policy.c - patterns as people write them, and what they allow. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/span.h"
#include "egress/policy.h"
#include "wire/printable.h"

enum {
	PATTERN_MAX = 4096, /* bytes of one pattern, an ignored path included */
	PORT_TLS = 443,
	PORT_PLAIN = 80,
	PORT_MAX = 65535,
};

/* A stretch of the pattern. */
/* What is before an @ may be a password. */
static int refuse(struct resoluto_err *err, struct span text, const char *why)
{
	char copy[PATTERN_MAX + 1], shown[PRINTABLE_SIZE];
	const char *at_sign = memrchr(text.at, '@', text.len);

	if (at_sign) {
		text.len -= (size_t) (at_sign - text.at);
		text.at = at_sign;
	}
	memcpy(copy, text.at, text.len);
	copy[text.len] = '\0';
	return resoluto_fail(err, -EINVAL, "egress pattern '%s': %s", printable(copy, shown), why);
}

static bool has_byte(struct span text, const char *set)
{
	for (size_t i = 0; i < text.len; i++) {
		if (text.at[i] && strchr(set, text.at[i]))
			return true;
	}
	return false;
}

static bool is_other_than_ascii(struct span text)
{
	for (size_t i = 0; i < text.len; i++) {
		if ((unsigned char) text.at[i] >= 0x80)
			return true;
	}
	return false;
}

/* Take a scheme off; NULL, or what is wrong with it. */
static const char *take_scheme(struct span *text, bool *ret_is_plain, bool *ret_is_url)
{
	static const char https[] = "https://", http[] = "http://";
	const char *slashes = memmem(text->at, text->len, "://", 3);
	size_t len = slashes ? (size_t) (slashes - text->at) + 3 : 0;

	*ret_is_plain = len == sizeof(http) - 1 && strncasecmp(text->at, http, len) == 0;
	*ret_is_url = *ret_is_plain ||
	              (len == sizeof(https) - 1 && strncasecmp(text->at, https, len) == 0);
	if (!*ret_is_url)
		return slashes ? "of URLs only https:// and http:// are understood" : NULL;
	text->at += len;
	text->len -= len;
	return NULL;
}

/* Cut a URL behind its host and port; *ret_ignored: what was there, if it meant anything. */
static void cut_path(struct span *text, const char **ret_ignored)
{
	size_t i = 0;

	while (i < text->len && !strchr("/?#\\", text->at[i]))
		i++;
	if (text->len - i > 1)
		*ret_ignored = text->at + i;
	text->len = i;
}

/* -1: no number from 1 to 65535. */
static int port_of(struct span digits)
{
	int port = 0;

	if (digits.len == 0 || digits.len > 5 || digits.at[0] == '0')
		return -1;
	for (size_t i = 0; i < digits.len; i++) {
		if (digits.at[i] < '0' || digits.at[i] > '9')
			return -1;
		port = port * 10 + (digits.at[i] - '0');
	}
	return port <= PORT_MAX ? port : -1;
}

/* Take ":PORT" off, if there is one; NULL, or what is wrong with it. */
static const char *take_port(struct span *text, uint16_t *port)
{
	const char *colon = memrchr(text->at, ':', text->len);
	struct span digits;
	int number;

	if (!colon)
		return NULL;
	digits.at = colon + 1;
	digits.len = text->len - (size_t) (digits.at - text->at);
	number = port_of(digits);
	if (number < 0)
		return "a port is a number from 1 to 65535";
	*port = (uint16_t) number;
	text->len = (size_t) (colon - text->at);
	return NULL;
}

/* Why a text is no host name, and what to write instead. */
static const char *what_is_wrong(struct span name)
{
	if (name.len == 0)
		return "a host name is missing";
	if (is_other_than_ascii(name))
		return "write an international name in its ASCII form (xn--...)";
	if (has_byte(name, "*"))
		return "a * stands for whole labels and only at the beginning: *.example.org";
	if (has_byte(name, "_"))
		return "an underscore has no place in a host name";
	if (has_byte(name, "@"))
		return "a user or password has no place here";
	if (has_byte(name, ", \t;"))
		return "one name each: give the option once more for another";
	if (name.at[0] == '.')
		return "for all names beneath one write *.example.org";
	return "this is no host name (labels of letters, digits and inner hyphens, at most 63 "
	       "bytes each and 253 in all)";
}

/* NULL, or what is wrong. */
static const char *parse_name(struct span text, bool is_wide, struct egress_pattern *pattern)
{
	enum egress_reason reason;

	pattern->is_wildcard = text.len >= 1 && text.at[0] == '*' &&
	                       (text.len == 1 || text.at[1] == '.');
	if (pattern->is_wildcard && text.len == 1)
		return is_wide ? NULL : "all names at once only with --egress-wide";
	if (pattern->is_wildcard) {
		text.at += 2;
		text.len -= 2;
	}
	reason = egress_name_parse(text.at, text.len, &pattern->name);
	if (reason == EGRESS_NAME_ADDRESS)
		return "an address: only names can be allowed, since an address may be somebody "
		       "else's tomorrow";
	if (reason != EGRESS_NONE)
		return what_is_wrong(text);
	if (pattern->is_wildcard && !is_wide && !strchr(pattern->name.text, '.'))
		return "a whole top-level domain only with --egress-wide";
	return NULL;
}

/* Addresses have colons and slashes of their own, so they are known before anything is cut. */
static const char *refuse_address(struct span text, bool is_url)
{
	struct egress_name name;
	const char *slash = memchr(text.at, '/', text.len);
	size_t len = slash ? (size_t) (slash - text.at) : text.len;

	if (egress_name_parse(text.at, len, &name) == EGRESS_NAME_ADDRESS)
		return slash && !is_url ? "a range of addresses (CIDR): only names can be allowed"
		                        : "an address: only names can be allowed, since an address "
		                          "may be somebody else's tomorrow";
	if (slash && !is_url)
		return "only the name, without a path";
	return NULL;
}

static const char *parse(struct span text, bool is_wide, struct egress_pattern *pattern,
                         const char **ret_ignored)
{
	const char *wrong;
	bool is_url;

	wrong = take_scheme(&text, &pattern->is_plain, &is_url);
	if (!wrong)
		wrong = refuse_address(text, is_url);
	if (wrong)
		return wrong;
	if (is_url)
		cut_path(&text, ret_ignored);
	pattern->port = pattern->is_plain ? PORT_PLAIN : PORT_TLS;
	if (has_byte(text, "@"))
		return what_is_wrong(text);
	wrong = take_port(&text, &pattern->port);
	return wrong ? wrong : parse_name(text, is_wide, pattern);
}

static int pattern_parse(struct span text, bool is_wide, struct egress_pattern *ret_pattern,
                         const char **ret_ignored, struct resoluto_err *err)
{
	struct egress_pattern pattern = { 0 };
	const char *ignored = NULL, *wrong;

	if (text.len > PATTERN_MAX)
		return resoluto_fail(err, -EINVAL, "an egress pattern of more than %d bytes",
		                     PATTERN_MAX);
	wrong = parse(text, is_wide, &pattern, &ignored);
	if (wrong)
		return refuse(err, text, wrong);
	*ret_pattern = pattern;
	if (ret_ignored)
		*ret_ignored = ignored;
	return 0;
}

int egress_pattern_parse(const char *text, bool is_wide, struct egress_pattern *ret_pattern,
                         const char **ret_ignored, struct resoluto_err *err)
{
	return pattern_parse((struct span){ text, strlen(text) }, is_wide, ret_pattern, ret_ignored,
	                     err);
}

int egress_pattern_write(const struct egress_pattern *pattern, struct buf *out)
{
	const char *star = !pattern->is_wildcard ? "" : pattern->name.text[0] ? "*." : "*";

	return buf_addf(out, "%s%s%s:%u", pattern->is_plain ? "http://" : "", star,
	                pattern->name.text, pattern->port);
}

static bool is_same(const struct egress_pattern *a, const struct egress_pattern *b)
{
	return a->port == b->port && a->is_wildcard == b->is_wildcard &&
	       a->is_plain == b->is_plain && strcmp(a->name.text, b->name.text) == 0;
}

/* The list grows when its count is a power of two. */
static int reserve(struct egress_policy *policy)
{
	const size_t count = policy->count, cap = count ? count * 2 : 8;
	struct egress_pattern *patterns;

	if (count != 0 && (count < 8 || (count & (count - 1)) != 0))
		return 0;
	patterns = realloc(policy->patterns, cap * sizeof(*patterns));
	if (!patterns)
		return -ENOMEM;
	policy->patterns = patterns;
	return 0;
}

int egress_policy_add(struct egress_policy *policy, const struct egress_pattern *pattern,
                      struct resoluto_err *err)
{
	for (size_t i = 0; i < policy->count; i++) {
		if (is_same(&policy->patterns[i], pattern))
			return 0;
	}
	if (policy->count == EGRESS_PATTERNS_MAX)
		return resoluto_fail(err, -E2BIG, "more than %d egress patterns",
		                     EGRESS_PATTERNS_MAX);
	if (reserve(policy) < 0)
		return resoluto_fail(err, -ENOMEM, "keep an egress pattern");
	policy->patterns[policy->count++] = *pattern;
	return 0;
}

/* Who hears of what was ignored, and in which line. */
struct listener {
	egress_ignored_fn *fn;
	void *ctx;
	size_t line;
};

static int tell_ignored(const struct listener *to, struct span line, const char *ignored)
{
	char text[PATTERN_MAX + 1];

	if (!ignored || !to->fn)
		return 0;
	memcpy(text, line.at, line.len);
	text[line.len] = '\0';
	return to->fn(to->ctx, to->line, text, (size_t) (ignored - line.at));
}

static int add_line(struct egress_policy *policy, struct span line, const struct listener *to,
                    struct resoluto_err *err)
{
	const char *comment = memchr(line.at, '#', line.len), *ignored = NULL;
	struct egress_pattern pattern;
	int r;

	if (comment)
		line.len = (size_t) (comment - line.at);
	line = span_trim(line, " \t\r");
	if (line.len == 0)
		return 0;
	if (memchr(line.at, '\0', line.len))
		return resoluto_fail(err, -EINVAL, "a NUL byte");
	r = pattern_parse(line, policy->is_wide, &pattern, &ignored, err);
	if (r == 0)
		r = egress_policy_add(policy, &pattern, err);
	return r < 0 ? r : tell_ignored(to, line, ignored);
}

int egress_policy_add_file(struct egress_policy *policy, const char *source, struct span rest,
                           egress_ignored_fn *fn, void *ctx, struct resoluto_err *err)
{
	static const char byte_order_mark[] = "\xef\xbb\xbf";
	struct listener to = { fn, ctx, 1 };

	if (rest.len > EGRESS_FILE_MAX)
		return resoluto_fail(err, -E2BIG, "%s: larger than %d bytes", source,
		                     EGRESS_FILE_MAX);
	if (rest.len >= 3 && memcmp(rest.at, byte_order_mark, 3) == 0)
		rest = (struct span){ rest.at + 3, rest.len - 3 };
	for (; rest.len > 0; to.line++) {
		const char *end = memchr(rest.at, '\n', rest.len);
		struct span line = { rest.at, end ? (size_t) (end - rest.at) : rest.len };
		int r = add_line(policy, line, &to, err);

		if (r < 0)
			return resoluto_fail_in(err, r, "%s: line %zu", source, to.line);
		rest.at += line.len + (end ? 1 : 0);
		rest.len -= line.len + (end ? 1 : 0);
	}
	return 0;
}

void egress_policy_done(struct egress_policy *policy)
{
	free(policy->patterns);
	*policy = EGRESS_POLICY_NONE;
}

static bool is_match(const struct egress_pattern *pattern, const char *name, size_t len)
{
	size_t tail = strlen(pattern->name.text);

	if (!pattern->is_wildcard)
		return strcmp(pattern->name.text, name) == 0;
	if (tail == 0)
		return true;
	return len > tail + 1 && name[len - tail - 1] == '.' &&
	       memcmp(name + len - tail, pattern->name.text, tail) == 0;
}

bool egress_policy_has_name(const struct egress_policy *policy, const struct egress_name *name)
{
	const size_t len = strlen(name->text);

	for (size_t i = 0; i < policy->count; i++) {
		if (is_match(&policy->patterns[i], name->text, len))
			return true;
	}
	return policy->is_learning;
}

/* Ports seen so far, one bit each. */
struct ports {
	uint32_t seen[(PORT_MAX + 1) / 32];
	uint16_t *list;
	size_t count, max;
};

static void ports_add(struct ports *ports, uint16_t port)
{
	const uint32_t bit = (uint32_t) 1 << (port % 32);

	if (ports->seen[port / 32] & bit)
		return;
	ports->seen[port / 32] |= bit;
	if (ports->count < ports->max)
		ports->list[ports->count] = port;
	ports->count++;
}

size_t egress_policy_ports(const struct egress_policy *policy, const struct egress_name *name,
                           uint16_t *ret_ports, size_t max)
{
	const size_t len = strlen(name->text);
	struct ports ports = { .list = ret_ports, .max = max };

	for (size_t i = 0; i < policy->count; i++) {
		if (is_match(&policy->patterns[i], name->text, len))
			ports_add(&ports, policy->patterns[i].port);
	}
	if (policy->is_learning) {
		ports_add(&ports, PORT_TLS);
		ports_add(&ports, PORT_PLAIN);
	}
	return ports.count;
}

enum egress_reason egress_policy_check(const struct egress_policy *policy,
                                       const struct egress_name *name, uint16_t port,
                                       bool *ret_is_plain)
{
	const size_t len = strlen(name->text);
	bool has_name = false, has_tls = false, has_plain = false;

	for (size_t i = 0; i < policy->count; i++) {
		const struct egress_pattern *pattern = &policy->patterns[i];

		if (!is_match(pattern, name->text, len))
			continue;
		has_name = true;
		has_tls |= pattern->port == port && !pattern->is_plain;
		has_plain |= pattern->port == port && pattern->is_plain;
	}
	*ret_is_plain = has_plain && !has_tls;
	if (policy->is_learning) {
		*ret_is_plain |= port == PORT_PLAIN && !has_tls;
		return EGRESS_LEARNING;
	}
	if (has_tls || has_plain)
		return EGRESS_NONE;
	return has_name ? EGRESS_PORT_NOT_ALLOWED : EGRESS_NOT_ALLOWED;
}
