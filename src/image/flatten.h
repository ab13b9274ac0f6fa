/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * flatten.h - the layers of an image as one tar stream, as if they had been unpacked one over the other.
 *
 * Two passes.  The first reads all layers and keeps the merged tree (tree.h), no contents.  The second
 * writes the stream: first everything that has no contents, parents before children; then, layer by
 * layer, the contents of the files that won; then the hard links.  So nothing is ever unpacked on the
 * host: no root is needed, and owners, modes and extended attributes are data all the way.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/caller.h"
#include "image/tree.h"
#include "resoluto/err.h"

struct flatten_sink {
	/* Accept all len bytes.  0, or a negative errno value and its text, which end the work. */
	int (*write)(void *ctx, const void *bytes, size_t len, struct resoluto_err *err);
	void *ctx;
};

struct flatten_layer {
	int fd; /* a regular file, borrowed; -1: the bytes below */
	const void *bytes;
	size_t len;
	uint64_t packed_size;
	char name[96];       /* for messages: "layer 2 of 5 (sha256:...)" */
	const char *diff_id; /* what the unpacked layer must have; NULL: unknown */
};

struct flatten_options {
	const struct flatten_layer *layers; /* lowest first */
	size_t layer_count;
	const char *workdir; /* absolute: made where no layer has it; NULL: none */
	bool whiteouts;      /* they are OCI layers, not a plain tar */
	bool any_filter;     /* layer.h */
	bool may_change;     /* somebody else may write to the files: compare both passes */
	const struct caller *caller;
};

struct flatten_stats {
	uint64_t files, file_bytes, skipped_devices, skipped_xattrs;
};

int flatten(const struct flatten_options *options, const struct flatten_sink *sink,
            struct flatten_stats *ret_stats, struct resoluto_err *err);

/* -- for who has a tree of another origin (rootdir.h) -- */

struct flatten_writer {
	const struct flatten_sink *sink;
	const struct caller *caller;
	uint64_t done, told, total; /* bytes of file contents */
};

/* All but the files with contents; sets inode->first and writer->total. */
int flatten_write_tree(struct flatten_writer *writer, const struct tree *tree,
                       struct resoluto_err *err);
/* Header of a file; its contents follow, inode->size bytes, then flatten_write_padding(). */
int flatten_write_header(struct flatten_writer *writer, const struct tree_inode *inode,
                         struct resoluto_err *err);
int flatten_write_bytes(struct flatten_writer *writer, const void *bytes, size_t len,
                        struct resoluto_err *err);
int flatten_write_padding(struct flatten_writer *writer, uint64_t size, struct resoluto_err *err);
/* The hard links, and the end of the archive. */
int flatten_write_end(struct flatten_writer *writer, const struct tree *tree,
                      struct resoluto_err *err);
/* The files with contents in the order of (layer, ordinal).  *ret_inodes: free(). */
int flatten_sorted_files(const struct tree *tree, struct tree_inode ***ret_inodes,
                         size_t *ret_count);
/* Is what came out of the tree a container archive rather than a root file system?  -EINVAL and advice. */
int flatten_check_root(const struct tree *tree, struct resoluto_err *err);
