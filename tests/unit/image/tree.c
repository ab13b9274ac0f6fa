/* SPDX-License-Identifier: Apache-2.0 */
/* tree.c - layers laid one over the other: whiteouts, links, replaced names, hostile names. */
#include <errno.h>

#include "base/buf.h"
#include "check.h"
#include "image/bounds.h"
#include "image/tree.h"

/* Rows of tables leave out what they do not say. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

/* A member in short: 'd'ir, 'f'ile, 's'ymlink, 'h'ard link, 'p'ipe, 'c'haracter device. */
struct row {
	uint32_t layer;
	char type;
	const char *path, *target;
};

static enum tree_type type_of(char letter)
{
	switch (letter) {
	case 'd':
		return TREE_DIR;
	case 's':
		return TREE_SYMLINK;
	case 'h':
		return TREE_HARDLINK;
	case 'p':
		return TREE_FIFO;
	case 'c':
		return TREE_DEVICE;
	}
	return TREE_FILE;
}

static int add_row(struct tree *tree, const struct row *row, uint32_t ordinal,
                   struct resoluto_err *err)
{
	struct tree_member member = { .path = row->path,
		                      .type = type_of(row->type),
		                      .mode = 0640,
		                      .size = 1,
		                      .target = row->target,
		                      .layer = row->layer,
		                      .ordinal = ordinal };

	return tree_add(tree, &member, true, err);
}

/* "a/ a/b@2 a/c->x": all names, with the layer of a file's contents (and 'd' for links to one inode). */
static void show(const struct tree *tree, struct buf *ret_text)
{
	char path[IMAGE_PATH_MAX + 1];

	*ret_text = BUF_INIT(64 * 1024);
	for (struct tree_node *node = tree_next(tree->root); node; node = tree_next(node)) {
		const struct tree_inode *inode = node->inode;

		tree_path(node, path);
		buf_addf(ret_text, "%s%s", ret_text->len ? " " : "", path);
		if (inode->type == TREE_DIR)
			buf_add_str(ret_text, "/");
		else if (inode->type == TREE_SYMLINK)
			buf_addf(ret_text, "->%s", inode->target);
		else if (inode->type == TREE_FILE)
			buf_addf(ret_text, "@%u", inode->layer);
		if (inode->type != TREE_DIR && inode->links > 1)
			buf_addf(ret_text, "*%u", inode->links);
	}
}

static void check_tree(const struct row *rows, size_t count, const char *want)
{
	struct tree tree;
	struct buf text;

	CHECK(tree_init(&tree) == 0);
	for (size_t i = 0; i < count; i++) {
		struct resoluto_err err = { 0 };

		if (add_row(&tree, &rows[i], (uint32_t) i, &err) < 0)
			printf("# %s: %s\n", rows[i].path, err.text);
		CHECK(err.code == 0);
	}
	show(&tree, &text);
	CHECK_STR(text.data ? text.data : "", want);
	buf_done(&text);
	tree_done(&tree);
}

#define TREE(want, ...) \
	check_tree((const struct row[]){ __VA_ARGS__ }, \
	           sizeof((const struct row[]){ __VA_ARGS__ }) / sizeof(struct row), want)

static void check_refused(const struct row *rows, size_t count, const char *says)
{
	struct tree tree;
	struct resoluto_err err = { 0 };
	int r = 0;

	CHECK(tree_init(&tree) == 0);
	for (size_t i = 0; i < count; i++) {
		CHECK(r == 0);
		r = add_row(&tree, &rows[i], (uint32_t) i, &err);
	}
	printf("# %s\n", err.text);
	CHECK(r == -EBADMSG);
	CHECK(strstr(err.text, says));
	tree_done(&tree);
}

#define REFUSED(says, ...) \
	check_refused((const struct row[]){ __VA_ARGS__ }, \
	              sizeof((const struct row[]){ __VA_ARGS__ }) / sizeof(struct row), says)

static void lays_layers_over_each_other(void)
{
	TREE("a/ a/x@0 a/y@1 b@1", { 0, 'd', "a" }, { 0, 'f', "a/x" }, { 0, 'f', "b" },
	     { 1, 'f', "a/y" }, { 1, 'f', "b" });
}

static void makes_parents_that_no_layer_has(void)
{
	TREE("a/ a/b/ a/b/c@0", { 0, 'f', "a/b/c" });
}

