/* SPDX-License-Identifier: Apache-2.0 */
/* quota.c - names, units and defaults; what a user may write; what things cost. */
#include <errno.h>

#include "check.h"
#include "wire/quota.h"

static const struct {
	enum quota quota;
	const char *name, *unit;
	uint64_t otherwise;
} all[] = {
	{ QUOTA_BYTES, "bytes", "bytes", 64ull << 30 },
	{ QUOTA_OBJECTS, "objects", "objects", 900000 },
	{ QUOTA_ARCHIVE_BYTES, "archive-bytes", "bytes", 64ull << 30 },
	{ QUOTA_MEMBERS, "members", "members", 1000000 },
	{ QUOTA_RATIO, "ratio", "", 500 },
};

enum { ALL = sizeof(all) / sizeof(all[0]) };

static void each_has_its_name_unit_and_default(void)
{
	CHECK(ALL == QUOTA_COUNT - 1);
	CHECK_STR(quota_name(QUOTA_NONE), "");
	for (size_t i = 0; i < ALL; i++) {
		CHECK_STR(quota_name(all[i].quota), all[i].name);
		CHECK_STR(quota_unit(all[i].quota), all[i].unit);
		CHECK(quota_limit(NULL, all[i].quota) == all[i].otherwise);
	}
}

static void what_is_asked_for_holds(void)
{
	struct resoluto_quotas quotas = { 0 }, limits;
	char text[64];

	for (size_t i = 0; i < ALL; i++) {
		snprintf(text, sizeof(text), "%s=%zu", all[i].name, 7 + i);
		CHECK(quota_parse(text, &quotas, NULL) == 0);
		CHECK(quota_limit(&quotas, all[i].quota) == 7 + i);
	}
	limits = quota_limits(&quotas);
	CHECK(memcmp(&limits, &quotas, sizeof(limits)) == 0);
	CHECK(quota_parse("members=8", &quotas, NULL) == 0 && quotas.members == 8);
	CHECK(quota_parse("bytes=1.5Gi", &quotas, NULL) == 0 && quotas.bytes == 3ull << 29);
	CHECK(quota_parse("objects=20k", &quotas, NULL) == 0 && quotas.objects == 20000);
}

static void a_wrong_word_teaches(void)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{ "",
		  "'' is no quota: there are bytes, objects, archive-bytes, members and ratio" },
		{ "byte=1", "'byte' is no quota: there are bytes, " },
		{ "Bytes=1", "'Bytes' is no quota" },
		{ "bytess=1", "'bytess' is no quota" },
		{ "=1", "'' is no quota" },
		{ "ratio", "ratio needs a value, as in ratio=1100" },
		{ "ratio=", "'' is no value for ratio: a number above 0, as in ratio=1100" },
		{ "members=0", "'0' is no value for members: a number above 0, as in members=20k" },
		{ "members=-1", "'-1' is no value" },
		{ "members=1 ", "'1 ' is no value" },
		{ "bytes=10GB",
		  "'10GB' is no value for bytes: a number above 0, as in bytes=10Gi" },
		{ "bytes=99999999999999999999", "is no value for bytes" },
	};
	struct resoluto_quotas quotas = { 0 };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct resoluto_err err = { 0 };

		CHECK(quota_parse(wrong[i].text, &quotas, &err) == -EINVAL);
		CHECK(strncmp(err.text, wrong[i].says, strlen(wrong[i].says)) == 0 ||
		      strstr(err.text, wrong[i].says));
	}
	CHECK(quota_limit(&quotas, QUOTA_BYTES) == 64ull << 30);
}

/* What the shim and the collector say is found again by who makes the result. */
static void an_explanation_tells_its_quota(void)
{
	char text[QUOTA_TEXT];

	for (size_t i = 0; i < ALL; i++) {
		quota_explain(all[i].quota, UINT64_MAX, text);
		CHECK(quota_told(text) == all[i].quota);
		CHECK(strlen(text) < QUOTA_TEXT - 1);
	}
	quota_explain(QUOTA_MEMBERS, 5, text);
	CHECK_STR(text, "members: an archive of outputs has more than 5 members; "
	                "--quota members=VALUE allows more");
	CHECK(quota_told("") == QUOTA_NONE && quota_told("bytes") == QUOTA_NONE);
	CHECK(quota_told("bytesize: 7") == QUOTA_NONE && quota_told(": x") == QUOTA_NONE);
}

static void a_small_thing_costs_what_it_takes(void)
{
	CHECK(quota_blocks(0) == 0 && quota_blocks(1) == 4096 && quota_blocks(4096) == 4096);
	CHECK(quota_blocks(4097) == 8192);
	CHECK(quota_cost(0) == 1024 && quota_cost(3) == 5120);
	CHECK(quota_cost(UINT64_MAX) > UINT64_MAX / 2 &&
	      quota_cost(UINT64_MAX) >= quota_cost(UINT64_MAX - 10000));
}

int main(void)
{
	RUN(each_has_its_name_unit_and_default);
	RUN(what_is_asked_for_holds);
	RUN(a_wrong_word_teaches);
	RUN(an_explanation_tells_its_quota);
	RUN(a_small_thing_costs_what_it_takes);
	return check_done();
}
