/* SPDX-License-Identifier: Apache-2.0 */
/* result.c - the end of a result, and the result as JSON (interfaces section 2). */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "resoluto/sandbox.h"
#include "wire/base64.h"
#include "wire/json_text.h"
#include "wire/quota.h"
#include "wire/utf8.h"

enum { RESULT_SCHEMA = 1 };

static void free_strings(char **strings)
{
	for (char **string = strings; string && *string; string++)
		free(*string);
	free(strings);
}

void resoluto_result_free(struct resoluto_result *result)
{
	if (!result)
		return;
	free_strings(result->artifacts);
	free_strings(result->warnings);
	free(result->run_id);
	free(result->reason);
	free(result->detail);
	free(result->output);
	free(result->out);
	free(result->errors);
	free(result->result_json);
	free(result->isolation_json);
	free(result->canary_json);
	free(result->egress_json);
	free(result->image_ref);
	free(result->image_digest);
	free(result->substrate_logs);
	free(result->staging.why);
	free(result);
}

static bool is_text(const char *bytes, size_t len)
{
	return len == 0 || (utf8_is_valid(bytes, len) && !memchr(bytes, '\0', len));
}

static int add_base64_member(struct buf *out, const char *key, const char *bytes, size_t len)
{
	int r = buf_addf(out, ",\"%s\":\"", key);

	if (r == 0)
		r = base64_add(out, bytes ? bytes : "", len);
	return r < 0 ? r : buf_add_str(out, "\"");
}

static int add_text_member(struct buf *out, const char *key, const char *bytes, size_t len)
{
	int r = buf_addf(out, ",\"%s\":", key);

	return r < 0 ? r : json_add_string(out, bytes ? bytes : "", len, NULL);
}

/* "KEY_head_bytes" and "KEY_dropped_bytes": where a text was cut, and what is missing there. */
static int add_cut(struct buf *out, const char *key, size_t head_len, uint64_t dropped)
{
	return buf_addf(out, ",\"%s_head_bytes\":%zu,\"%s_dropped_bytes\":%llu", key, head_len, key,
	                (unsigned long long) dropped);
}

static int add_cuts(struct buf *out, const struct resoluto_result *result)
{
	int r = add_cut(out, "output", result->output_head_len, result->output_dropped_bytes);

	if (r == 0)
		r = add_cut(out, "stdout", result->out_head_len, result->out_dropped_bytes);
	if (r == 0)
		r = add_cut(out, "stderr", result->errors_head_len, result->errors_dropped_bytes);
	return r < 0 ? r
	             : buf_addf(out, ",\"output_is_complete\":%s",
	                        result->output_is_complete ? "true" : "false");
}

static int add_output(struct buf *out, const struct resoluto_result *result)
{
	bool as_text = is_text(result->output, result->output_len) &&
	               is_text(result->out, result->out_len) &&
	               is_text(result->errors, result->errors_len);
	int (*add)(struct buf * out, const char *key, const char *bytes,
	           size_t len) = as_text ? add_text_member : add_base64_member;
	int r = add(out, "output", result->output, result->output_len);

	if (r == 0)
		r = json_add_member(out, "output_encoding", as_text ? "utf-8" : "base64");
	if (r == 0)
		r = add_cuts(out, result);
	/* The original's member, always empty there. */
	if (r == 0)
		r = json_add_member(out, "errors", "");
	if (r == 0)
		r = add(out, "stdout", result->out, result->out_len);
	return r < 0 ? r : add(out, "stderr", result->errors, result->errors_len);
}

static const char *json_bool(bool value)
{
	return value ? "true" : "false";
}

static int add_verdict(struct buf *out, const struct resoluto_result *result)
{
	int r = buf_addf(out, "{\"schema\":%d", RESULT_SCHEMA);

	if (r == 0)
		r = json_add_member(out, "run_id", result->run_id);
	if (r == 0)
		r = buf_addf(out, ",\"ran\":%s,\"ok\":%s,\"exit_code\":%d", json_bool(result->ran),
		             json_bool(result->ok), result->exit_code);
	if (r == 0)
		r = result->signal > 0 ? buf_addf(out, ",\"signal\":%d", result->signal)
		                       : buf_add_str(out, ",\"signal\":null");
	if (r == 0)
		r = json_add_member(out, "reason", result->reason);
	return r < 0 ? r
	             : json_add_member(out, "disposition",
	                               resoluto_disposition_name(result->disposition));
}

