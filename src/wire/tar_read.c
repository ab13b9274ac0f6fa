/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar_read.c - members of a foreign archive, one after another, in bounded memory.
 *
 * The stream goes through one buffer; content is handed out from there without copying.  All sizes are
 * checked against what has really come, and the map of a sparse file against the size it claims, before
 * anything is told to the caller.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/tar.h"
#include "wire/tar_block.h"
#include "wire/tar_pax.h"

enum {
	WINDOW_SIZE = 256 * 1024,  /* bytes of the stream held at once */
	SPECIAL_MAX = 8,           /* PAX and long-name headers before one member */
	TRAILER_MAX = 1024 * 1024, /* bytes of zeros behind the end; tape habits */
};

struct tar_reader {
	struct resoluto_source source;
	bool source_ended;
	size_t start, end; /* of the bytes in the window that are not used yet */
	uint64_t left;     /* stored bytes of this member's content that were not handed out */
	size_t padding;    /* behind them */
	size_t extent;     /* the one that is being read, and how much of it is done */
	uint64_t extent_done;
	struct tar_entry entry;
	struct tar_overrides overrides;
	char name[sizeof(((struct tar_block *) 0)->prefix) + 1 +
	          sizeof(((struct tar_block *) 0)->name) + 1];
	char target[sizeof(((struct tar_block *) 0)->linkname) + 1];
	char window[WINDOW_SIZE];
};

int tar_reader_new(const struct resoluto_source *source, struct tar_reader **ret_reader)
{
	struct tar_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return -ENOMEM;
	reader->source = *source;
	*ret_reader = reader;
	return 0;
}

void tar_reader_free(struct tar_reader **reader)
{
	if (*reader)
		tar_overrides_done(&(*reader)->overrides);
	free(*reader);
	*reader = NULL;
}

/* Have at least `want` bytes in the window, fewer only at the end of the stream. */
static int fill(struct tar_reader *reader, size_t want)
{
	while (reader->end - reader->start < want && !reader->source_ended) {
		ssize_t n;

		if (reader->start > 0) {
			memmove(reader->window, reader->window + reader->start,
			        reader->end - reader->start);
			reader->end -= reader->start;
			reader->start = 0;
		}
		n = reader->source.read(reader->source.ctx, reader->window + reader->end,
		                        sizeof(reader->window) - reader->end);
		if (n < 0)
			return (int) n;
		reader->source_ended = n == 0;
		reader->end += (size_t) n;
	}
	return 0;
}

static int cut_short(struct resoluto_err *err)
{
	return resoluto_fail(err, -EBADMSG, "the archive is cut short");
}

static int failed_read(int code, struct resoluto_err *err)
{
	return resoluto_fail(err, code,
	                     code == -EBADMSG ? "the compressed archive is damaged or cut short"
	                                      : "read the archive");
}

/* The next len bytes (at most the window) as one piece, used up; NULL with *ret_error set. */
static const char *take(struct tar_reader *reader, size_t len, int *ret_error,
                        struct resoluto_err *err)
{
	int r = fill(reader, len);
	const char *bytes = reader->window + reader->start;

	if (r == 0 && reader->end - reader->start >= len) {
		reader->start += len;
		return bytes;
	}
	*ret_error = r < 0 ? failed_read(r, err) : cut_short(err);
	return NULL;
}

static int skip(struct tar_reader *reader, uint64_t len, struct resoluto_err *err)
{
	while (len > 0) {
		size_t step = len < WINDOW_SIZE ? (size_t) len : WINDOW_SIZE;
		int r = 0;

		if (!take(reader, step, &r, err))
			return r;
		len -= step;
	}
	return 0;
}

/* A number in base 256: the first byte says so, and negative ones have all its bits set. */
static int parse_binary(const unsigned char *field, size_t size, int64_t *ret_value)
{
	uint64_t value = field[0] == 0xff ? UINT64_MAX : 0;

	if (field[0] != 0xff && field[0] != 0x80)
		return -EBADMSG;
	for (size_t i = 1; i < size; i++) {
		uint64_t top = value >>
		               55; /* what must be nothing but sign for 8 bits more to fit */

		if (top != 0 && top != UINT64_MAX >> 55)
			return -EBADMSG;
		value = value << 8 | field[i];
	}
	*ret_value = (int64_t) value;
	return (field[0] == 0xff) == (*ret_value < 0) ? 0 : -EBADMSG;
}

