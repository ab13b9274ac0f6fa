/* SPDX-License-Identifier: Apache-2.0 */
/* client_hello.c - hellos made by hand; recorded ones of real clients: hello_samples.c. */
#include "check.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "egress/client_hello.h"

enum { LATER_MS = 1000 };

/* What a hello is made of, and what is made of it. */
static struct buf extensions, message, stream;
static struct client_hello hello;

static void add16(struct buf *out, size_t number)
{
	const uint8_t bytes[] = { (uint8_t) (number >> 8), (uint8_t) number };

	CHECK(buf_add(out, bytes, 2) == 0);
}

static void add_extension(unsigned type, const void *bytes, size_t len)
{
	add16(&extensions, type);
	add16(&extensions, len);
	CHECK(buf_add(&extensions, bytes, len) == 0);
}

static void add_sni(const void *name, size_t len)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(70000);

	add16(&body, len + 3);
	CHECK(buf_add(&body, "", 1) == 0);
	add16(&body, len);
	CHECK(buf_add(&body, name, len) == 0);
	add_extension(0, body.data, body.len);
}

static void add_sni_text(const char *name)
{
	add_sni(name, strlen(name));
}

/* The message around the extensions so far; `padding` bytes of another one at the end. */
static void make_message(unsigned version, size_t padding)
{
	static const char before[] = "\x20" /* session id */
				     "abcdefghijklmnopqrstuvwxyz012345"
				     "\0\4\x13\1\xc0\x2f" /* ciphers */
				     "\1\0";              /* no compression */
	CLEANUP(buf_done) struct buf zeros = BUF_INIT(100000);
	size_t len;

	CHECK(buf_reserve(&zeros, 100000) == 0);
	memset(zeros.data, 0, 100000);
	if (padding > 0)
		add_extension(21, zeros.data, padding);
	len = 2 + 32 + sizeof(before) - 1 + 2 + extensions.len;
	buf_clear(&message);
	CHECK(buf_add(&message, "\1", 1) == 0);
	CHECK(buf_add(&message, len > 65535 ? "\1" : "\0", 1) == 0);
	add16(&message, len & 0xffff);
	add16(&message, version);
	CHECK(buf_add(&message, zeros.data, 32) == 0);
	CHECK(buf_add(&message, before, sizeof(before) - 1) == 0);
	add16(&message, extensions.len);
	CHECK(buf_add(&message, extensions.data, extensions.len) == 0);
	buf_clear(&extensions);
}

static void add_record(unsigned type, const void *bytes, size_t len)
{
	const uint8_t header[] = { (uint8_t) type, 3, 1 };

	CHECK(buf_add(&stream, header, sizeof(header)) == 0);
	add16(&stream, len);
	CHECK(buf_add(&stream, bytes, len) == 0);
}

/* The message in records of at most `piece` bytes. */
static void add_records(size_t piece)
{
	for (size_t at = 0; at < message.len; at += piece)
		add_record(22, message.data + at,
		           message.len - at < piece ? message.len - at : piece);
}

static void make(const char *name)
{
	add_sni_text(name);
	make_message(0x0303, 0);
	buf_clear(&stream);
	add_records(16384);
}

static void clear(void)
{
	buf_clear(&extensions);
	buf_clear(&message);
	buf_clear(&stream);
}

/*
 * Feed the stream in segments and say what came of it; *ret_passed: bytes that were let go in all.  What
 * is passed is taken away each time, as a caller does.
 */
static enum egress_reason feed(size_t segment, size_t *ret_passed)
{
	enum egress_reason reason = EGRESS_NONE;
	size_t passed = 0;

	client_hello_init(&hello, LATER_MS);
	for (size_t end = 0; reason == EGRESS_NONE && end < stream.len;) {
		size_t pass;

		end = stream.len - end < segment ? stream.len : end + segment;
		reason = client_hello_look(&hello, stream.data + passed, end - passed, 0, &pass);
		CHECK(pass <= end - passed);
		CHECK(hello.is_whole || pass == 0);
		passed += pass;
	}
	*ret_passed = passed;
	return reason;
}

