/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contract/runtime.c - the promises of runtime.h, asked of every runtime.
 *
 * usage: runtime fake
 *        runtime microvm      boots CONTRACT_IMAGE (a squashfs with cat and true in its PATH); the
 *                             rest comes from the configuration, as in a run.  Without it: skipped.
 *
 * To add a runtime: a line in `kinds`, and a test in meson.build.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "resoluto/runtime.h"

enum {
	SANDBOXES_MAX = 8,
	WAIT_MS = 60 * 1000, /* for one sandbox to get somewhere; a busy machine may emulate */
};

enum program {
	PROGRAM_ENDS,  /* by itself, with success */
	PROGRAM_WAITS, /* for its standard input to end */
};

struct kind {
	const char *name;
	const char *image_variable; /* NULL: any word will do */
	bool is_real; /* its programs really run, and what is let go outlives the runtime */
	int (*open)(enum program program, struct resoluto_runtime **ret_runtime,
	            struct resoluto_err *err);
};

static struct {
	const struct kind *kind;
	const char *image;
	char dir[64];
	struct resoluto_conduit *conduit;
	struct resoluto_runtime *runtime;
	struct resoluto_fake fake;
	enum program program;
	unsigned count; /* of ids given */
} under_test;

/* Of the last specs. */
static char ids[SANDBOXES_MAX][RESOLUTO_ID_MAX + 1];
static char prefixes[SANDBOXES_MAX][64];

static int put(const struct resoluto_launch_spec *spec, const char *name, const char *text)
{
	char key[256];

	snprintf(key, sizeof(key), "%s/%s", spec->store_prefix, name);
	return resoluto_conduit_put_bytes(spec->conduit, key, text, strlen(text), NULL);
}

/* What a guest leaves whose program ended at once. */
static int fake_guest(void *ctx, const struct resoluto_launch_spec *spec)
{
	int r = put(spec, "result.json",
	            "{\"node_id\": \"run\", \"status\": \"success\", \"exit_code\": 0}");

	return r < 0 ? r : put(spec, "_manifest.json", "{\"total_chunks\": 0}");
}

static int open_fake(enum program program, struct resoluto_runtime **ret_runtime,
                     struct resoluto_err *err)
{
	static const struct resoluto_status ends[] = {
		{ .phase = RESOLUTO_PHASE_PENDING, .exit_code = -1 },
		{ .phase = RESOLUTO_PHASE_RUNNING, .exit_code = -1 },
		{ .phase = RESOLUTO_PHASE_SUCCEEDED, .exit_code = 0 },
	};

	under_test.fake = (struct resoluto_fake){ .struct_size = sizeof(struct resoluto_fake) };
	if (program == PROGRAM_ENDS) {
		under_test.fake.guest = fake_guest;
		under_test.fake.statuses = ends;
		under_test.fake.status_count = sizeof(ends) / sizeof(ends[0]);
	}
	return resoluto_runtime_fake_new(&under_test.fake, ret_runtime, err);
}

static int open_microvm(enum program program, struct resoluto_runtime **ret_runtime,
                        struct resoluto_err *err)
{
	return resoluto_runtime_microvm_new(NULL, ret_runtime, err);
}

static const struct kind kinds[] = {
	{ "fake", NULL, false, open_fake },
	{ "microvm", "CONTRACT_IMAGE", true, open_microvm },
};

/* A new runtime whose sandboxes all run this program. */
static void begin(enum program program)
{
	struct resoluto_err err = { 0 };

	resoluto_runtime_close(under_test.runtime);
	under_test.runtime = NULL;
	under_test.program = program;
	if (under_test.kind->open(program, &under_test.runtime, &err) < 0) {
		printf("# %s\n", err.text);
		CHECK(!"the runtime opens");
	}
	CHECK_STR(under_test.runtime->ops->name, under_test.kind->name);
}

static const char *const env_ends[] = { "RESOLUTO_WORKLOAD_ARGV=[\"true\"]", "PATH=/usr/bin:/bin",
	                                NULL };
static const char *const env_waits[] = { "RESOLUTO_WORKLOAD_ARGV=[\"cat\"]", "PATH=/usr/bin:/bin",
	                                 NULL };
static const char *const no_labels[] = { NULL };