static void cleans_names(void)
{
	TREE("a/ a/b@0", { 0, 'd', "./" }, { 0, 'd', "/" }, { 0, 'd', "./a/" },
	     { 0, 'f', "./a/.//b" });
}

static void whiteouts_hide_lower_layers_only(void)
{
	TREE("a/ a/new@1", { 0, 'd', "a" }, { 0, 'f', "a/old" }, { 1, 'f', "a/new" },
	     { 1, 'f', "a/.wh.old" }, { 1, 'f', "a/.wh.new" });
	TREE("k@0", { 0, 'd', "gone" }, { 0, 'f', "gone/x" }, { 0, 'd', "gone/y" }, { 0, 'f', "k" },
	     { 1, 'f', ".wh.gone" });
	/* Removed and made again in one layer, whiteout first or last. */
	TREE("a/ a/new@1", { 0, 'd', "a" }, { 0, 'f', "a/old" }, { 1, 'f', ".wh.a" },
	     { 1, 'd', "a" }, { 1, 'f', "a/new" });
	TREE("a/ a/new@1", { 0, 'd', "a" }, { 0, 'f', "a/old" }, { 1, 'd', "a" },
	     { 1, 'f', "a/new" }, { 1, 'f', ".wh.a" });
	/* Nothing there to hide, and no directory made for it. */
	TREE("k@0", { 0, 'f', "k" }, { 1, 'f', "no/where/.wh.x" }, { 1, 'f', "k/.wh.x" });
	/* It comes back in a third layer. */
	TREE("f@2", { 0, 'f', "f" }, { 1, 'f', ".wh.f" }, { 2, 'f', "f" });
}

static void opaque_directories_hide_lower_layers_only(void)
{
	TREE("a/ a/two@1", { 0, 'd', "a" }, { 0, 'f', "a/one" }, { 0, 'd', "a/sub" },
	     { 0, 'f', "a/sub/x" }, { 1, 'd', "a" }, { 1, 'f', "a/two" },
	     { 1, 'f', "a/.wh..wh..opq" });
	/* A directory that both layers have keeps what this one says. */
	TREE("a/ a/sub/ a/sub/new@1", { 0, 'd', "a/sub" }, { 0, 'f', "a/sub/old" }, { 1, 'd', "a" },
	     { 1, 'd', "a/sub" }, { 1, 'f', "a/sub/new" }, { 1, 'f', "a/.wh..wh..opq" });
	TREE("", { 0, 'f', "x" }, { 1, 'f', ".wh..wh..opq" });
}

static void passes_over_what_aufs_left(void)
{
	TREE("a@0", { 0, 'f', "a" }, { 1, 'd', ".wh..wh.plnk" }, { 1, 'f', ".wh..wh.plnk/12.34" },
	     { 1, 'f', ".wh..wh.aufs" });
}

static void kinds_replace_each_other(void)
{
	TREE("a@1", { 0, 'd', "a" }, { 0, 'f', "a/x" }, { 1, 'f', "a" });
	TREE("a/ a/x@1", { 0, 'f', "a" }, { 1, 'd', "a" }, { 1, 'f', "a/x" });
	TREE("d/ a/", { 0, 'd', "d" }, { 0, 's', "a", "d" }, { 1, 'd', "a" });
	TREE("a->b", { 0, 'd', "a" }, { 0, 'f', "a/x" }, { 1, 's', "a", "b" });
	TREE("a", { 0, 'f', "a" }, { 1, 'p', "a" });
}

static void hard_links_share_what_they_name(void)
{
	TREE("a@0*2 b@0*2", { 0, 'f', "a" }, { 0, 'h', "b", "a" });
	TREE("a@0*2 b@0*2", { 0, 'f', "a" }, { 1, 'h', "b", "./a" });
	/* The first name replaced above: the second keeps the old contents. */
	TREE("b@0 a@1", { 0, 'f', "a" }, { 0, 'h', "b", "a" }, { 1, 'f', "a" });
	TREE("b@0", { 0, 'f', "a" }, { 0, 'h', "b", "a" }, { 1, 'f', ".wh.a" });
	/* Onto itself, onto a lower file, and out of what it replaces. */
	TREE("a@0", { 0, 'f', "a" }, { 0, 'h', "a", "a" });
	TREE("a@0*2 b@0*2", { 0, 'f', "a" }, { 0, 'f', "b" }, { 1, 'h', "b", "a" });
	TREE("d@0", { 0, 'd', "d" }, { 0, 'f', "d/x" }, { 1, 'h', "d", "d/x" });
	TREE("s->x*2 t->x*2", { 0, 's', "s", "x" }, { 0, 'h', "t", "s" });
}