/* In whatever segments, the same comes of it. */
static void expect(enum egress_reason want, const char *want_name, size_t want_passed)
{
	static const size_t segments[] = { 1, 2, 3, 7, 100, 1460, 1000000 };

	for (size_t i = stream.len > 70000 ? 5 : 0; i < sizeof(segments) / sizeof(segments[0]);
	     i++) {
		size_t passed;
		enum egress_reason reason = feed(segments[i], &passed);

		if (reason != want)
			CHECK_STR(egress_reason_name(reason), egress_reason_name(want));
		CHECK(hello.is_whole == (want_name != NULL));
		if (want_name)
			CHECK_STR(hello.name.text, want_name);
		/* With an error, how much went before depends on the segments. */
		if (want == EGRESS_NONE)
			CHECK(passed == want_passed);
	}
}

static void expect_whole(const char *want_name)
{
	expect(EGRESS_NONE, want_name, stream.len);
	CHECK(client_hello_end(&hello) == EGRESS_NONE);
}

static void expect_sni(const void *name, size_t len, enum egress_reason want, const char *want_name)
{
	clear();
	add_sni(name, len);
	make_message(0x0303, 0);
	add_records(16384);
	expect(want, want_name, stream.len);
}

static void reads_the_name(void)
{
	make("example.org");
	expect_whole("example.org");
}

static void versions(void)
{
	static const unsigned good[] = { 0x0301, 0x0302, 0x0303, 0x0304 };
	static const unsigned bad[] = { 0x0305, 0x0200, 0x0002, 0x0403, 0xfefd };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		clear();
		add_sni_text("a.org");
		make_message(good[i], 0);
		add_records(16384);
		stream.data[2] = (char) (i + 1);
		expect_whole("a.org");
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		clear();
		add_sni_text("a.org");
		make_message(bad[i], 0);
		add_records(16384);
		expect(EGRESS_HELLO_MALFORMED, NULL, 0);
	}
	clear();
	add_sni_text("a.org");
	make_message(0x0300, 0);
	add_records(16384);
	expect(EGRESS_NOT_TLS, NULL, 0);
	make("a.org");
	stream.data[2] = 0;
	expect(EGRESS_NOT_TLS, NULL, 0);
}

static void names_in_their_forms(void)
{
	char text[300];

	expect_sni("EXAMPLE.Org", 11, EGRESS_NONE, "example.org");
	expect_sni("example.org.", 12, EGRESS_NONE, "example.org");
	expect_sni("xn--mnchen-3ya.de", 17, EGRESS_NONE, "xn--mnchen-3ya.de");
	expect_sni("", 0, EGRESS_SNI_MALFORMED, NULL);
	expect_sni(".", 1, EGRESS_SNI_MALFORMED, NULL);
	expect_sni("a.org..", 7, EGRESS_SNI_MALFORMED, NULL);
	expect_sni("a.org\0.evil.com", 15, EGRESS_SNI_MALFORMED, NULL);
	expect_sni("a.org\0", 6, EGRESS_SNI_MALFORMED, NULL);
	expect_sni("m\xc3\xbcnchen.de", 11, EGRESS_SNI_MALFORMED, NULL);
	expect_sni("a_b.org", 7, EGRESS_SNI_MALFORMED, NULL);
	expect_sni("a.org:443", 9, EGRESS_SNI_MALFORMED, NULL);
	expect_sni("1.1.1.1", 7, EGRESS_SNI_MALFORMED, NULL);
	expect_sni("::1", 3, EGRESS_SNI_MALFORMED, NULL);
	expect_sni("2130706433", 10, EGRESS_SNI_MALFORMED, NULL);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = i % 50 == 49 ? '.' : 'a';
	expect_sni(text, 255, EGRESS_SNI_MALFORMED, NULL);
	expect_sni(text, 256, EGRESS_SNI_MALFORMED, NULL);
	text[253] = '\0';
	expect_sni(text, 253, EGRESS_NONE, text);
}

static void no_name_or_two(void)
{
	clear();
	add_extension(16, "\0\3\2h2", 5);
	make_message(0x0303, 0);
	add_records(16384);
	expect(EGRESS_SNI_MISSING, NULL, 0);
	clear();
	add_sni_text("a.org");
	add_extension(16, "\0\3\2h2", 5);
	add_sni_text("b.org");
	make_message(0x0303, 0);
	add_records(16384);
	expect(EGRESS_SNI_TWICE, NULL, 0);
	clear();
	add_extension(0, "\0\x10\0\0\5a.org\0\0\5b.org", 18);
	make_message(0x0303, 0);
	add_records(16384);
	expect(EGRESS_SNI_TWICE, NULL, 0);
}

