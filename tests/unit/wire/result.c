/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/cleanup.h"
#include "check.h"
#include "wire/result.h"

static int parse(const char *json, struct node_result_doc *doc)
{
	return node_result_parse(json, strlen(json), doc, NULL);
}

static void comes_back_whole(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(RESULT_JSON_MAX);
	CLEANUP(node_result_doc_done) struct node_result_doc doc = { 0 };
	json_t *timings = json_pack("{s:i}", "run", 12),
	       *canary = json_pack("[{s:s, s:b}]", "probe", "net", "ok", 1),
	       *warnings = json_pack("[s]", "clock-rate: too fast");
	struct node_result result = {
		.node_id = "run",
		.has_exit_code = true,
		.exit_code = 137,
		.output_archive = "outbox/output.tar.gz",
		.reason = "out-of-memory",
		.detail = "line\n\xc3\xa9\xff",
		.signal = 9,
		.ran = true,
		.guest_boot_id = "b-1",
		.timings_ms = timings,
		.canary = canary,
		.warnings = warnings,
		.redactions = 3,
		.output_is_complete = true,
	};

	CHECK(node_result_write(&out, &result) == 0);
	CHECK(strchr(out.data, '\n') == out.data + out.len - 1);
	CHECK(node_result_parse(out.data, out.len, &doc, NULL) == 0);
	CHECK_STR(doc.result.node_id, "run");
	CHECK(!doc.result.success && doc.result.has_exit_code && doc.result.exit_code == 137);
	CHECK_STR(doc.result.output_archive, "outbox/output.tar.gz");
	CHECK_STR(doc.result.reason, "out-of-memory");
	CHECK_STR(doc.result.detail, "line\n\xc3\xa9\xef\xbf\xbd");
	CHECK(doc.result.signal == 9 && doc.result.ran && doc.result.redactions == 3);
	CHECK_STR(doc.result.guest_boot_id, "b-1");
	CHECK(json_equal(doc.result.timings_ms, timings) && json_equal(doc.result.canary, canary));
	CHECK(json_equal(doc.result.warnings, warnings));
	CHECK(doc.result.output_is_complete);
	json_decref(timings);
	json_decref(canary);
	json_decref(warnings);
}

static void nothing_is_null(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(RESULT_JSON_MAX);
	CLEANUP(node_result_doc_done) struct node_result_doc doc = { 0 };

	CHECK(node_result_write(&out, &(struct node_result){ 0 }) == 0);
	CHECK(strstr(out.data, "\"exit_code\":null,\"output_archive\":null"));
	CHECK(node_result_parse(out.data, out.len, &doc, NULL) == 0);
	CHECK(!doc.result.has_exit_code && !doc.result.output_archive && !doc.result.signal);
	CHECK(!doc.result.timings_ms && !doc.result.canary && !doc.result.output_is_complete);
}

static void keeps_the_bound(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(64);

	CHECK(buf_add_str(&out, "kept") == 0);
	CHECK(node_result_write(&out, &(struct node_result){ 0 }) == -E2BIG);
	CHECK_STR(out.data, "kept");
}

static void reads_the_original(void)
{
	CLEANUP(node_result_doc_done) struct node_result_doc doc = { 0 }, killed = { 0 };

	CHECK(parse("{\"node_id\":\"run\",\"status\":\"success\",\"exit_code\":0,"
	            "\"output_archive\":\"run/run-1/outbox/output.tar.gz\",\"observed_phase\":\"\","
	            "\"reason\":\"\",\"substrate_logs\":\"\"}",
	            &doc) == 0);
	CHECK(doc.result.success && doc.result.has_exit_code && doc.result.exit_code == 0);
	CHECK_STR(doc.result.output_archive, "outbox/output.tar.gz");
	CHECK(doc.result.ran && doc.result.output_is_complete);
	CHECK(parse("{\"status\":\"failure\",\"exit_code\":-15}", &killed) == 0);
	CHECK(killed.result.exit_code == 143 && killed.result.signal == 15);
}

static void reads_whole_numbers_of_other_writers(void)
{
	CLEANUP(node_result_doc_done) struct node_result_doc doc = { 0 };

	CHECK(parse("{\"status\":\"failure\",\"exit_code\":3.0,\"signal\":null}", &doc) == 0);
	CHECK(doc.result.exit_code == 3 && doc.result.signal == 0);
}

