/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hello_samples.c - what real clients said (tests/fuzz/record_hellos.py), in other segments and other records
 * than theirs: the name is found, and what may go on is, byte for byte, what came.
 *
 * usage: unit-egress-hello_samples FOLDER
 */
#include "egress/client_hello.h"
#include "samples.h"

enum { CLIENTS_MIN = 30 };

/* Segments of `segment` bytes; 0: of random length.  All must come out, unchanged. */
static void feed(const struct buf *stream, size_t segment)
{
	CLEANUP(buf_done) struct buf kept = BUF_INIT(1 << 20), sent = BUF_INIT(1 << 20);
	struct client_hello hello;
	enum egress_reason reason;

	client_hello_init(&hello, 1000);
	for (size_t at = 0; at < stream->len;) {
		size_t len = sample_segment(segment, stream->len - at), pass;

		CHECK(buf_add(&kept, stream->data + at, len) == 0);
		at += len;
		reason = client_hello_look(&hello, kept.data, kept.len, 0, &pass);
		if (reason != EGRESS_NONE)
			printf("# %s, segments of %zu: %s\n", sample_name, segment,
			       egress_reason_name(reason));
		CHECK(reason == EGRESS_NONE);
		CHECK(hello.is_whole || pass == 0);
		CHECK(buf_add(&sent, kept.data, pass) == 0);
		buf_drop_front(&kept, pass);
	}
	CHECK(hello.is_whole);
	CHECK_STR(hello.name.text, "hello.example.org");
	if (kept.len > 0 || sent.len != stream->len)
		printf("# %s, segments of %zu: %zu bytes held back\n", sample_name, segment,
		       kept.len);
	CHECK(kept.len == 0 && sent.len == stream->len);
	CHECK(memcmp(sent.data, stream->data, stream->len) == 0);
}

/* The same messages in records of at most `piece` bytes; 0: of random length. */
static void cut_records(size_t piece, struct buf *out)
{
	const uint8_t *at = (const uint8_t *) sample.data, *end = at + sample.len;

	while (end - at >= 5) {
		const uint8_t *header = at;
		size_t left = (size_t) at[3] << 8 | at[4];

		CHECK((size_t) (end - at) >= 5 + left);
		at += 5;
		while (left > 0) {
			size_t part = header[0] != 22 ? left : piece ? piece : 1 + sample_roll(300);
			uint8_t length[2];

			part = part < left ? part : left;
			length[0] = (uint8_t) (part >> 8);
			length[1] = (uint8_t) part;
			CHECK(buf_add(out, header, 3) == 0 && buf_add(out, length, 2) == 0);
			CHECK(buf_add(out, at, part) == 0);
			at += part;
			left -= part;
		}
	}
}

static void check_records(size_t piece)
{
	CLEANUP(buf_done) struct buf stream = BUF_INIT(1 << 20);

	cut_records(piece, &stream);
	feed(&stream, 1);
	feed(&stream, 0);
	feed(&stream, 1 << 20);
}

static void check_sample(void)
{
	static const size_t pieces[] = { 1, 3, 50, 0, 0, 0 };

	feed(&sample, 1);
	feed(&sample, 1 << 20);
	for (int i = 0; i < ROUNDS; i++)
		feed(&sample, 0);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		check_records(pieces[i]);
}

/* Cut short anywhere it is not whole, and nothing passes. */
static void check_cut(void)
{
	const uint8_t *bytes = (const uint8_t *) sample.data;
	const size_t hello_len = 5 + ((size_t) bytes[3] << 8 | bytes[4]);

	for (size_t len = 0; len < hello_len; len++) {
		struct client_hello hello;
		size_t pass;

		client_hello_init(&hello, 1000);
		CHECK(client_hello_look(&hello, bytes, len, 0, &pass) == EGRESS_NONE);
		CHECK(!hello.is_whole && pass == 0);
		CHECK(client_hello_end(&hello) == EGRESS_HELLO_CUT);
	}
}

static bool is_client(const char *name)
{
	return name[0] != '.' && strncmp(name, "made-", 5) != 0;
}

static void every_client_in_any_segments_and_records(void)
{
	CHECK(samples_each(is_client, check_sample) >= CLIENTS_MIN);
}

static void every_client_cut_short(void)
{
	CHECK(samples_each(is_client, check_cut) >= CLIENTS_MIN);
}

int main(int argc, char *argv[])
{
	samples_take_folder(argc, argv);
	RUN(every_client_in_any_segments_and_records);
	RUN(every_client_cut_short);
	buf_done(&sample);
	return check_done();
}
