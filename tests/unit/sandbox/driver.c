/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c - every way a driven sandbox can end, in virtual time. */
#include <errno.h>

#include "check.h"
#include "scripted.h"

#define SUCCESS "{\"node_id\":\"run\",\"status\":\"success\",\"exit_code\":0}"

struct seen {
	char text[4096];
	unsigned events;
	int fail_with; /* on_event returns it */
	unsigned idles;
	int idle_code;
	const char *idle_text;
	unsigned idle_fails_at; /* call of on_idle that returns idle_code; 0: none */
};

static int see(void *ctx, const struct resoluto_event *event)
{
	struct seen *seen = ctx;

	seen->events++;
	if (event->is_output)
		strncat(seen->text, event->bytes, event->len);
	return seen->fail_with;
}

static int idle(void *ctx, struct resoluto_handle *handle, struct resoluto_err *err)
{
	struct seen *seen = ctx;

	CHECK_STR(handle->id, "r1");
	seen->idles++;
	if (seen->idles == seen->idle_fails_at)
		return resoluto_fail(err, seen->idle_code, "%s", seen->idle_text);
	return 0;
}

static const struct resoluto_launch_spec spec = {
	.struct_size = sizeof(spec),
	.id = "r1",
	.image = "image",
	.store_prefix = PREFIX,
};

static struct resoluto_drive_options options_of(struct scripted *scripted, struct seen *seen)
{
	return (struct resoluto_drive_options){
		.struct_size = sizeof(struct resoluto_drive_options),
		.runtime = &scripted->base,
		.conduit = scripted->conduit,
		.spec = &spec,
		.on_event = see,
		.ctx = seen,
		.idle_fd = -1,
	};
}

/* err is written on failure, with words, and untouched on success. */
static int drive(struct scripted *scripted, struct seen *seen, struct resoluto_outcome *outcome)
{
	struct resoluto_drive_options options = options_of(scripted, seen);
	struct resoluto_err err = { 0 };
	int r;

	if (seen->idle_fails_at)
		options.on_idle = idle;
	r = driver_drive(&options, &scripted->clock, outcome, &err);
	CHECK(err.code == (r < 0 ? r : 0));
	CHECK((err.text[0] != '\0') == (r < 0));
	return r;
}

/* Drive what the test has set up and check how it ended. */
static void ends_as(struct scripted *scripted, struct seen *seen, struct resoluto_outcome *outcome,
                    enum resoluto_disposition disposition, const char *reason)
{
	CHECK(drive(scripted, seen, outcome) == 0);
	CHECK_STR(resoluto_disposition_name(outcome->disposition),
	          resoluto_disposition_name(disposition));
	CHECK_STR(outcome->reason, reason);
	CHECK(scripted->destroys == 1);
	CHECK(outcome->substrate_logs);
}

static bool say_and_end(struct scripted *scripted, unsigned wait)
{
	if (wait == 1)
		guest_says(scripted, "hello");
	if (wait == 2)
		guest_says(scripted, "world");
	if (wait == 3)
		guest_ends(scripted, SUCCESS);
	return true;
}