/* A hello without extensions at all, as TLS 1.0 may have it. */
static void no_extensions(void)
{
	clear();
	make_message(0x0301, 0);
	buf_cut(&message, message.len - 2);
	message.data[3] = (char) (message.len - 4);
	add_records(16384);
	expect(EGRESS_SNI_MISSING, NULL, 0);
}

static void extension_of_the_name_is_strict(void)
{
	static const struct {
		const char *bytes;
		size_t len;
	} bodies[] = {
		{ "", 0 },
		{ "\0", 1 },
		{ "\0\0", 2 },
		{ "\0\2\0\0", 4 },
		{ "\0\3\0\0\0", 5 },          /* an empty name */
		{ "\0\7\0\0\5a.org", 9 },     /* list too short */
		{ "\0\x9\0\0\5a.org", 10 },   /* list too long */
		{ "\0\x8\0\0\6a.org", 10 },   /* name too long */
		{ "\0\x8\1\0\5a.org", 10 },   /* not a host_name */
		{ "\0\x8\0\0\5a.org\0", 11 }, /* one more byte */
	};

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		clear();
		add_extension(0, bodies[i].bytes, bodies[i].len);
		make_message(0x0303, 0);
		add_records(16384);
		expect(EGRESS_SNI_MALFORMED, NULL, 0);
	}
}

static void others_in_any_order(void)
{
	clear();
	add_extension(0x1a1a, "", 0);                         /* GREASE */
	add_extension(35, "ticket", 6);                       /* session ticket */
	add_extension(0xfe0d, "\0\0\1\0\1inner.example", 18); /* ECH */
	add_extension(51, "\0\2\x6a\x6a", 4);
	add_sni_text("outer.example");
	add_extension(0x9999, "unknown", 7);
	add_extension(43, "\4\x7a\x7a\3\4", 5);
	add_extension(0xfafa, "\0", 1);
	make_message(0x0303, 5);
	add_records(16384);
	expect_whole("outer.example");
}

static void lengths_fit_exactly(void)
{
	/* Offsets in the stream: record 0, message 5, session id 43, ciphers 76, compression 82, extensions 84. */
	static const struct {
		size_t at;
		char value;
	} changes[] = {
		{ 5, 2 },           /* a ServerHello */
		{ 8, 0x10 },        /* the message is shorter than the record */
		{ 43, 33 },         /* session id */
		{ 77, 0 },          /* no cipher */
		{ 77, (char) 250 }, /* ciphers up to beyond the end */
		{ 82, 0 },          /* no compression */
		{ 85, 1 },          /* extensions shorter than what is there */
		{ 84, 1 },          /* and longer */
		{ 89, 99 },         /* one extension longer than all */
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		make("example.org");
		stream.data[changes[i].at] = changes[i].value;
		expect(EGRESS_HELLO_MALFORMED, NULL, 0);
	}
}

static void many_records(void)
{
	static const size_t pieces[] = { 1, 2, 3, 5, 20, 64, 1000 };

	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		clear();
		add_sni_text("example.org");
		make_message(0x0303, 1000);
		add_records(pieces[i]);
		expect_whole("example.org");
	}
}

static void forty_kib_over_twenty_records(void)
{
	static const char zeros[20000];

	clear();
	add_extension(21, zeros, sizeof(zeros));
	add_sni_text("example.org");
	make_message(0x0303, 40 * 1024 - 20000);
	add_records(2049);
	CHECK(stream.len > 40 * 1024 && message.len / 2049 == 20);
	expect_whole("example.org");
}

static void up_to_64_kib(void)
{
	clear();
	add_sni_text("a.org");
	make_message(0x0303, CLIENT_HELLO_MAX - 99);
	CHECK(message.len == CLIENT_HELLO_MAX);
	add_records(16384);
	expect_whole("a.org");
	clear();
	add_sni_text("a.org");
	make_message(0x0303, CLIENT_HELLO_MAX - 98);
	add_records(16384);
	expect(EGRESS_HELLO_TOO_LONG, NULL, 0);
	/* Said at once, not after 64 KiB. */
	buf_cut(&stream, 5 + 16384);
	expect(EGRESS_HELLO_TOO_LONG, NULL, 0);
}

