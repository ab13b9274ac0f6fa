/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "check.h"

#include "base/cleanup.h"
#include "egress/dns.h"

static struct buf message, answer;
static struct dns_query query;

enum { FLAGS_RD = 0x0100 };

static void add16(struct buf *out, unsigned number)
{
	const char bytes[] = { (char) (number >> 8), (char) number };

	CHECK(buf_add(out, bytes, 2) == 0);
}

static void add_header(unsigned flags, unsigned questions, unsigned answers, unsigned authorities,
                       unsigned additional)
{
	buf_clear(&message);
	add16(&message, 0xabcd);
	add16(&message, flags);
	add16(&message, questions);
	add16(&message, answers);
	add16(&message, authorities);
	add16(&message, additional);
}

static void add_question(const char *name, unsigned type, unsigned class_of)
{
	while (*name) {
		size_t len = strcspn(name, ".");
		const char size = (char) len;

		CHECK(buf_add(&message, &size, 1) == 0);
		CHECK(buf_add(&message, name, len) == 0);
		name += len + (name[len] == '.');
	}
	CHECK(buf_add(&message, "", 1) == 0);
	add16(&message, type);
	add16(&message, class_of);
}

static void add_opt(unsigned size, unsigned version, size_t options)
{
	const char zeros[100] = { 0 };

	CHECK(buf_add(&message, "\0\0\x29", 3) == 0);
	add16(&message, size);
	add16(&message, version);
	add16(&message, 0x8000); /* DO */
	add16(&message, (unsigned) options);
	CHECK(buf_add(&message, zeros, options) == 0);
}

static void make(const char *name, unsigned type)
{
	add_header(FLAGS_RD, 1, 0, 0, 0);
	add_question(name, type, 1);
}

static int parse(void)
{
	memset(&query, 0x5a, sizeof(query));
	return dns_parse(message.data, message.len, &query);
}

static void answer_with(enum dns_rcode rcode, const struct dns_address *addresses, size_t count,
                        bool is_udp)
{
	buf_clear(&answer);
	CHECK(dns_answer(&query, rcode, addresses, count, 0x01020304, is_udp, &answer) == 0);
}

static unsigned get16(size_t at)
{
	CHECK(at + 2 <= answer.len);
	return (unsigned) (uint8_t) answer.data[at] << 8 | (uint8_t) answer.data[at + 1];
}

/* Flags and the four counts. */
static void check_header(unsigned flags, unsigned questions, unsigned answers, unsigned additional)
{
	CHECK(get16(0) == 0xabcd);
	if (get16(2) != flags)
		printf("# flags %04x, not %04x\n", get16(2), flags);
	CHECK(get16(2) == flags);
	CHECK(get16(4) == questions && get16(6) == answers);
	CHECK(get16(8) == 0 && get16(10) == additional);
}

static const struct dns_address v4 = { DNS_A, { 198, 18, 0, 1 } };
static const struct dns_address v6 = { DNS_AAAA, { 0x20, 1, [15] = 1 } };

static void reads_a_question(void)
{
	make("Example.ORG", DNS_A);
	CHECK(parse() == DNS_NOERROR);
	CHECK(query.id == 0xabcd && query.type == 1 && query.class_of == 1);
	CHECK(query.is_recursion_desired && !query.is_checking_disabled && !query.has_edns);
	CHECK(query.name_reason == EGRESS_NONE);
	CHECK_STR(query.host.text, "example.org");
	CHECK_STR(query.text, "Example.ORG");
	CHECK(query.udp_size == 512);
}

static void answers_with_addresses(void)
{
	const struct dns_address both[] = { v6, v4, v4 };

	make("eXample.org", DNS_A);
	CHECK(parse() == DNS_NOERROR);
	answer_with(DNS_NOERROR, both, 3, true);
	check_header(0x8180, 1, 2, 0);
	/* The question with the case it had. */
	CHECK(memcmp(answer.data + 12, message.data + 12, message.len - 12) == 0);
	CHECK(answer.len == message.len + 2 * 16);
	CHECK(memcmp(answer.data + message.len, "\xc0\x0c\0\1\0\1\1\2\3\4\0\4\xc6\x12\0\1", 16) ==
	      0);
	make("example.org", DNS_AAAA);
	CHECK(parse() == DNS_NOERROR);
	answer_with(DNS_NOERROR, both, 3, true);
	check_header(0x8180, 1, 1, 0);
	CHECK(answer.len == message.len + 28);
	CHECK(memcmp(answer.data + message.len + 2, "\0\x1c\0\1\1\2\3\4\0\x10\x20\1", 12) == 0);
}

