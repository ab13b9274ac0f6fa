/* SPDX-License-Identifier: Apache-2.0 */
/* gzip.c - both builds of gzip.h, with zlib itself as the other side. */
#include <zlib.h>

#include "archive.h"

/* Text that compresses, with noise between that does not. */
static void make_plain(struct buf *ret_plain, size_t len)
{
	uint32_t state = 12345;

	*ret_plain = BUF_INIT(ARCHIVE_MAX);
	CHECK(buf_reserve(ret_plain, len) == 0);
	for (size_t i = 0; i < len; i++) {
		state = state * 1664525 + 1013904223;
		ret_plain->data[i] = i / 1000 % 3 == 0 ? (char) (state >> 24)
		                                       : "the quick brown fox "[i % 20];
	}
	ret_plain->len = len;
	ret_plain->data[len] = '\0';
}

static void pack_in_pieces(const struct buf *plain, size_t piece, struct buf *ret_packed)
{
	const struct resoluto_sink sink = { to_buf, ret_packed };
	struct gzip_writer *writer;

	*ret_packed = BUF_INIT(ARCHIVE_MAX);
	CHECK(gzip_writer_new(&sink, &writer) == 0);
	for (size_t at = 0; at < plain->len; at += piece)
		CHECK(gzip_writer_write(writer, plain->data + at,
		                        plain->len - at < piece ? plain->len - at : piece) == 0);
	CHECK(gzip_writer_end(writer) == 0);
	gzip_writer_free(&writer);
}

static int unpack_in_pieces(const struct buf *packed, size_t source_piece, size_t cap,
                            struct buf *ret_plain)
{
	struct reading reading = { packed, 0, source_piece };
	const struct resoluto_source source = { from_buf, &reading };
	struct gzip_reader *reader;
	ssize_t n = 0;

	*ret_plain = BUF_INIT(ARCHIVE_MAX);
	CHECK(gzip_reader_new(&source, &reader) == 0);
	do {
		CHECK(buf_reserve(ret_plain, cap) == 0);
		n = gzip_reader_read(reader, ret_plain->data + ret_plain->len, cap);
		if (n > 0)
			ret_plain->len += (size_t) n;
	} while (n > 0);
	if (n == 0) {
		CHECK(gzip_reader_consumed(reader) == packed->len);
		/* The end stays the end. */
		CHECK(gzip_reader_read(reader, ret_plain->data + ret_plain->len, 1) == 0);
	}
	gzip_reader_free(&reader);
	return (int) n;
}

static bool is_same(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static void comes_back_as_it_was(void)
{
	static const size_t sizes[] = { 0, 1, 511, 65536, 65537, 1000003 };
	static const size_t pieces[] = { 1, 77, 65536, 1 << 20 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (size_t j = 0; j < sizeof(pieces) / sizeof(pieces[0]); j++) {
			struct buf plain, packed, back;

			if (sizes[i] / pieces[j] > 100000 || sizes[i] / pieces[3 - j] > 100000)
				continue; /* a byte at a time takes too long */
			make_plain(&plain, sizes[i]);
			pack_in_pieces(&plain, pieces[j], &packed);
			CHECK(unpack_in_pieces(&packed, pieces[3 - j], pieces[j], &back) == 0);
			CHECK(is_same(&plain, &back));
			buf_done(&plain);
			buf_done(&packed);
			buf_done(&back);
		}
	}
}

static void zlib_reads_it(void)
{
	struct buf plain, packed, back = BUF_INIT(ARCHIVE_MAX);
	z_stream stream = { 0 };

	make_plain(&plain, 300000);
	pack_in_pieces(&plain, 1000, &packed);
	CHECK(buf_reserve(&back, plain.len + 1) == 0 && inflateInit2(&stream, 31) == Z_OK);
	stream.next_in = (Bytef *) packed.data;
	stream.avail_in = (uInt) packed.len;
	stream.next_out = (Bytef *) back.data;
	stream.avail_out = (uInt) plain.len + 1;
	CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_in == 0);
	back.len = stream.total_out;
	inflateEnd(&stream);
	CHECK(is_same(&plain, &back));
	buf_done(&plain);
	buf_done(&packed);
	buf_done(&back);
}

/* Made by zlib, with everything in the header that there can be. */
static void add_member(struct buf *packed, const struct buf *plain)
{
	unsigned char extra[300] = { 1, 2, 3 }, name[] = "a name", comment[] = "a comment";
	gz_header header = { .extra = extra,
		             .extra_len = sizeof(extra),
		             .name = name,
		             .comment = comment,
		             .hcrc = 1 };
	z_stream stream = { 0 };

	CHECK(deflateInit2(&stream, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) == Z_OK);
	CHECK(deflateSetHeader(&stream, &header) == Z_OK);
	CHECK(buf_reserve(packed, plain->len + 1000) == 0);
	stream.next_in = (Bytef *) plain->data;
	stream.avail_in = (uInt) plain->len;
	stream.next_out = (Bytef *) packed->data + packed->len;
	stream.avail_out = (uInt) plain->len + 1000;
	CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
	packed->len += stream.total_out;
	deflateEnd(&stream);
}

