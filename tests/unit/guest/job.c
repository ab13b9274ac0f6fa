/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "check.h"
#include "guest/job.h"
#include "resoluto/sandbox.h"

#define ENV(more) \
	"{\"schema\":1,\"env\":{\"RESOLUTO_RUN_ID\":\"run-1\",\"RESOLUTO_WORKLOAD_ARGV\":\"[" \
	"\\\"true\\\"]\"" more "}}"

static struct job parse(const char *json)
{
	struct job job;

	CHECK(job_parse(json, strlen(json), &job, NULL) == 0);
	return job;
}

static void refuse(const char *json, const char *word)
{
	CLEANUP(job_done) struct job job;
	struct resoluto_err err = { 0 };

	CHECK(job_parse(json, strlen(json), &job, &err) == -EINVAL);
	if (!strstr(err.text, word))
		printf("# %s\n", err.text);
	CHECK(strstr(err.text, word));
}

static void the_least_job_has_the_defaults(void)
{
	CLEANUP(job_done) struct job job = parse(ENV(""));

	CHECK_STR(job.run_id, "run-1");
	CHECK_STR(job.node_id, "run");
	CHECK_STR(job.workspace_dir, "/workspace");
	CHECK_STR(job.cwd, "/workspace");
	CHECK_STR(job.user, "");
	CHECK_STR(job.probe_host, "1.1.1.1");
	CHECK(job.probe_port == 80 && job.drain_timeout_ms == JOB_DRAIN_MS);
	CHECK(!job.boot_ids && !job.image_version);
	CHECK(!job.has_stdin && !job.has_scratch && !job.has_inbox && job.redacts_patterns &&
	      !job.has_object_store);
	CHECK(job.argv.count == 1 && job.env.count == 0 && job.redact.count == 0);
}

static void names_come_with_egress_alone(void)
{
	CLEANUP(job_done)
	struct job job = parse(
		"{\"schema\":1,\"egress\":{\"patterns\":[\"a.example:443\","
		"\"*.b.example:8443\"],\"learn\":false,\"wide\":false},\"env\":{"
		"\"RESOLUTO_RUN_ID\":\"r\",\"RESOLUTO_WORKLOAD_ARGV\":\"[\\\"sh\\\"]\"}}");
	CLEANUP(job_done) struct job none = parse(ENV(""));

	CHECK(job.has_egress && job.egress.count == 2 && !job.egress.is_learning);
	CHECK_STR(job.egress.patterns[1].name.text, "b.example");
	CHECK(!none.has_egress && none.egress.count == 0);
}

static void check_bad_egress(const char *egress)
{
	CLEANUP(job_done) struct job job;
	char json[512];
	struct resoluto_err err = { 0 };

	snprintf(json, sizeof(json),
	         "{\"schema\":1,\"egress\":%s,\"env\":{\"RESOLUTO_RUN_ID\":\"r\","
	         "\"RESOLUTO_WORKLOAD_ARGV\":\"[\\\"sh\\\"]\"}}",
	         egress);
	CHECK(job_parse(json, strlen(json), &job, &err) == -EINVAL);
	CHECK(strstr(err.text, "egress"));
}

static void names_that_are_none_are_refused(void)
{
	check_bad_egress("{}");
	check_bad_egress("{\"patterns\":7}");
	check_bad_egress("{\"patterns\":[7]}");
	check_bad_egress("{\"patterns\":[\"1.2.3.4\"]}");
	check_bad_egress("{\"patterns\":[\"*.com\"]}");
}

