/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/quantity.h"

enum { FRACTION_DIGITS = 9 };

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit byte_units[] = {
	{ "", 1 },
	{ "Ki", 1ull << 10 },
	{ "Mi", 1ull << 20 },
	{ "Gi", 1ull << 30 },
	{ "Ti", 1ull << 40 },
	{ "Pi", 1ull << 50 },
	{ "K", 1000ull },
	{ "k", 1000ull },
	{ "M", 1000000ull },
	{ "G", 1000000000ull },
	{ "T", 1000000000000ull },
	{ "P", 1000000000000000ull },
	{ NULL, 0 },
};

static const struct unit cpu_units[] = {
	{ "", 1000 },
	{ "m", 1 },
	{ NULL, 0 },
};

static const struct unit duration_units[] = {
	{ "", 1000 },     { "ms", 1 },       { "s", 1000 }, { "m", 60000 },
	{ "h", 3600000 }, { "d", 86400000 }, { NULL, 0 },
};

/* A decimal number: whole + fraction / 10^FRACTION_DIGITS. */
struct number {
	uint64_t whole, fraction;
};

/* Returns where the number ends; NULL if there is none, it is too large or too fine. */
static const char *scan_number(const char *text, struct number *ret)
{
	uint64_t scale = 1000000000u;
	const char *at = text;

	*ret = (struct number){ 0 };
	for (; isdigit((unsigned char) *at); at++) {
		if (__builtin_mul_overflow(ret->whole, 10u, &ret->whole) ||
		    __builtin_add_overflow(ret->whole, (uint64_t) (*at - '0'), &ret->whole))
			return NULL;
	}
	if (at == text)
		return NULL;
	if (*at != '.')
		return at;
	if (!isdigit((unsigned char) *++at))
		return NULL;
	for (; isdigit((unsigned char) *at); at++) {
		scale /= 10;
		if (scale == 0)
			return NULL;
		ret->fraction += scale * (uint64_t) (*at - '0');
	}
	return at;
}

static int scale_number(struct number number, uint64_t factor, uint64_t *ret)
{
	unsigned __int128 part = (unsigned __int128) number.fraction * factor;
	unsigned __int128 sum = (unsigned __int128) number.whole * factor +
	                        (part + 999999999u) / 1000000000u;

	if (sum > INT64_MAX)
		return -ERANGE;
	*ret = (uint64_t) sum;
	return 0;
}

static int parse(const char *text, const struct unit *units, const char *example, uint64_t *ret,
                 struct resoluto_err *err)
{
	struct number number;
	const char *suffix = scan_number(text, &number);

	for (const struct unit *unit = units; suffix && unit->name; unit++) {
		if (strcmp(suffix, unit->name) != 0)
			continue;
		if (scale_number(number, unit->factor, ret) < 0)
			return resoluto_fail(err, -ERANGE, "'%s' is too large", text);
		return 0;
	}
	return resoluto_fail(err, -EINVAL, "'%s' is not a quantity such as %s", text, example);
}

int quantity_parse_bytes(const char *text, uint64_t *ret_bytes, struct resoluto_err *err)
{
	return parse(text, byte_units, "4Gi, 512Mi or 1000000", ret_bytes, err);
}

int quantity_parse_cpus(const char *text, uint32_t *ret_milli, struct resoluto_err *err)
{
	uint64_t milli;
	int r = parse(text, cpu_units, "2, 0.5 or 500m", &milli, err);

	if (r < 0)
		return r;
	if (milli > UINT32_MAX)
		return resoluto_fail(err, -ERANGE, "'%s' is too large", text);
	*ret_milli = (uint32_t) milli;
	return 0;
}

int quantity_parse_duration(const char *text, uint64_t *ret_ms, struct resoluto_err *err)
{
	return parse(text, duration_units, "90s, 15m, 1.5h or 250ms", ret_ms, err);
}

void quantity_format_bytes(uint64_t bytes, char *ret_text, size_t cap)
{
	static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	double value = (double) bytes;
	size_t unit = 0;

	while (value >= 1024 && unit < 5) {
		value /= 1024;
		unit++;
	}
	snprintf(ret_text, cap, unit == 0 ? "%.0f %s" : "%.1f %s", value, names[unit]);
}