static struct resoluto_launch_spec next_spec(void)
{
	const unsigned slot = under_test.count++ % SANDBOXES_MAX;

	snprintf(ids[slot], sizeof(ids[slot]), "contract-%d-%u", (int) getpid(), under_test.count);
	snprintf(prefixes[slot], sizeof(prefixes[slot]), "run/%s", ids[slot]);
	return (struct resoluto_launch_spec){
		.struct_size = sizeof(struct resoluto_launch_spec),
		.id = ids[slot],
		.image = under_test.image,
		.env = under_test.program == PROGRAM_ENDS ? env_ends : env_waits,
		.labels = no_labels,
		.resources = { .memory_bytes = 256ull << 20, .cpu_milli = 1000 },
		.conduit = under_test.conduit,
		.store_prefix = prefixes[slot],
		.has_stdin = under_test.program == PROGRAM_WAITS,
	};
}

static void launch(const struct resoluto_launch_spec *spec, struct resoluto_handle *ret_handle)
{
	struct resoluto_err err = { 0 };

	if (under_test.runtime->ops->launch(under_test.runtime, spec, ret_handle, &err) < 0) {
		printf("# %s\n", err.text);
		CHECK(!"the sandbox launches");
	}
	CHECK_STR(ret_handle->id, spec->id);
}

static enum resoluto_phase phase_of(struct resoluto_handle *handle)
{
	struct resoluto_status status;

	CHECK(under_test.runtime->ops->status(under_test.runtime, handle, &status, NULL) == 0);
	return status.phase;
}

/* Until the sandbox reports this phase.  Each wait that brings nothing new costs one turn. */
static void wait_for(struct resoluto_handle *handle, enum resoluto_phase phase)
{
	const struct resoluto_runtime_ops *ops = under_test.runtime->ops;

	for (int turn = 0; turn < 1000; turn++) {
		enum resoluto_phase now = phase_of(handle);

		if (now == phase)
			return;
		CHECK(now == RESOLUTO_PHASE_PENDING || now == RESOLUTO_PHASE_RUNNING);
		CHECK(ops->wait(under_test.runtime, handle, -1, WAIT_MS, NULL) == 0);
	}
	CHECK(!"the phase is reached");
}

static void destroy(struct resoluto_handle *handle)
{
	CHECK(under_test.runtime->ops->destroy(under_test.runtime, handle, NULL) == 0);
}

static bool is_stored(const char *prefix, const char *name)
{
	char key[256], *bytes = NULL;
	size_t len;
	int r;

	snprintf(key, sizeof(key), "%s/%s", prefix, name);
	r = resoluto_conduit_get_bytes(under_test.conduit, key, 1 << 20, &bytes, &len, NULL);
	free(bytes);
	return r == 0;
}

static void runs_to_its_end(void)
{
	struct resoluto_launch_spec spec;
	struct resoluto_handle handle;

	begin(PROGRAM_ENDS);
	spec = next_spec();
	launch(&spec, &handle);
	wait_for(&handle, RESOLUTO_PHASE_SUCCEEDED);
	CHECK(phase_of(&handle) == RESOLUTO_PHASE_SUCCEEDED);
	CHECK(is_stored(spec.store_prefix, "result.json"));
	CHECK(is_stored(spec.store_prefix, "_manifest.json"));
	destroy(&handle);
	CHECK(is_stored(spec.store_prefix, "result.json"));
}

/* As the protocol writes a prefix. */
static void takes_a_prefix_that_ends_in_a_slash(void)
{
	struct resoluto_launch_spec spec;
	struct resoluto_handle handle;
	char slashed[sizeof(prefixes[0]) + 1];

	begin(PROGRAM_ENDS);
	spec = next_spec();
	snprintf(slashed, sizeof(slashed), "%s/", spec.store_prefix);
	spec.store_prefix = slashed;
	launch(&spec, &handle);
	wait_for(&handle, RESOLUTO_PHASE_SUCCEEDED);
	slashed[strlen(slashed) - 1] = '\0';
	CHECK(is_stored(slashed, "result.json"));
	destroy(&handle);
}

static void expect_refused(const struct resoluto_launch_spec *spec, int code)
{
	struct resoluto_handle handle = { .id = "untouched" };
	struct resoluto_err err = { 0 };

	CHECK(under_test.runtime->ops->launch(under_test.runtime, spec, &handle, &err) == code);
	CHECK(err.code == code && err.text[0]);
	CHECK_STR(handle.id, "untouched");
}

