/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "image/archive_calls.h"
#include "image/layer.h"
#include "image/bounds.h"
#include "image/text.h"

enum { READ_SIZE = 128 * 1024 }; /* bytes per read of the blob */

struct layer {
	const struct archive_calls *lib;
	struct archive *packed; /* decompresses */
	struct archive *tar;    /* reads what packed gives */
	struct digest_state digest;
	const struct caller *caller;
	bool hash;
	bool at_end;       /* of the unpacked bytes */
	bool is_empty;     /* a blob without a byte */
	uint64_t unpacked; /* bytes */
	uint32_t number, ordinal;
	int failure; /* of the source; 0 = none */
	struct resoluto_err source_err;
};

struct layer_locale layer_locale_begin(void)
{
	struct layer_locale locale = { 0 };

	locale.own = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t) 0);
	if (locale.own)
		locale.before = uselocale((locale_t) locale.own);
	return locale;
}

void layer_locale_end(struct layer_locale *locale)
{
	if (!locale->own)
		return;
	(void) uselocale((locale_t) locale->before);
	freelocale((locale_t) locale->own);
	locale->own = NULL;
}

static int check_ratio(struct layer *layer)
{
	uint64_t packed = layer_packed_bytes(layer);

	if (layer->unpacked > IMAGE_BYTES_MAX)
		return resoluto_fail(&layer->source_err, -EBADMSG,
		                     "unpacks to more than IMAGE_BYTES_MAX (%llu GiB)",
		                     (unsigned long long) (IMAGE_BYTES_MAX >> 30));
	if (layer->unpacked > IMAGE_RATIO_FREE && layer->unpacked / IMAGE_RATIO_MAX > packed)
		return resoluto_fail(&layer->source_err, -EBADMSG,
		                     "unpacks to more than IMAGE_RATIO_MAX (%d) times its size: a "
		                     "decompression bomb",
		                     IMAGE_RATIO_MAX);
	return 0;
}

static int packed_failure(struct layer *layer)
{
	int number = layer->lib->archive_errno(layer->packed);
	const char *text = layer->lib->archive_error_string(layer->packed);

	/* libarchive gives system errors for reads that failed, and its own for bad contents. */
	return resoluto_fail(&layer->source_err, number == EIO ? -EIO : -EBADMSG,
	                     "cannot be decompressed: %s",
	                     text_clean(text ? text : "unknown damage").text);
}

/* The next unpacked bytes, valid until the next call; 0 at the end. */
static ssize_t next_block(struct layer *layer, const void **ret_bytes)
{
	size_t size = 0;
	la_int64_t offset;

	if (layer->failure == 0)
		layer->failure = caller_check(layer->caller, &layer->source_err);
	if (layer->failure < 0)
		return layer->failure;
	while (!layer->at_end && size == 0) {
		int r = layer->is_empty ? ARCHIVE_EOF
		                        : layer->lib->archive_read_data_block(
						  layer->packed, ret_bytes, &size, &offset);

		if (r == ARCHIVE_EOF) {
			layer->at_end = true;
		} else if (r < ARCHIVE_WARN) {
			layer->failure = packed_failure(layer);
			return layer->failure;
		}
	}
	if (layer->at_end)
		return 0;
	layer->unpacked += size;
	layer->failure = check_ratio(layer);
	if (layer->failure < 0)
		return layer->failure;
	if (layer->hash)
		digest_add(&layer->digest, *ret_bytes, size);
	return (ssize_t) size;
}

static la_ssize_t feed_tar(struct archive *tar, void *ctx, const void **ret_bytes)
{
	struct layer *layer = ctx;
	ssize_t n = next_block(layer, ret_bytes);

	if (n < 0) {
		layer->lib->archive_set_error(tar, (int) -n, "%s", layer->source_err.text);
		return -1;
	}
	return n;
}

