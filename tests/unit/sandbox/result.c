/* SPDX-License-Identifier: Apache-2.0 */
/* result.c - a result as JSON: exactly the members of interfaces section 2, whatever bytes are in it. */
#include <jansson.h>

#include "check.h"
#include "resoluto/sandbox.h"

static json_t *parsed(const struct resoluto_result *result)
{
	char *text = resoluto_result_to_json(result);
	json_t *json;

	CHECK(text && !strchr(text, '\n'));
	for (const char *c = text; *c; c++)
		CHECK((unsigned char) *c < 0x80);
	json = json_loads(text, JSON_ALLOW_NUL, NULL);
	CHECK(json);
	free(text);
	return json;
}

static const char *string_of(const json_t *json, const char *key)
{
	return json_string_value(json_object_get(json, key));
}

static json_int_t number_of(json_t *json, const char *key)
{
	return json_integer_value(json_object_get(json, key));
}

static void members_and_order(void)
{
	static const char *const members[] = {
		"schema",
		"run_id",
		"ran",
		"ok",
		"exit_code",
		"signal",
		"reason",
		"disposition",
		"output",
		"output_encoding",
		"output_head_bytes",
		"output_dropped_bytes",
		"stdout_head_bytes",
		"stdout_dropped_bytes",
		"stderr_head_bytes",
		"stderr_dropped_bytes",
		"output_is_complete",
		"errors",
		"stdout",
		"stderr",
		"artifacts",
		"result",
		"isolation",
		"image",
		"timings_ms",
		"canary",
		"warnings",
		"egress",
		"quotas",
		"redactions",
		"substrate_logs",
	};
	struct resoluto_result result = { 0 };
	json_t *json = parsed(&result);
	size_t count = 0;
	const char *key;
	json_t *value;

	json_object_foreach(json, key, value)
	{
		CHECK_STR(key, members[count]);
		count++;
	}
	CHECK(count == sizeof(members) / sizeof(members[0]));
	json_decref(json);
}

static void text_stays_text(void)
{
	struct resoluto_result result = {
		.output = "a\xc3\xa4\n\x1b",
		.output_len = 5,
		.out = "a\xc3\xa4\n",
		.out_len = 4,
		.errors = "\x1b",
		.errors_len = 1,
	};
	json_t *json = parsed(&result);

	CHECK_STR(string_of(json, "output_encoding"), "utf-8");
	CHECK_STR(string_of(json, "output"), "a\xc3\xa4\n\x1b");
	CHECK_STR(string_of(json, "stdout"), "a\xc3\xa4\n");
	CHECK_STR(string_of(json, "stderr"), "\x1b");
	CHECK_STR(string_of(json, "errors"), "");
	json_decref(json);
}

/* One stream that is no text makes all three base64. */
static void bytes_become_base64(void)
{
	static const struct {
		const char *errors;
		size_t len;
		const char *base64;
	} bytes[] = { { "\xff", 1, "/w==" }, { "a\0b", 3, "YQBi" }, { "\xed\xa0\x80", 3, "7aCA" } };

	for (size_t i = 0; i < 3; i++) {
		struct resoluto_result result = {
			.output = "hello",
			.output_len = 5,
			.out = "hello",
			.out_len = 5,
			.errors = (char *) bytes[i].errors,
			.errors_len = bytes[i].len,
		};
		json_t *json = parsed(&result);

		CHECK_STR(string_of(json, "output_encoding"), "base64");
		CHECK_STR(string_of(json, "output"), "aGVsbG8=");
		CHECK_STR(string_of(json, "stdout"), "aGVsbG8=");
		CHECK_STR(string_of(json, "stderr"), bytes[i].base64);
		json_decref(json);
	}
}

static void names_and_logs_of_any_bytes(void)
{
	char *artifacts[] = { "a.txt", "b\xff\n", NULL };
	struct resoluto_result result = { .artifacts = artifacts, .substrate_logs = "boot\xfe\n" };
	json_t *json = parsed(&result), *list = json_object_get(json, "artifacts");

	CHECK_STR(json_string_value(json_array_get(list, 0)), "a.txt");
	CHECK_STR(json_string_value(json_array_get(list, 1)), "b\xef\xbf\xbd\n");
	CHECK_STR(string_of(json, "substrate_logs"), "boot\xef\xbf\xbd\n");
	json_decref(json);
}

