/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "guest/job_read.h"
#include "wire/frame.h"

enum { FEW_VARIABLES = 64 }; /* of so many each is compared with each */

static size_t find_name(const char *const names[], size_t count, const struct json_name *name)
{
	size_t i = 0;

	while (i < count &&
	       (strlen(names[i]) != name->len || memcmp(names[i], name->text, name->len) != 0))
		i++;
	return i;
}

int job_find_members(struct json_scan *object, const char *const names[], size_t count,
                     struct json_scan ret_members[])
{
	CLEANUP(buf_done) struct buf scratch = BUF_INIT(FRAME_JOB_MAX);
	struct json_name name;
	int r = json_scan_object(object);

	for (bool is_first = true; r == 0; is_first = false) {
		size_t i;

		r = json_scan_key(object, is_first, &scratch, &name);
		if (r <= 0)
			return r;
		i = find_name(names, count, &name);
		if (i < count && ret_members[i].at)
			return -EBADMSG;
		if (i < count)
			ret_members[i] = *object;
		r = json_scan_skip(object);
	}
	return r;
}

bool job_is_true(struct json_scan at)
{
	return at.at && json_scan_peek(&at) == 't';
}

int64_t job_integer(struct json_scan at)
{
	struct json_number number;

	return at.at && json_scan_number(&at, &number) == 0 && number.is_integer ? number.integer
	                                                                         : 0;
}

/* It may have been a secret. */
static void forget(struct buf *text)
{
	if (text->data)
		explicit_bzero(text->data, text->len);
	buf_clear(text);
}

static void forget_and_free(struct buf *text)
{
	forget(text);
	buf_done(text);
}

/* So much that it never grows, which would leave copies behind. */
static int make_room(struct buf *text, const struct json_scan *at)
{
	return buf_reserve(text, (size_t) (at->end - at->at));
}

int job_read_strings(struct json_scan at, const char *what, struct strv *ret,
                     struct resoluto_err *err)
{
	CLEANUP(forget_and_free) struct buf text = BUF_INIT(FRAME_JOB_MAX);

	if (json_scan_array(&at) < 0)
		return resoluto_fail(err, -EINVAL, "%s is not an array", what);
	if (make_room(&text, &at) < 0)
		return resoluto_fail(err, -ENOMEM, "read %s", what);
	for (bool is_first = true;; is_first = false) {
		const int r = json_scan_item(&at, is_first);

		if (r == 0)
			return 0;
		forget(&text);
		if (r < 0 || json_scan_string(&at, &text) < 0 || at.has_nul)
			return resoluto_fail(err, -EINVAL,
			                     "%s holds something that is not a string", what);
		if (strv_add(ret, text.data) < 0)
			return resoluto_fail(err, -ENOMEM, "copy %s", what);
	}
}

/* --- variables --- */

const char *job_value(const struct strv *pairs, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < pairs->count; i++) {
		if (strncmp(pairs->items[i], name, len) == 0 && pairs->items[i][len] == '=')
			return pairs->items[i] + len + 1;
	}
	return NULL;
}

static int compare_names(const void *a, const void *b)
{
	const char *left = *(const char *const *) a, *right = *(const char *const *) b;

	while (*left == *right && *left != '=')
		left++, right++;
	return (unsigned char) *left - (unsigned char) *right;
}

static bool is_next_twice(char *const *items, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		if (compare_names(&items[0], &items[i]) == 0)
			return true;
	}
	return false;
}

static int check_names(const struct strv *pairs)
{
	CLEANUP(mem_free) char **sorted = NULL;
	char *const *items = pairs->items;
	size_t ahead = pairs->count;
	bool is_twice = false;

	if (pairs->count > FEW_VARIABLES) {
		sorted = malloc(pairs->count * sizeof(*sorted));
		if (!sorted)
			return -ENOMEM;
		memcpy(sorted, items, pairs->count * sizeof(*sorted));
		qsort(sorted, pairs->count, sizeof(*sorted), compare_names);
		items = sorted;
		ahead = 2;
	}
	for (size_t i = 0; i < pairs->count && !is_twice; i++) {
		const size_t left = pairs->count - i;

		is_twice = is_next_twice(items + i, left < ahead ? left : ahead);
	}
	return is_twice ? -EBADMSG : 0;
}

/* -EINVAL: it is none, and is left out.  The first is told. */
static int take_variable(struct json_scan *at, const struct json_name *name, struct buf *pair,
                         struct strv *pairs, struct resoluto_err *first)
{
	struct resoluto_err *err = first && first->code ? NULL : first;
	const int len = name->len < 100 ? (int) name->len : 100;

	if (json_scan_peek(at) != '"') {
		resoluto_fail(err, -EINVAL, "the variable %.*s is not a string", len, name->text);
		return json_scan_skip(at) < 0 ? -EBADMSG : -EINVAL;
	}
	forget(pair);
	if (buf_add(pair, name->text, name->len) < 0 || buf_add(pair, "=", 1) < 0)
		return -ENOMEM;
	if (json_scan_string(at, pair) < 0 || at->has_nul)
		return -EBADMSG;
	if (name->len == 0 || memchr(name->text, '=', name->len))
		return resoluto_fail(err, -EINVAL, "'%.*s' is not a name of a variable", len,
		                     name->text);
	return strv_add(pairs, pair->data);
}

int job_read_variables(struct json_scan at, struct strv *pairs, struct resoluto_err *ret_complaint)
{
	CLEANUP(forget_and_free) struct buf pair = BUF_INIT(FRAME_JOB_MAX);
	CLEANUP(buf_done) struct buf scratch = BUF_INIT(FRAME_JOB_MAX);
	struct json_name name;
	int r = json_scan_object(&at);

	if (r == 0)
		r = make_room(&pair, &at);
	for (bool is_first = true; r == 0; is_first = false) {
		r = json_scan_key(&at, is_first, &scratch, &name);
		if (r <= 0)
			break;
		r = take_variable(&at, &name, &pair, pairs, ret_complaint);
		if (r == -EINVAL)
			r = 0;
	}
	return r < 0 ? r : check_names(pairs);
}