/* Records of one byte make six of each: what is kept has a bound of its own. */
static void a_flood_of_small_records(void)
{
	clear();
	add_sni_text("a.org");
	make_message(0x0303, 30000);
	add_records(1);
	expect(EGRESS_HELLO_TOO_LONG, NULL, 0);
	buf_cut(&stream, CLIENT_HELLO_RAW_MAX);
	expect(EGRESS_NONE, NULL, 0);
	/* A large record at the end need not be whole to be too much. */
	buf_cut(&stream, CLIENT_HELLO_RAW_MAX / 6 * 6 - 600);
	add_record(22, message.data, 16384);
	buf_cut(&stream, CLIENT_HELLO_RAW_MAX + 1);
	expect(EGRESS_HELLO_TOO_LONG, NULL, 0);
}

static void records_are_checked(void)
{
	make("example.org");
	add_records(10);
	stream.data[3] = 0x7f;
	expect(EGRESS_HELLO_MALFORMED, NULL, 0);
	clear();
	add_sni_text("example.org");
	make_message(0x0303, 0);
	add_record(22, message.data, 10);
	add_record(21, "\1\0", 2); /* an alert within */
	add_record(22, message.data + 10, message.len - 10);
	expect(EGRESS_HELLO_MALFORMED, NULL, 0);
	clear();
	add_record(22, message.data, 10);
	add_record(22, "", 0);
	expect(EGRESS_HELLO_MALFORMED, NULL, 0);
	clear();
	add_record(22, "", 0);
	expect(EGRESS_HELLO_MALFORMED, NULL, 0);
	make("example.org");
	buf_clear(&stream);
	CHECK(buf_add(&message, "\x0e\0\0\0", 4) == 0); /* another message in the same record */
	add_records(16384);
	expect(EGRESS_HELLO_MALFORMED, NULL, 0);
}

static void what_is_not_tls(void)
{
	static const struct {
		const char *bytes;
		size_t len;
	} starts[] = {
		{ "GET / HTTP/1.1\r\n", 16 },
		{ "SSH-2.0-OpenSSH_9.2\r\n", 21 },
		{ "\x80\x2e\1\0\2\0\x15\0\0\0\x10", 11 }, /* SSL 2.0 */
		{ "\0", 1 },
		{ "\x16\2", 2 },
		{ "\x16\3\0", 3 },
		{ "\x16\3\5", 3 },
		{ "\x17\3\3\0\1x", 6 },
		{ "\x15\3\1\0\2\1\0", 7 },
		{ "\x16\xfe\xfd", 3 }, /* DTLS */
		{ "\xc0\0\0\0\1", 5 }, /* QUIC */
	};

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		clear();
		CHECK(buf_add(&stream, starts[i].bytes, starts[i].len) == 0);
		expect(EGRESS_NOT_TLS, NULL, 0);
	}
}

static void waits_until_the_deadline(void)
{
	size_t pass;

	make("example.org");
	client_hello_init(&hello, 500);
	CHECK(client_hello_look(&hello, stream.data, 0, 499, &pass) == EGRESS_NONE);
	CHECK(client_hello_look(&hello, stream.data, stream.len - 1, 499, &pass) == EGRESS_NONE);
	CHECK(client_hello_end(&hello) == EGRESS_HELLO_CUT);
	CHECK(client_hello_tick(&hello, 499) == EGRESS_NONE);
	CHECK(client_hello_tick(&hello, 500) == EGRESS_HELLO_TIMEOUT);
	CHECK(client_hello_look(&hello, stream.data, stream.len, 500, &pass) ==
	      EGRESS_HELLO_TIMEOUT);
	CHECK(pass == 0);
	CHECK(client_hello_look(&hello, stream.data, stream.len, 499, &pass) == EGRESS_NONE);
	CHECK(pass == stream.len && client_hello_tick(&hello, 999999) == EGRESS_NONE);
	CHECK(client_hello_end(&hello) == EGRESS_NONE);
}

static void what_follows_passes(void)
{
	char data[3000];
	size_t len;

	/* TLS 1.2: ClientKeyExchange, ChangeCipherSpec, Finished, data; whatever those are. */
	memset(data, 1, sizeof(data));
	make("example.org");
	add_record(22, "\x10\0\0\1x", 5);
	add_record(20, "\1", 1);
	add_record(22, data, 40);
	add_record(23, data, sizeof(data));
	CHECK(buf_add(&stream, "garbage", 7) == 0);
	expect_whole("example.org");
	/* TLS 1.3 */
	make("example.org");
	add_record(20, "\1", 1);
	add_record(23, data, sizeof(data));
	CHECK(buf_add(&stream, data, 7) == 0);
	expect_whole("example.org");
	/* An alert. */
	make("example.org");
	add_record(21, "\2\x30", 2);
	expect_whole("example.org");
	/* Nothing of a record is held back but its header. */
	make("example.org");
	len = stream.len;
	add_record(20, "\1", 1);
	buf_cut(&stream, len + 4);
	expect(EGRESS_NONE, "example.org", len);
}

