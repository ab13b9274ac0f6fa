/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "wire/keys.h"

static enum key_kind classify(const char *key, uint32_t *ret_number)
{
	return key_classify(key, strlen(key), ret_number);
}

static void chunks_are_numbered(void)
{
	char key[KEY_SIZE];
	uint32_t number;

	key_chunk(1, key);
	CHECK_STR(key, "events-000001.jsonl");
	CHECK(classify(key, &number) == KEY_IS_CHUNK && number == 1);
	key_chunk(KEY_CHUNK_MAX, key);
	CHECK_STR(key, "events-999999.jsonl");
	CHECK(classify(key, &number) == KEY_IS_CHUNK && number == KEY_CHUNK_MAX);
}

static void knows_the_protocols_keys(void)
{
	uint32_t number;

	CHECK(classify("_canary_ok", &number) == KEY_IS_CANARY);
	CHECK(classify("result.json", &number) == KEY_IS_RESULT);
	CHECK(classify("_manifest.json", &number) == KEY_IS_MANIFEST);
	CHECK(classify("outbox/output.tar.gz", &number) == KEY_IS_OUTBOX);
	CHECK(classify("outbox/a.tar.gz.tar.gz", &number) == KEY_IS_OUTBOX);
	CHECK(number == 0);
}

static void knows_nothing_else(void)
{
	static const char *const others[] = {
		"",
		"x",
		"result.json/",
		"./result.json",
		"RESULT.JSON",
		"result.jso",
		"_canary_ok2",
		"events-000000.jsonl",
		"events-00001.jsonl",
		"events-0000001.jsonl",
		"events-00000a.jsonl",
		"events--00001.jsonl",
		"events-000001.json",
		"xevents-000001.jsonl",
		"events-000001.jsonl.tmp",
		"outbox/.tar.gz",
		"outbox/.x.tar.gz",
		"outbox/a/b.tar.gz",
		"outbox/..tar.gz",
		"outbox/a b.tar.gz",
		"outbox/a.tar",
		"outbox/",
		"inbox/workspace.tar.gz",
		"task.json",
		"../result.json",
		"outbox/"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa."
		"tar.gz", /* 65 */
	};
	uint32_t number;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		CHECK(classify(others[i], &number) == KEY_IS_UNKNOWN);
	CHECK(key_classify("result.json\0x", 13, &number) == KEY_IS_UNKNOWN);
	CHECK(key_classify("outbox/a\0b.tar.gz", 17, &number) == KEY_IS_UNKNOWN);
}

static void run_ids(void)
{
	CHECK(key_is_run_id("a"));
	CHECK(key_is_run_id("run-0123456789abcdef"));
	CHECK(key_is_run_id("0-"));
	CHECK(key_is_run_id("a123456789012345678901234567890123456789"));
	CHECK(!key_is_run_id("a1234567890123456789012345678901234567890"));
	CHECK(!key_is_run_id(""));
	CHECK(!key_is_run_id("-a"));
	CHECK(!key_is_run_id("A"));
	CHECK(!key_is_run_id("a/b"));
	CHECK(!key_is_run_id("a."));
	CHECK(!key_is_run_id("a\n"));
}

static void archive_names(void)
{
	CHECK(key_is_archive_name("workspace", 9));
	CHECK(key_is_archive_name("A.b_c-9", 7));
	CHECK(!key_is_archive_name("", 0));
	CHECK(!key_is_archive_name("-a", 2));
	CHECK(!key_is_archive_name("_a", 2));
	CHECK(!key_is_archive_name("a/b", 3));
	CHECK(!key_is_archive_name("a\0b", 3));
}

int main(void)
{
	RUN(chunks_are_numbered);
	RUN(knows_the_protocols_keys);
	RUN(knows_nothing_else);
	RUN(run_ids);
	RUN(archive_names);
	return check_done();
}
