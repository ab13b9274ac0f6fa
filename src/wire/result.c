/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "wire/json_read.h"
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
		r = add_json(out, "warnings", result->warnings);
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

/* As JSON Schema counts: 3.0 is a whole number, too. */
static bool is_whole(const json_t *value, long long min, long long max, long long *ret_number)
{
	double real = json_real_value(value);

	if (json_is_integer(value))
		*ret_number = json_integer_value(value);
	else if (json_is_real(value) && real > -0x1p63 && real < 0x1p63 &&
	         real == (double) (long long) real)
		*ret_number = (long long) real;
	else
		return false;
	return *ret_number >= min && *ret_number <= max;
}

static bool is_text(const json_t *value)
{
	return json_is_string(value);
}

static bool is_truth(const json_t *value)
{
	return json_is_boolean(value);
}

static bool is_exit_code(const json_t *value)
{
	long long code;

	return is_whole(value, -SIGNAL_MAX, EXIT_CODE_MAX, &code);
}

static bool is_signal(const json_t *value)
{
	long long number;

	return is_whole(value, 1, SIGNAL_MAX, &number);
}

static bool is_count(const json_t *value)
{
	long long number;

	return is_whole(value, 0, INT64_MAX, &number);
}

static bool are_timings(const json_t *value)
{
	const char *key;
	json_t *time;

	json_object_foreach((json_t *) value, key, time)
	{
		if (!json_is_number(time))
			return false;
	}
	return json_is_object(value);
}

static bool are_texts(const json_t *value)
{
	json_t *text;
	size_t i;

	json_array_foreach(value, i, text)
	{
		if (!json_is_string(text))
			return false;
	}
	return json_is_array(value);
}

static bool are_probes(const json_t *value)
{
	json_t *probe;
	size_t i;

	json_array_foreach(value, i, probe)
	{
		const json_t *detail = json_object_get(probe, "detail");

		if (!json_is_string(json_object_get(probe, "probe")) ||
		    !json_is_boolean(json_object_get(probe, "ok")) ||
		    (detail && !json_is_string(detail)))
			return false;
	}
	return json_is_array(value);
}

/* spec/result.schema.json as a table: tests/interop/test_documents.py holds the two to each other.  Members
 * that it does not name are passed over. */
static const struct member {
	const char *key;
	bool (*is_right)(const json_t *value);
	bool may_be_null;
	const char *otherwise;
} members[] = {
	{ "node_id", is_text, false, "is no string" },
	{ "status", is_text, false, "is no string" },
	{ "exit_code", is_exit_code, true, "is no whole number from -64 to 255" },
	{ "output_archive", is_text, true, "is no string" },
	{ "observed_phase", is_text, false, "is no string" },
	{ "reason", is_text, false, "is no string" },
	{ "substrate_logs", is_text, false, "is no string" },
	{ "detail", is_text, true, "is no string" },
	{ "signal", is_signal, true, "is no whole number from 1 to 64" },
	{ "ran", is_truth, false, "is neither true nor false" },
	{ "guest_boot_id", is_text, true, "is no string" },
	{ "timings_ms", are_timings, false, "is no object of numbers" },
	{ "canary", are_probes, false, "is no array of probes" },
	{ "warnings", are_texts, false, "is no array of strings" },
	{ "redactions", is_count, false, "is no whole number from 0 up" },
	{ "output_is_complete", is_truth, false, "is neither true nor false" },
};

static int check_members(const json_t *root, struct resoluto_err *err)
{
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		const struct member *member = &members[i];
		const json_t *value = json_object_get(root, member->key);

		if (value && !(member->may_be_null && json_is_null(value)) &&
		    !member->is_right(value))
			return refuse(err, member->key, member->otherwise);
	}
	return 0;
}

/* The getters below know that the types are right. */
static const char *get_text(const json_t *root, const char *key, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(root, key));

	return text ? text : otherwise;
}

static bool get_truth(const json_t *root, const char *key, bool otherwise)
{
	const json_t *value = json_object_get(root, key);

	return value ? json_is_true(value) : otherwise;
}

/* false: null or absent, and *ret_number is as it was. */
static bool get_number(const json_t *root, const char *key, long long *ret_number)
{
	return is_whole(json_object_get(root, key), LLONG_MIN, LLONG_MAX, ret_number);
}

