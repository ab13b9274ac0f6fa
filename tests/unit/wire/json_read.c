/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "wire/json_read.h"

static int read_text(const char *json, size_t flags)
{
	json_t *root;
	int r = json_read(json, strlen(json), flags, &root);

	CHECK((r == 0) == (root != NULL));
	json_decref(root);
	return r;
}

static void json_is_read(void)
{
	CHECK(read_text("{\"a\":[1,2.5,\"x\",null,true]}", 0) == 0);
	CHECK(read_text(" [] ", JSON_REJECT_DUPLICATES) == 0);
	CHECK(read_text("\"x\"", JSON_DECODE_ANY) == 0);
}

static void what_is_no_json_is_refused(void)
{
	static const char *const bad[] = {
		"",
		"{",
		"{]",
		"[1,]",
		"nul",
		"\"x\"",
		"1",
		"{\"a\":1}x",
		"{\"a\":\"\\ud800\"}",
		"{\"a\":99999999999999999999}",
		"{\"a\\u0000b\":1}",
		"\"\xff\"",
		"[1e999]",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(read_text(bad[i], 0) == -EBADMSG);
	CHECK(read_text("{\"a\":1,\"a\":2}", JSON_REJECT_DUPLICATES) == -EBADMSG);
	CHECK(read_text("{\"a\":1,\"a\":2}", 0) == 0);
}

static void what_is_not_tame_is_not_parsed(void)
{
	char deep[200];
	json_t *root;

	memset(deep, '[', sizeof(deep));
	CHECK(json_read(deep, sizeof(deep), 0, &root) == -EBADMSG && !root);
	CHECK(json_read("[\0]", 3, 0, &root) == -EBADMSG && !root);
	CHECK(json_read(NULL, 0, 0, &root) == -EBADMSG && !root);
}

static unsigned left; /* allocations until the one that fails; 0: none does */

static void *fails_once(size_t size)
{
	return left > 0 && --left == 0 ? NULL : malloc(size);
}

/* What the reader finds on its stack: the codes of refusals. */
static __attribute__((noinline)) void soil_stack(void)
{
	volatile unsigned char stack[4096];

	for (size_t i = 0; i < sizeof(stack); i++)
		stack[i] = json_error_duplicate_key;
}

static void short_memory_is_no_verdict(void)
{
	static const char text[] =
		"{\"key\": [1, 2.5, \"\\u00e9text\", {\"in\": null}], \"b\": false}";
	unsigned failures = 0;

	json_set_alloc_funcs(fails_once, free);
	for (unsigned n = 1;; n++) {
		int r;

		left = n;
		soil_stack();
		r = read_text(text, JSON_REJECT_DUPLICATES);
		if (left > 0)
			break;
		CHECK(r == -ENOMEM);
		failures++;
	}
	json_set_alloc_funcs(malloc, free);
	CHECK(failures > 10);
}

int main(void)
{
	RUN(json_is_read);
	RUN(what_is_no_json_is_refused);
	RUN(what_is_not_tame_is_not_parsed);
	RUN(short_memory_is_no_verdict);
	return check_done();
}
