/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - what the memory conduit offers beside the promises of all conduits. */
#include <errno.h>

#include "check.h"

#include "base/buf.h"
#include "conduit/local.h"
#include "conduit/memory.h"

static struct resoluto_conduit *conduit;
static const struct conduit_memory_counters *counters;

static void begin(void)
{
	resoluto_conduit_close(conduit);
	CHECK(resoluto_conduit_open_url("memory://", &conduit, NULL) == 0);
	counters = conduit_memory_counters(conduit);
	CHECK(counters);
}

static int put(const char *key, const char *text)
{
	return resoluto_conduit_put_bytes(conduit, key, text, strlen(text), NULL);
}

static int get(const char *key)
{
	char *bytes = NULL;
	size_t len;
	int r = resoluto_conduit_get_bytes(conduit, key, 100, &bytes, &len, NULL);

	free(bytes);
	return r;
}

static int ignore(void *ctx, const struct resoluto_object *object)
{
	return 0;
}

static void counts_calls_and_bytes(void)
{
	begin();
	CHECK(put("a/1", "four") == 0 && put("a/2", "") == 0 && put("a/1", "three") == 0);
	CHECK(put("../bad", "never arrives") == -EINVAL);
	CHECK(get("a/1") == 0 && get("none") == -ENOENT);
	CHECK(resoluto_conduit_list(conduit, "", ignore, NULL, NULL) == 0);
	CHECK(counters->puts == 3 && counters->gets == 2 && counters->lists == 1);
	CHECK(counters->objects == 2 && counters->bytes == 5);
	CHECK(resoluto_conduit_copy_prefix(conduit, "a", "b", NULL, NULL) == 2);
	CHECK(counters->copies == 2 && counters->objects == 4 && counters->bytes == 10);
	CHECK(resoluto_conduit_delete_prefix(conduit, "a", NULL) == 2);
	CHECK(counters->deletes == 1 && counters->objects == 2 && counters->bytes == 5);
}

static void fails_as_often_as_told(void)
{
	struct resoluto_err err = { 0 };

	begin();
	CHECK(put("a/1", "x") == 0);
	CHECK(conduit_memory_fail(conduit, CONDUIT_MEMORY_PUT, -EIO, 2) == 0);
	CHECK(put("a/1", "y") == -EIO && put("a/2", "y") == -EIO);
	CHECK(counters->objects == 1 && counters->puts == 3);
	CHECK(put("a/1", "y") == 0);
	CHECK(conduit_memory_fail(conduit, CONDUIT_MEMORY_GET, -EACCES, 1) == 0);
	CHECK(get("a/1") == -EACCES && get("a/1") == 0);
	CHECK(conduit_memory_fail(conduit, CONDUIT_MEMORY_LIST, -ETIMEDOUT, 1) == 0);
	CHECK(resoluto_conduit_list(conduit, "", ignore, NULL, &err) == -ETIMEDOUT);
	CHECK(err.code == -ETIMEDOUT);
	CHECK(conduit_memory_fail(conduit, CONDUIT_MEMORY_COPY, -ENOSPC, 1) == 0);
	CHECK(resoluto_conduit_copy_prefix(conduit, "a", "b", NULL, &err) == -ENOSPC);
	CHECK(err.code == -ENOSPC && strstr(err.text, "a"));
	CHECK(conduit_memory_fail(conduit, CONDUIT_MEMORY_DELETE, -EIO, 1) == 0);
	CHECK(resoluto_conduit_delete_prefix(conduit, "a", NULL) == -EIO);
	CHECK(resoluto_conduit_delete_prefix(conduit, "a", NULL) == 1);
}

/* An object that is gone between the listing and its copy is passed over. */
static void passes_over_what_is_gone_while_copying(void)
{
	struct resoluto_err err = { 0 };

	begin();
	CHECK(put("a/1", "x") == 0 && put("a/2", "x") == 0);
	CHECK(conduit_memory_fail(conduit, CONDUIT_MEMORY_COPY, -ENOENT, 1) == 0);
	CHECK(resoluto_conduit_copy_prefix(conduit, "a", "b", NULL, &err) == 1);
	CHECK(err.code == 0);
}

/* More keys than one batch holds: none is copied twice, none left out. */
static void copies_in_batches(void)
{
	enum { OBJECTS = 6000 };
	char key[RESOLUTO_KEY_MAX];

	begin();
	for (unsigned i = 0; i < OBJECTS; i++) {
		int n = snprintf(key, sizeof(key), "a/%04u/", i);

		memset(key + n, 'k', 250);
		key[n + 250] = '/';
		memset(key + n + 251, 'k', 250);
		key[n + 501] = '/';
		memset(key + n + 502, 'k', 250);
		key[n + 752] = '\0';
		CHECK(put(key, "x") == 0);
	}
	CHECK(resoluto_conduit_copy_prefix(conduit, "a", "b", NULL, NULL) == OBJECTS);
	CHECK(counters->copies == OBJECTS && counters->lists >= 2);
	CHECK(counters->objects == 2 * OBJECTS);
}

static void is_told_apart_from_others(void)
{
	struct resoluto_conduit *other = NULL;

	begin();
	CHECK(conduit_local_root(conduit) == -EOPNOTSUPP);
	CHECK(resoluto_conduit_open_url("stdout://", &other, NULL) == 0);
	CHECK(!conduit_memory_counters(other));
	CHECK(conduit_memory_fail(other, CONDUIT_MEMORY_PUT, -EIO, 1) == -EOPNOTSUPP);
	resoluto_conduit_close(other);
}

int main(void)
{
	RUN(counts_calls_and_bytes);
	RUN(fails_as_often_as_told);
	RUN(passes_over_what_is_gone_while_copying);
	RUN(copies_in_batches);
	RUN(is_told_apart_from_others);
	resoluto_conduit_close(conduit);
	return check_done();
}
