/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "resoluto/runtime.h"
#include "wire/keys.h"

enum { ARCHIVE_NAME_MAX = 64 };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_lower_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || is_digit(c);
}

static bool is_alnum(char c)
{
	return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

void key_chunk(uint32_t number, char ret_key[KEY_SIZE])
{
	assert(number >= 1 && number <= KEY_CHUNK_MAX);
	snprintf(ret_key, KEY_SIZE, "events-%06u.jsonl", number);
}

static bool parse_chunk(const char *key, size_t len, uint32_t *ret_number)
{
	static const char head[] = "events-", tail[] = ".jsonl";
	const size_t head_len = sizeof(head) - 1, tail_len = sizeof(tail) - 1;
	uint32_t number = 0;

	if (len != head_len + 6 + tail_len || memcmp(key, head, head_len) != 0 ||
	    memcmp(key + head_len + 6, tail, tail_len) != 0)
		return false;
	for (size_t i = head_len; i < head_len + 6; i++) {
		if (!is_digit(key[i]))
			return false;
		number = number * 10 + (uint32_t) (key[i] - '0');
	}
	*ret_number = number;
	return number > 0;
}

bool key_is_archive_name(const char *name, size_t len)
{
	if (len == 0 || len > ARCHIVE_NAME_MAX || !is_alnum(name[0]))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!is_alnum(name[i]) && !(name[i] && strchr("._-", name[i])))
			return false;
	}
	return true;
}

static bool is_outbox(const char *key, size_t len)
{
	static const char head[] = "outbox/", tail[] = ".tar.gz";
	const size_t head_len = sizeof(head) - 1, tail_len = sizeof(tail) - 1;

	return len > head_len + tail_len && memcmp(key, head, head_len) == 0 &&
	       memcmp(key + len - tail_len, tail, tail_len) == 0 &&
	       key_is_archive_name(key + head_len, len - head_len - tail_len);
}

static bool equals(const char *key, size_t len, const char *name)
{
	return len == strlen(name) && memcmp(key, name, len) == 0;
}

enum key_kind key_classify(const char *key, size_t len, uint32_t *ret_number)
{
	*ret_number = 0;
	if (parse_chunk(key, len, ret_number))
		return KEY_IS_CHUNK;
	if (equals(key, len, KEY_RESULT))
		return KEY_IS_RESULT;
	if (equals(key, len, KEY_MANIFEST))
		return KEY_IS_MANIFEST;
	if (equals(key, len, KEY_CANARY))
		return KEY_IS_CANARY;
	return is_outbox(key, len) ? KEY_IS_OUTBOX : KEY_IS_UNKNOWN;
}

bool key_is_run_id(const char *id)
{
	size_t n = strlen(id);

	if (n == 0 || n > RESOLUTO_ID_MAX || !is_lower_alnum(id[0]))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!is_lower_alnum(id[i]) && id[i] != '-')
			return false;
	}
	return true;
}