/* Spaces, octal digits, then only spaces and zeros; nothing at all is 0. */
static int parse_field(const char *field, size_t size, int64_t *ret_value)
{
	uint64_t value = 0;
	size_t i = 0;

	if ((unsigned char) field[0] >= 0x80)
		return parse_binary((const unsigned char *) field, size, ret_value);
	while (i < size && field[i] == ' ')
		i++;
	for (; i < size && field[i] >= '0' && field[i] <= '7'; i++)
		value = value << 3 | (uint64_t) (field[i] - '0');
	for (; i < size; i++) {
		if (field[i] != ' ' && field[i] != '\0')
			return -EBADMSG;
	}
	*ret_value = (int64_t) value; /* at most 12 digits of 3 bits */
	return 0;
}

static int parse_size(const char *field, size_t size, uint64_t *ret_value)
{
	int64_t value;
	int r = parse_field(field, size, &value);

	if (r < 0 || value < 0)
		return -EBADMSG;
	*ret_value = (uint64_t) value;
	return 0;
}

/* Some old programs summed the bytes as signed ones. */
static uint32_t signed_checksum(const struct tar_block *block)
{
	const signed char *bytes = (const signed char *) block;
	int32_t sum = (int32_t) (' ' * sizeof(block->checksum));

	for (size_t i = 0; i < sizeof(*block); i++) {
		size_t at = offsetof(struct tar_block, checksum);

		if (i < at || i >= at + sizeof(block->checksum))
			sum += bytes[i];
	}
	return (uint32_t) sum;
}

static bool has_good_checksum(const struct tar_block *block)
{
	uint64_t want;

	if (parse_size(block->checksum, sizeof(block->checksum), &want) < 0)
		return false;
	return want == tar_checksum(block) || want == signed_checksum(block);
}

static bool is_all_zero(const char *bytes, size_t len)
{
	return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}

/* Behind the first block of zeros: one more, then nothing but zeros, so that the checksum of the
 * compressed stream is met too. */
static int read_trailer(struct tar_reader *reader, struct resoluto_err *err)
{
	uint64_t seen = 0;
	int r = 0;

	if (!take(reader, TAR_BLOCK, &r, err))
		return r;
	reader->start -= TAR_BLOCK;
	while (reader->end > reader->start) {
		size_t len = reader->end - reader->start;

		seen += len;
		if (seen > TRAILER_MAX || !is_all_zero(reader->window + reader->start, len))
			return resoluto_fail(err, -EBADMSG,
			                     "something follows the end of the archive");
		reader->start = reader->end;
		r = fill(reader, 1);
		if (r < 0)
			return failed_read(r, err);
	}
	return 0;
}

/* Take in the content of a special header. */
static int read_extra(struct tar_reader *reader, uint64_t size, struct buf *ret_bytes,
                      struct resoluto_err *err)
{
	*ret_bytes = BUF_INIT(TAR_EXTRA_MAX);
	if (size > TAR_EXTRA_MAX)
		return resoluto_fail(err, -EBADMSG, "a special header of %llu bytes is too long",
		                     (unsigned long long) size);
	for (uint64_t left = size; left > 0;) {
		size_t step = left < WINDOW_SIZE ? (size_t) left : WINDOW_SIZE;
		int r = 0;
		const char *bytes = take(reader, step, &r, err);

		if (!bytes)
			return r;
		r = buf_add(ret_bytes, bytes, step);
		if (r < 0)
			return resoluto_fail(err, r, "keep a special header");
		left -= step;
	}
	return skip(reader, tar_padding(size), err);
}

/* GNU: the content is a name with a 0 behind it. */
static int take_long_name(char **name, const struct buf *bytes, struct resoluto_err *err)
{
	size_t len = bytes->data ? strlen(bytes->data) : 0;

	if (len == 0 || len > TAR_PATH_MAX || len + 1 < bytes->len)
		return resoluto_fail(err, -EBADMSG, "a long name is damaged");
	free(*name);
	*name = strdup(bytes->data);
	return *name ? 0 : resoluto_fail(err, -ENOMEM, "keep a long name");
}

