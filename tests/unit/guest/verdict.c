/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/wait.h>

#include "check.h"
#include "guest/cgroup.h"
#include "guest/verdict.h"

static void the_first_reason_stays(void)
{
	struct verdict verdict = VERDICT_INIT;

	verdict_set(&verdict, REASON_SETUP_FAILED, "code %d", 3);
	verdict_set(&verdict, REASON_OUTPUTS_FAILED, "later");
	CHECK(verdict.reason == REASON_SETUP_FAILED);
	CHECK_STR(verdict.detail, "code 3");
	CHECK(!verdict_is_success(&verdict));
}

static void exit_codes(void)
{
	struct verdict good = VERDICT_INIT, bad = VERDICT_INIT, never = VERDICT_INIT;

	verdict_exit(&good, W_EXITCODE(0, 0));
	verdict_exit(&bad, W_EXITCODE(7, 0));
	CHECK(verdict_is_success(&good) && good.ran && good.exit_code == 0 && good.signal == 0);
	CHECK(!verdict_is_success(&bad) && bad.exit_code == 7 && bad.reason == REASON_NONE);
	CHECK(!verdict_is_success(&never) && !never.ran);
}

static void signals(void)
{
	struct verdict verdict = VERDICT_INIT;

	verdict_exit(&verdict, W_EXITCODE(0, SIGSEGV));
	CHECK(verdict.exit_code == 139 && verdict.signal == SIGSEGV && verdict.ran);
	CHECK_STR(verdict.detail, "killed by signal 11 (Segmentation fault)");
}

static void who_is_to_blame(void)
{
	struct verdict memory = VERDICT_INIT, disk = VERDICT_INIT, fine = VERDICT_INIT,
		       plain = VERDICT_INIT;

	verdict_exit(&memory, W_EXITCODE(0, SIGKILL));
	verdict_blame(&memory, false, 1, true);
	CHECK(memory.reason == REASON_OUT_OF_MEMORY && memory.exit_code == 137);
	verdict_exit(&disk, W_EXITCODE(1, 0));
	verdict_blame(&disk, false, 0, true);
	CHECK(disk.reason == REASON_GUEST_DISK_FULL && disk.exit_code == 1);
	verdict_exit(&fine, W_EXITCODE(0, 0));
	verdict_blame(&fine, false, 2, true);
	CHECK(verdict_is_success(&fine));
	verdict_exit(&plain, W_EXITCODE(1, 0));
	verdict_blame(&plain, false, 0, false);
	CHECK(plain.reason == REASON_NONE);
}

static void a_program_that_stood_still(void)
{
	struct verdict verdict = VERDICT_INIT;

	verdict_exit(&verdict, W_EXITCODE(0, SIGKILL));
	verdict_blame(&verdict, true, 0, false);
	CHECK(verdict.reason == REASON_OUT_OF_MEMORY && strstr(verdict.detail, "stood still"));
}

static void standing_still_for_lack_of_memory(void)
{
	const struct cgroup_memory before = { 128 << 20, 128 << 20, 1 << 20, 5000 };
	struct cgroup_memory now = before;

	CHECK(!cgroup_is_stalled(&before, &now));
	now.refaults += CGROUP_STALL_REFAULTS;
	CHECK(cgroup_is_stalled(&before, &now));
	now.file_bytes = 2 << 20;
	CHECK(!cgroup_is_stalled(&before, &now));
	now.file_bytes = 1 << 20;
	now.used_bytes = 120 << 20;
	CHECK(!cgroup_is_stalled(&before, &now));
}

static void the_canary_as_json(void)
{
	struct canary canary = { .external = { "external", CANARY_BLOCKED, "no way" },
		                 .metadata = { "metadata", CANARY_REACHABLE, "it answered" },
		                 .store_ok = true,
		                 .store_detail = "stored" };
	json_t *json = verdict_canary_json(&canary);

	CHECK(json_array_size(json) == 3);
	CHECK(json_is_true(json_object_get(json_array_get(json, 0), "ok")));
	CHECK(json_is_false(json_object_get(json_array_get(json, 1), "ok")));
	CHECK_STR(json_string_value(json_object_get(json_array_get(json, 2), "probe")), "store");
	json_decref(json);
}

static void memory_for_the_program(void)
{
	const uint64_t mib = UINT64_C(1) << 20;

	CHECK(cgroup_memory_max(4096 * mib, 4090 * mib) == 4032 * mib);
	CHECK(cgroup_memory_max(128 * mib, UINT64_MAX) == 96 * mib);
	/* The machine holds less than its size: the limit comes first all the same. */
	CHECK(cgroup_memory_max(192 * mib, 120 * mib) == 96 * mib);
	CHECK(cgroup_memory_max(192 * mib, 40 * mib) == 30 * mib);
	CHECK(cgroup_memory_max(4096 * mib, 0) == 0);
}

static void numbers_of_a_cgroup(void)
{
	static const char text[] = "low 1\noom 2\noom_kill 34\noom_group_kill 5";

	CHECK(cgroup_read_stat(text, "oom_kill") == 34);
	CHECK(cgroup_read_stat(text, "oom") == 2);
	CHECK(cgroup_read_stat(text, "oom_group_kill") == 5);
	CHECK(cgroup_read_stat(text, "high") == 0);
	CHECK(cgroup_read_stat("", "oom_kill") == 0);
}

int main(void)
{
	RUN(the_first_reason_stays);
	RUN(exit_codes);
	RUN(signals);
	RUN(who_is_to_blame);
	RUN(a_program_that_stood_still);
	RUN(standing_still_for_lack_of_memory);
	RUN(the_canary_as_json);
	RUN(memory_for_the_program);
	RUN(numbers_of_a_cgroup);
	return check_done();
}
