/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - the conduit "memory": the model of the others, a list of objects sorted by key.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "conduit/conduit_backend.h"
#include "conduit/memory.h"

enum {
	COPY_SIZE = 64 * 1024,          /* bytes asked of a source, or given to a sink, at once */
	STORE_MAX = 1024 * 1024 * 1024, /* bytes of all objects */
};

struct object {
	char *key;        /* owned */
	struct buf bytes; /* owned */
};

struct fault {
	int code;
	unsigned times; /* still to come */
};

struct memory {
	struct resoluto_conduit base; /* first */
	struct object *objects;       /* owned; ascending by key */
	size_t cap;                   /* of objects; their number is counters.objects */
	struct conduit_memory_counters counters;
	struct fault faults[CONDUIT_MEMORY_CALLS];
};

static struct memory *memory_of(struct resoluto_conduit *conduit)
{
	return (struct memory *) conduit;
}

const struct conduit_memory_counters *conduit_memory_counters(
	const struct resoluto_conduit *conduit)
{
	return conduit->ops == &conduit_memory ? &((const struct memory *) conduit)->counters
	                                       : NULL;
}

int conduit_memory_fail(struct resoluto_conduit *conduit, enum conduit_memory_call call, int code,
                        unsigned times)
{
	if (conduit->ops != &conduit_memory)
		return -EOPNOTSUPP;
	memory_of(conduit)->faults[call] = (struct fault){ code, times };
	return 0;
}

/* Count a call; a failure if one was ordered. */
static int begin_call(struct memory *memory, enum conduit_memory_call call, unsigned *counter,
                      struct resoluto_err *err)
{
	struct fault *fault = &memory->faults[call];

	++*counter;
	if (fault->times == 0)
		return 0;
	fault->times--;
	return resoluto_fail(err, fault->code, "told to fail");
}