static void answers_without_data(void)
{
	make("example.org", 65); /* HTTPS */
	CHECK(parse() == DNS_NOERROR && query.type == 65);
	answer_with(DNS_NOERROR, &v4, 1, true);
	check_header(0x8180, 1, 0, 0);
	make("example.org", DNS_AAAA);
	CHECK(parse() == DNS_NOERROR);
	answer_with(DNS_NOERROR, &v4, 1, true);
	check_header(0x8180, 1, 0, 0);
	answer_with(DNS_NOERROR, NULL, 0, true);
	check_header(0x8180, 1, 0, 0);
	CHECK(answer.len == message.len);
}

static void names_that_do_not_exist(void)
{
	static const unsigned types[] = { 1, 28, 5, 12, 16, 33, 64, 65, 255 };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		make("evil.example", types[i]);
		CHECK(parse() == DNS_NOERROR && query.type == types[i]);
		answer_with(DNS_NXDOMAIN, &v4, 1, true);
		check_header(0x8183, 1, 0, 0);
	}
	/* CHAOS: no name exists. */
	add_header(FLAGS_RD, 1, 0, 0, 0);
	add_question("version.bind", 16, 3);
	CHECK(parse() == DNS_NXDOMAIN);
	answer_with(DNS_NXDOMAIN, NULL, 0, true);
	check_header(0x8183, 1, 0, 0);
}

static void names_that_are_no_hosts(void)
{
	make("_dns.resolver.arpa", 64);
	CHECK(parse() == DNS_NOERROR && query.name_reason == EGRESS_NAME_MALFORMED);
	CHECK_STR(query.text, "_dns.resolver.arpa");
	make("127.0.0.1", DNS_A);
	CHECK(parse() == DNS_NOERROR && query.name_reason == EGRESS_NAME_ADDRESS);
	make("", 2);
	CHECK(parse() == DNS_NOERROR && query.name_reason == EGRESS_NAME_MALFORMED);
	CHECK_STR(query.text, ".");
	answer_with(DNS_NXDOMAIN, NULL, 0, true);
	check_header(0x8183, 1, 0, 0);
	/* A dot or a NUL within a label makes it no other name. */
	add_header(FLAGS_RD, 1, 0, 0, 0);
	CHECK(buf_add(&message, "\5a.org\0\0\1\0\1", 11) == 0);
	CHECK(parse() == DNS_NOERROR && query.name_reason == EGRESS_NAME_MALFORMED);
	CHECK_STR(query.text, "a?org");
	add_header(FLAGS_RD, 1, 0, 0, 0);
	CHECK(buf_add(&message, "\3a\0b\3org\0\0\1\0\1", 13) == 0);
	CHECK(parse() == DNS_NOERROR && query.name_reason == EGRESS_NAME_MALFORMED);
	CHECK_STR(query.text, "a?b.org");
}

static void edns(void)
{
	add_header(FLAGS_RD | 0x10, 1, 0, 0, 1);
	add_question("a.org", DNS_A, 1);
	add_opt(4096, 0, 12);
	CHECK(parse() == DNS_NOERROR && query.has_edns && query.udp_size == 4096);
	CHECK(query.is_checking_disabled);
	answer_with(DNS_NOERROR, &v4, 1, true);
	check_header(0x8190, 1, 1, 1);
	CHECK(memcmp(answer.data + answer.len - 11, "\0\0\x29\4\xd0\0\0\0\0\0\0", 11) == 0);
	add_header(FLAGS_RD, 1, 0, 0, 1);
	add_question("a.org", DNS_A, 1);
	add_opt(0, 0, 0);
	CHECK(parse() == DNS_NOERROR && query.udp_size == 512);
	add_header(FLAGS_RD, 1, 0, 0, 1);
	add_question("a.org", DNS_A, 1);
	add_opt(1232, 1, 0);
	CHECK(parse() == DNS_BADVERS);
	answer_with(DNS_BADVERS, NULL, 0, true);
	check_header(0x8180, 1, 0, 1);
	CHECK(answer.data[answer.len - 6] == 1); /* the upper bits of the code */
}