static void quotas_are_told_with_their_units(void)
{
	struct resoluto_result result = { .quota = "members",
		                          .quotas = { .bytes = 1 << 20, .members = 7 } };
	json_t *json = parsed(&result), *quotas = json_object_get(json, "quotas"), *one;

	CHECK(json_object_size(quotas) == 5);
	one = json_object_get(quotas, "members");
	CHECK(json_integer_value(json_object_get(one, "limit")) == 7);
	CHECK_STR(string_of(one, "unit"), "members");
	CHECK(json_is_true(json_object_get(one, "exceeded")));
	one = json_object_get(quotas, "bytes");
	CHECK(json_integer_value(json_object_get(one, "limit")) == 1 << 20);
	CHECK_STR(string_of(one, "unit"), "bytes");
	CHECK(json_is_false(json_object_get(one, "exceeded")));
	json_decref(json);
	result = (struct resoluto_result){ 0 };
	json = parsed(&result);
	CHECK(json_object_size(json_object_get(json, "quotas")) == 0);
	json_decref(json);
}

static void what_is_there_is_passed_on(void)
{
	char *warnings[] = { "clock-rate: 30 % too fast", NULL };
	struct resoluto_result result = {
		.run_id = "r",
		.ran = true,
		.exit_code = 137,
		.signal = 9,
		.reason = "out-of-memory",
		.disposition = RESOLUTO_STOPPED,
		.result_json = "{\"a\":[1]}",
		.isolation_json = "{\"own_kernel\":true}",
		.warnings = warnings,
		.canary_json = "[{\"probe\":\"put\",\"ok\":true,\"detail\":\"\"}]",
		.image_ref = "i:1",
		.timings_ms = { .queue = 1, .total = 8 },
		.output_dropped_bytes = UINT64_MAX >> 1,
		.out_dropped_bytes = 1,
		.out_head_len = 2,
		.errors_dropped_bytes = 3,
		.errors_head_len = 4,
		.output_is_complete = true,
	};
	json_t *json = parsed(&result);

	CHECK(json_integer_value(json_object_get(json, "schema")) == 1);
	CHECK(json_integer_value(json_object_get(json, "signal")) == 9);
	CHECK(json_integer_value(json_object_get(json, "exit_code")) == 137);
	CHECK(json_is_true(json_object_get(json, "ran")) &&
	      json_is_false(json_object_get(json, "ok")));
	CHECK_STR(string_of(json, "disposition"), "stopped");
	CHECK(number_of(json, "output_dropped_bytes") == INT64_MAX);
	CHECK(number_of(json, "stdout_dropped_bytes") == 1 &&
	      number_of(json, "stdout_head_bytes") == 2);
	CHECK(number_of(json, "stderr_dropped_bytes") == 3 &&
	      number_of(json, "stderr_head_bytes") == 4);
	CHECK(json_is_true(json_object_get(json, "output_is_complete")));
	CHECK(json_is_object(json_object_get(json, "result")));
	CHECK(json_is_true(json_object_get(json_object_get(json, "isolation"), "own_kernel")));
	CHECK(json_array_size(json_object_get(json, "canary")) == 1);
	CHECK_STR(json_string_value(json_array_get(json_object_get(json, "warnings"), 0)),
	          warnings[0]);
	CHECK(json_is_null(json_object_get(json_object_get(json, "image"), "digest")));
	CHECK(json_integer_value(json_object_get(json_object_get(json, "timings_ms"), "total")) ==
	      8);
	json_decref(json);
}

static void dispositions_have_names(void)
{
	CHECK_STR(resoluto_disposition_name(RESOLUTO_COMPLETED), "completed");
	CHECK_STR(resoluto_disposition_name(RESOLUTO_REFUSED), "refused");
	CHECK_STR(resoluto_disposition_name((enum resoluto_disposition) 99), "");
}

static void nothing_is_freed_well(void)
{
	resoluto_result_free(NULL);
	resoluto_result_free(calloc(1, sizeof(struct resoluto_result)));
}

int main(void)
{
	RUN(members_and_order);
	RUN(text_stays_text);
	RUN(bytes_become_base64);
	RUN(names_and_logs_of_any_bytes);
	RUN(quotas_are_told_with_their_units);
	RUN(what_is_there_is_passed_on);
	RUN(dispositions_have_names);
	RUN(nothing_is_freed_well);
	return check_done();
}