/* Cut to RESULT_STRING_MAX bytes at the edge of a character. */
static int get_short_text(json_t *root, const char *key, const char **ret_text,
                          struct resoluto_err *err)
{
	size_t len = RESULT_STRING_MAX;

	*ret_text = get_text(root, key, "");
	if (strlen(*ret_text) <= RESULT_STRING_MAX)
		return 0;
	len -= utf8_open_tail((const uint8_t *) *ret_text, len);
	if (json_string_setn(json_object_get(root, key), *ret_text, len) < 0)
		return resoluto_fail(err, -ENOMEM, "out of memory");
	*ret_text = json_string_value(json_object_get(root, key));
	return 0;
}

static int get_status(const json_t *root, bool *ret_success, struct resoluto_err *err)
{
	const char *status = get_text(root, "status", "");

	*ret_success = strcmp(status, "success") == 0;
	if (!*ret_success && strcmp(status, "failure") != 0)
		return refuse(err, "status", "is neither success nor failure");
	return 0;
}

/* The original tells a death by signal N as the exit code -N. */
static void get_exit(const json_t *root, struct node_result *result)
{
	long long code = 0, number = 0;

	result->has_exit_code = get_number(root, "exit_code", &code);
	if (code < 0) {
		number = -code;
		code = SIGNAL_EXIT + number;
	}
	(void) get_number(root, "signal", &number);
	result->exit_code = (int) code;
	result->signal = (int) number;
}

/* The original writes the whole key, prefix included; what counts here is what follows the prefix. */
static int get_archive(const json_t *root, const char **ret_key, struct resoluto_err *err)
{
	const char *key = get_text(root, "output_archive", NULL), *name;
	uint32_t number;

	*ret_key = NULL;
	if (!key)
		return 0;
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

	(void) get_number(root, "redactions", &redactions);
	result->redactions = (uint64_t) redactions;
	result->guest_boot_id = get_text(root, "guest_boot_id", "");
	result->ran = get_truth(root, "ran", result->has_exit_code);
	result->output_is_complete = get_truth(root, "output_is_complete", true);
	result->timings_ms = json_object_get(root, "timings_ms");
	result->canary = json_object_get(root, "canary");
	result->warnings = json_object_get(root, "warnings");
	return get_short_text(root, "detail", &result->detail, err);
}

static int get_result(json_t *root, struct node_result *result, struct resoluto_err *err)
{
	int r = check_members(root, err);

	if (r == 0)
		r = get_status(root, &result->success, err);
	if (r == 0)
		r = get_archive(root, &result->output_archive, err);
	if (r == 0)
		r = get_short_text(root, "reason", &result->reason, err);
	if (r < 0)
		return r;
	result->node_id = get_text(root, "node_id", "");
	get_exit(root, result);
	return get_extras(root, result, err);
}

static int load_object(const char *json, size_t len, size_t max, json_t **ret_root,
                       struct resoluto_err *err)
{
	int r;

	*ret_root = NULL;
	if (len > max)
		return resoluto_fail(err, -EBADMSG, "larger than %zu bytes", max);
	if (!json_is_tame(json, len))
		return resoluto_fail(err, -EBADMSG, "nested too deep");
	r = json_read(json, len, JSON_REJECT_DUPLICATES, ret_root);
	if (r < 0)
		return resoluto_fail(err, r, r == -ENOMEM ? "read JSON" : "not JSON");
	if (json_is_object(*ret_root))
		return 0;
	json_decref(*ret_root);
	*ret_root = NULL;
	return resoluto_fail(err, -EBADMSG, "no JSON object");
}

int node_result_parse(const char *json, size_t len, struct node_result_doc *ret_doc,
                      struct resoluto_err *err)
{
	int r;

	*ret_doc = (struct node_result_doc){ 0 };
	r = load_object(json, len, RESULT_JSON_MAX, &ret_doc->root, err);
	if (r < 0)
		return r;
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
	json_t *root;
	long long total;
	bool is_one;
	int r = load_object(json, len, MANIFEST_JSON_MAX, &root, NULL);

	if (r < 0)
		return r;
	is_one = is_whole(json_object_get(root, "total_chunks"), 0, KEY_CHUNK_MAX, &total);
	json_decref(root);
	if (!is_one)
		return -EBADMSG;
	*ret_total_chunks = (uint32_t) total;
	return 0;
}
