/* SPDX-License-Identifier: Apache-2.0 */
/* link.c - where links lead, and the little helpers of archives: names for people, files met before. */
#include <errno.h>

#include "base/cleanup.h"
#include "check.h"
#include "wire/inode_map.h"
#include "wire/link.h"
#include "wire/printable.h"

static const struct {
	const char *path, *target;
	enum link_kind kind;
	const char *base, *straight; /* of LINK_DEPENDS */
} cases[] = {
	{ "l", "a", LINK_INSIDE, NULL, NULL },
	{ "l", "a/b", LINK_INSIDE, NULL, NULL },
	{ "l", ".", LINK_INSIDE, NULL, NULL },
	{ "l", "..", LINK_OUTSIDE, NULL, NULL },
	{ "l", "../x", LINK_OUTSIDE, NULL, NULL },
	{ "l", "/x", LINK_OUTSIDE, NULL, NULL },
	{ "l", "", LINK_OUTSIDE, NULL, NULL },
	{ "d/l", "../x", LINK_INSIDE, NULL, NULL },
	{ "d/l", "..", LINK_INSIDE, NULL, NULL },
	{ "d/l", "./.././x", LINK_INSIDE, NULL, NULL },
	{ "d/l", "../../x", LINK_OUTSIDE, NULL, NULL },
	{ "d/e/l", "../../x", LINK_INSIDE, NULL, NULL },
	{ "l", "a/../..", LINK_OUTSIDE, NULL, NULL },
	{ "l", "a/../b", LINK_DEPENDS, "a/..", "b" },
	{ "l", "a/..", LINK_DEPENDS, "a/..", "." },
	{ "d/l", "../a/../b/c", LINK_DEPENDS, "d/../a/..", "../b/c" },
	{ "d/l", "a/b/../../c", LINK_DEPENDS, "d/a/b/../..", "c" },
	{ "d/l", "a//./../c/", LINK_DEPENDS, "d/a//./..", "c" },
	{ "d/l", "a/../..", LINK_DEPENDS, "d/a/../..", ".." },
	{ "l", "...", LINK_INSIDE, NULL, NULL },
	{ "l", "a/..b", LINK_INSIDE, NULL, NULL },
};

static void tells_where_a_link_leads(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CLEANUP(buf_done) struct buf base = BUF_INIT(4096);
		CLEANUP(buf_done) struct buf straight = BUF_INIT(4096);

		if (link_classify(cases[i].path, cases[i].target) != cases[i].kind)
			printf("# %s -> %s\n", cases[i].path, cases[i].target);
		CHECK(link_classify(cases[i].path, cases[i].target) == cases[i].kind);
		if (cases[i].kind != LINK_DEPENDS)
			continue;
		CHECK(link_base(cases[i].path, cases[i].target, &base) == 0);
		CHECK_STR(base.data, cases[i].base);
		CHECK(link_straighten(cases[i].target, &straight) == 0);
		CHECK_STR(straight.data, cases[i].straight);
		CHECK(link_classify(cases[i].path, straight.data) == LINK_INSIDE);
	}
}

static void keeps_messages_on_one_line(void)
{
	char text[PRINTABLE_SIZE], name[5000];

	CHECK_STR(printable("plain/name.txt", text), "plain/name.txt");
	CHECK_STR(printable("a\nb\x1b\xff\\", text), "a\\x0ab\\x1b\\xff\\x5c");
	CHECK_STR(printable("", text), "");
	for (size_t len = 0; len < sizeof(name); len++) {
		memset(name, '\n', len);
		name[len] = '\0';
		CHECK(strlen(printable(name, text)) < PRINTABLE_SIZE && !strchr(text, '\n'));
		memset(name, 'x', len);
		CHECK(strlen(printable(name, text)) < PRINTABLE_SIZE);
	}
	memcpy(name + sizeof(name) - 5, ".txt", 5);
	CHECK(strstr(printable(name, text), "...") && strstr(text, ".txt"));
}

static struct stat file(dev_t dev, ino_t ino)
{
	return (struct stat){ .st_dev = dev, .st_ino = ino };
}

static void knows_files_again(void)
{
	struct inode_map set = { 0 }, map = { 0 };
	struct stat st = file(1, 1);

	CHECK(!inode_map_has(&set, &st) && !inode_map_path(&map, &st));
	for (ino_t ino = 1; ino <= 10000; ino++) {
		char path[20];

		st = file(1 + ino % 3, ino);
		snprintf(path, sizeof(path), "p%lu", (unsigned long) ino);
		CHECK(inode_map_add(&set, &st, NULL) == 0 && inode_map_add(&set, &st, NULL) == 0);
		CHECK(inode_map_add(&map, &st, path) == 0);
	}
	CHECK(set.count == 10000 && map.count == 10000);
	for (ino_t ino = 1; ino <= 10000; ino++) {
		char path[20];

		st = file(1 + ino % 3, ino);
		snprintf(path, sizeof(path), "p%lu", (unsigned long) ino);
		CHECK(inode_map_has(&set, &st));
		CHECK_STR(inode_map_path(&map, &st), path);
		st.st_dev = 9;
		CHECK(!inode_map_has(&set, &st) && !inode_map_path(&map, &st));
	}
	inode_map_done(&set);
	inode_map_done(&map);
}

int main(void)
{
	RUN(tells_where_a_link_leads);
	RUN(keeps_messages_on_one_line);
	RUN(knows_files_again);
	return check_done();
}
