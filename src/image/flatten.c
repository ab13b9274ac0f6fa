/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "image/digest.h"
#include "image/flatten.h"
#include "image/layer.h"
#include "image/bounds.h"
#include "image/pax.h"
#include "image/text.h"

enum {
	COPY_SIZE = 256 * 1024,      /* bytes of contents moved at once */
	PROGRESS_STEP = 1024 * 1024, /* bytes between two calls of progress */
};

/* -- writing -- */

static int write_member(struct flatten_writer *writer, const struct tree_node *node,
                        enum tree_type type, const char *target, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf head = BUF_INIT(PAX_HEADER_MAX);
	const struct tree_inode *inode = node->inode;
	char path[IMAGE_PATH_MAX + 1];
	int r;

	tree_path(node, path);
	r = pax_add_header(&head, &(struct pax_member){
					  .path = path,
					  .type = type,
					  .mode = inode->mode,
					  .uid = inode->uid,
					  .gid = inode->gid,
					  .mtime = inode->mtime,
					  .size = type == TREE_FILE ? inode->size : 0,
					  .target = target,
					  .xattrs = type == TREE_HARDLINK ? NULL : inode->xattrs,
				  });
	if (r < 0)
		return resoluto_fail(err, r, "describe member '%s'", text_clean(path).text);
	return writer->sink->write(writer->sink->ctx, head.data, head.len, err);
}

static bool has_contents(const struct tree_inode *inode)
{
	return inode->type == TREE_FILE && inode->size > 0;
}

