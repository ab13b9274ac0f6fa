/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "wire/json_text.h"
#include "wire/keys.h"
#include "wire/result.h"
#include "wire/utf8.h"

enum {
	EXIT_CODE_MAX = 255,
	SIGNAL_MAX = 64,   /* the largest signal number of Linux */
	SIGNAL_EXIT = 128, /* a death by signal N is exit code 128 + N */
};

static int add_json(struct buf *out, const char *key, json_t *value)
{
	char *text;
	int r;

	if (!value)
		return 0;
	text = json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII);
	if (!text)
		return -ENOMEM;
	r = buf_addf(out, ",\"%s\":%s", key, text);
	free(text);
	return r;
}

static int add_optional_number(struct buf *out, const char *key, bool is_there, int value)
{
	return is_there ? buf_addf(out, ",\"%s\":%d", key, value)
	                : buf_addf(out, ",\"%s\":null", key);
}

static const char *json_bool(bool value)
{
	return value ? "true" : "false";
}

/* The members of the seed's NodeResult that a guest fills in. */
static int add_verdict(struct buf *out, const struct node_result *result)
{
	int r = json_add_member(out, "node_id", result->node_id);

	if (r == 0)
		r = json_add_member(out, "status", result->success ? "success" : "failure");
	if (r == 0)
		r = add_optional_number(out, "exit_code", result->has_exit_code, result->exit_code);
	if (r == 0)
		r = result->output_archive
		            ? json_add_member(out, "output_archive", result->output_archive)
		            : buf_add_str(out, ",\"output_archive\":null");
	return r < 0 ? r : json_add_member(out, "reason", result->reason);
}

static int add_extras(struct buf *out, const struct node_result *result)
{
	int r = json_add_member(out, "detail", result->detail);

	if (r == 0)
		r = add_optional_number(out, "signal", result->signal > 0, result->signal);
	if (r == 0)
		r = buf_addf(out, ",\"ran\":%s", json_bool(result->ran));
	if (r == 0)
		r = json_add_member(out, "guest_boot_id", result->guest_boot_id);
	if (r == 0)
		r = add_json(out, "timings_ms", result->timings_ms);
	if (r == 0)
		r = add_json(out, "canary", result->canary);
	if (r == 0)
		r = buf_addf(out, ",\"redactions\":%llu", (unsigned long long) result->redactions);
	return r < 0 ? r
	             : buf_addf(out, ",\"output_is_complete\":%s",
	                        json_bool(result->output_is_complete));
}

int node_result_write(struct buf *out, const struct node_result *result)
{
	size_t start = out->len;
	int r = buf_add_str(out, "{");

	if (r == 0)
		r = add_verdict(out, result);
	if (r == 0)
		r = add_extras(out, result);
	if (r == 0)
		r = buf_add_str(out, "}\n");
	if (r == 0 && out->len - start > RESULT_JSON_MAX)
		r = -E2BIG;
	if (r < 0)
		buf_cut(out, start);
	return r;
}

static int refuse(struct resoluto_err *err, const char *key, const char *what)
{
	return resoluto_fail(err, -EBADMSG, "%s %s", key, what);
}

/* NULL and absent count as `otherwise`. */
static int get_string(json_t *root, const char *key, const char *otherwise, const char **ret_text,
                      struct resoluto_err *err)
{
	json_t *value = json_object_get(root, key);

	*ret_text = otherwise;
	if (!value || json_is_null(value))
		return 0;
	if (!json_is_string(value))
		return refuse(err, key, "is no string");
	*ret_text = json_string_value(value);
	return 0;
}

/* The same, cut to RESULT_STRING_MAX bytes at the edge of a character. */
static int get_short_string(json_t *root, const char *key, const char **ret_text,
                            struct resoluto_err *err)
{
	int r = get_string(root, key, "", ret_text, err);
	size_t len = RESULT_STRING_MAX;

	if (r < 0 || strlen(*ret_text) <= RESULT_STRING_MAX)
		return r;
	len -= utf8_open_tail((const uint8_t *) *ret_text, len);
	if (json_string_setn(json_object_get(root, key), *ret_text, len) < 0)
		return resoluto_fail(err, -ENOMEM, "out of memory");
	*ret_text = json_string_value(json_object_get(root, key));
	return 0;
}

static int get_bool(json_t *root, const char *key, bool otherwise, bool *ret_value,
                    struct resoluto_err *err)
{
	json_t *value = json_object_get(root, key);

	*ret_value = value ? json_is_true(value) : otherwise;
	return !value || json_is_boolean(value) ? 0 : refuse(err, key, "is neither true nor false");
}

/* 0: null or absent. 1: *ret_value is set. */
static int get_number(json_t *root, const char *key, long long min, long long max,
                      long long *ret_value, struct resoluto_err *err)
{
	json_t *value = json_object_get(root, key);

	if (!value || json_is_null(value))
		return 0;
	if (!json_is_integer(value) || json_integer_value(value) < min ||
	    json_integer_value(value) > max)
		return refuse(err, key, "is no whole number in its range");
	*ret_value = json_integer_value(value);
	return 1;
}