static void truncates_over_udp(void)
{
	struct dns_address many[DNS_RECORDS_MAX];

	for (size_t i = 0; i < DNS_RECORDS_MAX; i++)
		many[i] = v4;
	make("a.org", DNS_A);
	CHECK(parse() == DNS_NOERROR);
	answer_with(DNS_NOERROR, many, 30, true); /* 23 + 480 */
	check_header(0x8180, 1, 30, 0);
	answer_with(DNS_NOERROR, many, 31, true);
	check_header(0x8380, 1, 0, 0);
	CHECK(answer.len == message.len);
	answer_with(DNS_NOERROR, many, DNS_RECORDS_MAX, false);
	check_header(0x8180, 1, DNS_RECORDS_MAX, 0);
	add_header(FLAGS_RD, 1, 0, 0, 1);
	add_question("a.org", DNS_A, 1);
	add_opt(65535, 0, 0);
	CHECK(parse() == DNS_NOERROR);
	answer_with(DNS_NOERROR, many, DNS_RECORDS_MAX, true);
	check_header(0x8180, 1, DNS_RECORDS_MAX, 1);
	for (size_t i = 0; i < DNS_RECORDS_MAX; i++)
		many[i] = v6;
	query.type = DNS_AAAA;
	answer_with(DNS_NOERROR, many, DNS_RECORDS_MAX, true); /* over 1232 */
	check_header(0x8380, 1, 0, 1);
	CHECK(dns_answer(&query, DNS_NOERROR, many, DNS_RECORDS_MAX + 1, 1, true, &answer) ==
	      -EINVAL);
}

static void what_is_no_question(void)
{
	make("a.org", DNS_A);
	for (size_t len = 0; len < 12; len++)
		CHECK(dns_parse(message.data, len, &query) == -EBADMSG);
	for (size_t len = 12; len < message.len; len++)
		CHECK(dns_parse(message.data, len, &query) == DNS_FORMERR);
	message.data[2] = (char) 0x81; /* an answer */
	CHECK(parse() == -EBADMSG);
}

static void malformed_questions(void)
{
	static const unsigned counts[][4] = { { 0, 0, 0, 0 }, { 2, 0, 0, 0 }, { 65535, 0, 0, 0 },
		                              { 1, 1, 0, 0 }, { 1, 0, 1, 0 }, { 1, 0, 0, 1 },
		                              { 1, 0, 0, 2 } };

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		add_header(FLAGS_RD, counts[i][0], counts[i][1], counts[i][2], counts[i][3]);
		add_question("a.org", DNS_A, 1);
		if (counts[i][0] == 2)
			add_question("b.org", DNS_A, 1);
		CHECK(parse() == DNS_FORMERR);
		answer_with(DNS_FORMERR, &v4, 1, true);
		CHECK(get16(6) == 0 && (get16(2) & 15) == DNS_FORMERR);
	}
	make("a.org", DNS_A);
	message.data[2] |= 2; /* TC */
	CHECK(parse() == DNS_FORMERR);
	make("a.org", DNS_A);
	CHECK(buf_add(&message, "x", 1) == 0);
	CHECK(parse() == DNS_FORMERR);
}

static void other_opcodes(void)
{
	for (unsigned opcode = 1; opcode < 16; opcode++) {
		make("a.org", DNS_A);
		message.data[2] = (char) (opcode << 3);
		CHECK(parse() == DNS_NOTIMP);
		answer_with(DNS_NOTIMP, NULL, 0, true);
		check_header(0x8084 | opcode << 11, 0, 0, 0);
		CHECK(answer.len == 12);
	}
}

