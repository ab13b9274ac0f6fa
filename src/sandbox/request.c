/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "conduit/local.h"
#include "sandbox/backend.h"
#include "sandbox/request.h"
#include "wire/json_read.h"
#include "wire/json_text.h"

enum { REQUEST_SCHEMA = 1, REQUEST_KEY_SIZE = 128 };

void request_done(struct request *request)
{
	free(request->program);
	free(request->image_ref);
	free(request->image_digest);
	strv_done(&request->outputs);
	*request = (struct request){ 0 };
}

static int add_number(struct buf *out, const char *key, uint64_t number)
{
	return buf_addf(out, ",\"%s\":%llu", key, (unsigned long long) number);
}

static int add_outputs(struct buf *out, const struct strv *outputs)
{
	int r = buf_add_str(out, ",\"outputs\":[");

	for (size_t i = 0; i < outputs->count && r == 0; i++) {
		r = i > 0 ? buf_add_str(out, ",") : 0;
		if (r == 0)
			r = json_add_cstring(out, outputs->items[i]);
	}
	return r < 0 ? r : buf_add_str(out, "]");
}

static int add_quotas(struct buf *out, const struct resoluto_quotas *quotas)
{
	return buf_addf(out,
	                ",\"quotas\":{\"bytes\":%llu,\"objects\":%llu,\"archive_bytes\":%llu,"
	                "\"members\":%llu,\"ratio\":%llu}",
	                (unsigned long long) quotas->bytes, (unsigned long long) quotas->objects,
	                (unsigned long long) quotas->archive_bytes,
	                (unsigned long long) quotas->members, (unsigned long long) quotas->ratio);
}

int request_write(struct buf *out, const struct request *request)
{
	int r = buf_addf(out, "{\"schema\":%d", REQUEST_SCHEMA);

	if (r == 0)
		r = add_number(out, "launched_ms", request->launched_ms);
	if (r == 0)
		r = json_add_member(out, "program", request->program ? request->program : "");
	if (r == 0)
		r = json_add_member(out, "image", request->image_ref ? request->image_ref : "");
	if (r == 0)
		r = json_add_member(out, "digest",
		                    request->image_digest ? request->image_digest : "");
	if (r == 0)
		r = json_add_member(out, "host_boot_id", request->host_boot_id);
	if (r == 0)
		r = add_outputs(out, &request->outputs);
	if (r == 0)
		r = add_number(out, "dead_after_ms", request->dead_after_ms);
	if (r == 0)
		r = add_number(out, "queue_ms", request->queue_ms);
	if (r == 0)
		r = add_number(out, "stage_ms", request->stage_ms);
	if (r == 0)
		r = add_quotas(out, &request->quotas);
	return r < 0 ? r : buf_add_str(out, "}");
}

static int take_text(const json_t *root, const char *key, char **ret_text)
{
	const char *text = json_string_value(json_object_get(root, key));

	*ret_text = strdup(text ? text : "");
	return *ret_text ? 0 : -ENOMEM;
}

static uint64_t number_of(const json_t *root, const char *key)
{
	json_int_t number = json_integer_value(json_object_get(root, key));

	return number > 0 ? (uint64_t) number : 0;
}

static int take_outputs(const json_t *root, struct strv *outputs)
{
	const json_t *list = json_object_get(root, "outputs");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *pattern = json_string_value(json_array_get(list, i));
		int r = pattern ? strv_add(outputs, pattern) : -EBADMSG;

		if (r < 0)
			return r;
	}
	return json_is_array(list) ? 0 : -EBADMSG;
}

static void take_quotas(const json_t *list, struct resoluto_quotas *quotas)
{
	quotas->bytes = number_of(list, "bytes");
	quotas->objects = number_of(list, "objects");
	quotas->archive_bytes = number_of(list, "archive_bytes");
	quotas->members = number_of(list, "members");
	quotas->ratio = number_of(list, "ratio");
}

static int take_all(const json_t *root, struct request *request)
{
	const char *boot_id = json_string_value(json_object_get(root, "host_boot_id"));
	int r = 0;

	if (json_integer_value(json_object_get(root, "schema")) != REQUEST_SCHEMA || !boot_id ||
	    strlen(boot_id) >= sizeof(request->host_boot_id))
		return -EBADMSG;
	memcpy(request->host_boot_id, boot_id, strlen(boot_id) + 1);
	request->launched_ms = number_of(root, "launched_ms");
	request->dead_after_ms = number_of(root, "dead_after_ms");
	request->queue_ms = number_of(root, "queue_ms");
	request->stage_ms = number_of(root, "stage_ms");
	take_quotas(json_object_get(root, "quotas"), &request->quotas);
	r = take_text(root, "program", &request->program);
	if (r == 0)
		r = take_text(root, "image", &request->image_ref);
	if (r == 0)
		r = take_text(root, "digest", &request->image_digest);
	return r < 0 ? r : take_outputs(root, &request->outputs);
}

int request_parse(const char *json, size_t len, struct request *ret_request,
                  struct resoluto_err *err)
{
	json_t *root;
	struct request request = { 0 };
	int r = json_read(json, len, 0, &root);

	if (r == 0)
		r = take_all(root, &request);
	json_decref(root);
	if (r < 0) {
		request_done(&request);
		return resoluto_fail(err, r, "the record of the launch is not one of this version");
	}
	*ret_request = request;
	return 0;
}

static void name_key(const char *id, char ret_key[REQUEST_KEY_SIZE])
{
	snprintf(ret_key, REQUEST_KEY_SIZE, PLACE_LAUNCH "/%s/request.json", id);
}

int request_put(struct resoluto_conduit *records, const char *id, const struct request *request,
                bool is_lasting, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(REQUEST_MAX);
	char key[REQUEST_KEY_SIZE];
	int r = request_write(&json, request);

	if (r < 0)
		return resoluto_fail(err, r, "note what was asked for");
	name_key(id, key);
	if (!is_lasting && conduit_local_root(records) >= 0)
		return conduit_local_put_at(conduit_local_root(records), key, json.data, json.len,
		                            LOCAL_RENAME_ONLY, err);
	return resoluto_conduit_put_bytes(records, key, json.data, json.len, err);
}

int request_get(struct resoluto_conduit *records, const char *id, struct request *ret_request,
                struct resoluto_err *err)
{
	CLEANUP(mem_free) char *json = NULL;
	char key[REQUEST_KEY_SIZE];
	size_t len = 0;
	int r;

	name_key(id, key);
	r = resoluto_conduit_get_bytes(records, key, REQUEST_MAX, &json, &len, err);
	return r < 0 ? r : request_parse(json, len, ret_request, err);
}