int flatten_write_tree(struct flatten_writer *writer, const struct tree *tree,
                       struct resoluto_err *err)
{
	writer->total = 0;
	for (struct tree_node *node = tree->root; node; node = tree_next(node)) {
		struct tree_inode *inode = node->inode;
		int r;

		if (inode->first)
			continue;
		inode->first = node;
		if (has_contents(inode)) {
			writer->total += inode->size;
			continue;
		}
		r = write_member(writer, node, inode->type, inode->target, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int flatten_write_header(struct flatten_writer *writer, const struct tree_inode *inode,
                         struct resoluto_err *err)
{
	return write_member(writer, inode->first, TREE_FILE, NULL, err);
}

int flatten_write_bytes(struct flatten_writer *writer, const void *bytes, size_t len,
                        struct resoluto_err *err)
{
	writer->done += len;
	if (writer->done - writer->told >= PROGRESS_STEP) {
		writer->told = writer->done;
		caller_tell(writer->caller, "squashfs", writer->done, writer->total);
	}
	return writer->sink->write(writer->sink->ctx, bytes, len, err);
}

int flatten_write_padding(struct flatten_writer *writer, uint64_t size, struct resoluto_err *err)
{
	static const char zeros[PAX_BLOCK];
	unsigned len = pax_padding(size);

	return len > 0 ? writer->sink->write(writer->sink->ctx, zeros, len, err) : 0;
}

int flatten_write_end(struct flatten_writer *writer, const struct tree *tree,
                      struct resoluto_err *err)
{
	static const char zeros[PAX_END];
	char target[IMAGE_PATH_MAX + 1];

	for (struct tree_node *node = tree->root; node; node = tree_next(node)) {
		int r;

		if (node->inode->first == node)
			continue;
		tree_path(node->inode->first, target);
		r = write_member(writer, node, TREE_HARDLINK, target, err);
		if (r < 0)
			return r;
	}
	caller_tell(writer->caller, "squashfs", writer->done, writer->total);
	return writer->sink->write(writer->sink->ctx, zeros, sizeof(zeros), err);
}

static int by_place(const void *a, const void *b)
{
	const struct tree_inode *one = *(struct tree_inode *const *) a;
	const struct tree_inode *two = *(struct tree_inode *const *) b;

	if (one->layer != two->layer)
		return one->layer < two->layer ? -1 : 1;
	return one->ordinal < two->ordinal ? -1 : one->ordinal > two->ordinal;
}

int flatten_sorted_files(const struct tree *tree, struct tree_inode ***ret_inodes,
                         size_t *ret_count)
{
	struct tree_inode **inodes = calloc(tree->node_count + 1, sizeof(*inodes));
	size_t count = 0;

	if (!inodes)
		return -ENOMEM;
	for (struct tree_node *node = tree->root; node; node = tree_next(node)) {
		if (node->inode->first == node && has_contents(node->inode))
			inodes[count++] = node->inode;
	}
	qsort(inodes, count, sizeof(*inodes), by_place);
	*ret_inodes = inodes;
	*ret_count = count;
	return 0;
}

int flatten_check_root(const struct tree *tree, struct resoluto_err *err)
{
	bool is_docker = tree_child(tree->root, "manifest.json"),
	     is_oci = tree_child(tree->root, "oci-layout");

	if (tree_child(tree->root, "bin") || tree_child(tree->root, "usr") ||
	    (!is_docker && !is_oci))
		return 0;
	return resoluto_fail(
		err, -EINVAL, "this is an image archive, not a root file system: write %s",
		is_oci ? "oci-archive:FILE, or oci:DIR for a directory" : "docker-archive:FILE");
}

/* -- the two passes -- */

struct work {
	const struct flatten_options *options;
	struct tree tree;
	char (*digests)[DIGEST_SIZE]; /* owned: of the first pass, one per layer */
	uint64_t packed_before, packed_total, told;
};

static void work_done(struct work *work)
{
	tree_done(&work->tree);
	free(work->digests);
}

static int open_layer(struct work *work, size_t i, bool hash, struct layer **ret_layer,
                      struct resoluto_err *err)
{
	const struct flatten_layer *layer = &work->options->layers[i];
	struct layer_source source = { .fd = layer->fd,
		                       .bytes = layer->bytes,
		                       .len = layer->len,
		                       .any_filter = work->options->any_filter,
		                       .hash = hash,
		                       .caller = work->options->caller,
		                       .number = (uint32_t) i };

	if (layer->fd >= 0 && lseek(layer->fd, 0, SEEK_SET) < 0)
		return resoluto_fail(err, -errno, "seek");
	return layer_open(&source, ret_layer, err);
}

static void tell_reading(struct work *work, const struct layer *layer)
{
	uint64_t done = work->packed_before + layer_packed_bytes(layer);

	if (done - work->told < PROGRESS_STEP)
		return;
	work->told = done;
	caller_tell(work->options->caller, "flatten", done, work->packed_total);
}

static int check_digest(const struct flatten_layer *layer, const char *digest,
                        struct resoluto_err *err)
{
	if (!layer->diff_id || strcmp(layer->diff_id, digest) == 0)
		return 0;
	return resoluto_fail(err, -EBADMSG,
	                     "unpacks to %.19s..., but the image's configuration says %.19s...: it "
	                     "is corrupt or not this image's",
	                     digest, layer->diff_id);
}

static int check_expansion(const struct tree *tree, uint64_t packed, struct resoluto_err *err)
{
	/* Sparse members say a size that the stream does not have. */
	if (tree->file_bytes <= IMAGE_RATIO_FREE || tree->file_bytes / IMAGE_RATIO_MAX <= packed)
		return 0;
	return resoluto_fail(err, -EBADMSG,
	                     "holds sparse files of more than IMAGE_RATIO_MAX (%d) times its size: "
	                     "a decompression bomb",
	                     IMAGE_RATIO_MAX);
}

static int read_layer(struct work *work, size_t i, struct resoluto_err *err)
{
	CLEANUP(layer_close) struct layer *layer = NULL;
	struct tree_member member;
	int r;

	r = open_layer(work, i, true, &layer, err);
	while (r >= 0 && (r = layer_next(layer, &member, &work->tree.skipped_xattrs, err)) > 0) {
		r = tree_add(&work->tree, &member, work->options->whiteouts, err);
		tell_reading(work, layer);
	}
	if (r == 0)
		r = layer_finish(layer, work->digests[i], err);
	if (r < 0)
		return r;
	work->packed_before += layer_packed_bytes(layer);
	r = check_digest(&work->options->layers[i], work->digests[i], err);
	return r < 0 ? r : check_expansion(&work->tree, work->packed_before, err);
}

static int read_layers(struct work *work, struct resoluto_err *err)
{
	int r = tree_init(&work->tree);

	work->digests = calloc(work->options->layer_count + 1, sizeof(*work->digests));
	if (r < 0 || !work->digests)
		return resoluto_fail(err, -ENOMEM, "keep the image's tree");
	for (size_t i = 0; i < work->options->layer_count; i++)
		work->packed_total += work->options->layers[i].packed_size;
	for (size_t i = 0; i < work->options->layer_count; i++) {
		r = read_layer(work, i, err);
		if (r < 0)
			return resoluto_fail_in(err, r, "%s", work->options->layers[i].name);
	}
	return 0;
}

static int changed(const char *path, struct resoluto_err *err)
{
	return resoluto_fail(err, -EBADMSG, "member '%s' changed while it was read",
	                     text_clean(path).text);
}

static int copy_contents(struct flatten_writer *writer, struct layer *layer, const char *path,
                         uint64_t size, char *bytes, struct resoluto_err *err)
{
	uint64_t left = size;
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = layer_read(layer, bytes, COPY_SIZE, err)) != 0) {
		if (n < 0)
			return (int) n;
		if ((uint64_t) n > left)
			return changed(path, err);
		left -= (uint64_t) n;
		r = flatten_write_bytes(writer, bytes, (size_t) n, err);
	}
	/* A hole at the end of a sparse member. */
	if (left > 0)
		memset(bytes, 0, COPY_SIZE);
	while (r == 0 && left > 0) {
		size_t step = left < COPY_SIZE ? (size_t) left : COPY_SIZE;

		left -= step;
		r = flatten_write_bytes(writer, bytes, step, err);
	}
	return r < 0 ? r : flatten_write_padding(writer, size, err);
}

/* Write the files of one layer that won: wanted[0..count), in its order. */
static int write_layer(struct work *work, size_t i, struct flatten_writer *writer,
                       struct tree_inode **wanted, size_t count, char *bytes,
                       struct resoluto_err *err)
{
	CLEANUP(layer_close) struct layer *layer = NULL;
	char digest[DIGEST_SIZE];
	struct tree_member member;
	uint64_t dropped = 0;
	size_t next = 0;
	int r;