static void refuses_what_is_no_result(void)
{
	static const char *const bad[] = {
		"",
		"{",
		"[]",
		"{}",
		"null",
		"{\"status\":\"ok\"}",
		"{\"status\":null}",
		"{\"status\":1}",
		"{\"status\":\"success\",\"status\":\"failure\"}",
		"{\"status\":\"success\",\"exit_code\":\"0\"}",
		"{\"status\":\"success\",\"exit_code\":0.5}",
		"{\"status\":\"success\",\"exit_code\":1e30}",
		"{\"status\":\"success\",\"exit_code\":256}",
		"{\"status\":\"success\",\"exit_code\":-65}",
		"{\"status\":\"success\",\"exit_code\":99999999999999999999}",
		"{\"status\":\"success\",\"output_archive\":\"../../etc/passwd\"}",
		"{\"status\":\"success\",\"output_archive\":\"outbox/../x.tar.gz\"}",
		"{\"status\":\"success\",\"output_archive\":\"outboxes/x.tar.gz\"}",
		"{\"status\":\"success\",\"output_archive\":\"x.tar.gz\"}",
		"{\"status\":\"success\",\"output_archive\":\"/\"}",
		"{\"status\":\"success\",\"output_archive\":\"\"}",
		"{\"status\":\"success\",\"reason\":[]}",
		"{\"status\":\"success\",\"node_id\":{}}",
		"{\"status\":\"success\",\"signal\":65}",
		"{\"status\":\"success\",\"signal\":0}",
		"{\"status\":\"success\",\"ran\":\"yes\"}",
		"{\"status\":\"success\",\"redactions\":-1}",
		"{\"status\":\"success\",\"timings_ms\":[]}",
		"{\"status\":\"success\",\"canary\":{}}",
		"{\"status\":\"success\",\"warnings\":\"clock-rate: wrong\"}",
		"{\"status\":\"success\",\"warnings\":[1]}",
		"{\"status\":\"success\",\"canary\":[{\"probe\":\"store\"}]}",
		"{\"status\":\"success\",\"canary\":[{\"probe\":\"store\",\"ok\":1}]}",
		"{\"status\":\"success\",\"timings_ms\":{\"run\":\"1\"}}",
		"{\"status\":\"success\",\"node_id\":null}",
		"{\"status\":\"success\",\"redactions\":null}",
		"{\"status\":\"success\",\"substrate_logs\":7}",
		"{\"status\":\"success\",\"detail\":\"\\u0000\"}",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct node_result_doc doc;
		struct resoluto_err err = { 0 };

		CHECK(node_result_parse(bad[i], strlen(bad[i]), &doc, &err) == -EBADMSG);
		CHECK(err.code == -EBADMSG && err.text[0] && !doc.root);
	}
}

static void too_deep_is_refused(void)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(1 << 20);
	struct node_result_doc doc;

	CHECK(buf_add_str(&json, "{\"status\":\"success\",\"x\":") == 0);
	for (int i = 0; i < 100; i++)
		CHECK(buf_add(&json, i < 50 ? "[" : "]", 1) == 0);
	CHECK(buf_add_str(&json, "}") == 0);
	CHECK(node_result_parse(json.data, json.len, &doc, NULL) == -EBADMSG);
}

static void long_strings_are_cut_between_characters(void)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(1 << 20);
	CLEANUP(node_result_doc_done) struct node_result_doc doc = { 0 };

	CHECK(buf_add_str(&json, "{\"status\":\"failure\",\"reason\":\"x") == 0);
	for (int i = 0; i < RESULT_STRING_MAX; i++)
		CHECK(buf_add_str(&json, "\xc3\xa9") == 0);
	CHECK(buf_add_str(&json, "\"}") == 0);
	CHECK(node_result_parse(json.data, json.len, &doc, NULL) == 0);
	CHECK(strlen(doc.result.reason) == RESULT_STRING_MAX - 1);
}

static void too_large_is_refused(void)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(2 * RESULT_JSON_MAX);
	struct node_result_doc doc;

	CHECK(buf_add_str(&json, "{\"status\":\"success\"}") == 0);
	while (json.len <= RESULT_JSON_MAX)
		CHECK(buf_add(&json, " ", 1) == 0);
	CHECK(node_result_parse(json.data, json.len, &doc, NULL) == -EBADMSG);
	CHECK(node_result_parse(json.data, json.len - 1, &doc, NULL) == 0);
	node_result_doc_done(&doc);
}

static int manifest(const char *json, uint32_t *ret_total)
{
	return manifest_parse(json, strlen(json), ret_total);
}

static void manifest_comes_back(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(MANIFEST_JSON_MAX);
	uint32_t total;

	CHECK(manifest_write(&out, 999999) == 0);
	CHECK(manifest_parse(out.data, out.len, &total) == 0 && total == 999999);
	CHECK(manifest("{\"total_chunks\":0,\"more\":1}", &total) == 0 && total == 0);
	/* As other writers of JSON put a whole number. */
	CHECK(manifest("{\"total_chunks\":7.0}", &total) == 0 && total == 7);
}

static void manifest_is_strict(void)
{
	static const char *const bad[] = {
		"",
		"{}",
		"7",
		"{\"total_chunks\":-1}",
		"{\"total_chunks\":1000000}",
		"{\"total_chunks\":1.5}",
		"{\"total_chunks\":\"1\"}",
		"{\"total_chunks\":true}",
		"{\"total_chunks\":null}",
		"{\"total_chunks\":1,\"total_chunks\":1}",
		"{\"total_chunks\":1}}",
		"[{\"total_chunks\":1}]",
	};
	CLEANUP(buf_done) struct buf large = BUF_INIT(2 * MANIFEST_JSON_MAX);
	uint32_t total = 77;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(manifest(bad[i], &total) == -EBADMSG);
	CHECK(buf_add_str(&large, "{\"total_chunks\":1}") == 0);
	while (large.len <= MANIFEST_JSON_MAX)
		CHECK(buf_add(&large, "\n", 1) == 0);
	CHECK(manifest(large.data, &total) == -EBADMSG);
	CHECK(total == 77);
}

int main(void)
{
	RUN(comes_back_whole);
	RUN(nothing_is_null);
	RUN(keeps_the_bound);
	RUN(reads_the_original);
	RUN(reads_whole_numbers_of_other_writers);
	RUN(refuses_what_is_no_result);
	RUN(too_deep_is_refused);
	RUN(long_strings_are_cut_between_characters);
	RUN(too_large_is_refused);
	RUN(manifest_comes_back);
	RUN(manifest_is_strict);
	return check_done();
}