static void refuses_bad_ids(void)
{
	static const char *const bad[] = { NULL,
		                           "",
		                           "-a",
		                           "A",
		                           "a_b",
		                           "a/b",
		                           "..",
		                           "a b",
		                           "a\n",
		                           "a.b",
		                           "a123456789012345678901234567890123456789x" };

	begin(PROGRAM_ENDS);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct resoluto_launch_spec spec = next_spec();

		spec.id = bad[i];
		expect_refused(&spec, -EINVAL);
	}
}

static void refuses_bad_prefixes(void)
{
	static const char *const bad[] = { NULL,       "",       "/run",  "..",
		                           "run/../x", "run//x", "run//", "/" };

	begin(PROGRAM_ENDS);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct resoluto_launch_spec spec = next_spec();

		spec.store_prefix = bad[i];
		expect_refused(&spec, -EINVAL);
	}
}

static void refuses_other_mistakes(void)
{
	static const char *const no_value[] = { "A=1", "B", NULL }, *const no_name[] = { "=x",
		                                                                         NULL };
	struct resoluto_launch_spec spec;

	begin(PROGRAM_ENDS);
	spec = next_spec();
	spec.struct_size = 0;
	expect_refused(&spec, -EINVAL);
	spec = next_spec();
	spec.image = "";
	expect_refused(&spec, -EINVAL);
	spec = next_spec();
	spec.conduit = NULL;
	expect_refused(&spec, -EINVAL);
	spec = next_spec();
	spec.env = no_value;
	expect_refused(&spec, -EINVAL);
	spec = next_spec();
	spec.labels = no_name;
	expect_refused(&spec, -EINVAL);
}

struct newer {
	struct resoluto_launch_spec known;
	long unknown;
};

/* Callers who were compiled against another header. */
static void takes_specs_of_other_sizes(void)
{
	struct newer newer = { .unknown = 1 };
	struct resoluto_handle handle;

	begin(PROGRAM_ENDS);
	newer.known = next_spec();
	newer.known.struct_size = sizeof(newer);
	expect_refused(&newer.known, -EINVAL);
	newer.unknown = 0;
	launch(&newer.known, &handle);
	destroy(&handle);
	newer.known = next_spec();
	newer.known.struct_size = offsetof(struct resoluto_launch_spec, egress_allow);
	newer.known.egress_learn = true; /* what lies behind an older one is not looked at */
	launch(&newer.known, &handle);
	destroy(&handle);
}

static void refuses_a_second_of_one_id(void)
{
	struct resoluto_launch_spec spec;
	struct resoluto_handle handle;

	begin(PROGRAM_WAITS);
	spec = next_spec();
	launch(&spec, &handle);
	expect_refused(&spec, -EEXIST);
	destroy(&handle);
}

static void destroys_what_runs(void)
{
	const struct resoluto_runtime_ops *ops;
	struct resoluto_launch_spec spec;
	struct resoluto_handle handle;
	char *text = NULL;

	begin(PROGRAM_WAITS);
	ops = under_test.runtime->ops;
	spec = next_spec();
	launch(&spec, &handle);
	wait_for(&handle, RESOLUTO_PHASE_RUNNING);
	destroy(&handle);
	CHECK(phase_of(&handle) == RESOLUTO_PHASE_UNKNOWN);
	destroy(&handle);
	CHECK(ops->logs(under_test.runtime, &handle, 10, &text, NULL) == -ENOENT && !text);
	CHECK(ops->signal(under_test.runtime, &handle, SIGTERM, NULL) == -ENOENT);
	CHECK(ops->send_stdin(under_test.runtime, &handle, "x", 1, NULL) < 0);
}