static int take_special(struct tar_reader *reader, const struct tar_block *block,
                        struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf bytes = { 0 };
	char type = block->type; /* the block is gone once more is read */
	uint64_t size;
	int r;

	if (parse_size(block->size, sizeof(block->size), &size) < 0)
		return resoluto_fail(err, -EBADMSG, "a special header has no size");
	r = read_extra(reader, size, &bytes, err);
	if (r < 0)
		return r;
	switch (type) {
	case 'x':
		return tar_pax_parse(bytes.data, bytes.len, &reader->overrides, err);
	case 'L':
		return take_long_name(&reader->overrides.path, &bytes, err);
	case 'K':
		return take_long_name(&reader->overrides.target, &bytes, err);
	default: /* 'g': defaults for all members, of which none matters here */
		return 0;
	}
}

static bool is_special(const struct tar_block *block)
{
	return block->type == 'x' || block->type == 'g' || block->type == 'L' || block->type == 'K';
}

static enum tar_type type_of(const struct tar_block *block)
{
	size_t len = strnlen(block->name, sizeof(block->name));

	switch (block->type) {
	case '\0': /* before POSIX a name told a directory from a file */
		return len > 0 && block->name[len - 1] == '/' ? TAR_DIRECTORY : TAR_FILE;
	case '0':
	case '7':
	case 'S':
		return TAR_FILE;
	case '1':
		return TAR_HARDLINK;
	case '2':
		return TAR_SYMLINK;
	case '3':
	case '4':
		return TAR_DEVICE;
	case '5':
		return TAR_DIRECTORY;
	case '6':
		return TAR_FIFO;
	default:
		return TAR_OTHER;
	}
}

/* Name and target as they stand in the block; only POSIX's own kind has a prefix. */
static void read_names(struct tar_reader *reader, const struct tar_block *block)
{
	bool has_prefix = memcmp(block->magic, "ustar", sizeof(block->magic)) == 0;
	size_t prefix = has_prefix ? strnlen(block->prefix, sizeof(block->prefix)) : 0;
	size_t name = strnlen(block->name, sizeof(block->name));
	size_t target = strnlen(block->linkname, sizeof(block->linkname));
	char *at = reader->name;

	if (prefix > 0) {
		memcpy(at, block->prefix, prefix);
		at[prefix] = '/';
		at += prefix + 1;
	}
	memcpy(at, block->name, name);
	at[name] = '\0';
	memcpy(reader->target, block->linkname, target);
	reader->target[target] = '\0';
}

static int read_fields(struct tar_reader *reader, const struct tar_block *block,
                       struct resoluto_err *err)
{
	const struct tar_overrides *overrides = &reader->overrides;
	struct tar_entry *entry = &reader->entry;
	int64_t mode, mtime;
	uint64_t size;

	if (parse_size(block->size, sizeof(block->size), &size) < 0 ||
	    parse_field(block->mode, sizeof(block->mode), &mode) < 0 ||
	    parse_field(block->mtime, sizeof(block->mtime), &mtime) < 0)
		return resoluto_fail(err, -EBADMSG, "a header holds a field that is no number");
	read_names(reader, block);
	*entry = (struct tar_entry){
		.type = type_of(block),
		.path = overrides->path ? overrides->path : reader->name,
		.target = overrides->target ? overrides->target : reader->target,
		.mode = (mode_t) mode & 07777,
		.mtime = { .tv_sec = (time_t) mtime },
	};
	if (overrides->has_mtime)
		entry->mtime = overrides->mtime;
	reader->left = overrides->has_size ? overrides->size : size;
	reader->padding = tar_padding(reader->left);
	reader->extent = 0;
	reader->extent_done = 0;
	if (entry->type == TAR_FILE)
		entry->size = reader->left;
	else if (entry->type != TAR_OTHER && reader->left > 0)
		return resoluto_fail(err, -EBADMSG, "a member that is no file has content");
	return 0;
}

/* Read a number and the newline behind it from the content. */
static int read_map_number(struct tar_reader *reader, uint64_t *ret_value, struct resoluto_err *err)
{
	uint64_t value = 0;

	for (int digits = 0;; digits++) {
		int r = 0;
		const char *byte = reader->left > 0 ? take(reader, 1, &r, err) : NULL;

		if (r < 0)
			return r;
		if (byte && *byte == '\n' && digits > 0)
			break;
		if (!byte || *byte < '0' || *byte > '9' || value > (INT64_MAX - 9) / 10)
			return resoluto_fail(err, -EBADMSG, "the map of a sparse file is damaged");
		value = value * 10 + (uint64_t) (*byte - '0');
		reader->left--;
	}
	reader->left--;
	*ret_value = value;
	return 0;
}