static int add_strings(struct buf *out, const char *key, char *const *strings)
{
	int r = buf_addf(out, ",\"%s\":[", key);

	for (size_t i = 0; strings && strings[i] && r == 0; i++) {
		r = i > 0 ? buf_add_str(out, ",") : 0;
		if (r == 0)
			r = json_add_cstring(out, strings[i]);
	}
	return r < 0 ? r : buf_add_str(out, "]");
}

/* JSON that is already text; what is not there is `otherwise`. */
static int add_json_member(struct buf *out, const char *key, const char *json,
                           const char *otherwise)
{
	int r = buf_addf(out, ",\"%s\":", key);

	return r < 0 ? r : json_add_text(out, json ? json : otherwise);
}

static int add_string_or_null(struct buf *out, const char *text)
{
	return text ? json_add_cstring(out, text) : buf_add_str(out, "null");
}

static int add_image(struct buf *out, const struct resoluto_result *result)
{
	int r = buf_add_str(out, ",\"image\":{\"ref\":");

	if (r == 0)
		r = add_string_or_null(out, result->image_ref);
	if (r == 0)
		r = buf_add_str(out, ",\"digest\":");
	if (r == 0)
		r = add_string_or_null(out, result->image_digest);
	return r < 0 ? r : buf_add_str(out, "}");
}

static int add_timings(struct buf *out, const struct resoluto_timings *timings)
{
	const struct {
		const char *name;
		uint64_t ms;
	} steps[] = {
		{ "queue", timings->queue },     { "stage", timings->stage },
		{ "boot", timings->boot },       { "canary", timings->canary },
		{ "setup", timings->setup },     { "run", timings->run },
		{ "collect", timings->collect }, { "total", timings->total },
	};
	int r = buf_add_str(out, ",\"timings_ms\":{");

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && r == 0; i++)
		r = buf_addf(out, "%s\"%s\":%llu", i > 0 ? "," : "", steps[i].name,
		             (unsigned long long) steps[i].ms);
	return r < 0 ? r : buf_add_str(out, "}");
}

static int add_quota(struct buf *out, const struct resoluto_result *result, enum quota quota,
                     bool is_first)
{
	const char *name = quota_name(quota);
	const bool exceeded = result->quota && strcmp(result->quota, name) == 0;

	return buf_addf(out, "%s\"%s\":{\"limit\":%llu,\"unit\":\"%s\",\"exceeded\":%s}",
	                is_first ? "" : ",", name,
	                (unsigned long long) quota_limit(&result->quotas, quota), quota_unit(quota),
	                json_bool(exceeded));
}

/* None are known of a run that another process has in its foreground. */
static int add_quotas(struct buf *out, const struct resoluto_result *result)
{
	int r = buf_add_str(out, ",\"quotas\":{");

	for (int i = QUOTA_NONE + 1; r == 0 && result->quotas.bytes && i < QUOTA_COUNT; i++)
		r = add_quota(out, result, (enum quota) i, i == QUOTA_NONE + 1);
	return r < 0 ? r : buf_add_str(out, "}");
}

static int add_all(struct buf *out, const struct resoluto_result *result)
{
	int r = add_verdict(out, result);

	if (r == 0)
		r = add_output(out, result);
	if (r == 0)
		r = add_strings(out, "artifacts", result->artifacts);
	if (r == 0)
		r = add_json_member(out, "result", result->result_json, "null");
	if (r == 0)
		r = add_json_member(out, "isolation", result->isolation_json, "null");
	if (r == 0)
		r = add_image(out, result);
	if (r == 0)
		r = add_timings(out, &result->timings_ms);
	if (r == 0)
		r = add_json_member(out, "canary", result->canary_json, "[]");
	if (r == 0)
		r = add_strings(out, "warnings", result->warnings);
	if (r == 0)
		r = add_json_member(out, "egress", result->egress_json, "[]");
	if (r == 0)
		r = add_quotas(out, result);
	if (r == 0)
		r = buf_addf(out, ",\"redactions\":%llu", (unsigned long long) result->redactions);
	if (r == 0)
		r = json_add_member(out, "substrate_logs", result->substrate_logs);
	return r < 0 ? r : buf_add_str(out, "}");
}

char *resoluto_result_to_json(const struct resoluto_result *result)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(SIZE_MAX / 4);

	return !result || add_all(&out, result) < 0 ? NULL : buf_take(&out);
}
