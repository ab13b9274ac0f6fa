/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "guest/canary.h"
#include "guest/identity.h"
#include "guest/job.h"
#include "guest/program.h"
#include "guest/rehearsal.h"
#include "guest/report.h"
#include "guest/users.h"
#include "guest/verdict.h"
#include "wire/contract.h"

enum { STACK_BYTES = 128 * 1024 };

/* As the host writes one for a program without options (src/runtime/microvm/job.c). */
const char rehearsal_job[] =
	"{\"schema\":1,\"env\":{\"" ENV_WORKLOAD_ARGV
	"\":\"[\\\"/bin/true\\\"]\",\"" ENV_WORKSPACE_DIR "\":\"/workspace\",\"" ENV_RUN_ID
	"\":\"rehearsal\",\"" ENV_NODE_ID "\":\"run\",\"" ENV_HOST_BOOT_IDS
	"\":\"00000000-0000-0000-0000-000000000000\",\"" ENV_DRAIN_TIMEOUT_MS
	"\":\"5000\",\"" ENV_REDACT "\":\"all\",\"" ENV_STORE_KIND
	"\":\"localfs\",\"" ENV_STORE_PREFIX
	"\":\"run\"},\"stdin\":false,\"scratch\":false,\"inbox\":false,\"redact\":[]}";

/* Of TEST-NET-1, which is nobody's. */
#define SAMPLE_HOST "192.0.2.1"

enum { SAMPLE_PORT = 80 };

static void read_job(const struct rehearsal *rehearsal)
{
	struct job job;

	(void) job_parse(rehearsal_job, strlen(rehearsal_job), &job, NULL);
	job_done(&job);
}

static void *do_nothing(void *ctx)
{
	return ctx;
}

static void start_thread(const struct rehearsal *rehearsal)
{
	static _Alignas(4096) char stack[STACK_BYTES];
	pthread_attr_t attr;
	pthread_t thread;

	(void) pthread_attr_init(&attr);
	if (pthread_attr_setstack(&attr, stack, sizeof(stack)) == 0 &&
	    pthread_create(&thread, &attr, do_nothing, NULL) == 0)
		(void) pthread_join(thread, NULL);
}

/* Up to its gate, which is shut for good. */
static void start_program(const struct rehearsal *rehearsal)
{
	char name[] = "/", *argv[] = { name, NULL }, *env[] = { NULL };
	const struct strv arguments = { .items = argv, .count = 1 }, variables = { .items = env };
	const struct user user = { .uid = USER_DEFAULT_ID, .gid = USER_DEFAULT_ID };
	const struct cgroup cgroup = { .dir = rehearsal->cgroup_dir };
	struct program_gate gate = { 0 };
	const struct program program = { .argv = &arguments,
		                         .env = &variables,
		                         .cwd = "/",
		                         .user = &user,
		                         .cgroup = &cgroup,
		                         .gate = &gate };
	struct program_child child = PROGRAM_CHILD_NONE;
	struct program_failure failure;

	program_gate_drop(&gate);
	if (program_empty_bounding_set(NULL) == 0)
		(void) program_start(&program, &child, &failure, NULL);
}

static void connect_nowhere(const struct rehearsal *rehearsal)
{
	struct canary_probe probe;

	canary_connect(SAMPLE_HOST, SAMPLE_PORT, &probe);
}

static void resolve_user(const struct rehearsal *rehearsal)
{
	struct user user;

	(void) user_resolve("", "root:x:0:0:root:/root:/bin/sh\n", "root:x:0:\n", &user, NULL);
}

static void read_boot_id(const struct rehearsal *rehearsal)
{
	char boot_id[BOOT_ID_SIZE];

	(void) identity_read(boot_id);
}

/* --- what is told --- */

static int begin_nothing(struct ship *ship, const char *key, uint64_t size, uint32_t *ret_put,
                         struct resoluto_err *err)
{
	*ret_put = 1;
	return 0;
}

static int send_nothing(struct ship *ship, uint32_t put, const void *bytes, size_t len,
                        struct resoluto_err *err)
{
	return 0;
}

static int end_nothing(struct ship *ship, uint32_t put, struct resoluto_err *err)
{
	return 0;
}

static const struct ship_ops to_nowhere = {
	.begin = begin_nothing,
	.data = send_nothing,
	.end = end_nothing,
	.wait = end_nothing,
	.abandon = end_nothing,
};

static void tell_all(struct report *report)
{
	struct report_span node, canary;

	(void) report_open(report, "node", NULL, &node);
	(void) report_open(report, "egress_canary", &node, &canary);
	(void) report_line(report, &canary, "canary: %s", SAMPLE_HOST);
	(void) report_close(report, &canary, true);
	(void) report_flush(report);
}

static void tell(const struct rehearsal *rehearsal)
{
	CLEANUP(redactor_free) struct redactor *redactor = NULL;
	struct ship ship = { .ops = &to_nowhere };
	const struct job job = { 0 };
	struct report report;

	if (redactor_new(NULL, true, &redactor) < 0)
		return;
	if (report_init(&report, &ship, &job, 1, NULL) == 0) {
		report.redactor = redactor;
		tell_all(&report);
	}
	report_done(&report);
}

static void write_result(const struct rehearsal *rehearsal)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(RESULT_JSON_MAX);
	const struct canary canary = { 0 };
	struct node_result result = { .node_id = "run",
		                      .reason = "",
		                      .detail = "",
		                      .guest_boot_id = "",
		                      .timings_ms = json_object(),
		                      .canary = verdict_canary_json(&canary) };

	(void) json_object_set_new(result.timings_ms, "boot", json_integer(1));
	(void) node_result_write(&json, &result);
	json_decref(result.timings_ms);
	json_decref(result.canary);
}

/* --- the order --- */

/* What the program waits for comes first, and the longest last: the disks may be there before all is done. */
static void (*const steps[])(const struct rehearsal *rehearsal) = {
	read_job,     resolve_user, read_boot_id, connect_nowhere,
	start_thread, tell,         write_result, start_program,
};

bool rehearsal_step(struct rehearsal *rehearsal)
{
	if (rehearsal->next >= sizeof(steps) / sizeof(steps[0]))
		return false;
	steps[rehearsal->next++](rehearsal);
	return true;
}
