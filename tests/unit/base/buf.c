/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdint.h>

#include "check.h"

#include "base/buf.h"
#include "base/cleanup.h"

static void grows_as_needed(void)
{
	CLEANUP(buf_done) struct buf buf = BUF_INIT(100000);
	char piece[1000];

	memset(piece, 'x', sizeof(piece));
	CHECK(!buf.data && buf.len == 0);
	for (int i = 0; i < 100; i++)
		CHECK(buf_add(&buf, piece, sizeof(piece)) == 0);
	CHECK(buf.len == 100000 && buf.data[100000] == '\0' && strlen(buf.data) == 100000);
}

static void keeps_its_content_at_the_bound(void)
{
	CLEANUP(buf_done) struct buf buf = BUF_INIT(5);

	CHECK(buf_add_str(&buf, "abc") == 0);
	CHECK(buf_add_str(&buf, "def") == -E2BIG);
	CHECK(buf_addf(&buf, "%d", 123) == -E2BIG);
	CHECK(buf_reserve(&buf, 3) == -E2BIG);
	CHECK_STR(buf.data, "abc");
	CHECK(buf_add_str(&buf, "de") == 0 && buf_add(&buf, "", 0) == 0);
	CHECK(buf_add_str(&buf, "f") == -E2BIG);
	CHECK_STR(buf.data, "abcde");
}

static void bears_absurd_sizes(void)
{
	CLEANUP(buf_done) struct buf buf = BUF_INIT(SIZE_MAX);

	CHECK(buf_reserve(&buf, SIZE_MAX) == -E2BIG);
	CHECK(buf_add_str(&buf, "x") == 0);
	CHECK(buf_reserve(&buf, SIZE_MAX - 1) == -E2BIG);
	CHECK(buf_reserve(&buf, SIZE_MAX) == -E2BIG);
	CHECK_STR(buf.data, "x");
}

static void holds_any_bytes(void)
{
	CLEANUP(buf_done) struct buf buf = BUF_INIT(10);

	CHECK(buf_add(&buf, "a\0b", 3) == 0 && buf.len == 3);
	CHECK(memcmp(buf.data, "a\0b", 4) == 0);
	CHECK(buf_add(&buf, NULL, 0) == 0 && buf.len == 3);
}

static void formats(void)
{
	CLEANUP(buf_done) struct buf buf = BUF_INIT(1000);

	CHECK(buf_addf(&buf, "%s-%d", "a", 1) == 0);
	CHECK(buf_addf(&buf, "%300s", "") == 0);
	CHECK(buf.len == 303 && buf.data[303] == '\0');
	CHECK(strncmp(buf.data, "a-1 ", 4) == 0);
}

static void gives_back_what_is_not_used(void)
{
	CLEANUP(buf_done) struct buf buf = BUF_INIT(100000);

	buf_shrink(&buf);
	CHECK(!buf.data);
	CHECK(buf_reserve(&buf, 65536) == 0 && buf_add_str(&buf, "ab") == 0);
	buf_shrink(&buf);
	CHECK(buf.cap == 3 && strcmp(buf.data, "ab") == 0);
	CHECK(buf_add_str(&buf, "cd") == 0 && strcmp(buf.data, "abcd") == 0);
}

static void reserves_for_the_caller(void)
{
	CLEANUP(buf_done) struct buf buf = BUF_INIT(1000);

	CHECK(buf_reserve(&buf, 1000) == 0 && buf.len == 0 && buf.cap >= 1001);
	CHECK(buf.data[0] == '\0');
	memset(buf.data, 'y', 1000);
	buf.len = 1000;
	CHECK(buf_reserve(&buf, 0) == 0 && buf_reserve(&buf, 1) == -E2BIG);
}

static void drops_its_front(void)
{
	CLEANUP(buf_done) struct buf buf = BUF_INIT(100);

	buf_drop_front(&buf, 5);
	buf_clear(&buf);
	buf_cut(&buf, 0);
	CHECK(buf_add_str(&buf, "abcdef") == 0);
	buf_drop_front(&buf, 0);
	CHECK_STR(buf.data, "abcdef");
	buf_drop_front(&buf, 2);
	CHECK(buf.len == 4);
	CHECK_STR(buf.data, "cdef");
	buf_drop_front(&buf, 100);
	CHECK(buf.len == 0);
	CHECK_STR(buf.data, "");
	CHECK(buf_add_str(&buf, "again") == 0);
	buf_cut(&buf, 3);
	CHECK(buf.len == 3);
	CHECK_STR(buf.data, "aga");
	buf_clear(&buf);
	CHECK_STR(buf.data, "");
}

static void gives_its_bytes_away(void)
{
	struct buf buf = BUF_INIT(100);
	CLEANUP(mem_free) char *none = buf_take(&buf);
	CLEANUP(mem_free) char *some = NULL;

	CHECK_STR(none, "");
	CHECK(buf_add_str(&buf, "mine") == 0);
	some = buf_take(&buf);
	CHECK_STR(some, "mine");
	CHECK(!buf.data && buf.len == 0 && buf.max == 100);
	buf_done(&buf);
	buf_done(&buf);
}

static void lists_end_in_null(void)
{
	CLEANUP(strv_done) struct strv strv = { 0 };
	static const char *const more[] = { "c", "d", NULL };

	CHECK(strv_count((const char *const *) strv.items) == 0);
	CHECK(strv_add(&strv, "a") == 0 && strv_addf(&strv, "%s=%d", "b", 2) == 0);
	CHECK(strv_add_all(&strv, more) == 0 && strv_add_all(&strv, NULL) == 0);
	CHECK(strv.count == 4 && !strv.items[4]);
	CHECK_STR(strv.items[1], "b=2");
	CHECK_STR(strv.items[3], "d");
	CHECK(strv_count((const char *const *) strv.items) == 4);
}

static void grows_lists_made_by_hand(void)
{
	CLEANUP(strv_done) struct strv strv = { .items = calloc(2, sizeof(char *)), .count = 1 };

	CHECK(strv.items);
	strv.items[0] = strdup("first");
	for (int i = 0; i < 1000; i++)
		CHECK(strv_addf(&strv, "%d", i) == 0);
	CHECK(strv.count == 1001 && !strv.items[1001]);
	CHECK_STR(strv.items[0], "first");
	CHECK_STR(strv.items[1000], "999");
}

static void finds_whole_strings(void)
{
	static const char *const items[] = { "one", "two", NULL };

	CHECK(strv_has(items, "two"));
	CHECK(!strv_has(items, "tw") && !strv_has(items, "twos") && !strv_has(items, ""));
	CHECK(!strv_has(NULL, "x") && strv_count(NULL) == 0 && strv_count(items) == 2);
}

int main(void)
{
	RUN(grows_as_needed);
	RUN(keeps_its_content_at_the_bound);
	RUN(bears_absurd_sizes);
	RUN(holds_any_bytes);
	RUN(formats);
	RUN(gives_back_what_is_not_used);
	RUN(reserves_for_the_caller);
	RUN(drops_its_front);
	RUN(gives_its_bytes_away);
	RUN(lists_end_in_null);
	RUN(grows_lists_made_by_hand);
	RUN(finds_whole_strings);
	return check_done();
}
