/* SPDX-License-Identifier: Apache-2.0 */
#include <endian.h>
#include <errno.h>

#include "check.h"
#include "guest/inbox_index.h"

enum { DISK = 1 << 20, FIRST_ENTRY = 16, ENTRY = INBOX_NAME_SIZE + 16 };

struct index {
	uint8_t bytes[INBOX_INDEX_SIZE];
};

static void put64(uint8_t *at, uint64_t value)
{
	value = htole64(value);
	memcpy(at, &value, sizeof(value));
}

static void set_entry(struct index *index, int i, const char *name, uint64_t offset,
                      uint64_t length)
{
	uint8_t *at = index->bytes + FIRST_ENTRY + i * ENTRY;

	memset(at, 0, INBOX_NAME_SIZE);
	memcpy(at, name, strlen(name));
	put64(at + INBOX_NAME_SIZE, offset);
	put64(at + INBOX_NAME_SIZE + 8, length);
}

static struct index make(uint8_t count)
{
	struct index index = { { 0 } };

	memcpy(index.bytes, "RSLINBX1", 8);
	index.bytes[8] = count;
	for (int i = 0; i < count && i < INBOX_ARCHIVES_MAX; i++)
		set_entry(&index, i, "workspace.tar.gz", 4096, 100);
	return index;
}

static int parse(const struct index *index)
{
	struct inbox_index parsed;

	return inbox_index_parse(index->bytes, DISK, &parsed, NULL);
}

static void what_stands_there_is_found(void)
{
	struct index index = make(2);
	struct inbox_index parsed;

	set_entry(&index, 1, "more-1.2_x.tar.gz", 8192, DISK - 8192);
	CHECK(inbox_index_parse(index.bytes, DISK, &parsed, NULL) == 0);
	CHECK(parsed.count == 2);
	CHECK_STR(parsed.archives[0].name, "workspace.tar.gz");
	CHECK(parsed.archives[0].offset == 4096 && parsed.archives[0].length == 100);
	CHECK_STR(parsed.archives[1].name, "more-1.2_x.tar.gz");
	CHECK(parsed.archives[1].length == DISK - 8192);
}

static void none_and_many(void)
{
	struct index none = make(0), many = make(INBOX_ARCHIVES_MAX),
		     more = make(INBOX_ARCHIVES_MAX + 1);

	CHECK(parse(&none) == 0 && parse(&many) == 0 && parse(&more) == -EBADMSG);
}

static void a_damaged_head_is_refused(void)
{
	for (int i = 0; i < 8; i++) {
		struct index index = make(1);

		index.bytes[i] ^= 0x20;
		CHECK(parse(&index) == -EBADMSG);
	}
	for (int i = 9; i < 16; i++) {
		struct index index = make(1);

		index.bytes[i] = 1;
		CHECK(parse(&index) == -EBADMSG);
	}
}

static void archives_lie_on_the_disk(void)
{
	static const uint64_t places[][2] = {
		{ 0, 10 },
		{ 4097, 10 },
		{ DISK, 1 },
		{ 4096, DISK },
		{ 4096, UINT64_MAX },
		{ UINT64_MAX - 4095, 1 },
		{ DISK - 4096, 4097 },
	};
	struct index index = make(1);

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		set_entry(&index, 0, "workspace.tar.gz", places[i][0], places[i][1]);
		CHECK(parse(&index) == -EBADMSG);
	}
	set_entry(&index, 0, "workspace.tar.gz", DISK - 4096, 4096);
	CHECK(parse(&index) == 0);
	set_entry(&index, 0, "workspace.tar.gz", DISK, 0);
	CHECK(parse(&index) == 0);
}

static void names_are_plain(void)
{
	static const char *const names[] = {
		"",           ".tar.gz",   "a.tar",      "../a.tar.gz",
		"a/b.tar.gz", ".a.tar.gz", "a b.tar.gz", "\x80.tar.gz"
	};
	struct index index = make(1);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		set_entry(&index, 0, names[i], 4096, 1);
		CHECK(parse(&index) == -EBADMSG);
	}
	memset(index.bytes + FIRST_ENTRY, 'a', INBOX_NAME_SIZE);
	CHECK(parse(&index) == -EBADMSG);
}

int main(void)
{
	RUN(what_stands_there_is_found);
	RUN(none_and_many);
	RUN(a_damaged_head_is_refused);
	RUN(archives_lie_on_the_disk);
	RUN(names_are_plain);
	return check_done();
}