static void garbage_between_records(void)
{
	make("example.org");
	CHECK(buf_add(&stream, "GET / HTTP/1.1\r\n", 16) == 0);
	expect(EGRESS_HELLO_MALFORMED, "example.org", 0);
	make("example.org");
	add_record(22, "", 0);
	expect(EGRESS_HELLO_MALFORMED, "example.org", 0);
}

static void a_second_hello_has_the_same_name(void)
{
	size_t first;

	make("example.org");
	add_records(100);
	expect_whole("example.org");
	add_record(20, "\1", 1);
	add_records(1);
	add_record(23, "data", 4);
	expect_whole("example.org");
	make("example.org");
	first = stream.len;
	add_record(20, "\1", 1);
	add_sni_text("evil.org");
	make_message(0x0303, 0);
	for (size_t piece = 1; piece < 400; piece *= 3) {
		buf_cut(&stream, first + 6);
		add_records(piece);
		expect(EGRESS_SNI_OTHER, "example.org", 0);
	}
}

static void a_second_hello_waits_to_be_whole(void)
{
	size_t first;

	make("example.org");
	first = stream.len;
	add_records(10);
	buf_cut(&stream, stream.len - 1);
	expect(EGRESS_NONE, "example.org", first);
	CHECK(client_hello_end(&hello) == EGRESS_HELLO_CUT);
	make("example.org");
	make_message(0x0303, 0);
	add_records(1000);
	expect(EGRESS_SNI_MISSING, "example.org", 0);
}

/* Early data goes before the second hello, if there is one. */
static void a_second_hello_behind_early_data(void)
{
	char data[100] = { 0 };

	clear();
	add_sni_text("example.org");
	add_extension(42, "", 0);
	make_message(0x0303, 0);
	add_records(16384);
	add_record(23, data, sizeof(data));
	add_record(23, data, sizeof(data));
	expect_whole("example.org");
	add_sni_text("evil.org");
	make_message(0x0303, 0);
	add_records(50);
	expect(EGRESS_SNI_OTHER, "example.org", 0);
}

/* OpenSSL takes one of 128 KiB: here it must not pass for something else. */
static void a_second_hello_that_is_too_long(void)
{
	static const char start[100] = { 1, 1, 0, 16, 3, 3 };

	for (int high = 1; high <= 2; high++) {
		char bytes[sizeof(start)];

		memcpy(bytes, start, sizeof(start));
		bytes[1] = (char) high;
		make("example.org");
		add_record(20, "\1", 1);
		add_record(22, bytes, sizeof(bytes));
		expect(EGRESS_HELLO_TOO_LONG, "example.org", 0);
	}
}

/* A resumed TLS 1.2 session: its Finished is random bytes, and may begin as a hello does. */
static void a_finished_is_no_hello(void)
{
	char finished[40];

	memset(finished, 0x77, sizeof(finished));
	finished[0] = 1;
	make("example.org");
	add_record(20, "\1", 1);
	add_record(22, finished, sizeof(finished));
	add_record(23, finished, sizeof(finished));
	expect_whole("example.org");
}

int main(void)
{
	extensions = BUF_INIT(1 << 20);
	message = extensions;
	stream = extensions;
	RUN(reads_the_name);
	RUN(versions);
	RUN(names_in_their_forms);
	RUN(no_name_or_two);
	RUN(no_extensions);
	RUN(extension_of_the_name_is_strict);
	RUN(others_in_any_order);
	RUN(lengths_fit_exactly);
	RUN(many_records);
	RUN(forty_kib_over_twenty_records);
	RUN(up_to_64_kib);
	RUN(a_flood_of_small_records);
	RUN(records_are_checked);
	RUN(what_is_not_tls);
	RUN(waits_until_the_deadline);
	RUN(what_follows_passes);
	RUN(garbage_between_records);
	RUN(a_second_hello_has_the_same_name);
	RUN(a_second_hello_waits_to_be_whole);
	RUN(a_second_hello_behind_early_data);
	RUN(a_second_hello_that_is_too_long);
	RUN(a_finished_is_no_hello);
	buf_done(&extensions);
	buf_done(&message);
	buf_done(&stream);
	return check_done();
}
