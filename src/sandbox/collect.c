/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "sandbox/collect.h"
#include "wire/json_text.h"
#include "wire/keys.h"
#include "wire/pack.h"

#define RESULT_NAME "result.json"

enum { COLLECT_ASCII = 6 }; /* bytes that a byte of JSON takes in ASCII, at the most */

struct fetching {
	struct resoluto_conduit *conduit;
	char key[RESOLUTO_KEY_MAX + 1];
	bool is_missing; /* the guest sent no archive */
};

void collection_done(struct collection *collection)
{
	strv_done(&collection->artifacts);
	free(collection->result_json);
	*collection = (struct collection){ 0 };
}

static int fetch(void *ctx, const struct resoluto_sink *sink, struct resoluto_err *err)
{
	struct fetching *fetching = ctx;
	int r = resoluto_conduit_get(fetching->conduit, fetching->key, sink, err);

	fetching->is_missing = r == -ENOENT;
	return r;
}

/* Where members land, and what is told of them. */
struct landing {
	int output_fd;
	const char *const *globs;
	struct resoluto_quotas limits;
	size_t name_bytes;
	struct collection *collection;
};

static int add_member(void *ctx, const char *path)
{
	struct landing *landing = ctx;

	landing->name_bytes += strlen(path) + 1;
	if (landing->name_bytes > COLLECT_NAMES_MAX) {
		landing->collection->over = QUOTA_MEMBERS;
		return -EFBIG;
	}
	return strv_add(&landing->collection->artifacts, path);
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *) a, *(char *const *) b);
}

/* A member may have come twice: the later one replaced the earlier. */
static void sort_unique(struct strv *strv)
{
	size_t kept = 0;

	if (strv->count == 0)
		return;
	qsort(strv->items, strv->count, sizeof(*strv->items), by_bytes);
	for (size_t i = 1; i < strv->count; i++) {
		if (strcmp(strv->items[kept], strv->items[i]) == 0)
			free(strv->items[i]);
		else
			strv->items[++kept] = strv->items[i];
	}
	strv->count = kept + 1;
	strv->items[strv->count] = NULL;
}

static int read_result(int output_fd, struct buf *text)
{
	CLEANUP(fd_close) int fd = open_beneath(output_fd, RESULT_NAME, O_RDONLY | O_NONBLOCK, 0);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? read_rest(fd, text) : -EINVAL;
}

/* As it was written, but on one line: our reader has no place for every number there is. */
static char *keep_text(const struct buf *text)
{
	CLEANUP(buf_done) struct buf line = BUF_INIT(COLLECT_ASCII * COLLECT_RESULT_MAX);

	return json_add_compact(&line, text->data, text->len) < 0 ? NULL : buf_take(&line);
}

/* Of a key that is given twice the last one counts, for every reader of ours. */
static char *write_again(const struct buf *text)
{
	json_t *value = json_loadb(text->data, text->len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	char *line = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII)
	                   : NULL;

	json_decref(value);
	return line;
}

/* The program's own result, one line of JSON; what is not JSON is an artifact and nothing more. */
static char *parse_result(int output_fd)
{
	static const size_t any = JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL |
	                          JSON_REJECT_DUPLICATES;
	CLEANUP(buf_done) struct buf text = BUF_INIT(COLLECT_RESULT_MAX);
	json_t *value;

	if (read_result(output_fd, &text) < 0 || !text.data || !json_is_tame(text.data, text.len))
		return NULL;
	value = json_loadb(text.data, text.len, any, NULL);
	if (!value)
		return write_again(&text);
	json_decref(value);
	return keep_text(&text);
}

static int unpack(struct landing *landing, struct bridge *bridge, struct resoluto_err *err)
{
	struct collection *collection = landing->collection;
	struct resoluto_source source = { .read = bridge_read, .ctx = bridge };
	struct unpack_options options = {
		.globs = landing->globs,
		.limits = { .bytes = landing->limits.archive_bytes,
		            .members = landing->limits.members,
		            .ratio = landing->limits.ratio },
		.member = add_member,
		.ctx = landing,
	};
	struct unpack_report report = { 0 };
	int r = unpack_tree(landing->output_fd, &source, &options, &report, err);

	if (collection->over == QUOTA_NONE)
		collection->over = report.over;
	return r;
}

/* How it failed, in words for people. */
static int explain(const struct landing *landing, int r, const struct resoluto_err *why,
                   struct resoluto_err *err)
{
	const enum quota over = landing->collection->over;
	char text[QUOTA_TEXT];

	if (over == QUOTA_NONE)
		return resoluto_fail(err, r, "collect the outputs: %s", why->text);
	quota_explain(over, quota_limit(&landing->limits, over), text);
	return resoluto_fail(err, r, "%s", text);
}

int collect_outputs(const struct collect_options *options, struct collection *ret_collection,
                    bool *ret_has_archive, struct resoluto_err *err)
{
	struct fetching fetching = { .conduit = options->conduit };
	struct landing landing = { .output_fd = options->output_fd,
		                   .globs = options->globs,
		                   .limits = quota_limits(options->quotas),
		                   .collection = ret_collection };
	struct resoluto_err why = { 0 };
	struct bridge bridge;
	int r;

	*ret_has_archive = true;
	if ((size_t) snprintf(fetching.key, sizeof(fetching.key), "%s/%s", options->store_prefix,
	                      options->archive ? options->archive : KEY_OUTBOX_OUTPUT) >=
	    sizeof(fetching.key))
		return resoluto_fail(err, -EINVAL, "the store prefix is too long");
	r = bridge_start(&bridge, fetch, &fetching, &why);
	if (r == 0) {
		bridge.tick = options->tick;
		bridge.tick_ctx = options->tick_ctx;
		r = unpack(&landing, &bridge, &why);
		r = bridge_end(&bridge, r, &why);
	}
	*ret_has_archive = !fetching.is_missing;
	sort_unique(&ret_collection->artifacts);
	if (strv_has((const char *const *) ret_collection->artifacts.items, RESULT_NAME)) {
		ret_collection->result_json = parse_result(options->output_fd);
		ret_collection->has_odd_result = !ret_collection->result_json;
	}
	return r < 0 && !fetching.is_missing ? explain(&landing, r, &why, err) : 0;
}
