/* SPDX-License-Identifier: Apache-2.0 */
/* messages.c - what caller, shim and guest tell each other in JSON, and what is read of the host. */
#include <errno.h>
#include <jansson.h>

#include "base/cleanup.h"
#include "check.h"
#include "runtime/microvm/host.h"
#include "runtime/microvm/gateway.h"
#include "runtime/microvm/job.h"
#include "runtime/microvm/json.h"
#include "runtime/microvm/shim_config.h"
#include "runtime/microvm/state.h"
#include "runtime/microvm/tsc.h"
#include "wire/frame.h"

#define BOOT_ID "0f3d5c7e-1b2a-4c3d-8e9f-0a1b2c3d4e5f"

static struct run_state sample_state(void)
{
	struct run_state state = { .phase = RESOLUTO_PHASE_FAILED,
		                   .reason = "guest-panic",
		                   .detail = "bad \xff byte",
		                   .shim_pid = 12,
		                   .qemu_pid = 13,
		                   .guest_boot_id = BOOT_ID,
		                   .own_kernel = true,
		                   .started_at = 1.5,
		                   .ended_at = 2.5 };

	run_state_add_confinement(&state, "landlock-7");
	run_state_add_confinement(&state, "seccomp");
	return state;
}

static void a_state_comes_back(void)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(STATE_JSON_MAX);
	const struct run_state state = sample_state();
	struct run_state back;

	CHECK(run_state_write(&json, &state) == 0);
	CHECK(run_state_parse(json.data, json.len, &back, NULL) == 0);
	CHECK(back.phase == state.phase && back.shim_pid == 12 && back.qemu_pid == 13);
	CHECK_STR(back.reason, "guest-panic");
	CHECK_STR(back.detail, "bad ? byte");
	CHECK_STR(back.guest_boot_id, BOOT_ID);
	CHECK(back.own_kernel && back.started_at == 1.5 && back.ended_at == 2.5);
	CHECK_STR(back.confinement[1], "seccomp");
	CHECK(run_state_is_final(&back) && !back.confinement[2][0]);
}

/* Change one member of a good state and see it refused. */
static int parse_with(const char *member, json_t *value)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(STATE_JSON_MAX), changed = BUF_INIT(1 << 20);
	CLEANUP(json_done) json_t *root = NULL;
	const struct run_state state = sample_state();
	struct run_state back;

	CHECK(run_state_write(&json, &state) == 0);
	root = json_loadb(json.data, json.len, 0, NULL);
	CHECK(json_object_set_new(root, member, value) == 0);
	CHECK(json_write(&changed, root) == 0);
	return run_state_parse(changed.data, changed.len, &back, NULL);
}

static void a_state_that_no_shim_writes_is_refused(void)
{
	struct run_state back;
	char longer[RESOLUTO_REASON_MAX + 1];
	json_t *many = json_array();

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	for (int i = 0; i <= STATE_CONFINEMENT_MAX; i++)
		json_array_append_new(many, json_string("x"));
	CHECK(run_state_parse("", 0, &back, NULL) == -EBADMSG);
	CHECK(run_state_parse("[]", 2, &back, NULL) == -EBADMSG);
	CHECK(parse_with("schema", json_integer(2)) == -EBADMSG);
	CHECK(parse_with("phase", json_string("unknown")) == -EBADMSG);
	CHECK(parse_with("phase", json_null()) == -EBADMSG);
	CHECK(parse_with("reason", json_string(longer)) == -EBADMSG);
	CHECK(parse_with("guest_boot_id", json_string("x")) == -EBADMSG);
	CHECK(parse_with("confinement", json_string("x")) == -EBADMSG);
	CHECK(parse_with("confinement", many) == -EBADMSG);
	CHECK(parse_with("confinement", json_array()) == 0);
	CHECK(parse_with("later", json_true()) == 0);
}

static void the_shim_gets_half_a_minute_or_as_long_as_a_boot(void)
{
	CHECK(shim_start_limit_ms(1000) == 30000 && shim_start_limit_ms(30000) == 30000);
	CHECK(shim_start_limit_ms(120000) == 120000);
}

static void boot_ids_are_exact(void)
{
	CHECK(is_boot_id(BOOT_ID));
	CHECK(!is_boot_id("") && !is_boot_id(BOOT_ID "0") &&
	      !is_boot_id("0F3D5C7E-1b2a-4c3d-8e9f-0a1b2c3d4e5f"));
	CHECK(!is_boot_id("0f3d5c7e01b2a-4c3d-8e9f-0a1b2c3d4e5f"));
}