static int open_packed(struct layer *layer, const struct layer_source *source)
{
	struct archive_entry *entry;
	int r;

	layer->packed = layer->lib->archive_read_new();
	if (!layer->packed)
		return ARCHIVE_FATAL;
	(void) layer->lib->archive_read_support_filter_gzip(layer->packed);
	(void) layer->lib->archive_read_support_filter_zstd(layer->packed);
	if (source->any_filter) {
		(void) layer->lib->archive_read_support_filter_xz(layer->packed);
		(void) layer->lib->archive_read_support_filter_bzip2(layer->packed);
	}
	(void) layer->lib->archive_read_support_format_raw(layer->packed);
	(void) layer->lib->archive_read_support_format_empty(layer->packed);
	if (source->fd >= 0)
		r = layer->lib->archive_read_open_fd(layer->packed, source->fd, READ_SIZE);
	else
		r = layer->lib->archive_read_open_memory(layer->packed, source->bytes, source->len);
	if (r < ARCHIVE_WARN)
		return r;
	r = layer->lib->archive_read_next_header(layer->packed, &entry);
	layer->is_empty = r == ARCHIVE_EOF;
	return r == ARCHIVE_EOF ? ARCHIVE_OK : r;
}

static int tar_failure(struct layer *layer, struct resoluto_err *err)
{
	const char *text = layer->lib->archive_error_string(layer->tar);

	if (layer->failure < 0) {
		if (err)
			*err = layer->source_err;
		return layer->failure;
	}
	if (layer->lib->archive_errno(layer->tar) == ENOMEM)
		return resoluto_fail(err, -ENOMEM, "read the tar");
	return resoluto_fail(err, -EBADMSG, "is no intact tar: %s",
	                     text_clean(text ? text : "unknown damage").text);
}

static int open_tar(struct layer *layer, struct resoluto_err *err)
{
	layer->tar = layer->lib->archive_read_new();
	if (!layer->tar)
		return resoluto_fail(err, -ENOMEM, "read the tar");
	(void) layer->lib->archive_read_support_format_tar(layer->tar);
	(void) layer->lib->archive_read_support_format_empty(layer->tar);
	if (layer->lib->archive_read_open(layer->tar, layer, NULL, feed_tar, NULL) < ARCHIVE_WARN)
		return tar_failure(layer, err);
	return 0;
}

int layer_open(const struct layer_source *source, struct layer **ret_layer,
               struct resoluto_err *err)
{
	CLEANUP(layer_close) struct layer *layer = calloc(1, sizeof(*layer));
	int r;

	if (!layer)
		return resoluto_fail(err, -ENOMEM, "open the layer");
	r = archive_calls_load(&layer->lib, err);
	if (r < 0)
		return r;
	layer->number = source->number;
	layer->hash = source->hash;
	layer->caller = source->caller;
	digest_begin(&layer->digest);
	if (open_packed(layer, source) < ARCHIVE_WARN) {
		r = layer->packed ? packed_failure(layer) : -ENOMEM;
		return resoluto_fail(err, r, "%s",
		                     layer->packed ? layer->source_err.text : "open the layer");
	}
	r = open_tar(layer, err);
	if (r < 0)
		return r;
	*ret_layer = mem_take(&layer);
	return 0;
}

void layer_close(struct layer **layer)
{
	if (!*layer)
		return;
	if ((*layer)->tar)
		(void) (*layer)->lib->archive_read_free((*layer)->tar);
	if ((*layer)->packed)
		(void) (*layer)->lib->archive_read_free((*layer)->packed);
	free(*layer);
	*layer = NULL;
}

uint64_t layer_packed_bytes(const struct layer *layer)
{
	la_int64_t n = layer->lib->archive_filter_bytes(layer->packed, -1);

	return n > 0 ? (uint64_t) n : 0;
}

static int type_of(const struct archive_calls *lib, struct archive_entry *entry, const char *path,
                   enum tree_type *ret_type, struct resoluto_err *err)
{
	if (lib->archive_entry_hardlink(entry)) {
		*ret_type = TREE_HARDLINK;
		return 0;
	}
	switch (lib->archive_entry_filetype(entry)) {
	case AE_IFREG:
		*ret_type = TREE_FILE;
		return 0;
	case AE_IFDIR:
		*ret_type = TREE_DIR;
		return 0;
	case AE_IFLNK:
		*ret_type = TREE_SYMLINK;
		return 0;
	case AE_IFIFO:
		*ret_type = TREE_FIFO;
		return 0;
	case AE_IFCHR:
	case AE_IFBLK:
		*ret_type = TREE_DEVICE;
		return 0;
	}
	return resoluto_fail(err, -EBADMSG, "member '%s' is of no known type",
	                     text_clean(path).text);
}

static int take_xattrs(const struct archive_calls *lib, struct archive_entry *entry,
                       const char *path, struct tree_xattr **ret_xattrs, uint64_t *dropped,
                       struct resoluto_err *err)
{
	CLEANUP(tree_xattrs_free) struct tree_xattr *xattrs = NULL;
	size_t count = 0, bytes = 0, size;
	const void *value;
	const char *name;