static void reads_members_in_a_row_with_full_headers(void)
{
	static const size_t pieces[] = { 1, 2, 3, 7, 100, 65536 };
	struct buf plain, twice = BUF_INIT(ARCHIVE_MAX), packed = BUF_INIT(ARCHIVE_MAX), back;

	make_plain(&plain, 5000);
	add_member(&packed, &plain);
	add_member(&packed, &plain);
	CHECK(buf_add(&twice, plain.data, plain.len) == 0 &&
	      buf_add(&twice, plain.data, plain.len) == 0);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		CHECK(unpack_in_pieces(&packed, pieces[i], 4096, &back) == 0);
		CHECK(is_same(&twice, &back));
		buf_done(&back);
	}
	buf_done(&plain);
	buf_done(&twice);
	buf_done(&packed);
}

static void refuses_what_is_cut_short(void)
{
	struct buf plain, packed, back;

	make_plain(&plain, 3000);
	pack_in_pieces(&plain, 3000, &packed);
	for (size_t len = 0; len < packed.len; len++) {
		struct buf cut = { .data = packed.data, .len = len, .max = packed.max };

		CHECK(unpack_in_pieces(&cut, 0, 1000, &back) == -EBADMSG);
		buf_done(&back);
	}
	buf_done(&plain);
	buf_done(&packed);
}

/* Some bits of the header and of the last byte of content mean nothing; all others are noticed. */
static void never_gives_other_bytes_for_damaged_ones(void)
{
	struct buf plain, packed, back;
	size_t refused = 0;

	make_plain(&plain, 1500);
	pack_in_pieces(&plain, 1500, &packed);
	for (size_t bit = 0; bit < packed.len * 8; bit++) {
		int r;

		packed.data[bit / 8] ^= (char) (1 << (bit % 8));
		r = unpack_in_pieces(&packed, 0, 700, &back);
		CHECK(r == -EBADMSG || (r == 0 && is_same(&plain, &back)));
		refused += r < 0;
		packed.data[bit / 8] ^= (char) (1 << (bit % 8));
		buf_done(&back);
	}
	CHECK(refused > (packed.len - 12) * 8);
	buf_done(&plain);
	buf_done(&packed);
}

static void refuses_what_follows(void)
{
	struct buf plain, packed, back;

	make_plain(&plain, 100);
	pack_in_pieces(&plain, 100, &packed);
	CHECK(buf_add_str(&packed, "more") == 0);
	CHECK(unpack_in_pieces(&packed, 0, 1000, &back) == -EBADMSG);
	buf_done(&plain);
	buf_done(&packed);
	buf_done(&back);
}

static void gives_the_same_bytes_each_time(void)
{
	struct buf plain, first, second;

	make_plain(&plain, 100000);
	pack_in_pieces(&plain, 4096, &first);
	pack_in_pieces(&plain, 4096, &second);
	CHECK(is_same(&first, &second));
	CHECK(memcmp(first.data + 4, "\0\0\0\0", 4) == 0); /* no time in the header */
	buf_done(&plain);
	buf_done(&first);
	buf_done(&second);
}

static int fail_write(void *ctx, const void *bytes, size_t len)
{
	(void) ctx, (void) bytes, (void) len;
	return -ENOSPC;
}

static ssize_t fail_read(void *ctx, void *bytes, size_t cap)
{
	(void) ctx, (void) bytes, (void) cap;
	return -ETIMEDOUT;
}

static void passes_failures_on(void)
{
	const struct resoluto_sink sink = { fail_write, NULL };
	const struct resoluto_source source = { fail_read, NULL };
	struct gzip_writer *writer;
	struct gzip_reader *reader;
	char byte = 0;

	CHECK(gzip_writer_new(&sink, &writer) == 0);
	CHECK(gzip_writer_write(writer, &byte, 1) == -ENOSPC || gzip_writer_end(writer) == -ENOSPC);
	gzip_writer_free(&writer);
	CHECK(gzip_reader_new(&source, &reader) == 0);
	CHECK(gzip_reader_read(reader, &byte, 1) == -ETIMEDOUT);
	gzip_reader_free(&reader);
}

int main(void)
{
	RUN(comes_back_as_it_was);
	RUN(zlib_reads_it);
	RUN(reads_members_in_a_row_with_full_headers);
	RUN(refuses_what_is_cut_short);
	RUN(never_gives_other_bytes_for_damaged_ones);
	RUN(refuses_what_follows);
	RUN(gives_the_same_bytes_each_time);
	RUN(passes_failures_on);
	return check_done();
}