static void completes_and_shows_lines_in_order(void)
{
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;

	scripted_init(&scripted);
	scripted.on_wait = say_and_end;
	ends_as(&scripted, &seen, &outcome, RESOLUTO_COMPLETED, "");
	CHECK_STR(seen.text, "hello\nworld\n");
	CHECK(outcome.chunks == 2 && outcome.events == 3 && seen.events == 3);
	CHECK_STR(outcome.result_json, SUCCESS);
	CHECK_STR(outcome.isolation_json, "{\"runtime\":\"scripted\"}");
	CHECK(outcome.observed_phase == RESOLUTO_PHASE_RUNNING && outcome.queue_ms == 0);
	CHECK(scripted.now_ms == 5000); /* nothing waited for a poll */
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

static void completes_with_the_reason_of_the_guest(void)
{
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;

	scripted_init(&scripted);
	guest_ends(&scripted,
	           "{\"status\":\"failure\",\"exit_code\":null,\"reason\":\"canary-failed\"}");
	ends_as(&scripted, &seen, &outcome, RESOLUTO_COMPLETED, "canary-failed");
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

static void many_chunks_are_read_in_one_go(void)
{
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;

	scripted_init(&scripted);
	for (int i = 0; i < 200; i++)
		guest_says(&scripted, "x");
	guest_ends(&scripted, SUCCESS);
	ends_as(&scripted, &seen, &outcome, RESOLUTO_COMPLETED, "");
	CHECK(outcome.chunks == 200 && scripted.waits == 0);
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

/* As the protocol writes a prefix. */
static void a_prefix_may_end_in_a_slash(void)
{
	struct resoluto_launch_spec slashed = spec;
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;
	struct resoluto_drive_options options;

	scripted_init(&scripted);
	guest_says(&scripted, "hello");
	guest_ends(&scripted, SUCCESS);
	slashed.store_prefix = PREFIX "/";
	options = options_of(&scripted, &seen);
	options.spec = &slashed;
	CHECK(driver_drive(&options, &scripted.clock, &outcome, NULL) == 0);
	CHECK_STR(outcome.reason, "");
	CHECK_STR(outcome.result_json, SUCCESS);
	CHECK_STR(seen.text, "hello\n");
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

static void completed_without_result(void)
{
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;

	scripted_init(&scripted);
	guest_ends(&scripted, NULL);
	ends_as(&scripted, &seen, &outcome, RESOLUTO_COMPLETED, "no-result");
	CHECK(!outcome.result_json);
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

static void hostile_results_are_bad_results(void)
{
	static const char *const results[] = {
		"",
		"{",
		"[]",
		"\"success\"",
		"{\"status\":\"maybe\"}",
		"{\"status\":1}",
		"{\"status\":\"success\",\"exit_code\":\"0\"}",
		"{\"status\":\"success\",\"exit_code\":1e99}",
		"{\"status\":\"success\",\"status\":\"failure\"}",
	};

	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		struct scripted scripted;
		struct seen seen = { 0 };
		struct resoluto_outcome outcome;

		scripted_init(&scripted);
		guest_ends(&scripted, results[i]);
		ends_as(&scripted, &seen, &outcome, RESOLUTO_COMPLETED, "bad-result");
		resoluto_outcome_done(&outcome);
		scripted_done(&scripted);
	}
}

static void a_huge_result_is_a_bad_result(void)
{
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;
	char *huge = malloc(RESULT_JSON_MAX + 2);

	scripted_init(&scripted);
	memset(huge, ' ', RESULT_JSON_MAX + 1);
	huge[RESULT_JSON_MAX + 1] = '\0';
	guest_ends(&scripted, huge);
	free(huge);
	ends_as(&scripted, &seen, &outcome, RESOLUTO_COMPLETED, "bad-result");
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

static void hostile_manifests_end_the_run(void)
{
	static const char *const manifests[] = {
		"",
		"7",
		"{}",
		"{\"total_chunks\": -1}",
		"{\"total_chunks\": 1000000}",
		"{\"total_chunks\": \"1\"}",
		"{\"total_chunks\": 0.5}",
	};

	for (size_t i = 0; i < sizeof(manifests) / sizeof(manifests[0]); i++) {
		struct scripted scripted;
		struct seen seen = { 0 };
		struct resoluto_outcome outcome;

		scripted_init(&scripted);
		guest_put(scripted.conduit, KEY_MANIFEST, manifests[i]);
		ends_as(&scripted, &seen, &outcome, RESOLUTO_EXTERNAL, "protocol");
		resoluto_outcome_done(&outcome);
		scripted_done(&scripted);
	}
}

static void a_chunk_that_is_too_large_ends_the_run(void)
{
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;
	const size_t size = 4 * 1024 * 1024 + 1;
	char *huge = malloc(size + 1);

	scripted_init(&scripted);
	memset(huge, '\n', size);
	huge[size] = '\0';
	guest_put(scripted.conduit, "events-000001.jsonl", huge);
	free(huge);
	ends_as(&scripted, &seen, &outcome, RESOLUTO_EXTERNAL, "protocol");
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

static void chunks_that_are_missing_at_the_end_are_told(void)
{
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;

	scripted_init(&scripted);
	guest_says(&scripted, "one");
	guest_put(scripted.conduit, KEY_RESULT, SUCCESS);
	guest_put(scripted.conduit, KEY_MANIFEST, "{\"total_chunks\": 3}");
	scripted_is(&scripted, RESOLUTO_PHASE_SUCCEEDED, "");
	ends_as(&scripted, &seen, &outcome, RESOLUTO_EXTERNAL, "protocol");
	CHECK_STR(seen.text, "one\n");
	CHECK(!outcome.result_json);
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

static void succeeded_without_a_manifest(void)
{
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;

	scripted_init(&scripted);
	guest_says(&scripted, "last words");
	scripted_is(&scripted, RESOLUTO_PHASE_SUCCEEDED, "");
	ends_as(&scripted, &seen, &outcome, RESOLUTO_EXTERNAL, "no-result");
	CHECK_STR(seen.text, "last words\n");
	CHECK(outcome.observed_phase == RESOLUTO_PHASE_SUCCEEDED);
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

static void unstartable_after_fifteen_polls(void)
{
	static const char *const reasons[] = {
		"ImagePullBackOff",           "ErrImagePull",
		"ErrImageNeverPull",          "InvalidImageName",
		"CreateContainerConfigError", "CreateContainerError",
		"RunContainerError",          "CrashLoopBackOff",
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		struct scripted scripted;
		struct seen seen = { 0 };
		struct resoluto_outcome outcome;

		scripted_init(&scripted);
		scripted_is(&scripted, RESOLUTO_PHASE_PENDING, reasons[i]);
		ends_as(&scripted, &seen, &outcome, RESOLUTO_UNSTARTABLE, "unstartable");
		CHECK(scripted.statuses == RESOLUTO_FATAL_POLLS);
		CHECK(scripted.now_ms ==
		      5000 + (RESOLUTO_FATAL_POLLS - 1) * RESOLUTO_POLL_INTERVAL_MS);
		resoluto_outcome_done(&outcome);
		scripted_done(&scripted);
	}
}

static bool recover_at_ten(struct scripted *scripted, unsigned wait)
{
	if (wait % 10 == 0)
		scripted_is(scripted, RESOLUTO_PHASE_PENDING, "ContainerCreating");
	else
		scripted_is(scripted, RESOLUTO_PHASE_PENDING, "ErrImagePull");
	if (wait == 100)
		guest_ends(scripted, SUCCESS);
	return false;
}

static void a_pull_that_recovers_is_waited_for(void)
{
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;

	scripted_init(&scripted);
	scripted.on_wait = recover_at_ten;
	scripted_is(&scripted, RESOLUTO_PHASE_PENDING, "ErrImagePull");
	ends_as(&scripted, &seen, &outcome, RESOLUTO_COMPLETED, "");
	CHECK(scripted.waits == 100);
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

static bool end_at_thousand(struct scripted *scripted, unsigned wait)
{
	if (wait == 1000)
		guest_ends(scripted, SUCCESS);
	return false;
}

static void pending_is_waited_for_without_a_limit(void)
{
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;

	scripted_init(&scripted);
	scripted.on_wait = end_at_thousand;
	scripted_is(&scripted, RESOLUTO_PHASE_PENDING, "Unschedulable");
	ends_as(&scripted, &seen, &outcome, RESOLUTO_COMPLETED, "");
	CHECK(scripted.now_ms >= 5000 + 999 * RESOLUTO_POLL_INTERVAL_MS);
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

static void unknown_before_it_was_running_is_external(void)
{
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;

	scripted_init(&scripted);
	scripted_is(&scripted, RESOLUTO_PHASE_UNKNOWN, "");
	ends_as(&scripted, &seen, &outcome, RESOLUTO_EXTERNAL, "external");
	CHECK(scripted.statuses == RESOLUTO_FATAL_POLLS);
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

static bool vanish(struct scripted *scripted, unsigned wait)
{
	scripted_is(scripted, RESOLUTO_PHASE_UNKNOWN, "");
	return false;
}

static void unknown_while_running_waits_for_the_window(void)
{
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;

	scripted_init(&scripted);
	scripted.on_wait = vanish;
	ends_as(&scripted, &seen, &outcome, RESOLUTO_EXTERNAL, "external");
	CHECK(scripted.now_ms == 5000 + RESOLUTO_DEAD_AFTER_MS);
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

static void a_failure_in_foreign_words_is_given_time(void)
{
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;

	scripted_init(&scripted);
	scripted_is(&scripted, RESOLUTO_PHASE_FAILED, "OOMKilled");
	ends_as(&scripted, &seen, &outcome, RESOLUTO_EXTERNAL, "external");
	CHECK(scripted.statuses == RESOLUTO_FATAL_POLLS);
	CHECK(outcome.observed_phase == RESOLUTO_PHASE_FAILED);
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

/* Ends by what the runtime says, in words of its own. */
static void tells(enum resoluto_phase phase, const char *reason, int exit_code, const char *detail,
                  const char *told)
{
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;
	bool is_waiting = phase == RESOLUTO_PHASE_PENDING;

	scripted_init(&scripted);
	scripted_is(&scripted, phase, reason);
	scripted.status.exit_code = exit_code;
	snprintf(scripted.status.detail, sizeof(scripted.status.detail), "%s", detail);
	ends_as(&scripted, &seen, &outcome, is_waiting ? RESOLUTO_UNSTARTABLE : RESOLUTO_EXTERNAL,
	        is_waiting ? "unstartable" : "external");
	CHECK_STR(outcome.detail, told);
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

static void the_words_of_the_substrate_are_told(void)
{
	tells(RESOLUTO_PHASE_PENDING, "ImagePullBackOff", -1, "manifest unknown",
	      "ImagePullBackOff: manifest unknown");
	tells(RESOLUTO_PHASE_PENDING, "ErrImagePull", -1, "", "ErrImagePull");
	tells(RESOLUTO_PHASE_FAILED, "OOMKilled", 137, "d", "OOMKilled, exit code 137: d");
	tells(RESOLUTO_PHASE_FAILED, "", 137, "", "exit code 137");
	tells(RESOLUTO_PHASE_FAILED, "", -1, "node lost", "node lost");
	tells(RESOLUTO_PHASE_UNKNOWN, "", -1, "", "");
}

static void definite_failures_end_at_once(void)
{
	static const struct {
		const char *reason;
		enum resoluto_disposition disposition;
	} ends[] = {
		{ "guest-panic", RESOLUTO_EXTERNAL },  { "emulator-killed", RESOLUTO_EXTERNAL },
		{ "boot-failed", RESOLUTO_EXTERNAL },  { "protocol", RESOLUTO_EXTERNAL },
		{ "shim-killed", RESOLUTO_EXTERNAL },  { "store-full", RESOLUTO_EXTERNAL },
		{ "deadline", RESOLUTO_STOPPED },      { "signal", RESOLUTO_STOPPED },
		{ "caller-died", RESOLUTO_STOPPED },   { "quota", RESOLUTO_STOPPED },
		{ "shared-kernel", RESOLUTO_REFUSED }, { "own-kernel-unproven", RESOLUTO_REFUSED },
	};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct scripted scripted;
		struct seen seen = { 0 };
		struct resoluto_outcome outcome;

		scripted_init(&scripted);
		guest_says(&scripted, "last words");
		scripted_is(&scripted, RESOLUTO_PHASE_FAILED, ends[i].reason);
		ends_as(&scripted, &seen, &outcome, ends[i].disposition, ends[i].reason);
		CHECK_STR(seen.text, "last words\n");
		CHECK(scripted.statuses == 1 && scripted.now_ms == 5000);
		resoluto_outcome_done(&outcome);
		scripted_done(&scripted);
	}
}

static bool panic_between_polls(struct scripted *scripted, unsigned wait)
{
	if (wait == 1)
		scripted_is(scripted, RESOLUTO_PHASE_FAILED, "guest-panic");
	return wait == 1;
}

static void a_wake_without_a_chunk_asks_for_the_status(void)
{
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;

	scripted_init(&scripted);
	scripted.on_wait = panic_between_polls;
	ends_as(&scripted, &seen, &outcome, RESOLUTO_EXTERNAL, "guest-panic");
	CHECK(scripted.now_ms == 5000 && scripted.statuses == 2);
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

static void silent_keeps_the_end_of_the_logs(void)
{
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;
	char logs[6001];

	memset(logs, 'a', 3000);
	memset(logs + 3000, 'b', 3000);
	logs[6000] = '\0';
	scripted_init(&scripted);
	scripted.logs = logs;
	ends_as(&scripted, &seen, &outcome, RESOLUTO_SILENT, "silent");
	CHECK(scripted.now_ms == 5000 + RESOLUTO_DEAD_AFTER_MS);
	CHECK(strlen(outcome.substrate_logs) == RESOLUTO_LOGS_KEPT);
	CHECK(strspn(outcome.substrate_logs, "a") == 1000);
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

static bool beat(struct scripted *scripted, unsigned wait)
{
	if (scripted->now_ms >= scripted->chunks * 60000 + 60000)
		guest_says(scripted, ".");
	if (scripted->chunks == 20)
		guest_ends(scripted, SUCCESS);
	return false;
}

static void a_heartbeat_keeps_a_quiet_run_alive(void)
{
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;

	scripted_init(&scripted);
	scripted.on_wait = beat;
	ends_as(&scripted, &seen, &outcome, RESOLUTO_COMPLETED, "");
	CHECK(scripted.now_ms > 5 * RESOLUTO_DEAD_AFTER_MS);
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

static void characters_are_counted_not_bytes(void)
{
	CHECK(driver_last_characters("abc", 2) == 2);
	CHECK(driver_last_characters("abc", 9) == 3);
	CHECK(driver_last_characters("x\xc3\xa4\xc3\xb6", 2) == 4);
	CHECK(driver_last_characters("", 5) == 0);
}

static void a_deadline_explains_a_verdict(void)
{
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;

	scripted_init(&scripted);
	guest_ends(&scripted, "{\"status\":\"failure\",\"exit_code\":143,\"signal\":15}");
	scripted_is(&scripted, RESOLUTO_PHASE_RUNNING, "deadline");
	ends_as(&scripted, &seen, &outcome, RESOLUTO_STOPPED, "deadline");
	CHECK(outcome.result_json);
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

static void cancelled_by_on_idle(void)
{
	struct scripted scripted;
	struct seen seen = { .idle_fails_at = 3, .idle_code = -ECANCELED, .idle_text = "signal" };
	struct resoluto_outcome outcome;

	scripted_init(&scripted);
	ends_as(&scripted, &seen, &outcome, RESOLUTO_STOPPED, "signal");
	CHECK(seen.idles == 3);
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

static void other_failures_of_on_idle_fail_the_drive(void)
{
	struct scripted scripted;
	struct seen seen = { .idle_fails_at = 1, .idle_code = -EIO, .idle_text = "read the input" };
	struct resoluto_outcome outcome;

	scripted_init(&scripted);
	CHECK(drive(&scripted, &seen, &outcome) == -EIO);
	CHECK(scripted.destroys == 1);
	scripted_done(&scripted);
}

static int acquire_nothing(void *ctx, struct resoluto_runtime *runtime,
                           const struct resoluto_launch_spec *launch_spec, int extra_fd,
                           struct resoluto_handle *ret_handle, struct resoluto_err *err)
{
	CHECK(extra_fd == -1);
	return *(const int *) ctx;
}

static int drive_admitted(struct scripted *scripted, int code, struct resoluto_outcome *outcome,
                          struct resoluto_err *err)
{
	struct seen seen = { 0 };
	const struct resoluto_admission admission = { .acquire = acquire_nothing, .ctx = &code };
	struct resoluto_drive_options options = options_of(scripted, &seen);

	options.admission = &admission;
	options.on_idle = idle;
	options.idle_fd = 0;
	return driver_drive(&options, &scripted->clock, outcome, err);
}

static void callbacks_that_say_nothing_are_spoken_for(void)
{
	struct scripted scripted;
	struct seen failing = { .idle_fails_at = 1, .idle_code = -EIO, .idle_text = "" };
	struct seen stopping = { .idle_fails_at = 1, .idle_code = -ECANCELED, .idle_text = "" };
	struct resoluto_outcome outcome;
	struct resoluto_err err = { 0 };

	scripted_init(&scripted);
	CHECK(drive(&scripted, &failing, &outcome) == -EIO);
	scripted.destroys = 0;
	ends_as(&scripted, &stopping, &outcome, RESOLUTO_STOPPED, "cancelled");
	resoluto_outcome_done(&outcome);
	CHECK(drive_admitted(&scripted, -EIO, &outcome, &err) == -EIO);
	CHECK_STR(err.text, "acquire failed");
	CHECK(drive_admitted(&scripted, -ECANCELED, &outcome, &err) == 0);
	CHECK_STR(outcome.reason, "cancelled");
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

/* A member that was left out is not standard input. */
static void no_idle_fd(void)
{
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;
	struct resoluto_drive_options options;

	scripted_init(&scripted);
	scripted.on_wait = say_and_end;
	options = options_of(&scripted, &seen);
	options.on_idle = idle;
	options.idle_fd = 0;
	CHECK(driver_drive(&options, &scripted.clock, &outcome, NULL) == 0);
	CHECK(scripted.waits > 0 && scripted.last_extra_fd == -1);
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

static void a_failing_on_event_fails_the_drive(void)
{
	struct scripted scripted;
	/* Also codes that would mean a hostile guest if the tail had returned them. */
	struct seen seen = { .fail_with = -EFBIG };
	struct resoluto_outcome outcome;

	scripted_init(&scripted);
	guest_says(&scripted, "x");
	CHECK(drive(&scripted, &seen, &outcome) == -EFBIG);
	CHECK(seen.events == 1 && scripted.destroys == 1);
	scripted_done(&scripted);
}

static void a_failed_launch_fails_the_drive(void)
{
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;
	struct resoluto_err err = { 0 };
	struct resoluto_drive_options options;

	scripted_init(&scripted);
	scripted.launch_code = -ENOENT;
	options = options_of(&scripted, &seen);
	CHECK(driver_drive(&options, &scripted.clock, &outcome, &err) == -ENOENT);
	CHECK_STR(err.text, "cannot launch");
	CHECK(scripted.destroys == 0);
	scripted_done(&scripted);
}

static bool always_changed(struct scripted *scripted, unsigned wait)
{
	if (wait == 200)
		guest_ends(scripted, SUCCESS);
	return true;
}

static void a_runtime_that_does_not_wait_is_not_spun_on(void)
{
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;

	scripted_init(&scripted);
	scripted.on_wait = always_changed;
	ends_as(&scripted, &seen, &outcome, RESOLUTO_COMPLETED, "");
	CHECK(scripted.naps > 150);
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

static void keeps_the_sandbox_if_asked_to(void)
{
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;
	struct resoluto_drive_options options;

	scripted_init(&scripted);
	guest_ends(&scripted, SUCCESS);
	options = options_of(&scripted, &seen);
	options.keep_sandbox = true;
	CHECK(driver_drive(&options, &scripted.clock, &outcome, NULL) == 0);
	CHECK(scripted.destroys == 0);
	resoluto_outcome_done(&outcome);
	scripted_done(&scripted);
}

static void options_are_checked(void)
{
	struct scripted scripted;
	struct seen seen = { 0 };
	struct resoluto_outcome outcome;
	struct resoluto_drive_options options;

	scripted_init(&scripted);
	options = options_of(&scripted, &seen);
	options.struct_size = 0;
	CHECK(driver_drive(&options, &scripted.clock, &outcome, NULL) == -EINVAL);
	options = options_of(&scripted, &seen);
	options.spec = NULL;
	CHECK(driver_drive(&options, &scripted.clock, &outcome, NULL) == -EINVAL);
	CHECK(scripted.launches == 0);
	scripted_done(&scripted);
}

int main(void)
{
	RUN(completes_and_shows_lines_in_order);
	RUN(completes_with_the_reason_of_the_guest);
	RUN(many_chunks_are_read_in_one_go);
	RUN(a_prefix_may_end_in_a_slash);
	RUN(completed_without_result);
	RUN(hostile_results_are_bad_results);
	RUN(a_huge_result_is_a_bad_result);
	RUN(hostile_manifests_end_the_run);
	RUN(a_chunk_that_is_too_large_ends_the_run);
	RUN(chunks_that_are_missing_at_the_end_are_told);
	RUN(succeeded_without_a_manifest);
	RUN(unstartable_after_fifteen_polls);
	RUN(a_pull_that_recovers_is_waited_for);
	RUN(pending_is_waited_for_without_a_limit);
	RUN(unknown_before_it_was_running_is_external);
	RUN(unknown_while_running_waits_for_the_window);
	RUN(a_failure_in_foreign_words_is_given_time);
	RUN(the_words_of_the_substrate_are_told);
	RUN(definite_failures_end_at_once);
	RUN(a_wake_without_a_chunk_asks_for_the_status);
	RUN(silent_keeps_the_end_of_the_logs);
	RUN(a_heartbeat_keeps_a_quiet_run_alive);
	RUN(characters_are_counted_not_bytes);
	RUN(a_deadline_explains_a_verdict);
	RUN(cancelled_by_on_idle);
	RUN(other_failures_of_on_idle_fail_the_drive);
	RUN(callbacks_that_say_nothing_are_spoken_for);
	RUN(no_idle_fd);
	RUN(a_failing_on_event_fails_the_drive);
	RUN(a_failed_launch_fails_the_drive);
	RUN(a_runtime_that_does_not_wait_is_not_spun_on);
	RUN(keeps_the_sandbox_if_asked_to);
	RUN(options_are_checked);
	return check_done();
}