static void sweeps_by_labels(void)
{
	static const char *const one[] = { "resoluto.kind=contract", "color=red", NULL };
	static const char *const other[] = { "color=blue", "resoluto.kind=contract", NULL };
	static const char *const red[] = { "color=red", NULL }, *const green[] = { "color=green",
		                                                                   NULL };
	static const char *const both[] = { "resoluto.kind=contract", "color=blue", NULL };
	const struct resoluto_runtime_ops *ops;
	struct resoluto_handle handles[3];
	struct resoluto_launch_spec spec;

	begin(PROGRAM_WAITS);
	ops = under_test.runtime->ops;
	for (int i = 0; i < 3; i++) {
		spec = next_spec();
		spec.labels = i == 0 ? one : other;
		launch(&spec, &handles[i]);
	}
	CHECK(ops->sweep(under_test.runtime, green, NULL) == 0);
	CHECK(ops->sweep(under_test.runtime, red, NULL) == 1);
	CHECK(phase_of(&handles[0]) == RESOLUTO_PHASE_UNKNOWN);
	CHECK(phase_of(&handles[1]) != RESOLUTO_PHASE_UNKNOWN);
	CHECK(ops->sweep(under_test.runtime, both, NULL) == 2);
	CHECK(ops->sweep(under_test.runtime, both, NULL) == 0);
	for (int i = 0; i < 3; i++)
		destroy(&handles[i]);
}

static void waits_for_another_descriptor(void)
{
	CLEANUP(fd_close) int read_end = -1;
	CLEANUP(fd_close) int write_end = -1;
	const struct resoluto_runtime_ops *ops;
	struct resoluto_launch_spec spec;
	struct resoluto_handle handle;
	int pair[2], r;

	CHECK(pipe2(pair, O_CLOEXEC) == 0);
	read_end = pair[0];
	write_end = pair[1];
	begin(PROGRAM_WAITS);
	ops = under_test.runtime->ops;
	spec = next_spec();
	launch(&spec, &handle);
	CHECK(ops->wait(under_test.runtime, &handle, read_end, 0, NULL) == 0);
	CHECK(write(write_end, "x", 1) == 1);
	/* What the sandbox has to tell may come first. */
	do {
		r = ops->wait(under_test.runtime, &handle, read_end, WAIT_MS, NULL);
	} while (r == 0);
	CHECK(r == 1);
	destroy(&handle);
}

static void takes_standard_input(void)
{
	static const char text[] = "a line for the program\n";
	const struct resoluto_runtime_ops *ops;
	struct resoluto_launch_spec spec;
	struct resoluto_handle handle;
	size_t sent = 0;

	begin(PROGRAM_WAITS);
	ops = under_test.runtime->ops;
	spec = next_spec();
	launch(&spec, &handle);
	while (sent < sizeof(text) - 1) {
		ssize_t n = ops->send_stdin(under_test.runtime, &handle, text + sent,
		                            sizeof(text) - 1 - sent, NULL);

		CHECK(n >= 0);
		sent += (size_t) n;
		if (n == 0)
			CHECK(ops->wait(under_test.runtime, &handle, -1, WAIT_MS, NULL) == 0);
	}
	CHECK(ops->close_stdin(under_test.runtime, &handle, NULL) == 0);
	CHECK(ops->send_stdin(under_test.runtime, &handle, "x", 1, NULL) == -EPIPE);
	destroy(&handle);
}

static void has_no_standard_input_unless_asked(void)
{
	struct resoluto_launch_spec spec;
	struct resoluto_handle handle;

	begin(PROGRAM_ENDS);
	spec = next_spec();
	launch(&spec, &handle);
	CHECK(under_test.runtime->ops->send_stdin(under_test.runtime, &handle, "x", 1, NULL) ==
	      -EPIPE);
	destroy(&handle);
}

static void delivers_signals(void)
{
	struct resoluto_launch_spec spec;
	struct resoluto_handle handle;

	begin(PROGRAM_WAITS);
	spec = next_spec();
	launch(&spec, &handle);
	CHECK(under_test.runtime->ops->signal(under_test.runtime, &handle, SIGTERM, NULL) == 0);
	destroy(&handle);
}

static void keeps_logs_of_the_substrate(void)
{
	CLEANUP(mem_free) char *text = NULL;
	struct resoluto_launch_spec spec;
	struct resoluto_handle handle;
	unsigned lines = 0;

	begin(PROGRAM_ENDS);
	spec = next_spec();
	launch(&spec, &handle);
	wait_for(&handle, RESOLUTO_PHASE_SUCCEEDED);
	CHECK(under_test.runtime->ops->logs(under_test.runtime, &handle, 3, &text, NULL) == 0);
	for (const char *at = text; *at; at++)
		lines += *at == '\n';
	CHECK(lines <= 3);
	destroy(&handle);
}

