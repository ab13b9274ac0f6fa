/* SPDX-License-Identifier: Apache-2.0 */
/* gzip_zlib.c - gzip.h by zlib: for the static runner, and for hosts without isa-l. */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <zlib.h>

#include "wire/gzip.h"

enum {
	PACKED_SIZE = 64 * 1024,       /* bytes of compressed data held at once */
	STEP_MAX = 1024 * 1024 * 1024, /* bytes given to zlib at once: its counters have 32 bits */
	GZIP_WINDOW = 15 + 16,         /* zlib's way to say "32 KiB, and a gzip header around it" */
	MEMORY_LEVEL = 8,
};

struct gzip_writer {
	struct resoluto_sink sink;
	z_stream stream;
	uint8_t packed[PACKED_SIZE];
};

int gzip_writer_new(const struct resoluto_sink *sink, struct gzip_writer **ret_writer)
{
	struct gzip_writer *writer = malloc(sizeof(*writer));

	if (!writer)
		return -ENOMEM;
	writer->sink = *sink;
	writer->stream = (z_stream){ 0 };
	if (deflateInit2(&writer->stream, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL,
	                 Z_DEFAULT_STRATEGY) != Z_OK) {
		free(writer);
		return -ENOMEM;
	}
	*ret_writer = writer;
	return 0;
}

/* Run the compressor until it has taken all input and filled less than the whole buffer. */
static int deflate_all(struct gzip_writer *writer, int flush)
{
	z_stream *stream = &writer->stream;

	do {
		size_t len;
		int r;

		stream->next_out = writer->packed;
		stream->avail_out = sizeof(writer->packed);
		r = deflate(stream, flush);
		if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
			return -EIO;
		len = sizeof(writer->packed) - stream->avail_out;
		r = len > 0 ? writer->sink.write(writer->sink.ctx, writer->packed, len) : 0;
		if (r < 0)
			return r;
	} while (stream->avail_out == 0);
	return 0;
}

int gzip_writer_write(struct gzip_writer *writer, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	while (len > 0) {
		size_t step = len < STEP_MAX ? len : STEP_MAX;
		int r;

		writer->stream.next_in = (Bytef *) at;
		writer->stream.avail_in = (uInt) step;
		r = deflate_all(writer, Z_NO_FLUSH);
		if (r < 0)
			return r;
		at += step;
		len -= step;
	}
	return 0;
}

int gzip_writer_end(struct gzip_writer *writer)
{
	writer->stream.next_in = NULL;
	writer->stream.avail_in = 0;
	return deflate_all(writer, Z_FINISH);
}

void gzip_writer_free(struct gzip_writer **writer)
{
	if (*writer)
		(void) deflateEnd(&(*writer)->stream);
	free(*writer);
	*writer = NULL;
}

struct gzip_reader {
	struct resoluto_source source;
	z_stream stream;
	bool member_ended, source_ended;
	uint64_t consumed;
	uint8_t packed[PACKED_SIZE];
};

int gzip_reader_new(const struct resoluto_source *source, struct gzip_reader **ret_reader)
{
	struct gzip_reader *reader = malloc(sizeof(*reader));

	if (!reader)
		return -ENOMEM;
	reader->source = *source;
	reader->stream = (z_stream){ 0 };
	reader->member_ended = reader->source_ended = false;
	reader->consumed = 0;
	if (inflateInit2(&reader->stream, GZIP_WINDOW) != Z_OK) {
		free(reader);
		return -ENOMEM;
	}
	*ret_reader = reader;
	return 0;
}

/* Have compressed bytes at hand unless the source has ended. */
static int fill(struct gzip_reader *reader)
{
	ssize_t n;

	if (reader->stream.avail_in > 0 || reader->source_ended)
		return 0;
	n = reader->source.read(reader->source.ctx, reader->packed, sizeof(reader->packed));
	if (n < 0)
		return (int) n;
	reader->source_ended = n == 0;
	reader->consumed += (uint64_t) n;
	reader->stream.next_in = reader->packed;
	reader->stream.avail_in = (uInt) n;
	return 0;
}

static int inflate_some(struct gzip_reader *reader)
{
	int r;

	if (reader->member_ended && inflateReset(&reader->stream) != Z_OK)
		return -EIO;
	r = inflate(&reader->stream, Z_NO_FLUSH);
	reader->member_ended = r == Z_STREAM_END;
	if (r == Z_MEM_ERROR)
		return -ENOMEM;
	return r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR ? 0 : -EBADMSG;
}

ssize_t gzip_reader_read(struct gzip_reader *reader, void *bytes, size_t cap)
{
	uInt room = (uInt) (cap < STEP_MAX ? cap : STEP_MAX);

	assert(cap > 0);
	reader->stream.next_out = bytes;
	reader->stream.avail_out = room;
	while (reader->stream.avail_out == room) {
		int r = fill(reader);
		bool starved = r == 0 && reader->stream.avail_in == 0 && reader->source_ended;

		if (starved && reader->member_ended)
			return 0;
		if (r == 0)
			r = inflate_some(reader);
		if (r < 0)
			return r;
		/* Nothing came in, nothing went out and the member is not over: it was cut short. */
		if (starved && !reader->member_ended && reader->stream.avail_out == room)
			return -EBADMSG;
	}
	return (ssize_t) (room - reader->stream.avail_out);
}

uint64_t gzip_reader_consumed(const struct gzip_reader *reader)
{
	return reader->consumed;
}

void gzip_reader_free(struct gzip_reader **reader)
{
	if (*reader)
		(void) inflateEnd(&(*reader)->stream);
	free(*reader);
	*reader = NULL;
}
