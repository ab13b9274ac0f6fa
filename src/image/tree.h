/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * tree.h - the file tree that an image's layers make when laid one over the other, without the
 * contents of its files.  Pure: nothing is ever created on the host's file system.
 *
 * A node is a name in a directory, an inode what it names: hard links are nodes that share one.
 * A file's inode says where its bytes are: member `ordinal` of layer `layer`.
 *
 * The rules are those of the OCI image specification (layer.md, "Changeset"):
 *   - a member replaces what a lower layer has under its name; a directory over a directory takes its
 *     attributes and keeps what is beneath;
 *   - ".wh.NAME" removes NAME, ".wh..wh..opq" all that is beneath its directory, both only of lower
 *     layers, wherever in the layer they stand;
 *   - a parent that is a symbolic link is followed inside the tree, and cannot leave it;
 *   - a parent that no layer has is made, root's and 0755.
 *
 * Every name is hostile: absolute names, "..", devices and what is over a limit are -EBADMSG.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "resoluto/err.h"

enum tree_type {
	TREE_DIR,
	TREE_FILE,
	TREE_SYMLINK,
	TREE_FIFO,
	TREE_HARDLINK, /* only in members: names an inode that is there */
	TREE_DEVICE,   /* only in members: never in the tree */
};

struct tree_xattr {
	struct tree_xattr *next;
	char *name; /* in the same allocation as the struct, like value */
	char *value;
	size_t value_len;
};

struct tree_node;

struct tree_inode {
	enum tree_type type;
	uint16_t mode; /* 07777 */
	uint32_t uid, gid;
	uint32_t mtime; /* seconds since the epoch, what squashfs can hold */
	uint64_t size;
	char *target;              /* owned: of a symbolic link */
	struct tree_xattr *xattrs; /* owned */
	uint32_t layer, ordinal;   /* where the bytes of a file are */
	uint32_t links;            /* nodes that name it */
	struct tree_node *first;   /* the node it is written under; set by who writes */
};

struct tree_node {
	const char *name; /* first member: the key of its parent's names; "" for the root */
	struct tree_node *parent, *first_child, *last_child, *prev, *next;
	void *names; /* of a directory: its children by name (tsearch) */
	struct tree_inode *inode;
	uint32_t layer;    /* that last said something about this name */
	uint16_t depth;    /* 0 for the root */
	uint16_t path_len; /* bytes of its path */
};

struct tree {
	struct tree_node *root;
	size_t node_count;
	uint64_t member_count; /* added so far, all layers */
	uint64_t file_bytes;   /* sizes of all files added so far */
	uint64_t skipped_devices;
	uint64_t skipped_xattrs; /* that a guest must not or cannot see */
};

/* One member of a layer. */
struct tree_member {
	const char *path;
	enum tree_type type;
	uint16_t mode;
	int64_t uid, gid, mtime;
	uint64_t size;
	const char *target;        /* of symbolic and hard links */
	struct tree_xattr *xattrs; /* tree_add takes them and leaves NULL */
	uint32_t layer, ordinal;
};

int tree_init(struct tree *tree);
void tree_done(struct tree *tree);

/* Apply one member; with whiteouts, names that begin with ".wh." are no files. */
int tree_add(struct tree *tree, struct tree_member *member, bool whiteouts,
             struct resoluto_err *err);
/* A directory that the image promises to have, with its parents: made like those that no layer has, behind links too.
 * -EBADMSG: it cannot be there, since something else is in the way. */
int tree_make_dir(struct tree *tree, const char *path, uint32_t layer, struct resoluto_err *err);
/* The further name of an inode that is in the tree already: parent is a directory. */
int tree_link(struct tree *tree, struct tree_node *parent, const char *name,
              struct tree_inode *inode, struct resoluto_err *err);

/* Without a leading '/'; the root is "".  ret_path has room for IMAGE_PATH_MAX + 1 bytes. */
void tree_path(const struct tree_node *node, char *ret_path);
/* The node after `node`, parents before children; NULL behind the last.  Start with tree->root. */
struct tree_node *tree_next(const struct tree_node *node);
/* A child by name, NULL if there is none. */
struct tree_node *tree_child(const struct tree_node *dir, const char *name);

/* May a guest have an extended attribute of this name?  user.* and security.capability; not what
 * overlayfs would take as an order. */
bool tree_xattr_is_kept(const char *name);
/* NULL when out of memory. */
struct tree_xattr *tree_xattr_new(const char *name, const void *value, size_t value_len);
void tree_xattrs_free(struct tree_xattr **xattrs); /* a cleanup function */