static void json_done(json_t **json)
{
	json_decref(*json);
}

static void tells_its_isolation(void)
{
	CLEANUP(json_done) json_t *json = NULL;
	CLEANUP(mem_free) char *text = NULL;
	struct resoluto_launch_spec spec;
	struct resoluto_handle handle;

	begin(PROGRAM_ENDS);
	spec = next_spec();
	launch(&spec, &handle);
	wait_for(&handle, RESOLUTO_PHASE_SUCCEEDED);
	CHECK(under_test.runtime->ops->isolation(under_test.runtime, &handle, &text, NULL) == 0);
	json = json_loads(text, 0, NULL);
	CHECK(json_is_object(json));
	CHECK_STR(json_string_value(json_object_get(json, "runtime")), under_test.kind->name);
	CHECK(json_is_string(json_object_get(json, "accel")));
	CHECK(json_is_string(json_object_get(json, "guest_boot_id")));
	CHECK(json_is_string(json_object_get(json, "verdict")));
	CHECK(json_is_array(json_object_get(json, "confinement")));
	destroy(&handle);
}

static void destroys_what_runs_when_closed(void)
{
	static const char *const label[] = { "resoluto.kind=contract-close", NULL };
	struct resoluto_launch_spec spec;
	struct resoluto_handle handle;

	begin(PROGRAM_WAITS);
	spec = next_spec();
	spec.labels = label;
	launch(&spec, &handle);
	begin(PROGRAM_WAITS);
	CHECK(under_test.runtime->ops->sweep(under_test.runtime, label, NULL) == 0);
	resoluto_runtime_close(NULL);
}

static void attaches_to_what_is_there(void)
{
	const struct resoluto_runtime_ops *ops;
	struct resoluto_launch_spec spec;
	struct resoluto_handle handle, other = { .id = "untouched" };
	struct resoluto_err err = { 0 };

	begin(PROGRAM_WAITS);
	ops = under_test.runtime->ops;
	spec = next_spec();
	CHECK(ops->attach(under_test.runtime, spec.id, &other, &err) == -ENOENT && err.text[0]);
	CHECK_STR(other.id, "untouched");
	launch(&spec, &handle);
	CHECK(ops->attach(under_test.runtime, spec.id, &other, NULL) == 0);
	CHECK_STR(other.id, spec.id);
	wait_for(&other, RESOLUTO_PHASE_RUNNING);
	/* One that a program lives through by default: it has to be there after that. */
	CHECK(ops->signal(under_test.runtime, &other, SIGWINCH, NULL) == 0);
	/* Leaving it is not its end ... */
	CHECK(ops->detach(under_test.runtime, &other, NULL) == 0);
	CHECK(ops->detach(under_test.runtime, &other, &err) == -ENOENT);
	CHECK(phase_of(&handle) == RESOLUTO_PHASE_RUNNING);
	/* ... destroying it is. */
	CHECK(ops->attach(under_test.runtime, spec.id, &other, NULL) == 0);
	destroy(&other);
	CHECK(phase_of(&other) == RESOLUTO_PHASE_UNKNOWN);
	destroy(&handle);
	CHECK(ops->attach(under_test.runtime, spec.id, &other, NULL) == -ENOENT);
}

static void lets_go_what_outlives_it(void)
{
	const struct resoluto_runtime_ops *ops;
	struct resoluto_launch_spec spec;
	struct resoluto_handle handle;

	begin(PROGRAM_WAITS);
	ops = under_test.runtime->ops;
	spec = next_spec();
	spec.outlives_caller = true;
	spec.dead_after_ms = WAIT_MS;
	launch(&spec, &handle);
	wait_for(&handle, RESOLUTO_PHASE_RUNNING);
	CHECK(ops->detach(under_test.runtime, &handle, NULL) == 0);
	CHECK(phase_of(&handle) == RESOLUTO_PHASE_UNKNOWN); /* the handle is given up */
	CHECK(ops->attach(under_test.runtime, spec.id, &handle, NULL) == 0);
	CHECK(ops->send_stdin(under_test.runtime, &handle, "x", 1, NULL) == -EPIPE);
	destroy(&handle);
	CHECK(ops->attach(under_test.runtime, spec.id, &handle, NULL) == -ENOENT);
}

