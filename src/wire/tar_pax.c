/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/tar_pax.h"

enum {
	NANOSECOND_DIGITS = 9,
};

int tar_extents_add(struct tar_extents *extents, uint64_t offset, uint64_t len)
{
	if (extents->count == TAR_EXTENTS_MAX)
		return -E2BIG;
	if (extents->count == extents->cap) {
		size_t cap = extents->cap ? extents->cap * 2 : 16;
		struct tar_extent *items = realloc(extents->items, cap * sizeof(*items));

		if (!items)
			return -ENOMEM;
		extents->items = items;
		extents->cap = cap;
	}
	extents->items[extents->count++] = (struct tar_extent){ offset, len };
	return 0;
}

void tar_overrides_done(struct tar_overrides *overrides)
{
	free(overrides->path);
	free(overrides->target);
	free(overrides->sparse_name);
	free(overrides->extents.items);
	*overrides = (struct tar_overrides){ 0 };
}

struct slice {
	const char *at;
	size_t len;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* One or more digits at the start of text, which moves behind them. */
static int take_number(struct slice *text, uint64_t *ret_value)
{
	uint64_t value = 0;
	size_t used = 0;

	for (; used < text->len && is_digit(text->at[used]); used++) {
		if (value > (INT64_MAX - 9) / 10)
			return -EBADMSG;
		value = value * 10 + (uint64_t) (text->at[used] - '0');
	}
	if (used == 0)
		return -EBADMSG;
	*text = (struct slice){ text->at + used, text->len - used };
	*ret_value = value;
	return 0;
}

static int parse_number(struct slice text, uint64_t *ret_value)
{
	int r = take_number(&text, ret_value);

	return r < 0 || text.len > 0 ? -EBADMSG : 0;
}

static int set_text(char **text, struct slice value)
{
	char *copy;

	if (value.len == 0 || value.len > TAR_PATH_MAX || memchr(value.at, '\0', value.len))
		return -EBADMSG;
	copy = strndup(value.at, value.len);
	if (!copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

static int set_path(struct tar_overrides *overrides, struct slice value)
{
	return set_text(&overrides->path, value);
}

static int set_target(struct tar_overrides *overrides, struct slice value)
{
	return set_text(&overrides->target, value);
}

static int set_sparse_name(struct tar_overrides *overrides, struct slice value)
{
	return set_text(&overrides->sparse_name, value);
}

static int set_size(struct tar_overrides *overrides, struct slice value)
{
	overrides->has_size = true;
	return parse_number(value, &overrides->size);
}

static int set_real_size(struct tar_overrides *overrides, struct slice value)
{
	overrides->has_real_size = true;
	return parse_number(value, &overrides->real_size);
}

/* "-1.25": a whole number of seconds, then at most as many digits as count.  The result has its
 * nanoseconds forward: -2 s and 750,000,000 ns. */
static int set_mtime(struct tar_overrides *overrides, struct slice value)
{
	bool is_negative = value.len > 0 && value.at[0] == '-';
	uint64_t seconds;
	long nanoseconds = 0;

	if (is_negative)
		value = (struct slice){ value.at + 1, value.len - 1 };
	if (take_number(&value, &seconds) < 0 || (value.len > 0 && value.at[0] != '.'))
		return -EBADMSG;
	for (size_t i = 1; i <= NANOSECOND_DIGITS; i++) {
		if (i < value.len && !is_digit(value.at[i]))
			return -EBADMSG;
		nanoseconds = nanoseconds * 10 + (i < value.len ? value.at[i] - '0' : 0);
	}
	overrides->has_mtime = true;
	overrides->mtime.tv_sec = is_negative ? -(time_t) seconds : (time_t) seconds;
	overrides->mtime.tv_nsec = nanoseconds;
	if (is_negative && nanoseconds > 0) {
		overrides->mtime.tv_sec--;
		overrides->mtime.tv_nsec = 1000000000 - nanoseconds;
	}
	return 0;
}

static int set_major(struct tar_overrides *overrides, struct slice value)
{
	overrides->has_version = true;
	return parse_number(value, &overrides->major);
}

static int set_minor(struct tar_overrides *overrides, struct slice value)
{
	return parse_number(value, &overrides->minor);
}

static int begin_map(struct tar_overrides *overrides, struct slice value)
{
	overrides->has_map = true; /* the count itself is not believed */
	return 0;
}

static int set_map(struct tar_overrides *overrides, struct slice value)
{
	overrides->has_map = true;
	overrides->extents.count = 0;
	while (value.len > 0) {
		uint64_t offset, len;
		int r;

		if (take_number(&value, &offset) < 0 || value.len == 0 || value.at[0] != ',')
			return -EBADMSG;
		value = (struct slice){ value.at + 1, value.len - 1 };
		if (take_number(&value, &len) < 0 || (value.len > 0 && value.at[0] != ','))
			return -EBADMSG;
		if (value.len > 0)
			value = (struct slice){ value.at + 1, value.len - 1 };
		r = tar_extents_add(&overrides->extents, offset, len);
		if (r < 0)
			return r;
	}
	return 0;
}

static int set_offset(struct tar_overrides *overrides, struct slice value)
{
	return parse_number(value, &overrides->pending_offset);
}

static int add_extent(struct tar_overrides *overrides, struct slice value)
{
	uint64_t len;
	int r = parse_number(value, &len);

	overrides->has_map = true;
	return r < 0 ? r : tar_extents_add(&overrides->extents, overrides->pending_offset, len);
}

static const struct {
	const char *key;
	int (*take)(struct tar_overrides *overrides, struct slice value);
} records[] = {
	{ "path", set_path },
	{ "linkpath", set_target },
	{ "size", set_size },
	{ "mtime", set_mtime },
	{ "GNU.sparse.name", set_sparse_name },
	{ "GNU.sparse.size", set_real_size },
	{ "GNU.sparse.realsize", set_real_size },
	{ "GNU.sparse.major", set_major },
	{ "GNU.sparse.minor", set_minor },
	{ "GNU.sparse.numblocks", begin_map },
	{ "GNU.sparse.map", set_map },
	{ "GNU.sparse.offset", set_offset },
	{ "GNU.sparse.numbytes", add_extent },
};

static int take_record(struct tar_overrides *overrides, struct slice key, struct slice value,
                       struct resoluto_err *err)
{
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		int r;

		if (strlen(records[i].key) != key.len ||
		    memcmp(records[i].key, key.at, key.len) != 0)
			continue;
		r = records[i].take(overrides, value);
		if (r < 0)
			return resoluto_fail(err, r, "PAX record \"%s\" cannot be used",
			                     records[i].key);
	}
	return 0;
}

/* A record is "LENGTH KEY=VALUE\n"; LENGTH counts all of it. */
static int split_record(struct slice *rest, struct slice *ret_key, struct slice *ret_value)
{
	struct slice record = *rest;
	const char *equals;
	uint64_t len;

	if (take_number(&record, &len) < 0 || len > rest->len)
		return -EBADMSG;
	/* At least " K=\n" behind the digits. */
	if (len < (uint64_t) (record.at - rest->at) + 4 || record.at[0] != ' ' ||
	    rest->at[len - 1] != '\n')
		return -EBADMSG;
	record.at++;
	record.len = (size_t) (rest->at + len - 1 - record.at);
	equals = memchr(record.at, '=', record.len);
	if (!equals || equals == record.at)
		return -EBADMSG;
	*ret_key = (struct slice){ record.at, (size_t) (equals - record.at) };
	*ret_value = (struct slice){ equals + 1, record.len - ret_key->len - 1 };
	*rest = (struct slice){ rest->at + len, rest->len - (size_t) len };
	return 0;
}

int tar_pax_parse(const char *bytes, size_t len, struct tar_overrides *overrides,
                  struct resoluto_err *err)
{
	struct slice rest = { bytes, len }, key, value;

	while (rest.len > 0) {
		int r = split_record(&rest, &key, &value);

		if (r < 0)
			return resoluto_fail(err, r, "a PAX header is damaged");
		r = take_record(overrides, key, value, err);
		if (r < 0)
			return r;
	}
	return 0;
}
