/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>

#include "base/cleanup.h"
#include "check.h"
#include "guest/egress_files.h"
#include "guest/egress_names.h"
#include "guest/egress_probe.h"

static struct egress_name name_of(const char *text)
{
	struct egress_name name;

	CHECK(egress_name_parse(text, strlen(text), &name) == EGRESS_NONE);
	return name;
}

static struct egress_host *add(struct egress_names *names, const char *text)
{
	const struct egress_name name = name_of(text);
	struct egress_host *host = NULL;

	CHECK(egress_names_add(names, &name, &host) == 0);
	return host;
}

static void a_name_keeps_its_number(void)
{
	CLEANUP(egress_names_done) struct egress_names names = { 0 };
	const struct egress_name a = name_of("a.example"), c = name_of("c.example");
	struct egress_host *first = add(&names, "a.example"), *second = add(&names, "b.example");

	CHECK(first->number == 0 && second->number == 1 && names.count == 2);
	CHECK(add(&names, "A.example.") == first && names.count == 2);
	CHECK(egress_names_find(&names, &a) == first);
	CHECK(!egress_names_find(&names, &c));
}

static void there_is_an_end_of_names(void)
{
	CLEANUP(egress_names_done) struct egress_names names = { 0 };
	const struct egress_name more = name_of("more.example");
	struct egress_host *host;
	char text[64];

	for (int i = 0; i < EGRESS_NAMES_MAX; i++) {
		snprintf(text, sizeof(text), "n%d.example", i);
		CHECK(add(&names, text)->number == (uint32_t) i);
	}
	CHECK(egress_names_add(&names, &more, &host) == -ENOSPC);
	CHECK(!egress_names_find(&names, &more));
	CHECK(add(&names, "n4095.example")->number == 4095);
}

static void every_number_has_addresses_of_its_own(void)
{
	char text[INET6_ADDRSTRLEN];
	struct in_addr four = egress_address4(0);
	struct in6_addr six = egress_address6(0);

	CHECK_STR(inet_ntop(AF_INET, &four, text, sizeof(text)), "198.18.0.2");
	CHECK_STR(inet_ntop(AF_INET6, &six, text, sizeof(text)), "2001:2::2");
	four = egress_address4(EGRESS_NAMES_MAX - 1);
	six = egress_address6(EGRESS_NAMES_MAX - 1);
	CHECK_STR(inet_ntop(AF_INET, &four, text, sizeof(text)), "198.18.16.1");
	CHECK_STR(inet_ntop(AF_INET6, &six, text, sizeof(text)), "2001:2::1001");
}

static void an_address_says_which_number_it_is(void)
{
	const uint32_t numbers[] = { 0, 1, 300, EGRESS_NAMES_MAX - 1 };
	uint32_t number;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		const struct in_addr four = egress_address4(numbers[i]);
		const struct in6_addr six = egress_address6(numbers[i]);

		CHECK(egress_number4((const uint8_t *) &four, &number) && number == numbers[i]);
		CHECK(egress_number6(six.s6_addr, &number) && number == numbers[i]);
	}
}

static bool has_number(int family, const char *text)
{
	uint8_t address[16];
	uint32_t number;

	CHECK(inet_pton(family, text, address) == 1);
	return family == AF_INET ? egress_number4(address, &number)
	                         : egress_number6(address, &number);
}

static void other_addresses_have_no_number(void)
{
	CHECK(!has_number(AF_INET, "198.18.0.1") && has_number(AF_INET, "198.18.0.2"));
	CHECK(has_number(AF_INET, "198.18.16.1") && !has_number(AF_INET, "198.18.16.2"));
	CHECK(!has_number(AF_INET, "127.0.0.1") && !has_number(AF_INET, "0.0.0.0"));
	CHECK(!has_number(AF_INET, "255.255.255.255"));
	CHECK(!has_number(AF_INET6, "2001:2::1") && has_number(AF_INET6, "2001:2::2"));
	CHECK(has_number(AF_INET6, "2001:2::1001") && !has_number(AF_INET6, "2001:2::1002"));
	CHECK(!has_number(AF_INET6, "2001:2:0:1::2") && !has_number(AF_INET6, "::1"));
	CHECK(!has_number(AF_INET6, "2001:2::1:0:2") && !has_number(AF_INET6, "::ffff:198.18.0.2"));
}

static bool is_made_up(const char *text)
{
	uint8_t address[4];

	CHECK(inet_pton(AF_INET, text, address) == 1);
	return egress_is_made_up4(address);
}

static void made_up_addresses_are_known(void)
{
	CHECK(is_made_up("198.18.0.0") && is_made_up("198.19.255.255"));
	CHECK(!is_made_up("198.17.255.255") && !is_made_up("198.20.0.0"));
	CHECK(!is_made_up("199.18.0.1") && !is_made_up("127.0.0.1"));
}

