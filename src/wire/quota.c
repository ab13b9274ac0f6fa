/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/quantity.h"
#include "wire/quota.h"

enum { SHOWN = 40 }; /* bytes of a user's word that a message repeats */

struct row {
	const char *name, *unit;
	size_t offset; /* in struct resoluto_quotas */
	uint64_t otherwise;
	const char *before, *after; /* around the limit: what went over it */
	const char *example;
};

#define FIELD(member) offsetof(struct resoluto_quotas, member)

static const struct row rows[QUOTA_COUNT] = {
	[QUOTA_NONE] = { .name = "", .unit = "" },
	[QUOTA_BYTES] = { "bytes", "bytes", FIELD(bytes), RESOLUTO_QUOTA_BYTES,
	                  "what the run stores takes more than", "bytes", "10Gi" },
	[QUOTA_OBJECTS] = { "objects", "objects", FIELD(objects), RESOLUTO_QUOTA_OBJECTS,
	                    "the run stores more than", "objects", "20k" },
	[QUOTA_ARCHIVE_BYTES] = { "archive-bytes", "bytes", FIELD(archive_bytes),
	                          RESOLUTO_QUOTA_ARCHIVE_BYTES,
	                          "an archive of outputs, or what is in it, takes more than",
	                          "bytes", "2Gi" },
	[QUOTA_MEMBERS] = { "members", "members", FIELD(members), RESOLUTO_QUOTA_MEMBERS,
	                    "an archive of outputs has more than", "members", "20k" },
	[QUOTA_RATIO] = { "ratio", "", FIELD(ratio), RESOLUTO_QUOTA_RATIO,
	                  "an archive of outputs swells to more than", "times its size", "1100" },
};

const char *quota_name(enum quota quota)
{
	return rows[quota].name;
}

const char *quota_unit(enum quota quota)
{
	return rows[quota].unit;
}

static uint64_t *field_of(struct resoluto_quotas *quotas, const struct row *row)
{
	return (uint64_t *) ((char *) quotas + row->offset);
}

uint64_t quota_limit(const struct resoluto_quotas *quotas, enum quota quota)
{
	struct resoluto_quotas given = quotas ? *quotas : (struct resoluto_quotas){ 0 };
	uint64_t limit = *field_of(&given, &rows[quota]);

	return limit ? limit : rows[quota].otherwise;
}

struct resoluto_quotas quota_limits(const struct resoluto_quotas *quotas)
{
	struct resoluto_quotas limits = { 0 };

	for (int i = QUOTA_NONE + 1; i < QUOTA_COUNT; i++)
		*field_of(&limits, &rows[i]) = quota_limit(quotas, (enum quota) i);
	return limits;
}

/* An announced size may be anything: near the top it is as good as endless. */
uint64_t quota_blocks(uint64_t bytes)
{
	const uint64_t top = UINT64_MAX - QUOTA_NAME_COST - QUOTA_BLOCK;

	if (bytes >= top)
		return top;
	return (bytes + QUOTA_BLOCK - 1) / QUOTA_BLOCK * QUOTA_BLOCK;
}

uint64_t quota_cost(uint64_t bytes)
{
	return QUOTA_NAME_COST + quota_blocks(bytes);
}

void quota_explain(enum quota quota, uint64_t limit, char ret_text[QUOTA_TEXT])
{
	const struct row *row = &rows[quota];

	snprintf(ret_text, QUOTA_TEXT, "%s: %s %" PRIu64 " %s; --quota %s=VALUE allows more",
	         row->name, row->before, limit, row->after, row->name);
}

enum quota quota_told(const char *text)
{
	for (int i = QUOTA_NONE + 1; i < QUOTA_COUNT; i++) {
		size_t len = strlen(rows[i].name);

		if (strncmp(text, rows[i].name, len) == 0 && text[len] == ':')
			return (enum quota) i;
	}
	return QUOTA_NONE;
}

static const struct row *find_row(const char *name, size_t len)
{
	for (int i = QUOTA_NONE + 1; i < QUOTA_COUNT; i++) {
		if (strlen(rows[i].name) == len && strncmp(rows[i].name, name, len) == 0)
			return &rows[i];
	}
	return NULL;
}

int quota_parse(const char *text, struct resoluto_quotas *quotas, struct resoluto_err *err)
{
	size_t len = strcspn(text, "=");
	const struct row *row = find_row(text, len);
	uint64_t value = 0;

	if (!row)
		return resoluto_fail(err, -EINVAL,
		                     "'%.*s' is no quota: there are bytes, objects, archive-bytes, "
		                     "members and ratio",
		                     len < SHOWN ? (int) len : SHOWN, text);
	if (!text[len])
		return resoluto_fail(err, -EINVAL, "%s needs a value, as in %s=%s", row->name,
		                     row->name, row->example);
	if (quantity_parse_bytes(text + len + 1, &value, NULL) < 0 || value == 0)
		return resoluto_fail(err, -EINVAL,
		                     "'%.*s' is no value for %s: a number above 0, as in %s=%s",
		                     SHOWN, text + len + 1, row->name, row->name, row->example);
	*field_of(quotas, row) = value;
	return 0;
}
