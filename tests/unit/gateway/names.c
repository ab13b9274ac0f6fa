/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>

#include "check.h"
#include "gateway/names.h"

static struct egress_name name(const char *text)
{
	struct egress_name made;

	CHECK(egress_name_parse(text, strlen(text), &made) == EGRESS_NONE);
	return made;
}

static int number(struct names *names, const char *text)
{
	const struct egress_name of = name(text);

	return names_number(names, &of);
}

static const char *name_v4(const struct names *names, const char *text)
{
	struct in_addr address;
	const struct egress_name *found;

	CHECK(inet_pton(AF_INET, text, &address) == 1);
	found = names_find_v4(names, address);
	return found ? found->text : "-";
}

static const char *name_v6(const struct names *names, const char *text)
{
	struct in6_addr address;
	const struct egress_name *found;

	CHECK(inet_pton(AF_INET6, text, &address) == 1);
	found = names_find_v6(names, &address);
	return found ? found->text : "-";
}

static void a_name_keeps_its_addresses(void)
{
	struct names names = { 0 };
	const int first = number(&names, "pypi.org"), second = number(&names, "example.org");
	char text[INET6_ADDRSTRLEN];
	struct in_addr v4 = names_v4(second);
	struct in6_addr v6 = names_v6(second);

	CHECK(first == NAMES_FIRST && second == NAMES_FIRST + 1);
	CHECK(number(&names, "PyPI.org.") == first && names.count == 2);
	CHECK_STR(inet_ntop(AF_INET, &v4, text, sizeof(text)), "198.18.0.3");
	CHECK_STR(inet_ntop(AF_INET6, &v6, text, sizeof(text)), "2001:2::3");
	CHECK_STR(name_v4(&names, "198.18.0.2"), "pypi.org");
	CHECK_STR(name_v4(&names, "198.18.0.3"), "example.org");
	CHECK_STR(name_v6(&names, "2001:2::2"), "pypi.org");
	names_done(&names);
}

static void other_addresses_stand_for_none(void)
{
	static const char *const v4[] = { "198.18.0.0",      "198.18.0.1", "198.18.0.3",
		                          "198.17.255.255",  "0.0.0.2",    "0.0.0.0",
		                          "255.255.255.255", "198.19.0.2" };
	static const char *const v6[] = { "2001:2::",         "2001:2::1",     "2001:2::3",
		                          "2001:2::1:2",      "2001:2:0:1::2", "::2",
		                          "2001:2::ffff:ffff" };
	struct names names = { 0 };

	CHECK(number(&names, "pypi.org") > 0);
	for (size_t i = 0; i < sizeof(v4) / sizeof(v4[0]); i++)
		CHECK_STR(name_v4(&names, v4[i]), "-");
	for (size_t i = 0; i < sizeof(v6) / sizeof(v6[0]); i++)
		CHECK_STR(name_v6(&names, v6[i]), "-");
	names_done(&names);
}

static void there_is_a_last_one(void)
{
	struct names names = { 0 };
	char text[32];

	for (int i = 0; i < NAMES_MAX; i++) {
		snprintf(text, sizeof(text), "n%d.example.org", i);
		CHECK(number(&names, text) == NAMES_FIRST + i);
	}
	CHECK(number(&names, "one.more.example.org") == -ENOSPC);
	CHECK(number(&names, "n17.example.org") == NAMES_FIRST + 17);
	CHECK_STR(name_v4(&names, "198.18.16.1"), "n4095.example.org");
	CHECK_STR(name_v4(&names, "198.18.16.2"), "-");
	names_done(&names);
}

int main(void)
{
	RUN(a_name_keeps_its_addresses);
	RUN(other_addresses_stand_for_none);
	RUN(there_is_a_last_one);
	return check_done();
}
