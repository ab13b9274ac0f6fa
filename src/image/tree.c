/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image/bounds.h"
#include "image/text.h"
#include "image/tree.h"

enum {
	IMPLICIT_MODE = 0755,
	WALK_SIZE = 2 * (IMAGE_PATH_MAX + 1) +
	            1, /* a symbolic link's target, '/', what is left to walk */
};

#define REFUSE(err, path, why) \
	resoluto_fail(err, -EBADMSG, "member '%s' %s", text_clean(path).text, why)

/* -- nodes -- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *) a, *(const char *const *) b);
}

struct tree_node *tree_child(const struct tree_node *dir, const char *name)
{
	void *found = tfind(&name, &dir->names, by_name);

	return found ? *(struct tree_node **) found : NULL;
}

static void inode_unlink(struct tree_inode *inode)
{
	if (--inode->links > 0)
		return;
	free(inode->target);
	tree_xattrs_free(&inode->xattrs);
	free(inode);
}

/* Takes a link of inode, also when it fails. */
static int node_new(struct tree *tree, struct tree_node *parent, const char *name,
                    struct tree_inode *inode, uint32_t layer, struct tree_node **ret_node)
{
	size_t len = strlen(name);
	struct tree_node *node = calloc(1, sizeof(*node) + len + 1);
	char *own = node ? (char *) (node + 1) : NULL;

	if (!node) {
		inode_unlink(inode);
		return -ENOMEM;
	}
	memcpy(own, name, len + 1);
	node->name = own;
	node->inode = inode;
	node->layer = layer;
	node->parent = parent;
	if (parent) {
		if (!tsearch(node, &parent->names, by_name)) {
			inode_unlink(inode);
			free(node);
			return -ENOMEM;
		}
		node->depth = (uint16_t) (parent->depth + 1);
		node->path_len = (uint16_t) (parent->path_len + (parent->depth > 0) + len);
		node->prev = parent->last_child;
		*(parent->last_child ? &parent->last_child->next : &parent->first_child) = node;
		parent->last_child = node;
	}
	tree->node_count++;
	*ret_node = node;
	return 0;
}

static void node_detach(struct tree_node *node)
{
	struct tree_node *parent = node->parent;

	if (!parent)
		return;
	(void) tdelete(node, &parent->names, by_name);
	*(node->prev ? &node->prev->next : &parent->first_child) = node->next;
	*(node->next ? &node->next->prev : &parent->last_child) = node->prev;
}

/* Remove node and all beneath it.  As deep as the tree: bounded by IMAGE_DEPTH_MAX. */
static void node_remove(struct tree *tree, struct tree_node *node)
{
	while (node->first_child)
		node_remove(tree, node->first_child);
	node_detach(node);
	inode_unlink(node->inode);
	free(node);
	tree->node_count--;
}

/* Remove what layers below `layer` have at node and beneath. */
static void remove_lower(struct tree *tree, struct tree_node *node, uint32_t layer)
{
	struct tree_node *child = node->first_child;

	while (child) {
		struct tree_node *next = child->next;

		remove_lower(tree, child, layer);
		child = next;
	}
	if (node->parent && node->layer < layer && !node->first_child)
		node_remove(tree, node);
}

static struct tree_inode *inode_new(enum tree_type type, uint16_t mode)
{
	struct tree_inode *inode = calloc(1, sizeof(*inode));

	if (!inode)
		return NULL;
	inode->type = type;
	inode->mode = mode;
	inode->links = 1;
	return inode;
}

int tree_init(struct tree *tree)
{
	struct tree_inode *inode = inode_new(TREE_DIR, IMPLICIT_MODE);

	*tree = (struct tree){ 0 };
	return inode ? node_new(tree, NULL, "", inode, 0, &tree->root) : -ENOMEM;
}

void tree_done(struct tree *tree)
{
	if (tree->root)
		node_remove(tree, tree->root);
	*tree = (struct tree){ 0 };
}

struct tree_node *tree_next(const struct tree_node *node)
{
	if (node->first_child)
		return node->first_child;
	while (node && !node->next)
		node = node->parent;
	return node ? node->next : NULL;
}

void tree_path(const struct tree_node *node, char *ret_path)
{
	char *at = ret_path + node->path_len;

	*at = '\0';
	for (; node->parent; node = node->parent) {
		size_t len = strlen(node->name);

		at -= len;
		memcpy(at, node->name, len);
		if (node->depth > 1)
			*--at = '/';
	}
}