static int too_many_pieces(int code, struct resoluto_err *err)
{
	return resoluto_fail(err, code, "keep the map of a sparse file (at most %d pieces)",
	                     TAR_EXTENTS_MAX);
}

/* GNU.sparse 1.0: the map lies before the content, filled up to a block. */
static int read_map(struct tar_reader *reader, struct resoluto_err *err)
{
	uint64_t before = reader->left, count, offset, len;
	size_t fill_up;
	int r = read_map_number(reader, &count, err);

	for (uint64_t i = 0; r == 0 && i < count; i++) {
		r = read_map_number(reader, &offset, err);
		if (r == 0)
			r = read_map_number(reader, &len, err);
		if (r < 0)
			return r;
		r = tar_extents_add(&reader->overrides.extents, offset, len);
		if (r < 0)
			return too_many_pieces(r, err);
	}
	if (r < 0)
		return r;
	fill_up = tar_padding(before - reader->left);
	if (fill_up > reader->left)
		return resoluto_fail(err, -EBADMSG, "the map of a sparse file is damaged");
	reader->left -= fill_up;
	return skip(reader, fill_up, err);
}

static int add_gnu_extents(struct tar_extents *extents, const struct tar_gnu_extent *fields,
                           size_t count, struct resoluto_err *err)
{
	for (size_t i = 0; i < count && fields[i].len[0] != '\0'; i++) {
		uint64_t offset, len;
		int r;

		if (parse_size(fields[i].offset, sizeof(fields[i].offset), &offset) < 0 ||
		    parse_size(fields[i].len, sizeof(fields[i].len), &len) < 0)
			return resoluto_fail(err, -EBADMSG, "the map of a sparse file is damaged");
		r = tar_extents_add(extents, offset, len);
		if (r < 0)
			return too_many_pieces(r, err);
	}
	return 0;
}

/* GNU's own sparse header (type 'S'): some extents in the block, the others in blocks behind it. */
static int read_gnu_sparse(struct tar_reader *reader, const struct tar_block *block,
                           struct resoluto_err *err)
{
	struct tar_extents *extents = &reader->overrides.extents;
	struct tar_gnu_extension extension;
	struct tar_gnu_sparse sparse;
	bool is_extended;
	int r;

	memcpy(&sparse, block->prefix, sizeof(sparse));
	extents->count = 0;
	if (parse_size(sparse.real_size, sizeof(sparse.real_size), &reader->entry.size) < 0)
		return resoluto_fail(err, -EBADMSG, "a sparse file has no size");
	r = add_gnu_extents(extents, sparse.extents, 4, err);
	is_extended = sparse.is_extended;
	while (r == 0 && is_extended) {
		const char *bytes = take(reader, sizeof(extension), &r, err);

		if (!bytes)
			return r;
		memcpy(&extension, bytes, sizeof(extension));
		if (extension.extents[0].len[0] == '\0')
			return resoluto_fail(err, -EBADMSG, "the map of a sparse file is damaged");
		r = add_gnu_extents(extents, extension.extents, 21, err);
		is_extended = extension.is_extended;
	}
	return r;
}

/* Ascending, apart, within the file, and together exactly what is stored. */
static int check_extents(struct tar_reader *reader, struct resoluto_err *err)
{
	const struct tar_extents *extents = &reader->overrides.extents;
	uint64_t end = 0, sum = 0;

	for (size_t i = 0; i < extents->count; i++) {
		const struct tar_extent *extent = &extents->items[i];

		if (extent->offset < end || extent->len > (uint64_t) INT64_MAX - extent->offset)
			return resoluto_fail(err, -EBADMSG,
			                     "the map of a sparse file overlaps itself");
		end = extent->offset + extent->len;
		sum += extent->len;
	}
	if (end > reader->entry.size || sum != reader->left)
		return resoluto_fail(err, -EBADMSG,
		                     "the map of a sparse file does not fit what is stored");
	reader->entry.is_sparse = true;
	reader->entry.extents = extents->items;
	reader->entry.extent_count = extents->count;
	return 0;
}

static int read_sparse(struct tar_reader *reader, const struct tar_block *block,
                       struct resoluto_err *err)
{
	struct tar_overrides *overrides = &reader->overrides;
	int r = 0;