static void check_nsswitch(const char *before, const char *after)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(4096);

	CHECK(egress_nsswitch(before, &out) == 0);
	CHECK_STR(out.data, after);
}

static void only_hosts_change_in_nsswitch(void)
{
	check_nsswitch(NULL, "hosts: files dns\n");
	check_nsswitch("", "hosts: files dns\n");
	check_nsswitch("passwd: files\nhosts: mdns4 [NOTFOUND=return] dns\ngroup: files\n",
	               "passwd: files\ngroup: files\nhosts: files dns\n");
	check_nsswitch("passwd: files\n hosts : resolve", "passwd: files\nhosts: files dns\n");
	check_nsswitch("hostsx: files\n# hosts: x",
	               "hostsx: files\n# hosts: x\nhosts: files dns\n");
	check_nsswitch("hosts:", "hosts: files dns\n");
}

static void a_question_is_as_the_standard_has_it(void)
{
	static const uint8_t want[] = { 0x72, 0x65, 1,   0, 0,   1,   0, 0, 0, 0, 0,
		                        0,    1,    'a', 2, 'b', 'c', 0, 0, 1, 0, 1 };
	const struct egress_name name = name_of("a.bc");
	uint8_t query[EGRESS_QUERY_MAX];

	CHECK(egress_query(&name, query) == sizeof(want));
	CHECK(memcmp(query, want, sizeof(want)) == 0);
}

static void the_longest_name_fits(void)
{
	char text[EGRESS_NAME_MAX + 1];
	uint8_t query[EGRESS_QUERY_MAX];
	struct egress_name name;

	memset(text, 'a', EGRESS_NAME_MAX);
	for (int i = 63; i < EGRESS_NAME_MAX; i += 64)
		text[i] = '.';
	text[EGRESS_NAME_MAX] = '\0';
	name = name_of(text);
	CHECK(egress_query(&name, query) == EGRESS_QUERY_MAX);
}

/* An answer to "a.bc": flags, count of answers, then a record. */
static size_t make_answer(uint8_t rcode, uint8_t answers, uint8_t type,
                          uint8_t out[EGRESS_QUERY_MAX])
{
	static const uint8_t record[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 198, 18, 0, 7 };
	const struct egress_name name = name_of("a.bc");
	const size_t len = egress_query(&name, out);

	out[2] = 0x84;
	out[3] = rcode;
	out[7] = answers;
	memcpy(out + len, record, sizeof(record));
	out[len + 3] = type;
	return len + sizeof(record);
}

static int read_answer(uint8_t rcode, uint8_t answers, uint8_t type, size_t cut, uint8_t out[4])
{
	uint8_t answer[EGRESS_QUERY_MAX];
	const size_t len = make_answer(rcode, answers, type, answer);

	return egress_answer(answer, len - cut, 22, out);
}

static void answers_are_understood(void)
{
	uint8_t address[4] = { 0 }, answer[EGRESS_QUERY_MAX];

	CHECK(read_answer(0, 1, 1, 0, address) == 1);
	CHECK(address[0] == 198 && address[1] == 18 && address[2] == 0 && address[3] == 7);
	CHECK(read_answer(3, 0, 1, 16, address) == 0);
	CHECK(read_answer(2, 0, 1, 16, address) == -EBADMSG);
	CHECK(read_answer(0, 0, 1, 16, address) == -EBADMSG);
	CHECK(read_answer(0, 1, 28, 0, address) == -EBADMSG);
	CHECK(egress_answer(answer, 11, 22, address) == -EBADMSG);
	for (size_t cut = 1; cut < 38; cut++)
		CHECK(read_answer(0, 1, 1, cut, address) == -EBADMSG);
	(void) make_answer(3, 0, 1, answer);
	answer[0]++;
	CHECK(egress_answer(answer, 22, 22, address) == -EBADMSG);
	(void) make_answer(3, 0, 1, answer);
	answer[2] = 1; /* a question */
	CHECK(egress_answer(answer, 22, 22, address) == -EBADMSG);
}

int main(void)
{
	RUN(a_name_keeps_its_number);
	RUN(there_is_an_end_of_names);
	RUN(every_number_has_addresses_of_its_own);
	RUN(an_address_says_which_number_it_is);
	RUN(other_addresses_have_no_number);
	RUN(made_up_addresses_are_known);
	RUN(only_hosts_change_in_nsswitch);
	RUN(a_question_is_as_the_standard_has_it);
	RUN(the_longest_name_fits);
	RUN(answers_are_understood);
	return check_done();
}
