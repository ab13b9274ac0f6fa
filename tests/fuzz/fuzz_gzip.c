/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_gzip.c - compressed streams, with zlib as the judge: what we accept is what zlib accepts, with the same
 * content.  The first byte of the input says in what pieces the rest arrives.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "wire/gzip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PLAIN_MAX = 128 * 1024 }; /* bytes of content looked at */

static void require(int truth)
{
	if (!truth)
		abort();
}

struct input {
	const uint8_t *bytes;
	size_t len, piece;
};

static ssize_t read_input(void *ctx, void *bytes, size_t cap)
{
	struct input *input = ctx;
	size_t len = input->len < input->piece ? input->len : input->piece;

	if (len > cap)
		len = cap;
	memcpy(bytes, input->bytes, len);
	input->bytes += len;
	input->len -= len;
	return (ssize_t) len;
}

/* Bytes of content, or -1: refused. */
static long read_ours(struct input input, uint8_t *plain)
{
	const struct resoluto_source source = { read_input, &input };
	struct gzip_reader *reader;
	size_t len = 0;
	ssize_t n;

	require(gzip_reader_new(&source, &reader) == 0);
	do {
		n = gzip_reader_read(reader, plain + len, PLAIN_MAX - len);
		require(n >= 0 || n == -EBADMSG);
		len += n > 0 ? (size_t) n : 0;
	} while (n > 0 && len < PLAIN_MAX);
	gzip_reader_free(&reader);
	return n < 0 ? -1 : (long) len;
}

static long read_zlib(const uint8_t *bytes, size_t size, uint8_t *plain)
{
	z_stream stream = { .next_in = (Bytef *) bytes, .avail_in = (uInt) size };
	size_t len = 0;
	int r = Z_OK;

	require(inflateInit2(&stream, 31) == Z_OK);
	do {
		if (r == Z_STREAM_END)
			require(inflateReset(&stream) == Z_OK);
		stream.next_out = plain + len;
		stream.avail_out = (uInt) (PLAIN_MAX - len);
		r = inflate(&stream, Z_NO_FLUSH);
		len = PLAIN_MAX - stream.avail_out;
	} while (len < PLAIN_MAX && (r == Z_OK || (r == Z_STREAM_END && stream.avail_in > 0)));
	inflateEnd(&stream);
	return r == Z_STREAM_END || (len == PLAIN_MAX && (r == Z_OK || r == Z_BUF_ERROR))
	               ? (long) len
	               : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *ours, *theirs;
	long len;

	if (size < 1)
		return 0;
	ours = malloc(PLAIN_MAX);
	theirs = malloc(PLAIN_MAX);
	require(ours && theirs);
	len = read_ours((struct input){ data + 1, size - 1, (size_t) data[0] + 1 }, ours);
	if (len >= 0 && len < PLAIN_MAX) {
		require(read_zlib(data + 1, size - 1, theirs) == len);
		require(memcmp(ours, theirs, (size_t) len) == 0);
	}
	free(ours);
	free(theirs);
	return 0;
}