/* Where key is, or where it would go. */
static size_t find(const struct memory *memory, const char *key, bool *ret_found)
{
	size_t low = 0, high = memory->counters.objects;

	*ret_found = false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(memory->objects[middle].key, key);

		if (order == 0) {
			*ret_found = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int make_room(struct memory *memory)
{
	size_t cap = memory->cap ? memory->cap * 2 : 16;
	struct object *objects;

	if (memory->counters.objects < memory->cap)
		return 0;
	objects = realloc(memory->objects, cap * sizeof(*objects));
	if (!objects)
		return -ENOMEM;
	memory->objects = objects;
	memory->cap = cap;
	return 0;
}

/* Put bytes in place of what is there; they are taken on success. */
static int store(struct memory *memory, const char *key, struct buf *bytes)
{
	struct conduit_memory_counters *counters = &memory->counters;
	struct object *object;
	bool is_there;
	size_t at = find(memory, key, &is_there);
	char *copy;

	if (is_there) {
		object = &memory->objects[at];
		counters->bytes -= object->bytes.len;
		buf_done(&object->bytes);
	} else {
		copy = strdup(key);
		if (!copy || make_room(memory) < 0) {
			free(copy);
			return -ENOMEM;
		}
		object = &memory->objects[at];
		memmove(object + 1, object, (counters->objects - at) * sizeof(*object));
		object->key = copy;
		counters->objects++;
	}
	object->bytes = *bytes;
	*bytes = BUF_INIT(0);
	counters->bytes += object->bytes.len;
	return 0;
}

/* The bytes of all of source; bounded by what is left of the store. */
static int read_source(const struct resoluto_source *source, struct buf *bytes,
                       struct resoluto_err *err)
{
	for (;;) {
		const size_t left = bytes->max - bytes->len;
		char extra;
		ssize_t n;
		int r;

		if (left == 0) {
			n = conduit_read_source(source, &extra, 1, err);
			return n > 0 ? resoluto_fail(err, -ENOSPC, "the store is full") : (int) n;
		}
		r = buf_reserve(bytes, left < COPY_SIZE ? left : COPY_SIZE);
		if (r < 0)
			return resoluto_fail(err, r, "read the source");
		n = conduit_read_source(source, bytes->data + bytes->len,
		                        left < COPY_SIZE ? left : COPY_SIZE, err);
		if (n <= 0)
			return (int) n;
		bytes->len += (size_t) n;
		bytes->data[bytes->len] = '\0';
	}
}

static int memory_put(struct resoluto_conduit *conduit, const char *key,
                      const struct resoluto_source *source, struct resoluto_err *err)
{
	struct memory *memory = memory_of(conduit);
	CLEANUP(buf_done) struct buf bytes = BUF_INIT(STORE_MAX - memory->counters.bytes);
	int r = begin_call(memory, CONDUIT_MEMORY_PUT, &memory->counters.puts, err);

	if (r == 0)
		r = read_source(source, &bytes, err);
	if (r < 0)
		return r;
	/* Read in pieces of COPY_SIZE: most objects are much smaller. */
	buf_shrink(&bytes);
	r = store(memory, key, &bytes);
	return r < 0 ? resoluto_fail(err, r, "store") : 0;
}

static int memory_get(struct resoluto_conduit *conduit, const char *key,
                      const struct resoluto_sink *sink, struct resoluto_err *err)
{
	struct memory *memory = memory_of(conduit);
	const struct buf *bytes;
	bool is_there;
	size_t at;
	int r = begin_call(memory, CONDUIT_MEMORY_GET, &memory->counters.gets, err);

	if (r < 0)
		return r;
	at = find(memory, key, &is_there);
	if (!is_there)
		return resoluto_fail(err, -ENOENT, "no such object");
	bytes = &memory->objects[at].bytes;
	for (size_t done = 0; done < bytes->len && r == 0;) {
		size_t n = bytes->len - done < COPY_SIZE ? bytes->len - done : COPY_SIZE;

		r = conduit_write_sink(sink, bytes->data + done, n, err);
		done += n;
	}
	return r;
}

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static int memory_list(struct resoluto_conduit *conduit, const char *prefix, const char *after,
                       resoluto_object_fn *each, void *ctx, struct resoluto_err *err)
{
	struct memory *memory = memory_of(conduit);
	bool is_there;
	size_t at;
	int r = begin_call(memory, CONDUIT_MEMORY_LIST, &memory->counters.lists, err);

	if (r < 0)
		return r;
	at = find(memory, strcmp(after, prefix) > 0 ? after : prefix, &is_there);
	for (; at < memory->counters.objects && r == 0; at++) {
		const struct object *object = &memory->objects[at];

		if (!starts_with(object->key, prefix))
			break;
		if (strcmp(object->key, after) <= 0)
			continue;
		r = each(ctx, &(struct resoluto_object){ object->key, object->bytes.len });
		if (r < 0)
			resoluto_fail(err, r, "stopped at %s", object->key);
	}
	return r < 0 ? r : 0;
}

static int memory_copy(struct resoluto_conduit *conduit, const char *from, const char *to,
                       struct resoluto_err *err)
{
	struct memory *memory = memory_of(conduit);
	CLEANUP(buf_done) struct buf bytes = BUF_INIT(STORE_MAX - memory->counters.bytes);
	bool is_there;
	size_t at;
	int r = begin_call(memory, CONDUIT_MEMORY_COPY, &memory->counters.copies, err);

	if (r < 0)
		return r;
	at = find(memory, from, &is_there);
	if (!is_there)
		return resoluto_fail(err, -ENOENT, "no such object");
	r = buf_add(&bytes, memory->objects[at].bytes.data, memory->objects[at].bytes.len);
	if (r == 0)
		r = store(memory, to, &bytes);
	return r < 0 ? resoluto_fail(err, r == -E2BIG ? -ENOSPC : r, "store") : 0;
}

static void drop(struct memory *memory, size_t first, size_t count)
{
	struct object *objects;

	if (count == 0)
		return; /* and there may be no array */
	objects = memory->objects + first;
	for (size_t i = 0; i < count; i++) {
		memory->counters.bytes -= objects[i].bytes.len;
		free(objects[i].key);
		buf_done(&objects[i].bytes);
	}
	memory->counters.objects -= count;
	if (memory->counters.objects > first)
		memmove(objects, objects + count,
		        (memory->counters.objects - first) * sizeof(*objects));
}

static int memory_delete_beneath(struct resoluto_conduit *conduit, const char *prefix,
                                 struct resoluto_err *err)
{
	struct memory *memory = memory_of(conduit);
	char beneath[RESOLUTO_KEY_MAX + 2];
	size_t first, count = 0;
	bool is_there;
	int r = begin_call(memory, CONDUIT_MEMORY_DELETE, &memory->counters.deletes, err);

	if (r < 0)
		return r;
	snprintf(beneath, sizeof(beneath), "%s/", prefix);
	first = find(memory, beneath, &is_there);
	while (first + count < memory->counters.objects &&
	       starts_with(memory->objects[first + count].key, beneath))
		count++;
	drop(memory, first, count);
	return (int) count;
}

static int memory_open(const char *place, struct resoluto_conduit **ret_conduit,
                       struct resoluto_err *err)
{
	struct memory *memory;

	if (place[0])
		return resoluto_fail(err, -EINVAL, "memory:// takes no place");
	memory = calloc(1, sizeof(*memory));
	if (!memory)
		return resoluto_fail(err, -ENOMEM, "make the store");
	memory->base.ops = &conduit_memory;
	*ret_conduit = &memory->base;
	return 0;
}

static void memory_close(struct resoluto_conduit *conduit)
{
	struct memory *memory = memory_of(conduit);

	drop(memory, 0, memory->counters.objects);
	free(memory->objects);
	free(memory);
}

const struct conduit_ops conduit_memory = {
	.open = memory_open,
	.close = memory_close,
	.put = memory_put,
	.get = memory_get,
	.list = memory_list,
	.copy = memory_copy,
	.delete_beneath = memory_delete_beneath,
};