	r = open_layer(work, i, work->options->may_change, &layer, err);
	while (r >= 0 && (next < count || work->options->may_change)) {
		r = layer_next(layer, &member, &dropped, err);
		if (r <= 0)
			break;
		tree_xattrs_free(&member.xattrs);
		if (next >= count || member.ordinal != wanted[next]->ordinal)
			continue;
		if (member.type != TREE_FILE || member.size != wanted[next]->size)
			return changed(member.path, err);
		r = flatten_write_header(writer, wanted[next], err);
		if (r == 0)
			r = copy_contents(writer, layer, member.path, member.size, bytes, err);
		next++;
	}
	if (r < 0)
		return r;
	if (next < count)
		return resoluto_fail(err, -EBADMSG, "it became shorter while it was read");
	if (!work->options->may_change)
		return 0;
	r = layer_finish(layer, digest, err);
	if (r == 0 && strcmp(digest, work->digests[i]) != 0)
		return resoluto_fail(err, -EBADMSG, "it changed while it was read");
	return r;
}

static int write_layers(struct work *work, struct flatten_writer *writer, struct resoluto_err *err)
{
	CLEANUP(mem_free) struct tree_inode **files = NULL;
	CLEANUP(mem_free) char *bytes = malloc(COPY_SIZE);
	size_t count = 0, from = 0;
	int r = flatten_sorted_files(&work->tree, &files, &count);

	if (r < 0 || !bytes)
		return resoluto_fail(err, -ENOMEM, "flatten the image");
	for (size_t i = 0; i < work->options->layer_count; i++) {
		size_t to = from;

		while (to < count && files[to]->layer == i)
			to++;
		if (to > from || work->options->may_change)
			r = write_layer(work, i, writer, files + from, to - from, bytes, err);
		if (r < 0)
			return resoluto_fail_in(err, r, "%s", work->options->layers[i].name);
		from = to;
	}
	return 0;
}

/* Not every builder puts it into a layer.  One that cannot be made is told by the run that starts in it. */
static int make_workdir(struct work *work, struct resoluto_err *err)
{
	struct resoluto_err why = { 0 };
	const char *workdir = work->options->workdir;
	const uint32_t top = (uint32_t) work->options->layer_count;
	int r = workdir ? tree_make_dir(&work->tree, workdir, top, &why) : 0;

	return r < 0 && r != -EBADMSG ? resoluto_fail(err, r, "%s", why.text) : 0;
}

int flatten(const struct flatten_options *options, const struct flatten_sink *sink,
            struct flatten_stats *ret_stats, struct resoluto_err *err)
{
	CLEANUP(layer_locale_end)
	struct layer_locale locale __attribute__((unused)) = layer_locale_begin();
	CLEANUP(work_done) struct work work = { .options = options };
	struct flatten_writer writer = { .sink = sink, .caller = options->caller };
	int r;

	r = read_layers(&work, err);
	if (r == 0)
		r = make_workdir(&work, err);
	if (r == 0 && !options->whiteouts)
		r = flatten_check_root(&work.tree, err);
	if (r == 0)
		r = flatten_write_tree(&writer, &work.tree, err);
	if (r == 0)
		r = write_layers(&work, &writer, err);
	if (r == 0)
		r = flatten_write_end(&writer, &work.tree, err);
	if (r < 0)
		return r;
	if (ret_stats)
		*ret_stats = (struct flatten_stats){ .files = work.tree.node_count,
			                             .file_bytes = writer.total,
			                             .skipped_devices = work.tree.skipped_devices,
			                             .skipped_xattrs = work.tree.skipped_xattrs };
	return 0;
}
