/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tail.c - read a run's event chunks in order, one get for each, and know when it was the last.
 *
 * A chunk that is not there yet is nothing new.  Once the manifest is seen, chunks above its total
 * do not exist, whatever the store holds; chunks that were read before count as read.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "conduit/tail.h"
#include "wire/keys.h"
#include "wire/result.h"

int tail_init(struct tail *tail, struct resoluto_conduit *conduit, const char *prefix)
{
	*tail = (struct tail){ .conduit = conduit, .prefix = prefix, .next = 1 };
	return chunk_reader_new(&tail->reader);
}

void tail_done(struct tail *tail)
{
	chunk_reader_free(&tail->reader);
}

int tail_key(const struct tail *tail, const char *name, char ret_key[RESOLUTO_KEY_MAX + 1],
             struct resoluto_err *err)
{
	size_t prefix_len = strlen(tail->prefix);
	int n;

	if (prefix_len > 0 && tail->prefix[prefix_len - 1] == '/')
		prefix_len--;
	n = snprintf(ret_key, RESOLUTO_KEY_MAX + 1, "%.*s%s%s", (int) prefix_len, tail->prefix,
	             prefix_len > 0 ? "/" : "", name);
	if ((size_t) n > RESOLUTO_KEY_MAX)
		return resoluto_fail(err, -EINVAL, "the prefix of the run is too long");
	return 0;
}

/* The whole object at a key of the run: 1 and its bytes, 0 when it is not there. */
static int fetch(const struct tail *tail, const char *name, size_t max, char **ret_bytes,
                 size_t *ret_len, struct resoluto_err *err)
{
	char key[RESOLUTO_KEY_MAX + 1];
	struct resoluto_err failure;
	int r = tail_key(tail, name, key, err);

	if (r < 0)
		return r;
	r = resoluto_conduit_get_bytes(tail->conduit, key, max, ret_bytes, ret_len, &failure);
	if (r == -ENOENT)
		return 0;
	return r < 0 ? resoluto_fail(err, r, "%s", failure.text) : 1;
}

static uint32_t last_chunk(const struct tail *tail)
{
	return tail->has_manifest ? tail->total : KEY_CHUNK_MAX;
}

static int read_next(struct tail *tail, chunk_event_fn *fn, void *ctx, struct resoluto_err *err)
{
	CLEANUP(mem_free) char *bytes = NULL;
	char name[KEY_SIZE];
	size_t len;
	int r;

	if (tail->next > last_chunk(tail))
		return 0;
	key_chunk(tail->next, name);
	r = fetch(tail, name, TAIL_CHUNK_MAX, &bytes, &len, err);
	if (r <= 0)
		return r;
	/* Before its events are told: when fn fails, none of them is told twice. */
	tail->next++;
	r = chunk_reader_feed(tail->reader, bytes, len, fn, ctx);
	return r < 0 ? resoluto_fail(err, r, "read %s", name) : 1;
}

int tail_poll(struct tail *tail, unsigned max_chunks, chunk_event_fn *fn, void *ctx,
              struct resoluto_err *err)
{
	for (unsigned count = 0; count < max_chunks; count++) {
		int r = read_next(tail, fn, ctx, err);

		if (r < 0)
			return r;
		if (r == 0)
			return (int) count;
	}
	return (int) max_chunks;
}

static int find_manifest(struct tail *tail, struct resoluto_err *err)
{
	CLEANUP(mem_free) char *bytes = NULL;
	size_t len;
	int r = fetch(tail, KEY_MANIFEST, MANIFEST_JSON_MAX, &bytes, &len, err);

	if (r <= 0)
		return r;
	r = manifest_parse(bytes, len, &tail->total);
	if (r < 0)
		return resoluto_fail(err, r, "%s is no manifest", KEY_MANIFEST);
	tail->has_manifest = true;
	return 0;
}

int tail_is_complete(struct tail *tail, struct resoluto_err *err)
{
	int r = tail->has_manifest ? 0 : find_manifest(tail, err);

	if (r < 0)
		return r;
	return tail->has_manifest && tail->next > tail->total;
}
