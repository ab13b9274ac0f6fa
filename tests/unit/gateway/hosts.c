/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>

#include "base/buf.h"
#include "check.h"
#include "gateway/hosts.h"

static void is_entry(const struct hosts *hosts, size_t at, const char *address, const char *name)
{
	char text[INET6_ADDRSTRLEN] = "";

	CHECK(at < hosts->count);
	inet_ntop(hosts->entries[at].family, &hosts->entries[at].address, text, sizeof(text));
	CHECK_STR(text, address);
	CHECK_STR(hosts->entries[at].name, name);
}

static void reads_a_table(void)
{
	static const char text[] = "# a comment\n"
				   "127.0.0.1\tlocalhost loopback # more\r\n"
				   "\n"
				   "::1 localhost\n"
				   "  10.0.0.7   Inner.Example.Org. alias\n"
				   "no.address x\n"
				   "300.1.1.1 y\n"
				   "10.0.0.8\n"
				   "10.0.0.9 bad_name 1.2.3.4 good\n"
				   "fe80::1%eth0 scoped";
	struct hosts hosts;

	CHECK(hosts_parse(text, strlen(text), &hosts) == 0);
	CHECK(hosts.count == 6);
	is_entry(&hosts, 0, "127.0.0.1", "localhost");
	is_entry(&hosts, 1, "127.0.0.1", "loopback");
	is_entry(&hosts, 2, "::1", "localhost");
	is_entry(&hosts, 3, "10.0.0.7", "inner.example.org");
	is_entry(&hosts, 4, "10.0.0.7", "alias");
	is_entry(&hosts, 5, "10.0.0.9", "good");
	hosts_done(&hosts);
	CHECK(hosts.count == 0);
}

static void an_empty_one_has_nothing(void)
{
	struct hosts hosts;

	CHECK(hosts_parse("", 0, &hosts) == 0 && hosts.count == 0);
	hosts_done(&hosts);
	/* What stands behind a NUL is not read. */
	CHECK(hosts_parse("1.2.3.4 a\0\n1.2.3.5 b", 20, &hosts) == 0);
	CHECK(hosts.count == 1);
	hosts_done(&hosts);
}

static void a_large_one_is_cut(void)
{
	struct buf text = BUF_INIT(HOSTS_FILE_MAX);
	struct hosts hosts;

	for (int i = 0; i < HOSTS_ENTRIES_MAX + 10; i++)
		CHECK(buf_addf(&text, "10.0.0.1 n%d\n", i) == 0);
	CHECK(hosts_parse(text.data, text.len, &hosts) == 0);
	CHECK(hosts.count == HOSTS_ENTRIES_MAX);
	hosts_done(&hosts);
	buf_done(&text);
}

int main(void)
{
	RUN(reads_a_table);
	RUN(an_empty_one_has_nothing);
	RUN(a_large_one_is_cut);
	return check_done();
}