/* What a listing told about one id. */
struct listed {
	const char *id;
	unsigned times, all;
	bool is_alive, is_kept;
	double ended;
	enum resoluto_phase phase;
};

static int note(void *ctx, const struct resoluto_sandbox_info *info)
{
	struct listed *listed = ctx;

	listed->all++;
	if (strcmp(info->id, listed->id) != 0)
		return 0;
	listed->times++;
	listed->is_alive = info->is_alive;
	listed->is_kept = info->is_kept;
	listed->ended = info->status.ended;
	listed->phase = info->status.phase;
	CHECK(info->image && info->created > 0);
	return 0;
}

/* Until it is over: who reads the last phase is earlier than the shim's end. */
static void await_end(const char *const *labels, struct listed *listed)
{
	const struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };

	for (int turn = 0; turn < WAIT_MS / 10; turn++) {
		CHECK(under_test.runtime->ops->list(under_test.runtime, labels, note, listed,
		                                    NULL) == 0);
		if (!listed->is_alive)
			return;
		(void) nanosleep(&pause, NULL);
	}
	CHECK(!"the sandbox ends");
}

static int stop_at_first(void *ctx, const struct resoluto_sandbox_info *info)
{
	++*(unsigned *) ctx;
	return 1;
}

static int fail_at_first(void *ctx, const struct resoluto_sandbox_info *info)
{
	return -EIO;
}

static void lists_what_is_there(void)
{
	static const char *const label[] = { "resoluto.kind=contract-list", NULL };
	static const char *const other[] = { "resoluto.kind=contract-none", NULL };
	const struct resoluto_runtime_ops *ops;
	struct resoluto_launch_spec spec;
	struct resoluto_handle handle;
	struct listed listed = { 0 };
	unsigned calls = 0;

	begin(PROGRAM_WAITS);
	ops = under_test.runtime->ops;
	CHECK(ops->list(under_test.runtime, label, note, &listed, NULL) == 0 && listed.all == 0);
	spec = next_spec();
	spec.labels = label;
	spec.outlives_caller = true;
	listed.id = spec.id;
	launch(&spec, &handle);
	wait_for(&handle, RESOLUTO_PHASE_RUNNING);
	CHECK(ops->list(under_test.runtime, label, note, &listed, NULL) == 0);
	CHECK(listed.all == 1 && listed.times == 1 && listed.is_alive && listed.ended == 0);
	CHECK(listed.phase == RESOLUTO_PHASE_RUNNING && !listed.is_kept);
	CHECK(ops->list(under_test.runtime, other, note, &listed, NULL) == 0 && listed.all == 1);
	CHECK(ops->list(under_test.runtime, NULL, note, &listed, NULL) == 0 && listed.times == 2);
	CHECK(ops->list(under_test.runtime, label, fail_at_first, NULL, NULL) == -EIO);
	CHECK(ops->list(under_test.runtime, label, stop_at_first, &calls, NULL) == 0);
	CHECK(calls == 1);
	CHECK(ops->detach(under_test.runtime, &handle, NULL) == 0);
	CHECK(ops->list(under_test.runtime, label, note, &listed, NULL) == 0 && listed.is_kept);
	CHECK(ops->attach(under_test.runtime, spec.id, &handle, NULL) == 0);
	destroy(&handle);
	listed.all = 0;
	CHECK(ops->list(under_test.runtime, label, note, &listed, NULL) == 0 && listed.all == 0);
}