static json_t *job_env(const struct job *job)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(0);
	CLEANUP(json_done) json_t *root = NULL;
	struct resoluto_err err = { 0 };

	CHECK(job_write(job, &json, &err) == 0);
	root = json_loadb(json.data, json.len, 0, NULL);
	CHECK(json_integer_value(json_object_get(root, "schema")) == 1);
	CHECK(json_is_true(json_object_get(root, "stdin")) == job->has_stdin);
	CHECK(json_is_true(json_object_get(root, "scratch")) == job->has_scratch);
	CHECK(json_is_true(json_object_get(root, "inbox")) == job->has_inbox);
	return json_incref(json_object_get(root, "env"));
}

static void a_job_carries_the_environment(void)
{
	const char *const env[] = { "A=1", "B=x=y", "A=2", "E=", NULL };
	CLEANUP(json_done)
	json_t *got = job_env(&(struct job){ .env = env,
	                                     .host_boot_id = BOOT_ID,
	                                     .has_stdin = true,
	                                     .has_inbox = true });

	CHECK_STR(json_string_value(json_object_get(got, "A")), "2");
	CHECK_STR(json_string_value(json_object_get(got, "B")), "x=y");
	CHECK_STR(json_string_value(json_object_get(got, "E")), "");
	CHECK_STR(json_string_value(json_object_get(got, "RESOLUTO_HOST_BOOT_IDS")), BOOT_ID);
}

static void a_job_keeps_the_boot_ids_it_was_given(void)
{
	const char *const env[] = { "RESOLUTO_HOST_BOOT_IDS=a,b", NULL };
	CLEANUP(json_done)
	json_t *got = job_env(&(struct job){ .env = env, .host_boot_id = BOOT_ID });

	CHECK_STR(json_string_value(json_object_get(got, "RESOLUTO_HOST_BOOT_IDS")), "a,b");
}

static void a_job_names_egress_only_where_there_is_some(void)
{
	const char *const patterns[] = { "a.example:443", NULL };
	CLEANUP(buf_done) struct buf with = BUF_INIT(0), without = BUF_INIT(0);
	CLEANUP(json_done) json_t *root = NULL;
	const json_t *egress;

	CHECK(job_write(&(struct job){ .host_boot_id = BOOT_ID }, &without, NULL) == 0);
	CHECK(!strstr(without.data, "egress") && !strstr(without.data, "heartbeat"));
	CHECK(job_write(&(struct job){ .host_boot_id = BOOT_ID,
	                               .heartbeat_ms = 333,
	                               .has_egress = true,
	                               .egress_allow = patterns,
	                               .egress_wide = true },
	                &with, NULL) == 0);
	root = json_loadb(with.data, with.len, 0, NULL);
	egress = json_object_get(root, "egress");
	CHECK(json_array_size(json_object_get(egress, "patterns")) == 1);
	CHECK(json_integer_value(json_object_get(root, "heartbeat_ms")) == 333);
	CHECK(json_is_true(json_object_get(egress, "wide")));
	CHECK(json_is_false(json_object_get(egress, "learn")));
}

static void a_gateway_is_told_what_it_may(void)
{
	const char *const patterns[] = { "a.example:443", "*.b.c:80", NULL };
	const struct resoluto_launch_spec spec = { .egress_allow = patterns,
		                                   .egress_learn = false };
	CLEANUP(buf_done) struct buf json = BUF_INIT(GATEWAY_CONFIG_BYTES);
	CLEANUP(buf_done) struct buf proxied = BUF_INIT(GATEWAY_CONFIG_BYTES);

	CHECK(gateway_config_write(&(struct gateway){ .spec = &spec, .uid = 7 }, &json) == 0);
	CHECK(strstr(json.data, "\"uid\":7") && strstr(json.data, "\"proxy\":null"));
	CHECK(strstr(json.data, "[\"a.example:443\",\"*.b.c:80\"]"));
	CHECK(gateway_config_write(&(struct gateway){ .spec = &spec, .proxy = "http://p:1" },
	                           &proxied) == 0);
	CHECK(strstr(proxied.data, "\"proxy\":\"http://p:1\""));
}

static void an_empty_list_needs_no_gateway(void)
{
	const char *const none[] = { NULL }, *const one[] = { "a.example:443", NULL };

	CHECK(!gateway_is_needed(&(struct resoluto_launch_spec){ 0 }));
	CHECK(!gateway_is_needed(&(struct resoluto_launch_spec){ .egress_allow = none }));
	CHECK(!gateway_is_needed(&(struct resoluto_launch_spec){ .egress_wide = true }));
	CHECK(gateway_is_needed(&(struct resoluto_launch_spec){ .egress_allow = one }));
	CHECK(gateway_is_needed(&(struct resoluto_launch_spec){ .egress_learn = true }));
}