static void all_of_it_is_read(void)
{
	CLEANUP(job_done)
	struct job job = parse(
		"{\"schema\":1,\"stdin\":true,\"scratch\":true,\"inbox\":true,\"heartbeat_ms\":333,"
		"\"redact\":[\"s1\","
		"\"s2\"],\"env\":{"
		"\"RESOLUTO_RUN_ID\":\"r\",\"RESOLUTO_NODE_ID\":\"n\","
		"\"RESOLUTO_WORKLOAD_ARGV\":\"[\\\"sh\\\", \\\"-c\\\", \\\"\\\\u00e9\\\"]\","
		"\"RESOLUTO_WORKSPACE_DIR\":\"/w\",\"RESOLUTO_WORKLOAD_CWD\":\"/"
		"tmp\",\"RESOLUTO_WORKLOAD_USER\":\"app\","
		"\"RESOLUTO_OUTPUT_PATHS\":\"[\\\"out/"
		"**\\\"]\",\"RESOLUTO_SETUP_ARGV\":\"[\\\"a\\\"]\","
		"\"RESOLUTO_CLEANUP_ARGV\":\"[\\\"b\\\",\\\"c\\\"]\",\"RESOLUTO_CANARY_PROBE_"
		"HOST\":\"9.9.9.9\","
		"\"RESOLUTO_CANARY_PROBE_PORT\":\"443\",\"RESOLUTO_HOST_BOOT_IDS\":\"x\","
		"\"RESOLUTO_DRAIN_TIMEOUT_MS\":\"0\",\"RESOLUTO_REDACT\":\"values\",\"RESOLUTO_"
		"FLUSH\":\"object\","
		"\"RESOLUTO_IMAGE_VERSION\":\"0.1.0\",\"RESOLUTO_STORE_KIND\":\"u\",\"PATH\":\"/"
		"bin\",\"EMPTY\":\"\"}}");

	CHECK(job.argv.count == 3);
	CHECK_STR(job.argv.items[2], "\xc3\xa9");
	CHECK_STR(job.cwd, "/tmp");
	CHECK_STR(job.user, "app");
	CHECK(job.output_paths.count == 1 && job.setup_argv.count == 1 &&
	      job.cleanup_argv.count == 2);
	CHECK(job.probe_port == 443 && job.drain_timeout_ms == 0);
	CHECK(job.has_stdin && job.has_scratch && job.has_inbox && !job.redacts_patterns &&
	      job.has_object_store);
	CHECK(job.redact.count == 2 && job.heartbeat_ms == 333);
	CHECK_STR(job.boot_ids, "x");
	CHECK_STR(job.image_version, "0.1.0");
}

static void the_program_sees_nothing_of_ours(void)
{
	CLEANUP(job_done)
	struct job job = parse(
		ENV(",\"RESOLUTO_STORE_PREFIX\":\"1\",\"A\":\"2\",\"EMPTY\":\"\",\"AB\":\"3\""));

	CHECK(job.env.count == 3);
	CHECK_STR(job_env(&job, "A"), "2");
	CHECK_STR(job_env(&job, "EMPTY"), "");
	CHECK(!job_env(&job, "RESOLUTO_STORE_PREFIX") && !job_env(&job, "B"));
}

static void what_is_no_job(void)
{
	refuse("", "not a JSON object");
	refuse("[]", "not a JSON object");
	refuse("{\"schema\":1}", "object env");
	refuse("{\"schema\":1,\"env\":[]}", "object env");
	refuse("{\"env\":{}}", "schema");
	refuse("{\"schema\":1,\"schema\":1,\"env\":{}}", "not a JSON object");
	refuse("{\"schema\":1,\"env\":{}}x", "not a JSON object");
	refuse("{\"schema\":1.0,\"env\":{}}", "schema");
	refuse("{\"schema\":1,\"env\":{},\"env\":{}}", "not a JSON object");
	refuse("{\"schema\":1,\"env\":{}}", "RESOLUTO_RUN_ID");
	refuse("{\"schema\":1,\"env\":{\"RESOLUTO_RUN_ID\":\"r\"}}", "RESOLUTO_WORKLOAD_ARGV");
	refuse("{\"schema\":1,\"env\":{\"RESOLUTO_RUN_ID\":\"r\\u0000\"}}", "not a JSON object");
}