static void follows_links_to_parents_inside_the_tree(void)
{
	TREE("usr/ usr/lib/ usr/lib/x@1 lib->usr/lib", { 0, 'd', "usr/lib" },
	     { 0, 's', "lib", "usr/lib" }, { 1, 'f', "lib/x" });
	TREE("lib->/usr/lib usr/ usr/lib/ usr/lib/x@1", { 0, 's', "lib", "/usr/lib" },
	     { 1, 'f', "lib/x" });
	TREE("etc/ etc/passwd@1 a/ a/l->../../../../etc", { 0, 'd', "etc" }, { 0, 'd', "a" },
	     { 0, 's', "a/l", "../../../../etc" }, { 1, 'f', "a/l/passwd" });
	TREE("b/ a->b", { 0, 'd', "b" }, { 0, 'f', "b/x" }, { 0, 's', "a", "b" },
	     { 1, 'f', "a/.wh.x" });
}

static void refuses_hostile_names(void)
{
	REFUSED("absolute", { 0, 'f', "/etc/passwd" });
	REFUSED("absolute", { 0, 'f', "//etc" });
	REFUSED("climbs", { 0, 'f', "../x" });
	REFUSED("climbs", { 0, 'f', "a/../b" });
	REFUSED("climbs", { 0, 'f', "a/.." });
	REFUSED("absolute", { 0, 'f', "a" }, { 0, 'h', "b", "/a" });
	REFUSED("climbs", { 0, 'f', "a" }, { 0, 'h', "b", "../a" });
	REFUSED("not there", { 0, 'h', "b", "a" });
	REFUSED("not there", { 0, 'h', "b", "" });
	REFUSED("not there", { 0, 'f', "a" }, { 0, 'h', "b", "a/x" });
	REFUSED("directory", { 0, 'd', "a" }, { 0, 'h', "b", "a" });
	REFUSED("no directory", { 0, 'f', "a" }, { 0, 'f', "a/b" });
	REFUSED("no target", { 0, 's', "a", "" });
	REFUSED("root", { 0, 'f', "./" });
	REFUSED("root", { 0, 's', ".", "x" });
	REFUSED("without a name", { 0, 'f', ".wh." });
	REFUSED("without a name", { 0, 'd', "a" }, { 0, 'f', "a/.wh..." });
	REFUSED("IMAGE_SYMLINKS_MAX", { 0, 's', "a", "b" }, { 0, 's', "b", "a" },
	        { 0, 'f', "a/x" });
	/* A message stays one printable line. */
	REFUSED("a??[31m?b", { 0, 'f',
	                       "../a\n\033[31m\xff"
	                       "b" });
}

static void devices_only_in_dev_and_not_there(void)
{
	TREE("dev/ dev/sub/", { 0, 'd', "dev" }, { 0, 'c', "dev/console" },
	     { 0, 'c', "./dev/sub/x" });
	REFUSED("outside of /dev", { 0, 'c', "sda" });
	REFUSED("outside of /dev", { 0, 'c', "srv/dev/sda" });
	REFUSED("outside of /dev", { 0, 'd', "srv" }, { 0, 's', "dev", "srv" },
	        { 0, 'c', "dev/sda" });
	REFUSED("outside of /dev", { 0, 'c', "dev" });
}

static void bounds_names(void)
{
	static char name[300], path[IMAGE_PATH_MAX + 10], deep[IMAGE_PATH_MAX + 1];

	memset(name, 'n', 256);
	memset(path, 'p', IMAGE_PATH_MAX + 1);
	for (int i = 0; i < IMAGE_DEPTH_MAX + 1; i++)
		memcpy(deep + (size_t) i * 2, "d/", 3);
	REFUSED("IMAGE_NAME_MAX", { 0, 'f', name });
	REFUSED("IMAGE_PATH_MAX", { 0, 'f', path });
	REFUSED("IMAGE_DEPTH_MAX", { 0, 'd', deep });
}