static void a_job_that_cannot_travel_is_refused(void)
{
	CLEANUP(mem_free) char *huge = malloc(FRAME_JOB_MAX + 8);
	CLEANUP(buf_done) struct buf json = BUF_INIT(0);
	const char *const not_utf8[] = { "A=\xff\xfe", NULL };
	const char *const too_large[] = { huge, NULL };
	struct resoluto_err err = { 0 };

	CHECK(job_write(&(struct job){ .env = not_utf8, .host_boot_id = BOOT_ID }, &json, &err) ==
	      -EINVAL);
	CHECK(strstr(err.text, "variable A "));
	memset(huge, 'x', FRAME_JOB_MAX + 7);
	memcpy(huge, "A=", 2);
	huge[FRAME_JOB_MAX + 7] = '\0';
	CHECK(job_write(&(struct job){ .env = too_large, .host_boot_id = BOOT_ID }, &json, &err) ==
	      -E2BIG);
	CHECK(strstr(err.text, "8388608"));
}

static void a_shim_configuration_comes_back(void)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(SHIM_CONFIG_MAX);
	const struct shim_config config = {
		.run_id = "run-1",
		.boot_limit_ms = 120000,
		.machine = "x86_64-debian",
		.accel = ACCEL_KVM,
		.qemu = "/usr/bin/qemu",
		.memory_mib = 512,
		.cpus = 2,
		.tsc_khz = 2400000,
		.has_scratch = true,
		.has_net = true,
		.drops_objects = true,
		.scratch_bytes = 1ull << 40,
		.deadline_ms = 5000,
		.host_boot_id = BOOT_ID,
		.uid = 200000,
		.kvm_gid = 108,
		.quotas = { .bytes = 1ull << 40, .objects = 7, .archive_bytes = 9 }
	};
	struct shim_config back;

	CHECK(shim_config_write(&json, &config) == 0);
	CHECK(shim_config_parse(json.data, json.len, &back, NULL) == 0);
	CHECK(memcmp(&back, &config, sizeof(back)) == 0);
	CHECK(shim_config_parse("{}", 2, &back, NULL) == -EINVAL);
	CHECK(shim_config_parse(json.data, json.len - 1, &back, NULL) == -EINVAL);
}

static void the_tsc_cache_is_of_one_boot(void)
{
	static const char json[] = "{\"schema\":1,\"boot_id\":\"" BOOT_ID "\",\"khz\":2400000}";
	uint32_t khz;

	CHECK(tsc_cache_parse(json, sizeof(json) - 1, BOOT_ID, &khz) == 0 && khz == 2400000);
	CHECK(tsc_cache_parse(json, sizeof(json) - 1, "another", &khz) == -ENOENT);
	CHECK(tsc_cache_parse("{", 1, BOOT_ID, &khz) == -ENOENT);
	CHECK(tsc_cache_parse("{\"schema\":1,\"boot_id\":\"b\",\"khz\":7}", 34, "b", &khz) ==
	      -ENOENT);
}

static void memory_is_read_from_meminfo(void)
{
	struct host_memory memory;

	CHECK(host_memory_parse(
		      "MemTotal:       24684096 kB\nMemFree: 1 kB\nMemAvailable:   1024 kB\n",
		      &memory) == 0);
	CHECK(memory.total == 24684096ull * 1024 && memory.available == 1024 * 1024);
	CHECK(host_memory_parse("MemTotal: 5 kB\n", &memory) == -EBADMSG);
}

int main(void)
{
	RUN(a_state_comes_back);
	RUN(a_state_that_no_shim_writes_is_refused);
	RUN(the_shim_gets_half_a_minute_or_as_long_as_a_boot);
	RUN(boot_ids_are_exact);
	RUN(a_job_carries_the_environment);
	RUN(a_job_keeps_the_boot_ids_it_was_given);
	RUN(a_job_names_egress_only_where_there_is_some);
	RUN(a_gateway_is_told_what_it_may);
	RUN(an_empty_list_needs_no_gateway);
	RUN(a_job_that_cannot_travel_is_refused);
	RUN(a_shim_configuration_comes_back);
	RUN(the_tsc_cache_is_of_one_boot);
	RUN(memory_is_read_from_meminfo);
	return check_done();
}
