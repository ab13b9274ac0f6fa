/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "check.h"

#include "resoluto/err.h"
#include "resoluto/version.h"

static void tells_the_version(void)
{
	CHECK_STR(resoluto_version(), RESOLUTO_VERSION);
	CHECK(resoluto_version_guard(RESOLUTO_VERSION, NULL) == 0);
}

/* RESOLUTO_VERSION with its part of this number (0 to 2) replaced. */
static const char *with_part(int part, const char *text)
{
	static char version[64];
	char parts[3][16];
	int count = sscanf(RESOLUTO_VERSION, "%15[0-9].%15[0-9].%15[0-9]", parts[0], parts[1],
	                   parts[2]);

	CHECK(count == 3);
	snprintf(version, sizeof(version), "%s.%s.%s", part == 0 ? text : parts[0],
	         part == 1 ? text : parts[1], part == 2 ? text : parts[2]);
	return version;
}

static void asks_for_equal_major_and_minor(void)
{
	struct resoluto_err err = { 0 };

	CHECK(resoluto_version_guard(with_part(2, "99999"), NULL) == 0);
	CHECK(resoluto_version_guard(with_part(1, "999"), &err) == -EPROTO);
	CHECK(err.code == -EPROTO && strstr(err.text, "999"));
	CHECK(resoluto_version_guard(with_part(0, "999"), NULL) == -EPROTO);
}

static void refuses_no_version_at_all(void)
{
	struct resoluto_err err = { 0 };

	CHECK(resoluto_version_guard(NULL, &err) == -EINVAL && err.text[0]);
}

/* As a Python package or a build of ours may call itself. */
static void takes_whatever_follows_them(void)
{
	static const char *const rests[] = { "",        ".0",    ".0-rc1", ".0+x",
		                             ".0.dev1", ".0rc1", "-1",     "+local.1" };

	for (size_t i = 0; i < sizeof(rests) / sizeof(rests[0]); i++) {
		char version[64];
		int major, minor;

		CHECK(sscanf(RESOLUTO_VERSION, "%d.%d", &major, &minor) == 2);
		snprintf(version, sizeof(version), "%d.%d%s", major, minor, rests[i]);
		CHECK(resoluto_version_guard(version, NULL) == 0);
		snprintf(version, sizeof(version), "%d.%d%s", major, minor + 1, rests[i]);
		CHECK(resoluto_version_guard(version, NULL) == -EPROTO);
	}
}

static void refuses_what_is_no_version(void)
{
	static const char *const bad[] = {
		"",       "1",      "1.2.",   "1.2-",   "v1.2.3",          "1.2.3 ",
		" 1.2.3", "1..3",   ".1.2",   "a.b.c",  "-1.2.3",          "1.-2.3",
		"1. 2.3", "1.+2.3", "latest", "1.2rc1", "99999999999.1.1", "1.2.3\n"
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct resoluto_err err = { 0 };

		CHECK(resoluto_version_guard(bad[i], &err) == -EINVAL);
		CHECK(err.code == -EINVAL);
	}
	CHECK(resoluto_version_guard(with_part(1, "+1"), NULL) == -EINVAL);
	CHECK(resoluto_version_guard(NULL, NULL) == -EINVAL);
}

int main(void)
{
	RUN(tells_the_version);
	RUN(asks_for_equal_major_and_minor);
	RUN(refuses_no_version_at_all);
	RUN(takes_whatever_follows_them);
	RUN(refuses_what_is_no_version);
	return check_done();
}
