/* SPDX-License-Identifier: Apache-2.0 */
/* fake.c - what the fake runtime offers beside the promises of all runtimes. */
#include <errno.h>
#include <signal.h>

#include "check.h"

#include "resoluto/runtime.h"

static struct resoluto_fake fake;
static struct resoluto_runtime *runtime;
static struct resoluto_conduit *conduit;

static void begin(void)
{
	resoluto_runtime_close(runtime);
	resoluto_conduit_close(conduit);
	runtime = NULL;
	conduit = NULL;
	fake = (struct resoluto_fake){ .struct_size = sizeof(fake) };
	CHECK(resoluto_conduit_open_url("memory://", &conduit, NULL) == 0);
	CHECK(resoluto_runtime_fake_new(&fake, &runtime, NULL) == 0);
}

static int launch(const char *id, bool has_stdin, struct resoluto_handle *ret_handle)
{
	return runtime->ops->launch(runtime,
	                            &(struct resoluto_launch_spec){
					    .struct_size = sizeof(struct resoluto_launch_spec),
					    .id = id,
					    .image = "none",
					    .conduit = conduit,
					    .store_prefix = id,
					    .has_stdin = has_stdin,
				    },
	                            ret_handle, NULL);
}

static void counts_what_it_is_asked(void)
{
	struct resoluto_handle a, b;
	struct resoluto_status status;
	char *text;

	begin();
	CHECK(launch("a", true, &a) == 0 && launch("b", false, &b) == 0);
	CHECK(launch("A", false, &b) == -EINVAL);
	CHECK(fake.launches == 3 && fake.alive == 2 && fake.alive_max == 2);
	CHECK(runtime->ops->status(runtime, &a, &status, NULL) == 0);
	CHECK(status.phase == RESOLUTO_PHASE_RUNNING && fake.status_calls == 1);
	CHECK(runtime->ops->send_stdin(runtime, &a, "12345", 5, NULL) == 5);
	CHECK(runtime->ops->send_stdin(runtime, &a, "67", 2, NULL) == 2);
	CHECK(fake.stdin_bytes == 7);
	CHECK(runtime->ops->signal(runtime, &a, SIGTERM, NULL) == 0 && fake.signals == 1);
	CHECK(runtime->ops->wait(runtime, &a, -1, -1, NULL) == 0 && fake.waits == 1);
	CHECK(runtime->ops->logs(runtime, &a, 10, &text, NULL) == 0 && fake.logs_calls == 1);
	free(text);
	CHECK(runtime->ops->destroy(runtime, &a, NULL) == 0);
	CHECK(fake.destroys == 1 && fake.alive == 1 && fake.alive_max == 2);
	CHECK(runtime->ops->sweep(runtime, NULL, NULL) == 1);
	CHECK(fake.sweeps == 1 && fake.alive == 0);
}

static void plays_the_script_for_each_sandbox(void)
{
	static const struct resoluto_status script[] = {
		{ .phase = RESOLUTO_PHASE_PENDING, .reason = "Pulling", .exit_code = -1 },
		{ .phase = RESOLUTO_PHASE_FAILED, .reason = "emulator-killed", .exit_code = 1 },
	};
	struct resoluto_handle handles[2];
	struct resoluto_status status;

	begin();
	fake.statuses = script;
	fake.status_count = 2;
	CHECK(launch("a", false, &handles[0]) == 0 && launch("b", false, &handles[1]) == 0);
	for (int turn = 0; turn < 3; turn++) {
		for (int i = 0; i < 2; i++) {
			CHECK(runtime->ops->status(runtime, &handles[i], &status, NULL) == 0);
			CHECK_STR(status.reason, script[turn > 0].reason);
			CHECK(status.phase == script[turn > 0].phase);
		}
	}
}

static int guest_fails(void *ctx, const struct resoluto_launch_spec *spec)
{
	++*(int *) ctx;
	return -EBUSY;
}

