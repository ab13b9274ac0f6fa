/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_oci_layer.c - two layers of an image, as a registry sends them.
 *
 * Input: flags (bit 0: OCI whiteouts, bit 1: any compression, bit 2: compare both passes), the length of the
 * first layer (u16 LE), the first layer, the second.  Whatever comes out is checked: a tar that cannot
 * escape, without devices, in which no name stands twice and no hard link leads nowhere.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <search.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "image/flatten.h"
#include "image/layer.h"

enum {
	HEAD = 3,                    /* bytes before the first layer */
	STREAM_MAX = 4 * 1024 * 1024 /* bytes; a sparse file may claim far more */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int keep(void *ctx, const void *bytes, size_t len, struct resoluto_err *err)
{
	return buf_add(ctx, bytes, len) < 0 ? resoluto_fail(err, -EFBIG, "enough") : 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void check_name(const char *path)
{
	if (!path || path[0] == '/')
		abort();
	if (strcmp(path, "./") == 0)
		return;
	for (const char *at = path; at; at = strchr(at, '/')) {
		at += *at == '/';
		if (*at == '/' || !*at || strncmp(at, "../", 3) == 0 || strcmp(at, "..") == 0 ||
		    strncmp(at, "./", 2) == 0 || strcmp(at, ".") == 0)
			abort();
	}
}

static void check_entry(struct archive_entry *entry, void **names)
{
	const char *path = archive_entry_pathname(entry), *target = archive_entry_hardlink(entry);
	char *own;

	check_name(path);
	if (tfind(path, names, by_text))
		abort();
	if (target && !tfind(target, names, by_text))
		abort();
	if (!target && archive_entry_filetype(entry) != AE_IFREG &&
	    archive_entry_filetype(entry) != AE_IFDIR &&
	    archive_entry_filetype(entry) != AE_IFLNK && archive_entry_filetype(entry) != AE_IFIFO)
		abort();
	own = strdup(path);
	if (!own || !tsearch(own, names, by_text))
		abort();
}

static void check_stream(const struct buf *stream)
{
	struct archive *archive = archive_read_new();
	struct archive_entry *entry;
	void *names = NULL;
	int r;

	archive_read_support_format_tar(archive);
	if (archive_read_open_memory(archive, stream->data, stream->len) != ARCHIVE_OK)
		abort();
	while ((r = archive_read_next_header(archive, &entry)) == ARCHIVE_OK || r == ARCHIVE_WARN)
		check_entry(entry, &names);
	if (r != ARCHIVE_EOF)
		abort();
	archive_read_free(archive);
	tdestroy(names, free);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(buf_done) struct buf stream = BUF_INIT(STREAM_MAX);
	struct flatten_layer layers[2] = { { .fd = -1, .name = "one" },
		                           { .fd = -1, .name = "two" } };
	struct flatten_options options = { .layers = layers, .layer_count = 2 };
	struct resoluto_err err = { 0 };
	int r;

	if (size < HEAD)
		return 0;
	options.whiteouts = data[0] & 1;
	options.any_filter = data[0] & 2;
	options.may_change = data[0] & 4;
	layers[0].bytes = data + HEAD;
	layers[0].len = (size_t) data[1] + (size_t) data[2] * 256;
	if (layers[0].len > size - HEAD)
		layers[0].len = size - HEAD;
	layers[1].bytes = data + HEAD + layers[0].len;
	layers[1].len = size - HEAD - layers[0].len;
	layers[0].packed_size = layers[0].len;
	layers[1].packed_size = layers[1].len;
	r = flatten(&options, &(struct flatten_sink){ keep, &stream }, NULL, &err);
	if (r < 0) {
		if (err.code != r || !err.text[0])
			abort();
		return 0;
	}
	CLEANUP(layer_locale_end)
	struct layer_locale locale __attribute__((unused)) = layer_locale_begin();
	check_stream(&stream);
	return 0;
}