	if (block->type == 'S') {
		r = read_gnu_sparse(reader, block, err);
		return r < 0 ? r : check_extents(reader, err);
	}
	if (!overrides->has_version && !overrides->has_map)
		return 0;
	if (overrides->sparse_name)
		reader->entry.path = overrides->sparse_name;
	if (!overrides->has_real_size)
		return resoluto_fail(err, -EBADMSG, "a sparse file has no size");
	reader->entry.size = overrides->real_size;
	if (overrides->has_version && overrides->major == 1 && overrides->minor == 0) {
		overrides->extents.count = 0;
		r = read_map(reader, err);
	} else if (overrides->has_version && overrides->major != 0) {
		return resoluto_fail(err, -EBADMSG, "GNU.sparse version %llu.%llu is not known",
		                     (unsigned long long) overrides->major,
		                     (unsigned long long) overrides->minor);
	}
	return r < 0 ? r : check_extents(reader, err);
}

/* The next header that is not all zeros.  1, or 0 at the end of the archive. */
static int read_block(struct tar_reader *reader, struct tar_block *ret_block,
                      struct resoluto_err *err)
{
	int r = 0;
	const char *bytes = take(reader, TAR_BLOCK, &r, err);

	if (!bytes)
		return r;
	if (is_all_zero(bytes, TAR_BLOCK))
		return read_trailer(reader, err);
	memcpy(ret_block, bytes, sizeof(*ret_block));
	if (!has_good_checksum(ret_block))
		return resoluto_fail(err, -EBADMSG,
		                     "a header is damaged, or this is no tar archive");
	return 1;
}

static int pass_over_rest(struct tar_reader *reader, struct resoluto_err *err)
{
	int r = skip(reader, reader->left, err);

	if (r == 0)
		r = skip(reader, reader->padding, err);
	reader->left = 0;
	reader->padding = 0;
	return r;
}

int tar_reader_next(struct tar_reader *reader, struct tar_entry *ret_entry,
                    struct resoluto_err *err)
{
	struct tar_block block;
	int r = pass_over_rest(reader, err), specials = 0;

	tar_overrides_done(&reader->overrides);
	while (r == 0) {
		r = read_block(reader, &block, err);
		if (r == 0 && specials > 0)
			return resoluto_fail(err, -EBADMSG,
			                     "a special header has no member behind it");
		if (r <= 0)
			return r;
		if (!is_special(&block))
			break;
		if (++specials > SPECIAL_MAX)
			return resoluto_fail(err, -EBADMSG, "too many special headers in a row");
		r = take_special(reader, &block, err);
	}
	if (r < 0)
		return r;
	r = read_fields(reader, &block, err);
	if (r == 0 && reader->entry.type == TAR_FILE)
		r = read_sparse(reader, &block, err);
	if (r < 0)
		return r;
	reader->entry.stored = reader->left;
	*ret_entry = reader->entry;
	return 1;
}

/* How many of the next stored bytes belong together, and where in the file. */
static uint64_t piece_at(struct tar_reader *reader, uint64_t *ret_offset)
{
	const struct tar_entry *entry = &reader->entry;
	const struct tar_extent *extent;

	if (!entry->is_sparse) {
		*ret_offset = entry->stored - reader->left;
		return reader->left;
	}
	while (entry->extents[reader->extent].len == reader->extent_done) {
		reader->extent++;
		reader->extent_done = 0;
	}
	extent = &entry->extents[reader->extent];
	*ret_offset = extent->offset + reader->extent_done;
	return extent->len - reader->extent_done;
}

int tar_reader_data(struct tar_reader *reader, const void **ret_bytes, size_t *ret_len,
                    uint64_t *ret_offset, struct resoluto_err *err)
{
	uint64_t piece;
	size_t len;
	int r;

	if (reader->left == 0)
		return 0;
	piece = piece_at(reader, ret_offset);
	r = fill(reader, 1);
	if (r < 0)
		return failed_read(r, err);
	len = reader->end - reader->start;
	if (len == 0)
		return cut_short(err);
	if (len > piece)
		len = (size_t) piece;
	*ret_bytes = reader->window + reader->start;
	*ret_len = len;
	reader->start += len;
	reader->left -= len;
	reader->extent_done += len;
	return 1;
}