/* The same questions to a sandbox that another handle launched, before and after its end. */
static void an_attached_handle_is_told_as_much(void)
{
	CLEANUP(mem_free) char *text = NULL, *json = NULL;
	const struct resoluto_runtime_ops *ops;
	struct resoluto_handle handle, first, second;
	struct resoluto_launch_spec spec;

	begin(PROGRAM_ENDS);
	ops = under_test.runtime->ops;
	spec = next_spec();
	launch(&spec, &handle);
	CHECK(ops->attach(under_test.runtime, spec.id, &first, NULL) == 0);
	CHECK(ops->attach(under_test.runtime, spec.id, &second, NULL) == 0);
	CHECK(ops->send_stdin(under_test.runtime, &first, "x", 1, NULL) == -EPIPE);
	CHECK(ops->close_stdin(under_test.runtime, &first, NULL) == 0);
	/* Nobody takes the end away from the others. */
	wait_for(&first, RESOLUTO_PHASE_SUCCEEDED);
	wait_for(&second, RESOLUTO_PHASE_SUCCEEDED);
	wait_for(&handle, RESOLUTO_PHASE_SUCCEEDED);
	CHECK(ops->logs(under_test.runtime, &first, 3, &text, NULL) == 0);
	CHECK(ops->isolation(under_test.runtime, &second, &json, NULL) == 0);
	CHECK(strstr(json, under_test.kind->name));
	CHECK(ops->detach(under_test.runtime, &second, NULL) == 0);
	destroy(&handle);
	/* What one handle removed is gone for all of them. */
	CHECK(phase_of(&first) == RESOLUTO_PHASE_UNKNOWN);
	CHECK(ops->signal(under_test.runtime, &first, SIGTERM, NULL) < 0);
	destroy(&first);
}

static void attach_finds_ids_alone(void)
{
	static const char *const bad[] = { "",
		                           ".",
		                           "..",
		                           "/",
		                           "../runs",
		                           "A",
		                           "a/b",
		                           "a\n",
		                           "contract-none",
		                           "a123456789012345678901234567890123456789x" };

	begin(PROGRAM_ENDS);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct resoluto_handle handle = { .id = "untouched" };
		struct resoluto_err err = { 0 };

		CHECK(under_test.runtime->ops->attach(under_test.runtime, bad[i], &handle, &err) ==
		      -ENOENT);
		CHECK(err.code == -ENOENT && err.text[0]);
		CHECK_STR(handle.id, "untouched");
	}
}

/* From one runtime, which is closed, to another: what is left of it stays until somebody names it. */
static void what_was_let_go_is_found_by_others(void)
{
	static const char *const label[] = { "resoluto.kind=contract-go", "color=grün \\ \"x\"",
		                             NULL };
	const struct resoluto_runtime_ops *ops;
	struct resoluto_launch_spec spec;
	struct resoluto_handle handle;
	struct listed listed = { 0 };

	if (!under_test.kind->is_real)
		SKIP("nothing of a fake outlives it");
	begin(PROGRAM_WAITS);
	spec = next_spec();
	spec.labels = label;
	spec.outlives_caller = true;
	listed.id = spec.id;
	launch(&spec, &handle);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	CHECK(under_test.runtime->ops->detach(under_test.runtime, &handle, NULL) == 0);
	begin(PROGRAM_WAITS);
	ops = under_test.runtime->ops;
	CHECK(ops->list(under_test.runtime, label, note, &listed, NULL) == 0 && listed.is_alive);
	/* Its input ended when it was let go, and with it the program. */
	CHECK(ops->attach(under_test.runtime, spec.id, &handle, NULL) == 0);
	wait_for(&handle, RESOLUTO_PHASE_SUCCEEDED);
	CHECK(ops->detach(under_test.runtime, &handle, NULL) == 0);
	await_end(label, &listed);
	CHECK(listed.is_kept && listed.ended > 0 && listed.phase == RESOLUTO_PHASE_SUCCEEDED);
	CHECK(ops->sweep(under_test.runtime, label, NULL) == 0); /* kept */
	expect_refused(&spec, -EEXIST);
	CHECK(ops->attach(under_test.runtime, spec.id, &handle, NULL) == 0);
	destroy(&handle);
}

/* Closing a runtime is the end of what it launched, and of nothing else. */
static void attached_ones_outlive_the_runtime(void)
{
	static const char *const label[] = { "resoluto.kind=contract-stays", NULL };
	struct resoluto_runtime *other = NULL;
	struct resoluto_launch_spec spec;
	struct resoluto_handle handle, attached;
	struct listed listed = { 0 };

	if (!under_test.kind->is_real)
		SKIP("a fake knows only what it launched itself");
	begin(PROGRAM_WAITS);
	spec = next_spec();
	spec.labels = label;
	listed.id = spec.id;
	launch(&spec, &handle);
	CHECK(under_test.kind->open(PROGRAM_WAITS, &other, NULL) == 0);
	CHECK(other->ops->attach(other, spec.id, &attached, NULL) == 0);
	resoluto_runtime_close(other);
	wait_for(&handle, RESOLUTO_PHASE_RUNNING);
	/* A signal through the door of an attached handle reaches the program. */
	CHECK(under_test.kind->open(PROGRAM_WAITS, &other, NULL) == 0);
	CHECK(other->ops->attach(other, spec.id, &attached, NULL) == 0);
	CHECK(other->ops->signal(other, &attached, SIGTERM, NULL) == 0);
	wait_for(&handle, RESOLUTO_PHASE_SUCCEEDED);
	resoluto_runtime_close(other);
	destroy(&handle);
	CHECK(under_test.runtime->ops->list(under_test.runtime, label, note, &listed, NULL) == 0);
	CHECK(listed.all == 0);
}