/* -- extended attributes -- */

bool tree_xattr_is_kept(const char *name)
{
	if (strcmp(name, "security.capability") == 0)
		return true;
	return strncmp(name, "user.", 5) == 0 && name[5] && strncmp(name, "user.overlay.", 13) != 0;
}

struct tree_xattr *tree_xattr_new(const char *name, const void *value, size_t value_len)
{
	size_t name_size = strlen(name) + 1;
	struct tree_xattr *xattr = calloc(1, sizeof(*xattr) + name_size + value_len);

	if (!xattr)
		return NULL;
	xattr->name = (char *) (xattr + 1);
	xattr->value = xattr->name + name_size;
	xattr->value_len = value_len;
	memcpy(xattr->name, name, name_size);
	if (value_len > 0)
		memcpy(xattr->value, value, value_len);
	return xattr;
}

void tree_xattrs_free(struct tree_xattr **xattrs)
{
	while (*xattrs) {
		struct tree_xattr *next = (*xattrs)->next;

		free(*xattrs);
		*xattrs = next;
	}
}

/* -- names -- */

/* Take the next component off *rest.  Returns its length, 0 at the end, -ENAMETOOLONG. */
static int next_component(const char **rest, char ret_name[IMAGE_NAME_MAX + 1])
{
	size_t n;

	*rest += strspn(*rest, "/");
	n = strcspn(*rest, "/");
	if (n > IMAGE_NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(ret_name, *rest, n);
	ret_name[n] = '\0';
	*rest += n;
	return (int) n;
}

/* The path without empty and "." components; refuse what is absolute, climbs, or is too long. */
static int clean_path(const char *path, char ret_path[IMAGE_PATH_MAX + 1], struct resoluto_err *err)
{
	const char *rest = path;
	char name[IMAGE_NAME_MAX + 1];
	size_t used = 0;
	int n;

	if (strlen(path) > IMAGE_PATH_MAX)
		return REFUSE(err, path, "has a name longer than IMAGE_PATH_MAX (4095 bytes)");
	if (path[0] == '/' && path[strspn(path, "/")])
		return REFUSE(err, path, "has an absolute name");
	while ((n = next_component(&rest, name)) > 0) {
		if (strcmp(name, ".") == 0)
			continue;
		if (strcmp(name, "..") == 0)
			return REFUSE(err, path, "climbs with '..'");
		if (used > 0)
			ret_path[used++] = '/';
		memcpy(ret_path + used, name, (size_t) n);
		used += (size_t) n;
	}
	if (n < 0)
		return REFUSE(err, path, "has a component longer than IMAGE_NAME_MAX (255 bytes)");
	ret_path[used] = '\0';
	return 0;
}

static int check_room(const struct tree *tree, const struct tree_node *parent, const char *name,
                      struct resoluto_err *err)
{
	size_t path_len = parent->path_len + (parent->depth > 0) + strlen(name);

	if (tree->node_count >= IMAGE_NODES_MAX)
		return resoluto_fail(err, -EBADMSG,
		                     "the image has more files than IMAGE_NODES_MAX (%d)",
		                     IMAGE_NODES_MAX);
	if (parent->depth + 1 > IMAGE_DEPTH_MAX)
		return REFUSE(err, name, "lies deeper than IMAGE_DEPTH_MAX (1024 directories)");
	if (path_len > IMAGE_PATH_MAX)
		return REFUSE(err, name, "ends a path longer than IMAGE_PATH_MAX (4095 bytes)");
	return 0;
}

/* -- the way to a member's parent -- */

struct walk {
	struct tree *tree;
	struct tree_node *at;
	const char *path; /* of the member, for messages */
	uint32_t layer;
	bool make; /* what is missing */
	unsigned symlinks;
	const char *rest; /* to walk; points into buffer after the first symbolic link */
	char buffer[WALK_SIZE];
};

static int make_implicit(struct walk *walk, const char *name, struct tree_node **ret_node,
                         struct resoluto_err *err)
{
	struct tree_inode *inode;
	int r;

	if (!walk->make)
		return -ENOENT;
	r = check_room(walk->tree, walk->at, name, err);
	if (r < 0)
		return r;
	inode = inode_new(TREE_DIR, IMPLICIT_MODE);
	r = inode ? node_new(walk->tree, walk->at, name, inode, walk->layer, ret_node) : -ENOMEM;
	return r < 0 ? resoluto_fail(err, r, "keep the image's tree") : 0;
}

static int follow_symlink(struct walk *walk, const struct tree_node *link, struct resoluto_err *err)
{
	const char *target = link->inode->target;
	size_t target_len = strlen(target), rest_len = strlen(walk->rest);

	if (++walk->symlinks > IMAGE_SYMLINKS_MAX)
		return REFUSE(err, walk->path,
		              "lies behind more than IMAGE_SYMLINKS_MAX (40) symbolic links");
	if (target_len + 1 + rest_len + 1 > sizeof(walk->buffer))
		return REFUSE(err, walk->path, "lies behind symbolic links that are too long");
	memmove(walk->buffer + target_len + 1, walk->rest, rest_len + 1);
	memcpy(walk->buffer, target, target_len);
	walk->buffer[target_len] = '/';
	walk->rest = walk->buffer;
	if (target[0] == '/')
		walk->at = walk->tree->root;
	return 0;
}

static int walk_step(struct walk *walk, const char *name, struct resoluto_err *err)
{
	struct tree_node *child;
	int r;

	if (strcmp(name, ".") == 0)
		return 0;
	if (strcmp(name, "..") == 0) { /* of a link's target; the root's parent is the root */
		walk->at = walk->at->parent ? walk->at->parent : walk->at;
		return 0;
	}
	child = tree_child(walk->at, name);
	if (!child) {
		r = make_implicit(walk, name, &child, err);
		if (r < 0)
			return r;
	}
	if (child->inode->type == TREE_SYMLINK)
		return follow_symlink(walk, child, err);
	if (child->inode->type != TREE_DIR)
		return walk->make ? REFUSE(err, walk->path, "lies beneath what is no directory")
		                  : -ENOENT;
	walk->at = child;
	return 0;
}

/* From a clean path to the directory that holds its last component.  -ENOENT without a text: a parent
 * is missing and make is off. */
static int find_parent(struct tree *tree, const char *path, uint32_t layer, bool make,
                       struct tree_node **ret_dir, const char **ret_name, struct resoluto_err *err)
{
	struct walk walk = { .tree = tree,
		             .at = tree->root,
		             .path = path,
		             .layer = layer,
		             .make = make };
	const char *slash = strrchr(path, '/');
	size_t dir_len = slash ? (size_t) (slash - path) : 0;
	char name[IMAGE_NAME_MAX + 1];
	int n, r;

	memcpy(walk.buffer, path, dir_len);
	walk.buffer[dir_len] = '\0';
	walk.rest = walk.buffer;
	while ((n = next_component(&walk.rest, name)) > 0) {
		r = walk_step(&walk, name, err);
		if (r < 0)
			return r;
	}
	if (n < 0)
		return REFUSE(err, path,
		              "lies behind a symbolic link with a component that is too long");
	*ret_dir = walk.at;
	*ret_name = slash ? slash + 1 : path;
	return 0;
}

/* The last component is on the way, too: what is looked for in it is itself. */
int tree_make_dir(struct tree *tree, const char *path, uint32_t layer, struct resoluto_err *err)
{
	char clean[IMAGE_PATH_MAX + 1 + sizeof("/.")];
	struct tree_node *dir;
	const char *name;
	int r = clean_path(path + strspn(path, "/"), clean, err);

	if (r < 0)
		return r;
	memcpy(clean + strlen(clean), "/.", sizeof("/."));
	return find_parent(tree, clean, layer, true, &dir, &name, err);
}

/* -- members -- */

static int check_owner(const struct tree_member *member, struct resoluto_err *err)
{
	if (member->uid < 0 || member->uid > UINT32_MAX - 1 || member->gid < 0 ||
	    member->gid > UINT32_MAX - 1)
		return REFUSE(err, member->path, "has an owner that no Linux knows");
	return 0;
}

static int check_size(struct tree *tree, const struct tree_member *member, struct resoluto_err *err)
{
	if (++tree->member_count > IMAGE_MEMBERS_MAX)
		return resoluto_fail(err, -EBADMSG,
		                     "the layers have more members than IMAGE_MEMBERS_MAX (%d)",
		                     IMAGE_MEMBERS_MAX);
	if (member->type != TREE_FILE)
		return 0;
	if (member->size > IMAGE_BYTES_MAX || tree->file_bytes > IMAGE_BYTES_MAX - member->size)
		return resoluto_fail(err, -EBADMSG,
		                     "the files unpack to more than IMAGE_BYTES_MAX (%llu GiB)",
		                     (unsigned long long) (IMAGE_BYTES_MAX >> 30));
	tree->file_bytes += member->size;
	return 0;
}

static int check_link_target(const struct tree_member *member, struct resoluto_err *err)
{
	size_t len = member->target ? strlen(member->target) : 0;

	if (member->type != TREE_SYMLINK)
		return 0;
	if (len == 0 || len > IMAGE_PATH_MAX)
		return REFUSE(err, member->path,
		              "is a symbolic link with no target or one over 4095 bytes");
	return 0;
}

/* Everything but the type of inode, which stays. */
static void set_attributes(struct tree_inode *inode, struct tree_member *member)
{
	inode->mode = member->mode & 07777;
	inode->uid = (uint32_t) member->uid;
	inode->gid = (uint32_t) member->gid;
	inode->mtime = member->mtime < 0            ? 0
	               : member->mtime > UINT32_MAX ? UINT32_MAX
	                                            : (uint32_t) member->mtime;
	inode->size = member->type == TREE_FILE ? member->size : 0;
	inode->layer = member->layer;
	inode->ordinal = member->ordinal;
	tree_xattrs_free(&inode->xattrs);
	inode->xattrs = member->xattrs;
	member->xattrs = NULL;
}

static int add_new(struct tree *tree, struct tree_node *dir, const char *name,
                   struct tree_member *member, struct resoluto_err *err)
{
	struct tree_inode *inode = inode_new(member->type, 0);
	struct tree_node *node;
	int r;

	if (!inode)
		return resoluto_fail(err, -ENOMEM, "keep the image's tree");
	set_attributes(inode, member);
	if (member->type == TREE_SYMLINK) {
		inode->target = strdup(member->target);
		if (!inode->target) {
			inode_unlink(inode);
			return resoluto_fail(err, -ENOMEM, "keep the image's tree");
		}
	}
	r = node_new(tree, dir, name, inode, member->layer, &node);
	return r < 0 ? resoluto_fail(err, r, "keep the image's tree") : 0;
}

static int find_link_target(struct tree *tree, const struct tree_member *member,
                            struct tree_node **ret_target, struct resoluto_err *err)
{
	char path[IMAGE_PATH_MAX + 1];
	struct tree_node *dir;
	const char *name;
	int r;

	r = clean_path(member->target ? member->target : "", path, err);
	if (r < 0)
		return resoluto_fail_in(err, r, "hard link '%s'", text_clean(member->path).text);
	r = find_parent(tree, path, member->layer, false, &dir, &name, err);
	if (r < 0 && r != -ENOENT)
		return r;
	*ret_target = r == 0 && path[0] ? tree_child(dir, name) : NULL;
	if (!*ret_target)
		return REFUSE(err, member->path, "is a hard link to a file that is not there");
	if ((*ret_target)->inode->type == TREE_DIR)
		return REFUSE(err, member->path, "is a hard link to a directory");
	return 0;
}

static int add_hardlink(struct tree *tree, struct tree_node *dir, const char *name,
                        const struct tree_member *member, struct resoluto_err *err)
{
	struct tree_node *target = NULL, *old = tree_child(dir, name), *node;
	struct tree_inode *inode;
	int r;

	r = find_link_target(tree, member, &target, err);
	if (r < 0)
		return r;
	if (target == old) {
		old->layer = member->layer;
		return 0;
	}
	/* The target may lie beneath what this member replaces: hold the inode. */
	inode = target->inode;
	inode->links++;
	if (old)
		node_remove(tree, old);
	r = node_new(tree, dir, name, inode, member->layer, &node);
	return r < 0 ? resoluto_fail(err, r, "keep the image's tree") : 0;
}

/* Devices beneath /dev are left out, since the guest's kernel makes its own; others are an attack. */
static int skip_device(struct tree *tree, const struct tree_node *dir, const char *path,
                       struct resoluto_err *err)
{
	while (dir->depth > 1)
		dir = dir->parent;
	if (dir->depth != 1 || strcmp(dir->name, "dev") != 0)
		return REFUSE(err, path, "is a device node outside of /dev");
	tree->skipped_devices++;
	return 0;
}

static int apply_whiteout(struct tree *tree, struct tree_node *dir, const char *path,
                          const char *name, uint32_t layer, struct resoluto_err *err)
{
	struct tree_node *hidden;

	if (strcmp(name, ".wh..wh..opq") == 0) {
		for (struct tree_node *child = dir->first_child, *next; child; child = next) {
			next = child->next;
			remove_lower(tree, child, layer);
		}
		return 0;
	}
	if (strncmp(name, ".wh..wh.", 8) == 0)
		return 0; /* bookkeeping of AUFS */
	name += 4;
	if (!name[0] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return REFUSE(err, path, "is a whiteout without a name");
	hidden = tree_child(dir, name);
	if (hidden)
		remove_lower(tree, hidden, layer);
	return 0;
}

static int add_named(struct tree *tree, struct tree_node *dir, const char *name,
                     struct tree_member *member, struct resoluto_err *err)
{
	struct tree_node *old = tree_child(dir, name);
	int r;

	if (old && member->type == TREE_DIR && old->inode->type == TREE_DIR) {
		set_attributes(old->inode, member);
		old->layer = member->layer;
		return 0;
	}
	r = check_room(tree, dir, name, err);
	if (r < 0)
		return r;
	if (member->type == TREE_HARDLINK)
		return add_hardlink(tree, dir, name, member, err);
	if (old)
		node_remove(tree, old);
	if (member->type == TREE_DEVICE)
		return skip_device(tree, dir, member->path, err);
	return add_new(tree, dir, name, member, err);
}

/* Beneath a whiteout nothing can be: AUFS kept the data of its hard links in ".wh..wh.plnk/". */
static bool is_beneath_whiteout(const char *path)
{
	for (const char *slash; (slash = strchr(path, '/')); path = slash + 1) {
		if (strncmp(path, ".wh.", 4) == 0)
			return true;
	}
	return false;
}

static int add_root(struct tree *tree, struct tree_member *member, struct resoluto_err *err)
{
	if (member->type != TREE_DIR)
		return REFUSE(err, member->path, "replaces the root by what is no directory");
	set_attributes(tree->root->inode, member);
	return 0;
}

static int add_checked(struct tree *tree, struct tree_member *member, bool whiteouts,
                       struct resoluto_err *err)
{
	char path[IMAGE_PATH_MAX + 1];
	bool is_whiteout;
	struct tree_node *dir;
	const char *name, *slash;
	int r;

	r = clean_path(member->path, path, err);
	if (r < 0)
		return r;
	if (!path[0])
		return add_root(tree, member, err);
	if (whiteouts && is_beneath_whiteout(path))
		return 0;
	slash = strrchr(path, '/');
	is_whiteout = whiteouts && strncmp(slash ? slash + 1 : path, ".wh.", 4) == 0;
	r = find_parent(tree, path, member->layer, !is_whiteout, &dir, &name, err);
	if (is_whiteout && r == -ENOENT)
		return 0; /* nothing there to hide */
	if (r < 0)
		return r;
	if (is_whiteout)
		return apply_whiteout(tree, dir, path, name, member->layer, err);
	return add_named(tree, dir, name, member, err);
}

int tree_add(struct tree *tree, struct tree_member *member, bool whiteouts,
             struct resoluto_err *err)
{
	int r;

	r = check_size(tree, member, err);
	if (r == 0)
		r = check_owner(member, err);
	if (r == 0)
		r = check_link_target(member, err);
	if (r == 0)
		r = add_checked(tree, member, whiteouts, err);
	tree_xattrs_free(&member->xattrs);
	return r;
}

int tree_link(struct tree *tree, struct tree_node *parent, const char *name,
              struct tree_inode *inode, struct resoluto_err *err)
{
	struct tree_node *node;
	int r;

	r = check_room(tree, parent, name, err);
	if (r < 0)
		return r;
	inode->links++;
	r = node_new(tree, parent, name, inode, 0, &node);
	return r < 0 ? resoluto_fail(err, r, "keep the image's tree") : 0;
}