/* A short name in the archive can be a long one in the tree. */
static void bounds_paths_behind_links(void)
{
	static char link[IMAGE_PATH_MAX + 1], path[300];
	struct tree tree;
	struct resoluto_err err = { 0 };
	int r = 0;

	for (int i = 0; i < 15; i++) {
		memset(link + i * 251, 'a' + i, 250);
		link[i * 251 + 250] = '/';
	}
	memset(path, 'z', 250);
	CHECK(tree_init(&tree) == 0);
	CHECK(add_row(&tree, &(struct row){ 0, 's', "l", link }, 0, NULL) == 0);
	CHECK(add_row(&tree, &(struct row){ 0, 's', "l/m", path }, 0, NULL) == 0);
	memcpy(path + 250, "/f", 3);
	for (int i = 0; i < 3 && r == 0; i++) {
		char member[600];

		snprintf(member, sizeof(member), "l/%s%s", path,
		         i == 0   ? ""
		         : i == 1 ? "/g"
		                  : "/h/i");
		r = add_row(&tree, &(struct row){ 0, 'd', member }, 0, &err);
	}
	CHECK(r == 0);
	memset(path, 'y', 250);
	path[250] = '\0';
	r = add_row(&tree, &(struct row){ 0, 's', "q", "l/m/f/g" }, 0, &err);
	CHECK(r == 0);
	{
		char member[310];

		snprintf(member, sizeof(member), "q/%s", path);
		CHECK(add_row(&tree, &(struct row){ 0, 'f', member }, 0, &err) == -EBADMSG);
	}
	CHECK(strstr(err.text, "IMAGE_PATH_MAX"));
	tree_done(&tree);
}

static void bounds_sizes_and_owners(void)
{
	struct tree tree;
	struct tree_member big = { .path = "a", .type = TREE_FILE, .size = IMAGE_BYTES_MAX };
	struct tree_member owner = { .path = "b", .type = TREE_FILE, .uid = -1 };
	struct tree_member group = { .path = "b", .type = TREE_FILE, .gid = (int64_t) UINT32_MAX };
	struct tree_member times = { .path = "c", .type = TREE_FILE, .mtime = -5, .mode = 07777 };
	struct resoluto_err err = { 0 };

	CHECK(tree_init(&tree) == 0);
	CHECK(tree_add(&tree, &big, true, NULL) == 0);
	big.size = 1;
	CHECK(tree_add(&tree, &big, true, &err) == -EBADMSG);
	CHECK(strstr(err.text, "IMAGE_BYTES_MAX"));
	CHECK(tree_add(&tree, &owner, true, NULL) == -EBADMSG);
	CHECK(tree_add(&tree, &group, true, NULL) == -EBADMSG);
	CHECK(tree_add(&tree, &times, true, NULL) == 0);
	CHECK(tree_child(tree.root, "c")->inode->mtime == 0);
	CHECK(tree_child(tree.root, "c")->inode->mode == 07777);
	tree_done(&tree);
}

static void plain_tars_have_no_whiteouts(void)
{
	struct tree tree;
	struct tree_member member = { .path = ".wh.x", .type = TREE_FILE };

	CHECK(tree_init(&tree) == 0);
	CHECK(tree_add(&tree, &member, false, NULL) == 0);
	CHECK(tree_child(tree.root, ".wh.x"));
	tree_done(&tree);
}

static void keeps_the_attributes_a_guest_may_have(void)
{
	CHECK(tree_xattr_is_kept("security.capability"));
	CHECK(tree_xattr_is_kept("user.mime_type"));
	CHECK(!tree_xattr_is_kept("user."));
	CHECK(!tree_xattr_is_kept("user.overlay.redirect"));
	CHECK(!tree_xattr_is_kept("trusted.overlay.opaque"));
	CHECK(!tree_xattr_is_kept("security.selinux"));
	CHECK(!tree_xattr_is_kept("system.posix_acl_access"));
}

int main(void)
{
	RUN(lays_layers_over_each_other);
	RUN(makes_parents_that_no_layer_has);
	RUN(cleans_names);
	RUN(whiteouts_hide_lower_layers_only);
	RUN(opaque_directories_hide_lower_layers_only);
	RUN(passes_over_what_aufs_left);
	RUN(kinds_replace_each_other);
	RUN(hard_links_share_what_they_name);
	RUN(follows_links_to_parents_inside_the_tree);
	RUN(refuses_hostile_names);
	RUN(devices_only_in_dev_and_not_there);
	RUN(bounds_names);
	RUN(bounds_paths_behind_links);
	RUN(bounds_sizes_and_owners);
	RUN(plain_tars_have_no_whiteouts);
	RUN(keeps_the_attributes_a_guest_may_have);
	return check_done();
}
