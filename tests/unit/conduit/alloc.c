/* SPDX-License-Identifier: Apache-2.0 */
/* alloc.c - every allocation of a conduit fails in turn: the objects stay whole, nothing leaks. */
#include <fcntl.h>
#include <jansson.h>
#include <unistd.h>

#include "alloc_fail.h"
#include "check.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "conduit/tail.h"
#include "resoluto/conduit.h"

static char dir[64], url[128];
static int object_count;

static void conduit_close(struct resoluto_conduit **conduit)
{
	resoluto_conduit_close(*conduit);
}

static int count(void *ctx, const struct resoluto_object *object)
{
	++*(int *) ctx;
	return 0;
}

/* Every call once; each that fails must leave what was there. */
static int use_conduit(void)
{
	CLEANUP(conduit_close) struct resoluto_conduit *conduit = NULL;
	CLEANUP(mem_free) char *bytes = NULL;
	int objects = 0, r;
	size_t len;

	r = resoluto_conduit_open_url(url, &conduit, NULL);
	for (int i = 0; r == 0 && i < object_count; i++) {
		char key[] = { 'd', '/', (char) ('a' + i), '\0' };

		r = resoluto_conduit_put_bytes(conduit, key, "text", 4, NULL);
	}
	if (r == 0)
		r = resoluto_conduit_put_bytes(conduit, "d/a", "other text", 10, NULL);
	if (r == 0)
		r = resoluto_conduit_get_bytes(conduit, "d/a", 100, &bytes, &len, NULL);
	if (r == 0)
		r = resoluto_conduit_list(conduit, "d", count, &objects, NULL);
	if (r == 0)
		r = resoluto_conduit_copy_prefix(conduit, "d", "e", NULL, NULL);
	if (r >= 0)
		r = resoluto_conduit_delete_prefix(conduit, "e", NULL);
	return r < 0 ? r : 0;
}

static void memory_survives(void)
{
	snprintf(url, sizeof(url), "memory://");
	object_count = 25;
	CHECK(alloc_fail_each(use_conduit, -ENOMEM) >= 50);
}

static void localfs_survives(void)
{
	snprintf(url, sizeof(url), "localfs://%s", dir);
	object_count = 3;
	CHECK(alloc_fail_each(use_conduit, -ENOMEM) >= 10);
}

static struct resoluto_conduit *kept;

static int replace_object(void)
{
	CLEANUP(mem_free) char *bytes = NULL;
	size_t len;
	int r = resoluto_conduit_put_bytes(kept, "object", "new", 3, NULL), got;

	got = resoluto_conduit_get_bytes(kept, "object", 100, &bytes, &len, NULL);
	if (got == 0)
		CHECK(strcmp(bytes, "new") == 0 || (r < 0 && strcmp(bytes, "old") == 0));
	return r < 0 ? r : got;
}

static void a_failed_put_keeps_the_old_object(void)
{
	CHECK(resoluto_conduit_open_url("memory://", &kept, NULL) == 0);
	CHECK(resoluto_conduit_put_bytes(kept, "object", "old", 3, NULL) == 0);
	CHECK(alloc_fail_each(replace_object, -ENOMEM) >= 2);
	resoluto_conduit_close(kept);
}

static int write_line(void)
{
	CLEANUP(conduit_close) struct resoluto_conduit *conduit = NULL;
	int r = resoluto_conduit_open_url("stdout://", &conduit, NULL);

	return r < 0 ? r : resoluto_conduit_put_bytes(conduit, "key", "\xff", 1, NULL);
}

/* Its lines go to a file that nobody reads. */
static void stdout_survives(void)
{
	int real = dup(STDOUT_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	unsigned failed;

	json_set_alloc_funcs(malloc, free);
	CHECK(real >= 0 && null >= 0 && dup2(null, STDOUT_FILENO) >= 0);
	failed = alloc_fail_each(write_line, -ENOMEM);
	CHECK(dup2(real, STDOUT_FILENO) >= 0);
	json_set_alloc_funcs(__real_malloc, free);
	close(real);
	close(null);
	CHECK(failed >= 10);
}

static int note(void *ctx, const struct resoluto_event *event)
{
	return 0;
}

static int follow(void)
{
	struct tail tail;
	int r = tail_init(&tail, kept, "run/1");

	if (r == 0)
		r = tail_poll(&tail, 10, note, NULL, NULL);
	if (r >= 0)
		r = tail_is_complete(&tail, NULL);
	tail_done(&tail);
	return r < 0 ? r : 0;
}

static void a_tail_survives(void)
{
	static const char manifest[] = "{\"total_chunks\": 1}";

	CHECK(resoluto_conduit_open_url("memory://", &kept, NULL) == 0);
	CHECK(resoluto_conduit_put_bytes(kept, "run/1/events-000001.jsonl", "", 0, NULL) == 0);
	CHECK(resoluto_conduit_put_bytes(kept, "run/1/_manifest.json", manifest, strlen(manifest),
	                                 NULL) == 0);
	CHECK(alloc_fail_each(follow, -ENOMEM) >= 3);
	resoluto_conduit_close(kept);
}

int main(void)
{
	snprintf(dir, sizeof(dir), "/tmp/alloc-XXXXXX");
	if (!mkdtemp(dir))
		return 99;
	RUN(memory_survives);
	RUN(localfs_survives);
	RUN(a_failed_put_keeps_the_old_object);
	RUN(stdout_survives);
	RUN(a_tail_survives);
	if (remove_tree_at(AT_FDCWD, dir) < 0)
		return 99;
	return check_done();
}