static int get_status(json_t *root, bool *ret_success, struct resoluto_err *err)
{
	const char *status;
	int r = get_string(root, "status", "", &status, err);

	if (r < 0)
		return r;
	*ret_success = strcmp(status, "success") == 0;
	if (!*ret_success && strcmp(status, "failure") != 0)
		return refuse(err, "status", "is neither success nor failure");
	return 0;
}

/* The original tells a death by signal N as the exit code -N. */
static int get_exit(json_t *root, struct node_result *result, struct resoluto_err *err)
{
	long long code = 0, number = 0;
	int r = get_number(root, "exit_code", -SIGNAL_MAX, EXIT_CODE_MAX, &code, err);

	if (r < 0)
		return r;
	result->has_exit_code = r == 1;
	if (code < 0) {
		number = -code;
		code = SIGNAL_EXIT + number;
	}
	r = get_number(root, "signal", 1, SIGNAL_MAX, &number, err);
	result->exit_code = (int) code;
	result->signal = (int) number;
	return r < 0 ? r : 0;
}

/* The original writes the whole key, prefix included; what counts here is what follows the prefix. */
static int get_archive(json_t *root, const char **ret_key, struct resoluto_err *err)
{
	const char *key, *name;
	uint32_t number;
	int r = get_string(root, "output_archive", NULL, &key, err);

	*ret_key = NULL;
	if (r < 0 || !key)
		return r;
	name = strrchr(key, '/');
	while (name && name > key && name[-1] != '/')
		name--;
	if (!name || key_classify(name, strlen(name), &number) != KEY_IS_OUTBOX)
		return refuse(err, "output_archive", "is no key of the outbox");
	*ret_key = name;
	return 0;
}

static int get_extras(json_t *root, struct node_result *result, struct resoluto_err *err)
{
	long long redactions = 0;
	int r = get_short_string(root, "detail", &result->detail, err);

	if (r == 0)
		r = get_string(root, "guest_boot_id", "", &result->guest_boot_id, err);
	if (r == 0)
		r = get_bool(root, "ran", result->has_exit_code, &result->ran, err);
	if (r == 0)
		r = get_bool(root, "output_is_complete", true, &result->output_is_complete, err);
	if (r == 0)
		r = get_number(root, "redactions", 0, INT64_MAX, &redactions, err);
	if (r < 0)
		return r;
	result->redactions = (uint64_t) redactions;
	result->timings_ms = json_object_get(root, "timings_ms");
	if (result->timings_ms && !json_is_object(result->timings_ms))
		return refuse(err, "timings_ms", "is no object");
	result->canary = json_object_get(root, "canary");
	if (result->canary && !json_is_array(result->canary))
		return refuse(err, "canary", "is no array");
	return 0;
}

static int get_result(json_t *root, struct node_result *result, struct resoluto_err *err)
{
	int r = get_string(root, "node_id", "", &result->node_id, err);

	if (r == 0)
		r = get_status(root, &result->success, err);
	if (r == 0)
		r = get_exit(root, result, err);
	if (r == 0)
		r = get_archive(root, &result->output_archive, err);
	if (r == 0)
		r = get_short_string(root, "reason", &result->reason, err);
	return r < 0 ? r : get_extras(root, result, err);
}

/* An object, or NULL with the reason. */
static json_t *load_object(const char *json, size_t len, size_t max, struct resoluto_err *err)
{
	json_error_t error;
	json_t *root;

	if (len > max) {
		resoluto_fail(err, -EBADMSG, "larger than %zu bytes", max);
		return NULL;
	}
	if (!json_is_tame(json, len)) {
		resoluto_fail(err, -EBADMSG, "nested too deep");
		return NULL;
	}
	root = json_loadb(json, len, JSON_REJECT_DUPLICATES, &error);
	if (!json_is_object(root)) {
		resoluto_fail(err, -EBADMSG, "%s", root ? "no JSON object" : "not JSON");
		json_decref(root);
		return NULL;
	}
	return root;
}

int node_result_parse(const char *json, size_t len, struct node_result_doc *ret_doc,
                      struct resoluto_err *err)
{
	int r;

	*ret_doc = (struct node_result_doc){ 0 };
	ret_doc->root = load_object(json, len, RESULT_JSON_MAX, err);
	if (!ret_doc->root)
		return -EBADMSG;
	r = get_result(ret_doc->root, &ret_doc->result, err);
	if (r < 0)
		node_result_doc_done(ret_doc);
	return r;
}

void node_result_doc_done(struct node_result_doc *doc)
{
	json_decref(doc->root);
	*doc = (struct node_result_doc){ 0 };
}

int manifest_write(struct buf *out, uint32_t total_chunks)
{
	return buf_addf(out, "{\"total_chunks\": %u}\n", total_chunks);
}

int manifest_parse(const char *json, size_t len, uint32_t *ret_total_chunks)
{
	json_t *root = load_object(json, len, MANIFEST_JSON_MAX, NULL), *total;
	int r = -EBADMSG;

	total = json_object_get(root, "total_chunks");
	if (json_is_integer(total) && json_integer_value(total) >= 0 &&
	    json_integer_value(total) <= KEY_CHUNK_MAX) {
		*ret_total_chunks = (uint32_t) json_integer_value(total);
		r = 0;
	}
	json_decref(root);
	return r;
}