static int destroy_each(void *ctx, const struct resoluto_sandbox_info *info)
{
	const struct resoluto_runtime_ops *ops = under_test.runtime->ops;
	struct resoluto_handle handle;

	++*(unsigned *) ctx;
	CHECK(ops->attach(under_test.runtime, info->id, &handle, NULL) == 0);
	destroy(&handle);
	return 0;
}

static void a_listing_may_destroy(void)
{
	static const char *const label[] = { "resoluto.kind=contract-each", NULL };
	struct resoluto_launch_spec specs[2];
	struct resoluto_handle handles[2];
	unsigned calls = 0;

	begin(PROGRAM_WAITS);
	for (int i = 0; i < 2; i++) {
		specs[i] = next_spec();
		specs[i].labels = label;
		launch(&specs[i], &handles[i]);
	}
	CHECK(under_test.runtime->ops->list(under_test.runtime, label, destroy_each, &calls,
	                                    NULL) == 0);
	CHECK(calls == 2);
	for (int i = 0; i < 2; i++) {
		CHECK(phase_of(&handles[i]) == RESOLUTO_PHASE_UNKNOWN);
		destroy(&handles[i]);
	}
}

static void run_all(void)
{
	RUN(runs_to_its_end);
	RUN(refuses_bad_ids);
	RUN(takes_a_prefix_that_ends_in_a_slash);
	RUN(refuses_bad_prefixes);
	RUN(refuses_other_mistakes);
	RUN(takes_specs_of_other_sizes);
	RUN(refuses_a_second_of_one_id);
	RUN(destroys_what_runs);
	RUN(sweeps_by_labels);
	RUN(waits_for_another_descriptor);
	RUN(takes_standard_input);
	RUN(has_no_standard_input_unless_asked);
	RUN(delivers_signals);
	RUN(keeps_logs_of_the_substrate);
	RUN(tells_its_isolation);
	RUN(destroys_what_runs_when_closed);
	RUN(attaches_to_what_is_there);
	RUN(lets_go_what_outlives_it);
	RUN(an_attached_handle_is_told_as_much);
	RUN(attach_finds_ids_alone);
	RUN(what_was_let_go_is_found_by_others);
	RUN(attached_ones_outlive_the_runtime);
	RUN(a_listing_may_destroy);
	RUN(lists_what_is_there);
}

int main(int argc, char *argv[])
{
	char url[128];

	for (size_t i = 0; argc == 2 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(argv[1], kinds[i].name) == 0)
			under_test.kind = &kinds[i];
	}
	if (!under_test.kind) {
		fprintf(stderr, "usage: runtime fake | microvm\n");
		return 2;
	}
	under_test.image = "fake";
	if (under_test.kind->image_variable)
		under_test.image = getenv(under_test.kind->image_variable);
	if (!under_test.image) {
		printf("1..0 # SKIP %s names no image\n", under_test.kind->image_variable);
		return 0;
	}
	snprintf(under_test.dir, sizeof(under_test.dir), "/tmp/runtime-XXXXXX");
	if (!mkdtemp(under_test.dir))
		return 99;
	snprintf(url, sizeof(url), "localfs://%s", under_test.dir);
	if (resoluto_conduit_open_url(url, &under_test.conduit, NULL) < 0)
		return 99;
	run_all();
	resoluto_runtime_close(under_test.runtime);
	resoluto_conduit_close(under_test.conduit);
	if (remove_tree_at(AT_FDCWD, under_test.dir) < 0)
		return 99;
	return check_done();
}