	(void) lib->archive_entry_xattr_reset(entry);
	while (lib->archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK) {
		struct tree_xattr *xattr;
		bool is_known = false;

		if (!name || !tree_xattr_is_kept(name)) {
			*dropped += 1;
			continue;
		}
		/* libarchive's own writer says each twice. */
		for (xattr = xattrs; xattr && !is_known; xattr = xattr->next)
			is_known = strcmp(xattr->name, name) == 0;
		if (is_known)
			continue;
		bytes += strlen(name) + size;
		if (++count > IMAGE_XATTRS_MAX || bytes > IMAGE_XATTR_BYTES_MAX ||
		    strlen(name) > IMAGE_NAME_MAX)
			return resoluto_fail(err, -EBADMSG,
			                     "member '%s' has more extended attributes than "
			                     "IMAGE_XATTRS_MAX (64, 64 KiB)",
			                     text_clean(path).text);
		xattr = tree_xattr_new(name, value, size);
		if (!xattr)
			return resoluto_fail(err, -ENOMEM, "keep extended attributes");
		xattr->next = xattrs;
		xattrs = xattr;
	}
	*ret_xattrs = mem_take(&xattrs);
	return 0;
}

static int fill_member(struct layer *layer, struct archive_entry *entry,
                       struct tree_member *ret_member, uint64_t *dropped, struct resoluto_err *err)
{
	const char *path = layer->lib->archive_entry_pathname(entry);
	struct tree_member member = { .layer = layer->number, .ordinal = layer->ordinal };
	int r;

	if (!path)
		return resoluto_fail(err, -EBADMSG, "member %u has a name that cannot be read",
		                     layer->ordinal);
	member.path = path;
	r = type_of(layer->lib, entry, path, &member.type, err);
	if (r < 0)
		return r;
	member.mode = (uint16_t) (layer->lib->archive_entry_perm(entry) & 07777);
	member.uid = layer->lib->archive_entry_uid(entry);
	member.gid = layer->lib->archive_entry_gid(entry);
	member.mtime = layer->lib->archive_entry_mtime(entry);
	if (member.type == TREE_FILE) {
		if (layer->lib->archive_entry_size(entry) < 0)
			return resoluto_fail(err, -EBADMSG, "member '%s' has a negative size",
			                     text_clean(path).text);
		member.size = (uint64_t) layer->lib->archive_entry_size(entry);
	}
	if (member.type == TREE_HARDLINK)
		member.target = layer->lib->archive_entry_hardlink(entry);
	else if (member.type == TREE_SYMLINK)
		member.target = layer->lib->archive_entry_symlink(entry);
	if (member.type != TREE_HARDLINK && member.type != TREE_DEVICE)
		r = take_xattrs(layer->lib, entry, path, &member.xattrs, dropped, err);
	if (r < 0)
		return r;
	*ret_member = member;
	return 1;
}

int layer_next(struct layer *layer, struct tree_member *ret_member, uint64_t *dropped,
               struct resoluto_err *err)
{
	struct archive_entry *entry;
	int r = layer->lib->archive_read_next_header(layer->tar, &entry);

	if (r == ARCHIVE_EOF)
		return layer->failure < 0 ? tar_failure(layer, err) : 0;
	if (r < ARCHIVE_WARN)
		return tar_failure(layer, err);
	r = fill_member(layer, entry, ret_member, dropped, err);
	layer->ordinal++;
	return r;
}

ssize_t layer_read(struct layer *layer, void *bytes, size_t cap, struct resoluto_err *err)
{
	la_ssize_t n = layer->lib->archive_read_data(layer->tar, bytes, cap);

	return n < 0 ? tar_failure(layer, err) : (ssize_t) n;
}

int layer_finish(struct layer *layer, char ret_digest[DIGEST_SIZE], struct resoluto_err *err)
{
	const void *bytes;
	ssize_t n;

	/* Behind the end mark there may be more blocks; they belong to the digest. */
	while ((n = next_block(layer, &bytes)) > 0)
		;
	if (n < 0) {
		if (err)
			*err = layer->source_err;
		return (int) n;
	}
	if (ret_digest)
		digest_end(&layer->digest, ret_digest);
	return 0;
}