static void pointers_and_long_labels(void)
{
	static const struct {
		const char *name;
		size_t len;
	} names[] = {
		{ "\xc0\x0c", 2 },    /* a pointer to itself */
		{ "\1a\xc0\x0c", 4 }, /* to the name it is in */
		{ "\xc0\xff", 2 },    /* forward */
		{ "\x40", 1 },        /* a label of 64 */
		{ "\x80", 1 },        /* reserved */
		{ "\x3f", 1 },        /* more than is there */
	};
	char label[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		add_header(FLAGS_RD, 1, 0, 0, 0);
		CHECK(buf_add(&message, names[i].name, names[i].len) == 0);
		add16(&message, DNS_A);
		add16(&message, 1);
		CHECK(parse() == DNS_FORMERR);
		CHECK(query.question_len == 0);
	}
	/* What would be a label, were it not for its upper bits. */
	for (unsigned len = 64; len < 250; len++) {
		const char byte = (char) len;

		add_header(FLAGS_RD, 1, 0, 0, 0);
		CHECK(buf_add(&message, &byte, 1) == 0);
		for (unsigned i = 0; i < len; i++)
			CHECK(buf_add(&message, "a", 1) == 0);
		CHECK(buf_add(&message, "\0\0\1\0\1", 5) == 0);
		CHECK(parse() == DNS_FORMERR);
	}
	memset(label, 'a', sizeof(label));
	label[0] = 63;
	for (size_t labels = 3; labels <= 5; labels++) {
		add_header(FLAGS_RD, 1, 0, 0, 0);
		for (size_t i = 0; i < labels; i++)
			CHECK(buf_add(&message, label, 64) == 0);
		CHECK(buf_add(&message, "\0\0\1\0\1", 5) == 0);
		CHECK(parse() == (labels == 3 ? DNS_NOERROR : DNS_FORMERR));
	}
}

static void the_longest_name(void)
{
	char label[64];

	memset(label, 'a', sizeof(label));
	label[0] = 63;
	for (char last = 61; last <= 62; last++) {
		add_header(FLAGS_RD, 1, 0, 0, 0);
		for (int i = 0; i < 3; i++)
			CHECK(buf_add(&message, label, 64) == 0);
		CHECK(buf_add(&message, &last, 1) == 0);
		CHECK(buf_add(&message, label + 1, (size_t) last) == 0);
		CHECK(buf_add(&message, "\0\0\1\0\1", 5) == 0);
		CHECK(parse() == (last == 61 ? DNS_NOERROR : DNS_FORMERR));
	}
	CHECK(query.question_len == 0);
}

static void opt_is_strict(void)
{
	for (int i = 0; i < 5; i++) {
		add_header(FLAGS_RD, 1, 0, 0, 1);
		add_question("a.org", DNS_A, 1);
		add_opt(1232, 0, 8);
		if (i == 0)
			message.data[message.len - 19] = 1; /* not the root */
		if (i == 1)
			message.data[message.len - 17] = 42; /* another type */
		if (i == 2)
			message.data[message.len - 9] = 9; /* longer than what is there */
		if (i == 3)
			message.data[message.len - 9] = 7;
		if (i == 4)
			message.data[message.len - 14] = 1; /* an extended code in a question */
		CHECK(parse() == DNS_FORMERR);
	}
}

static void a_failure_leaves_the_answer_as_it_was(void)
{
	CLEANUP(buf_done) struct buf small = BUF_INIT(20);

	make("a.org", DNS_A);
	CHECK(parse() == DNS_NOERROR);
	CHECK(buf_add(&small, "before", 6) == 0);
	CHECK(dns_answer(&query, DNS_NOERROR, &v4, 1, 1, true, &small) == -E2BIG);
	CHECK(small.len == 6);
}

int main(void)
{
	message = BUF_INIT(65535);
	answer = BUF_INIT(65535);
	RUN(reads_a_question);
	RUN(answers_with_addresses);
	RUN(answers_without_data);
	RUN(names_that_do_not_exist);
	RUN(names_that_are_no_hosts);
	RUN(edns);
	RUN(truncates_over_udp);
	RUN(what_is_no_question);
	RUN(malformed_questions);
	RUN(other_opcodes);
	RUN(pointers_and_long_labels);
	RUN(the_longest_name);
	RUN(opt_is_strict);
	RUN(a_failure_leaves_the_answer_as_it_was);
	buf_done(&message);
	buf_done(&answer);
	return check_done();
}