/* By the real clock: at last the deadline is over, and what has ended by then has ended. */
static void keeps_the_deadline(void)
{
	static const struct resoluto_status done = { .phase = RESOLUTO_PHASE_SUCCEEDED };
	struct resoluto_launch_spec spec = { .struct_size = sizeof(spec),
		                             .id = "a",
		                             .image = "none",
		                             .store_prefix = "a",
		                             .deadline_ms = 1 };
	struct resoluto_status status;
	struct resoluto_handle handle;

	begin();
	spec.conduit = conduit;
	CHECK(runtime->ops->launch(runtime, &spec, &handle, NULL) == 0);
	do
		CHECK(runtime->ops->status(runtime, &handle, &status, NULL) == 0);
	while (status.phase == RESOLUTO_PHASE_RUNNING);
	CHECK(status.phase == RESOLUTO_PHASE_FAILED);
	CHECK_STR(status.reason, "deadline");
	fake.statuses = &done;
	fake.status_count = 1;
	CHECK(runtime->ops->status(runtime, &handle, &status, NULL) == 0);
	CHECK(status.phase == RESOLUTO_PHASE_SUCCEEDED);
}

static void fails_a_launch_when_the_guest_does(void)
{
	struct resoluto_handle handle;
	int calls = 0;

	begin();
	fake.guest = guest_fails;
	fake.ctx = &calls;
	CHECK(launch("a", false, &handle) == -EBUSY && calls == 1);
	CHECK(fake.launches == 1 && fake.alive == 0);
	fake.guest = NULL;
	CHECK(launch("a", false, &handle) == 0);
}

/* A handle from before names nothing, even when its id is in use again. */
static void tells_old_handles_from_new(void)
{
	struct resoluto_handle old, new;
	struct resoluto_status status;

	begin();
	CHECK(launch("a", false, &old) == 0);
	CHECK(runtime->ops->destroy(runtime, &old, NULL) == 0);
	CHECK(launch("a", false, &new) == 0);
	CHECK(runtime->ops->destroy(runtime, &old, NULL) == 0 && fake.alive == 1);
	CHECK(runtime->ops->status(runtime, &old, &status, NULL) == 0);
	CHECK(status.phase == RESOLUTO_PHASE_UNKNOWN);
	CHECK(runtime->ops->status(runtime, &new, &status, NULL) == 0);
	CHECK(status.phase == RESOLUTO_PHASE_RUNNING);
}

static void tells_a_bad_descriptor(void)
{
	struct resoluto_handle handle;

	begin();
	CHECK(launch("a", false, &handle) == 0);
	CHECK(runtime->ops->wait(runtime, &handle, 999999, 0, NULL) == -EBADF);
}

static void refuses_a_bad_script(void)
{
	struct resoluto_runtime *other = NULL;
	struct resoluto_err err = { 0 };
	struct resoluto_fake bad = { .struct_size = sizeof(bad) - 1 };

	CHECK(resoluto_runtime_fake_new(&bad, &other, &err) == -EINVAL && err.code == -EINVAL);
	CHECK(resoluto_runtime_fake_new(NULL, &other, NULL) == -EINVAL);
	CHECK(resoluto_runtime_fake_new(&fake, NULL, NULL) == -EINVAL);
	bad = (struct resoluto_fake){ .struct_size = sizeof(bad), .status_count = 1 };
	CHECK(resoluto_runtime_fake_new(&bad, &other, &err) == -EINVAL && !other);
}

static void forgets_what_runs_when_closed(void)
{
	struct resoluto_handle handle;

	begin();
	CHECK(launch("a", false, &handle) == 0 && fake.alive == 1);
	resoluto_runtime_close(runtime);
	runtime = NULL;
	CHECK(fake.alive == 0 && fake.alive_max == 1);
}

int main(void)
{
	RUN(counts_what_it_is_asked);
	RUN(plays_the_script_for_each_sandbox);
	RUN(keeps_the_deadline);
	RUN(fails_a_launch_when_the_guest_does);
	RUN(tells_old_handles_from_new);
	RUN(tells_a_bad_descriptor);
	RUN(refuses_a_bad_script);
	RUN(forgets_what_runs_when_closed);
	resoluto_runtime_close(runtime);
	resoluto_conduit_close(conduit);
	return check_done();
}