static void what_does_not_fit(void)
{
	refuse(ENV(",\"RESOLUTO_SETUP_ARGV\":\"{}\""), "not an array");
	refuse(ENV(",\"RESOLUTO_SETUP_ARGV\":\"[1]\""), "not a string");
	refuse(ENV(",\"RESOLUTO_SETUP_ARGV\":\"[\""), "not JSON");
	refuse(ENV(",\"RESOLUTO_WORKSPACE_DIR\":\"w\""), "absolute");
	refuse(ENV(",\"RESOLUTO_WORKSPACE_DIR\":\"/a/../b\""), "absolute");
	refuse(ENV(",\"RESOLUTO_WORKSPACE_DIR\":\"/a/..\""), "absolute");
	refuse(ENV(",\"RESOLUTO_WORKSPACE_DIR\":\"//\""), "root");
	refuse(ENV(",\"RESOLUTO_WORKLOAD_CWD\":\"x\""), "RESOLUTO_WORKLOAD_CWD");
	refuse(ENV(",\"RESOLUTO_OUTPUT_PATHS\":\"[\\\"/etc\\\"]\""), "RESOLUTO_OUTPUT_PATHS");
	refuse(ENV(",\"RESOLUTO_CANARY_PROBE_PORT\":\"65536\""), "RESOLUTO_CANARY_PROBE_PORT");
	refuse(ENV(",\"RESOLUTO_DRAIN_TIMEOUT_MS\":\"-1\""), "RESOLUTO_DRAIN_TIMEOUT_MS");
	refuse(ENV(",\"RESOLUTO_DRAIN_TIMEOUT_MS\":\"1s\""), "RESOLUTO_DRAIN_TIMEOUT_MS");
	/* The host says it first: it must know the limit. */
	CHECK((int) JOB_DRAIN_MAX_MS == (int) RESOLUTO_DRAIN_TIMEOUT_MAX_MS);
	refuse("{\"schema\":1,\"heartbeat_ms\":99,\"env\":{\"RESOLUTO_RUN_ID\":\"r\","
	       "\"RESOLUTO_WORKLOAD_ARGV\":\"[\\\"x\\\"]\"}}",
	       "heartbeat_ms");
	refuse("{\"schema\":1,\"heartbeat_ms\":\"333\",\"env\":{\"RESOLUTO_RUN_ID\":\"r\","
	       "\"RESOLUTO_WORKLOAD_ARGV\":\"[\\\"x\\\"]\"}}",
	       "heartbeat_ms");
	refuse(ENV("},\"redact\":{\"a\":1"), "redact is not an array");
	refuse(ENV("},\"redact\":[null],\"x\":{"), "redact holds");
	refuse(ENV(",\"N\":1"), "not a string");
	refuse(ENV(",\"A=B\":\"1\""), "name of a variable");
	refuse(ENV(",\"\":\"1\""), "name of a variable");
}

static void a_refused_job_still_has_its_name(void)
{
	CLEANUP(job_done) struct job job;
	const char *json = ENV(",\"A=B\":\"1\"");

	CHECK(job_parse(json, strlen(json), &job, NULL) == -EINVAL);
	CHECK_STR(job.run_id, "run-1");
	CHECK_STR(job.node_id, "run");
}

/* Few names are compared each with each, many are sorted. */
static void a_variable_twice_is_no_job(void)
{
	for (int others = 0; others <= 100; others += 100) {
		CLEANUP(buf_done) struct buf json = BUF_INIT(16 * 1024);
		CLEANUP(job_done) struct job job;

		CHECK(buf_add_str(&json,
		                  "{\"schema\":1,\"env\":{\"RESOLUTO_RUN_ID\":\"r\",\"Z\":\"\","
		                  "\"RESOLUTO_WORKLOAD_ARGV\":\"[\\\"x\\\"]\"") == 0);
		for (int i = 0; i < others; i++)
			CHECK(buf_addf(&json, ",\"Z%d\":\"%d\"", i, i) == 0);
		CHECK(buf_add_str(&json, "}}") == 0);
		CHECK(job_parse(json.data, json.len, &job, NULL) == 0);
		CHECK(job.env.count == 1 + (size_t) others);
		CHECK_STR(job.env.items[0], "Z=");
		buf_cut(&json, json.len - 2);
		CHECK(buf_add_str(&json, ",\"Z\":\"2\"}}") == 0);
		refuse(json.data, "not a JSON object");
	}
}

static void strings_may_be_empty_or_escaped(void)
{
	CLEANUP(job_done)
	struct job job = parse(
		"{\"schema\":1,\"redact\":[\"first\",\"\"],\"env\":{\"A\\u0042\":\"x\","
		"\"RESOLUTO_RUN_ID\":\"r\",\"E\":\"\","
		"\"RESOLUTO_WORKLOAD_ARGV\":\"[\\\"x\\\",\\\"\\\"]\"}}");

	CHECK(job.argv.count == 2 && job.redact.count == 2);
	CHECK_STR(job.argv.items[1], "");
	CHECK_STR(job.redact.items[1], "");
	CHECK_STR(job_env(&job, "AB"), "x");
	CHECK_STR(job_env(&job, "E"), "");
}

int main(void)
{
	RUN(the_least_job_has_the_defaults);
	RUN(names_come_with_egress_alone);
	RUN(names_that_are_none_are_refused);
	RUN(all_of_it_is_read);
	RUN(the_program_sees_nothing_of_ours);
	RUN(what_is_no_job);
	RUN(what_does_not_fit);
	RUN(a_refused_job_still_has_its_name);
	RUN(a_variable_twice_is_no_job);
	RUN(strings_may_be_empty_or_escaped);
	return check_done();
}
