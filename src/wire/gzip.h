/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * gzip.h - a gzip stream in bounded memory, in two builds of one interface: gzip_isal.c (fast, on the
 * host) and gzip_zlib.c (static, in the runner, and where isa-l is missing).
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "resoluto/conduit.h"

struct gzip_writer;

int gzip_writer_new(const struct resoluto_sink *sink, struct gzip_writer **ret_writer);
int gzip_writer_write(struct gzip_writer *writer, const void *bytes, size_t len);
int gzip_writer_end(struct gzip_writer *writer); /* writes the trailer */
void gzip_writer_free(struct gzip_writer **writer);

struct gzip_reader;

int gzip_reader_new(const struct resoluto_source *source, struct gzip_reader **ret_reader);
/* Up to cap bytes, 0 at the end (several members in a row count as one stream).  -EBADMSG: corrupt
 * or cut short. */
ssize_t gzip_reader_read(struct gzip_reader *reader, void *bytes, size_t cap);
uint64_t gzip_reader_consumed(const struct gzip_reader *reader); /* packed bytes read so far */
void gzip_reader_free(struct gzip_reader **reader);
