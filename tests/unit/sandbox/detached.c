/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detached.c - launch, attach, drive, collect, destroy over the fake runtime: each part by itself, in any
 * order, as often as wanted; and what is left behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "check.h"
#include "objects.h"
#include "sandbox/sandbox_internal.h"
#include "wire/event.h"
#include "wire/keys.h"
#include "wire/pack.h"

#define GUEST_BOOT_ID "22222222-2222-2222-2222-222222222222"
#define OK_RESULT(archive) \
	"{\"node_id\":\"run\",\"status\":\"success\",\"exit_code\":7,\"ran\":true," \
	"\"guest_boot_id\":\"" GUEST_BOOT_ID "\",\"output_is_complete\":true," \
	"\"output_archive\":" archive "}"

#define NOT_FOUND \
	"{\"node_id\":\"run\",\"status\":\"failure\",\"exit_code\":null,\"ran\":false," \
	"\"reason\":\"not-found\"}"

/* A fake runtime with a conduit, and how far its guest has come. */
struct script {
	struct resoluto_fake fake;
	struct resoluto_runtime *runtime;
	struct resoluto_conduit *conduit;
	struct resoluto_backend *backend;
	char dir[64];
	bool starts;     /* the guest opens the span of its program at once */
	bool ends;       /* and ends at once too */
	bool hangs_up;   /* SIGHUP at the launch */
	bool interrupts; /* SIGINT at the launch */
	int signal_fd;   /* where they are written */
	const char *prefix;
	uint32_t chunks;
	uint64_t seq;
	char told[4096]; /* what a drive told */
	size_t told_len;
	unsigned events;
	int stream_code;
};

static const struct sandbox_tuning tuning = { .grace_ms = 10,
	                                      .poll_interval_ms = 1,
	                                      .admission_step_ms = 1 };

static void put(struct script *script, const char *name, const char *text)
{
	char key[RESOLUTO_KEY_MAX];

	snprintf(key, sizeof(key), "%s/%s", script->prefix, name);
	CHECK(resoluto_conduit_put_bytes(script->conduit, key, text, strlen(text), NULL) == 0);
}

static void put_chunk(struct script *script, const struct buf *lines)
{
	char name[KEY_SIZE];

	key_chunk(++script->chunks, name);
	put(script, name, lines->data);
}

static void open_program(struct script *script)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(65536);
	const struct event_head open = { .run_id = script->prefix + strlen("run/"),
		                         .span_id = "aa",
		                         .kind = "workload",
		                         .event = "open",
		                         .ts = 1 };

	CHECK(event_write(&out, &open, NULL) == 0);
	put_chunk(script, &out);
}

/* A line of the program in a chunk of its own. */
static void say(struct script *script, const char *line)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(65536);
	const struct event_head head = { .run_id = script->prefix + strlen("run/"),
		                         .span_id = "ab",
		                         .parent_span_id = "aa",
		                         .kind = "log",
		                         .event = "log",
		                         .ts = 2 };
	const struct event_piece piece = { .bytes = line,
		                           .len = strlen(line),
		                           .has_newline = true,
		                           .seq = ++script->seq };

	CHECK(event_write_piece(&out, &head, &piece) == 0);
	put_chunk(script, &out);
}

/* The guest's last words; the machine goes off with them. */
static void finish(struct script *script, const char *result)
{
	static const struct resoluto_status off = { .phase = RESOLUTO_PHASE_SUCCEEDED, .ended = 5 };
	char manifest[64];

	snprintf(manifest, sizeof(manifest), "{\"total_chunks\": %u}", script->chunks);
	put(script, KEY_RESULT, result);
	put(script, KEY_MANIFEST, manifest);
	script->fake.statuses = &off;
	script->fake.status_count = 1;
}

static int guest(void *ctx, const struct resoluto_launch_spec *spec)
{
	struct script *script = ctx;
	unsigned char byte = script->hangs_up ? SIGHUP : SIGINT;

	script->prefix = strcmp(spec->id, "r1") == 0 ? "run/r1" : "run/r2";
	script->chunks = 0;
	script->seq = 0;
	if (script->starts)
		open_program(script);
	if (script->ends)
		finish(script, script->starts ? OK_RESULT("null") : NOT_FOUND);
	if ((script->hangs_up || script->interrupts) && write(script->signal_fd, &byte, 1) != 1)
		return -EIO;
	return 0;
}

static void begin(struct script *script, const char *url)
{
	struct resoluto_backend_options options = { .struct_size = sizeof(options),
		                                    .image = "an-image" };

	memset(script, 0, sizeof(*script));
	snprintf(script->dir, sizeof(script->dir), "/tmp/resoluto-detached-XXXXXX");
	CHECK(mkdtemp(script->dir));
	script->fake = (struct resoluto_fake){ .struct_size = sizeof(script->fake),
		                               .guest = guest,
		                               .ctx = script };
	script->starts = true;
	CHECK(resoluto_runtime_fake_new(&script->fake, &script->runtime, NULL) == 0);
	CHECK(resoluto_conduit_open_url(url, &script->conduit, NULL) == 0);
	options.runtime = script->runtime;
	options.conduit = script->conduit;
	CHECK(resoluto_backend_new(&options, &script->backend, NULL) == 0);
}

static void end(struct script *script)
{
	CHECK(script->fake.alive == 0 && objects_in(script->conduit) == 0);
	resoluto_backend_free(script->backend);
	resoluto_conduit_close(script->conduit);
	resoluto_runtime_close(script->runtime);
	CHECK(remove_tree_at(AT_FDCWD, script->dir) == 0);
}

static const char *const program[] = { "program", "argument", NULL };

static struct resoluto_run_options options_of(struct script *script)
{
	return (struct resoluto_run_options){ .struct_size = sizeof(struct resoluto_run_options),
		                              .argv = program,
		                              .backend = script->backend,
		                              .id = "r1",
		                              .signal_fd = -1 };
}

static struct resoluto_run *launch_with(const struct resoluto_run_options *options)
{
	struct resoluto_result *result = NULL;
	struct resoluto_run *run = NULL;
	struct resoluto_err err = { 0 };

	if (sandbox_launch(options, &tuning, &run, &result, &err) != 0)
		printf("# %s\n", err.text);
	CHECK(run && result && err.code == 0 && !err.text[0]);
	CHECK_STR(resoluto_run_id(run), options->id);
	CHECK_STR(result->run_id, options->id);
	resoluto_result_free(result);
	return run;
}

static struct resoluto_run *launch(struct script *script)
{
	struct resoluto_run_options options = options_of(script);

	return launch_with(&options);
}

static struct resoluto_run *attach(struct script *script, const char *id)
{
	const struct resoluto_attach_options options = { .struct_size = sizeof(options),
		                                         .id = id,
		                                         .backend = script->backend };
	struct resoluto_run *run = NULL;
	struct resoluto_err err = { 0 };

	if (sandbox_attach(&options, &tuning, &run, &err) != 0)
		printf("# %s\n", err.text);
	CHECK(run && err.code == 0 && !err.text[0]);
	return run;
}

static int attach_code(struct script *script, const char *id, struct resoluto_err *err)
{
	const struct resoluto_attach_options options = { .struct_size = sizeof(options),
		                                         .id = id,
		                                         .backend = script->backend };
	struct resoluto_run *run = NULL;
	int r = sandbox_attach(&options, &tuning, &run, err);

	CHECK(!run);
	return r;
}

static int stream(void *ctx, bool is_stderr, const char *bytes, size_t len)
{
	struct script *script = ctx;

	CHECK(script->told_len + len < sizeof(script->told));
	memcpy(script->told + script->told_len, bytes, len);
	script->told_len += len;
	script->told[script->told_len] = '\0';
	return script->stream_code;
}

static int count_event(void *ctx, const struct resoluto_event *event)
{
	((struct script *) ctx)->events++;
	return 0;
}

static struct resoluto_follow_options follow_of(struct script *script)
{
	script->told_len = 0;
	script->told[0] = '\0';
	script->events = 0;
	return (struct resoluto_follow_options){ .struct_size = sizeof(
							 struct resoluto_follow_options),
		                                 .stream = stream,
		                                 .on_event = count_event,
		                                 .ctx = script,
		                                 .stop_fd = -1 };
}

/* Drive a run that has ended; its program's code is 7. */
static void drive_to_end(struct resoluto_run *run, const struct resoluto_follow_options *options)
{
	struct resoluto_result *result = NULL;
	struct resoluto_err err = { 0 };

	if (resoluto_run_drive(run, options, &result, &err) != 0)
		printf("# %s\n", err.text);
	CHECK(result && err.code == 0 && !err.text[0]);
	CHECK(result->ran && result->exit_code == 7 && !result->ok);
	CHECK(result->disposition == RESOLUTO_COMPLETED && !result->reason[0]);
	CHECK(result->isolation_json && result->canary_json && result->artifacts);
	CHECK_STR(result->image_ref, "an-image");
	resoluto_result_free(result);
}

static int drive_now(struct script *script, struct resoluto_run *run, uint64_t from_seq)
{
	struct resoluto_follow_options options = follow_of(script);
	struct resoluto_result *result = NULL;

	options.from_seq = from_seq;
	options.until_now = true;
	return resoluto_run_drive(run, &options, &result, NULL);
}

static void destroy(struct resoluto_run *run)
{
	CHECK(resoluto_run_destroy(run, NULL) == 0);
	CHECK(resoluto_run_destroy(run, NULL) == 0);
	resoluto_run_close(run);
}

/* --- launch --- */

static void a_launch_returns_once_the_program_has_started(void)
{
	struct script script;
	struct resoluto_run *run;
	enum resoluto_run_state state;

	begin(&script, "memory://");
	run = launch(&script);
	CHECK(script.fake.launches == 1 && script.fake.detaches == 1 && script.fake.destroys == 0);
	CHECK(script.fake.alive == 1);
	CHECK(objects_in(script.conduit) == 2); /* its chunk, and what was asked for */
	CHECK(resoluto_run_look(run, &state, NULL) == 0 && state == RESOLUTO_RUN_RUNNING);
	CHECK(resoluto_run_cursor(run) == 1);
	resoluto_run_close(run);
	CHECK(script.fake.alive == 1);
	destroy(attach(&script, "r1"));
	end(&script);
}

static void an_id_is_launched_once(void)
{
	struct resoluto_run_options options;
	struct resoluto_result *result = NULL;
	struct resoluto_run *run, *second = NULL;
	struct script script;

	begin(&script, "memory://");
	run = launch(&script);
	options = options_of(&script);
	CHECK(sandbox_launch(&options, &tuning, &second, &result, NULL) == -EEXIST);
	CHECK(!second && result && script.fake.alive == 1);
	CHECK(result->disposition == RESOLUTO_REFUSED && !result->ran);
	resoluto_result_free(result);
	destroy(run);
	end(&script);
}

static void a_program_that_never_starts_is_told_at_once(void)
{
	struct resoluto_run_options options;
	struct resoluto_result *result = NULL;
	struct resoluto_run *run = NULL;
	struct script script;

	begin(&script, "memory://");
	script.starts = false;
	script.ends = true;
	options = options_of(&script);
	script.fake.guest = guest;
	CHECK(sandbox_launch(&options, &tuning, &run, &result, NULL) == 0);
	CHECK(!run && result && !result->ok && !result->ran);
	CHECK_STR(result->reason, "not-found");
	resoluto_result_free(result);
	end(&script);
}

static void a_program_that_ended_at_once_is_kept(void)
{
	struct resoluto_follow_options options;
	struct resoluto_run *run;
	struct script script;

	begin(&script, "memory://");
	script.ends = true;
	run = launch(&script);
	CHECK(script.fake.alive == 0 && objects_in(script.conduit) == 4);
	options = follow_of(&script);
	drive_to_end(run, &options);
	destroy(run);
	end(&script);
}

static void a_launch_hands_over_its_input(void)
{
	static const char input[] = "all of it";
	struct resoluto_run_options options;
	struct script script;

	begin(&script, "memory://");
	options = options_of(&script);
	options.input = (struct resoluto_stdin){ .kind = RESOLUTO_STDIN_BYTES,
		                                 .bytes = input,
		                                 .len = sizeof(input) - 1 };
	destroy(launch_with(&options));
	CHECK(script.fake.stdin_bytes == sizeof(input) - 1);
	end(&script);
}

static void a_launch_can_be_stopped(void)
{
	struct resoluto_run_options options;
	struct resoluto_result *result = NULL;
	struct resoluto_run *run = NULL;
	struct script script;
	int ends[2];

	begin(&script, "memory://");
	CHECK(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
	script.starts = false;
	script.interrupts = true;
	script.signal_fd = ends[1];
	options = options_of(&script);
	options.signal_fd = ends[0];
	CHECK(sandbox_launch(&options, &tuning, &run, &result, NULL) == 0);
	CHECK(!run && result->disposition == RESOLUTO_STOPPED);
	CHECK_STR(result->reason, "signal");
	resoluto_result_free(result);
	close(ends[0]);
	close(ends[1]);
	end(&script);
}

static void refused(struct script *script, const struct resoluto_run_options *options)
{
	struct resoluto_result *result = NULL;
	struct resoluto_run *run = NULL;
	struct resoluto_err err = { 0 };

	CHECK(sandbox_launch(options, &tuning, &run, &result, &err) == -EINVAL && err.text[0]);
	CHECK(!run && !result && script->fake.launches == 0);
}

static void a_launch_refuses_what_it_cannot_do(void)
{
	static const char *const outputs[] = { "out/**", NULL };
	struct resoluto_run_options options;
	struct script script;

	begin(&script, "memory://");
	options = options_of(&script);
	options.output_paths = outputs;
	options.output_dir = script.dir;
	refused(&script, &options);
	options = options_of(&script);
	options.stream = stream;
	refused(&script, &options);
	options = options_of(&script);
	options.on_event = count_event;
	refused(&script, &options);
	options = options_of(&script);
	options.detach_on_hangup = true;
	refused(&script, &options);
	end(&script);
}

static void a_hangup_leaves_the_run_to_itself(void)
{
	struct resoluto_run_options options;
	struct resoluto_result *result = NULL;
	struct script script;
	int ends[2];

	begin(&script, "memory://");
	CHECK(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
	script.hangs_up = true;
	script.signal_fd = ends[1];
	options = options_of(&script);
	options.signal_fd = ends[0];
	options.detach_on_hangup = true;
	options.stream = stream;
	options.ctx = &script;
	CHECK(sandbox_run(&options, &tuning, &result, NULL) == 1);
	CHECK_STR(result->run_id, "r1");
	CHECK(!result->ok && result->artifacts && result->reason && result->isolation_json);
	resoluto_result_free(result);
	CHECK(script.fake.alive == 1 && script.fake.signals == 0 && script.fake.detaches == 1);
	close(ends[0]);
	close(ends[1]);
	destroy(attach(&script, "r1"));
	end(&script);
}

/* --- drive --- */

static void a_drive_tells_all_and_goes_on_from_a_cursor(void)
{
	struct resoluto_follow_options options;
	struct resoluto_run *run, *other;
	struct script script;

	begin(&script, "memory://");
	run = launch(&script);
	say(&script, "one");
	say(&script, "two");
	CHECK(drive_now(&script, run, 0) == 1);
	CHECK_STR(script.told, "one\ntwo\n");
	CHECK(resoluto_run_cursor(run) == 3);
	say(&script, "three");
	CHECK(drive_now(&script, run, resoluto_run_cursor(run)) == 1);
	CHECK_STR(script.told, "three\n");
	/* Another process, at its own pace. */
	other = attach(&script, "r1");
	CHECK(drive_now(&script, other, 2) == 1);
	CHECK_STR(script.told, "two\nthree\n");
	say(&script, "four");
	finish(&script, OK_RESULT("null"));
	options = follow_of(&script);
	options.from_seq = resoluto_run_cursor(other);
	drive_to_end(other, &options);
	CHECK_STR(script.told, "four\n");
	options = follow_of(&script);
	drive_to_end(run, &options);
	CHECK_STR(script.told, "one\ntwo\nthree\nfour\n");
	CHECK(script.events == 5 && script.fake.destroys == 0);
	resoluto_run_close(other);
	destroy(run);
	end(&script);
}

static void a_drive_from_the_end_is_only_the_verdict(void)
{
	struct resoluto_follow_options options;
	struct resoluto_run *run;
	struct script script;

	begin(&script, "memory://");
	run = launch(&script);
	say(&script, "one");
	finish(&script, OK_RESULT("null"));
	options = follow_of(&script);
	options.from_seq = RESOLUTO_SEQ_END;
	drive_to_end(run, &options);
	CHECK(script.events == 0 && !script.told[0]);
	destroy(run);
	end(&script);
}

static void a_drive_can_begin_with_the_last_lines(void)
{
	struct resoluto_follow_options options;
	struct resoluto_run *run;
	struct script script;

	begin(&script, "memory://");
	run = launch(&script);
	say(&script, "one");
	say(&script, "two");
	say(&script, "three");
	finish(&script, OK_RESULT("null"));
	options = follow_of(&script);
	options.has_tail = true;
	options.tail_lines = 2;
	drive_to_end(run, &options);
	CHECK_STR(script.told, "two\nthree\n");
	options.from_seq = 2;
	CHECK(resoluto_run_drive(run, &options, &(struct resoluto_result *){ NULL }, NULL) ==
	      -EINVAL);
	destroy(run);
	end(&script);
}

static void a_reader_that_leaves_does_not_end_the_run(void)
{
	struct resoluto_follow_options options;
	struct resoluto_result *result = NULL;
	struct resoluto_run *run;
	struct script script;
	int ends[2];

	begin(&script, "memory://");
	run = launch(&script);
	say(&script, "one");
	options = follow_of(&script);
	script.stream_code = -EPIPE;
	CHECK(resoluto_run_drive(run, &options, &result, NULL) == -ECANCELED);
	script.stream_code = 0;
	CHECK(pipe2(ends, O_CLOEXEC) == 0 && write(ends[1], "x", 1) == 1);
	options = follow_of(&script);
	options.stop_fd = ends[0];
	CHECK(resoluto_run_drive(run, &options, &result, NULL) == 1);
	CHECK_STR(script.told, "one\n");
	CHECK(!result && script.fake.alive == 1 && script.fake.destroys == 0);
	close(ends[0]);
	close(ends[1]);
	destroy(run);
	end(&script);
}

static void what_fell_silent_is_ended(void)
{
	struct resoluto_run_options run_options;
	struct resoluto_follow_options options;
	struct resoluto_result *result = NULL;
	struct resoluto_run *run;
	struct script script;

	begin(&script, "memory://");
	run_options = options_of(&script);
	run_options.dead_after_ms = 20;
	run = launch_with(&run_options);
	options = follow_of(&script);
	CHECK(resoluto_run_drive(run, &options, &result, NULL) == 0);
	CHECK(result->disposition == RESOLUTO_SILENT);
	CHECK_STR(result->reason, "silent");
	CHECK(script.fake.alive == 0);
	resoluto_result_free(result);
	destroy(run);
	end(&script);
}

/* The sandbox is gone, and nobody saw how; what it wrote is there. */
static void what_is_gone_is_external_with_what_it_wrote(void)
{
	struct resoluto_follow_options options;
	struct resoluto_result *result = NULL;
	struct resoluto_run *run;
	struct script script;

	begin(&script, "memory://");
	resoluto_run_close(launch(&script));
	say(&script, "one");
	CHECK(script.runtime->ops->sweep(script.runtime, NULL, NULL) == 1);
	run = attach(&script, "r1");
	options = follow_of(&script);
	options.until_now = true;
	options.until_now = false;
	options.is_read_only = true;
	/* Armed by nothing, it is given up after so many polls. */
	CHECK(resoluto_run_drive(run, &options, &result, NULL) == 0);
	CHECK(result->disposition == RESOLUTO_EXTERNAL && result->ran);
	CHECK_STR(script.told, "one\n");
	CHECK_STR(result->output, "one\n");
	resoluto_result_free(result);
	destroy(run);
	end(&script);
}

/* --- the rest --- */

static void signals_reach_the_program(void)
{
	struct resoluto_err err = { 0 };
	struct resoluto_run *run;
	struct script script;

	begin(&script, "memory://");
	run = launch(&script);
	CHECK(resoluto_run_signal(run, SIGUSR1, NULL) == 0 && script.fake.signals == 1);
	finish(&script, OK_RESULT("null"));
	CHECK(resoluto_run_signal(run, SIGUSR1, &err) == -ESRCH && strstr(err.text, "r1"));
	CHECK(script.fake.signals == 1);
	destroy(run);
	end(&script);
}

static void unknown_and_impossible_ids(void)
{
	struct resoluto_err err = { 0 };
	struct script script;

	begin(&script, "memory://");
	CHECK(attach_code(&script, "r1", &err) == -ENOENT && strstr(err.text, "r1"));
	CHECK(attach_code(&script, NULL, &err) == -EINVAL);
	CHECK(attach_code(&script, "../r1", &err) == -EINVAL && strstr(err.text, "../r1"));
	CHECK(attach_code(&script, "", &err) == -EINVAL);
	end(&script);
}

/* Its sandbox is gone, and what it wrote was kept: nothing of that is a failure. */
static void a_kept_run_leaves_the_error_alone(void)
{
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_follow_options follow;
	struct resoluto_result *result = NULL;
	struct resoluto_run *run;

	begin(&script, "memory://");
	script.ends = true;
	options = options_of(&script);
	options.keep_run = true;
	CHECK(sandbox_run(&options, &tuning, &result, NULL) == 0);
	resoluto_result_free(result);
	run = attach(&script, "r1");
	follow = follow_of(&script);
	drive_to_end(run, &follow);
	destroy(run);
	end(&script);
}

static void nothing_where_something_is_needed(void)
{
	struct resoluto_attach_options attach = { .struct_size = sizeof(attach), .id = "r1" };
	struct resoluto_follow_options follow = { .struct_size = sizeof(follow) };
	struct resoluto_run *run = NULL;
	struct resoluto_outputs outputs;
	enum resoluto_run_state state;
	struct resoluto_err err = { 0 };

	CHECK(resoluto_run_attach(NULL, &run, &err) == -EINVAL && err.text[0]);
	CHECK(resoluto_run_attach(&attach, NULL, NULL) == -EINVAL);
	CHECK(resoluto_run_launch(NULL, &run, NULL, NULL) == -EINVAL);
	CHECK(resoluto_run_drive(NULL, &follow, NULL, NULL) == -EINVAL);
	CHECK(resoluto_run_look(NULL, &state, NULL) == -EINVAL);
	CHECK(resoluto_run_signal(NULL, SIGINT, NULL) == -EINVAL);
	CHECK(resoluto_run_destroy(NULL, NULL) == -EINVAL);
	CHECK(resoluto_run_collect(NULL, "out", &outputs, NULL) == -EINVAL);
	CHECK(resoluto_run_sweep(NULL, NULL) == -EINVAL);
	CHECK(resoluto_run_list(NULL, NULL, NULL, NULL) == -EINVAL);
	CHECK_STR(resoluto_run_id(NULL), "");
	CHECK(resoluto_run_cursor(NULL) == 0);
	resoluto_outputs_done(NULL);
	resoluto_run_close(NULL);
}

static void nobody_wants_the_answer(void)
{
	struct resoluto_follow_options follow;
	struct script script;
	struct resoluto_run *run;

	begin(&script, "memory://");
	script.ends = true;
	run = launch(&script);
	follow = follow_of(&script);
	CHECK(resoluto_run_drive(run, NULL, NULL, NULL) == -EINVAL);
	CHECK(resoluto_run_drive(run, &follow, NULL, NULL) == 0);
	CHECK(resoluto_run_look(run, NULL, NULL) == -EINVAL);
	CHECK(resoluto_run_collect(run, NULL, NULL, NULL) == -EINVAL);
	destroy(run);
	end(&script);
}

static int to_buf(void *ctx, const void *bytes, size_t len)
{
	return buf_add(ctx, bytes, len);
}

/* An archive with out/a and secret, whatever was asked for. */
static void put_outbox(struct script *script, const char *key)
{
	static const char *const no_excludes[] = { NULL };
	CLEANUP(buf_done) struct buf archive = BUF_INIT(1 << 20);
	CLEANUP(fd_close) int dir = open(script->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct resoluto_sink sink = { .write = to_buf, .ctx = &archive };
	struct pack_options options = { .excludes = no_excludes };
	struct pack_report report;

	CHECK(mkdirat(dir, "out", 0755) == 0);
	CHECK(replace_file_at(dir, "secret", "s", 1, 0644, NULL) == 0);
	fd_close(&dir);
	dir = open(script->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(symlinkat("nowhere", dir, "out/link") == 0);
	CHECK(pack_tree(dir, &options, &sink, &report, NULL) == 0);
	CHECK(resoluto_conduit_put_bytes(script->conduit, key, archive.data, archive.len, NULL) ==
	      0);
}

static void collect(struct resoluto_run *run, const char *into, size_t want)
{
	struct resoluto_outputs outputs = { 0 };
	struct resoluto_err err = { 0 };

	if (resoluto_run_collect(run, into, &outputs, &err) != 0)
		printf("# %s\n", err.text);
	CHECK(outputs.artifacts && strv_count((const char *const *) outputs.artifacts) == want);
	resoluto_outputs_done(&outputs);
}

static int collect_code(struct resoluto_run *run, const char *into)
{
	struct resoluto_outputs outputs = { 0 };
	int r = resoluto_run_collect(run, into, &outputs, NULL);

	CHECK(!outputs.artifacts && !outputs.result_json);
	return r;
}

static void outputs_are_collected_as_often_as_wanted(void)
{
	static const char *const outputs[] = { "out/**", NULL };
	struct resoluto_run_options options;
	struct resoluto_run *run;
	struct script script;
	char into[128], path[160];

	begin(&script, "memory://");
	options = options_of(&script);
	options.output_paths = outputs;
	run = launch_with(&options);
	snprintf(into, sizeof(into), "%s/into", script.dir);
	CHECK(collect_code(run, into) == -EBUSY && access(into, F_OK) < 0);
	put_outbox(&script, "run/r1/outbox/x.tar.gz");
	finish(&script, OK_RESULT("\"outbox/x.tar.gz\""));
	collect(run, into, 1);
	resoluto_run_close(run);
	run = attach(&script, "r1");
	collect(run, into, 1);
	snprintf(path, sizeof(path), "%s/out/link", into);
	CHECK(faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
	snprintf(path, sizeof(path), "%s/secret", into);
	CHECK(access(path, F_OK) < 0); /* nobody asked for it */
	destroy(run);
	end(&script);
}

#define FAILED_OUTPUTS \
	"{\"node_id\":\"run\",\"status\":\"failure\",\"exit_code\":0,\"ran\":true," \
	"\"output_archive\":null,\"reason\":\"outputs-failed\"}"

static void put_result(struct script *script, const char *json)
{
	CHECK(resoluto_conduit_put_bytes(script->conduit, "run/r1/result.json", json, strlen(json),
	                                 NULL) == 0);
}

static void outputs_that_are_not_there_are_told_apart(void)
{
	static const char *const outputs[] = { "out/**", NULL };
	struct resoluto_run_options options;
	struct resoluto_run *run;
	struct script script;
	char into[128];

	begin(&script, "memory://");
	snprintf(into, sizeof(into), "%s/into", script.dir);
	run = launch(&script);
	finish(&script, OK_RESULT("null"));
	CHECK(collect_code(run, into) == -ENODATA); /* none were asked for */
	destroy(run);
	options = options_of(&script);
	options.output_paths = outputs;
	script.fake.status_count = 0;
	run = launch_with(&options);
	finish(&script, OK_RESULT("null"));
	collect(run, into, 0); /* none matched */
	put_result(&script, OK_RESULT("\"outbox/other.tar.gz\""));
	CHECK(collect_code(run, into) == -EBADMSG);
	put_result(&script, "{}");
	CHECK(collect_code(run, into) == -ENODATA); /* it never came to packing them */
	put_result(&script, FAILED_OUTPUTS);
	CHECK(collect_code(run, into) == -ENODATA); /* that went wrong, and none is not all */
	destroy(run);
	end(&script);
}

/* --- listings --- */

struct listed {
	unsigned count, ended, running;
	char ids[256];
	int exit_code;
	int code; /* returned */
};

static int note(void *ctx, const struct resoluto_run_info *info)
{
	struct listed *listed = ctx;
	size_t used = strlen(listed->ids);

	listed->count++;
	snprintf(listed->ids + used, sizeof(listed->ids) - used, "%s ", info->id);
	listed->ended += info->state == RESOLUTO_RUN_ENDED;
	listed->running += info->state == RESOLUTO_RUN_RUNNING;
	listed->exit_code = info->exit_code;
	CHECK_STR(info->program, "program");
	CHECK_STR(info->image, "an-image");
	CHECK(info->labels && info->reason);
	return listed->code;
}

static int list(struct script *script, const char *const *labels, struct listed *listed)
{
	const struct resoluto_list_options options = { .struct_size = sizeof(options),
		                                       .backend = script->backend,
		                                       .labels = labels };

	*listed = (struct listed){ .code = listed->code };
	return resoluto_run_list(&options, note, listed, NULL);
}

static void runs_are_listed_with_their_verdicts(void)
{
	static const char *const mine[] = { "team=a", NULL }, *const others[] = { "team=b", NULL };
	struct resoluto_run_options options;
	struct listed listed = { 0 };
	struct script script;
	struct resoluto_run *run;

	begin(&script, "memory://");
	CHECK(list(&script, NULL, &listed) == 0 && listed.count == 0);
	options = options_of(&script);
	options.labels = mine;
	run = launch_with(&options);
	CHECK(list(&script, mine, &listed) == 0 && listed.running == 1 && listed.count == 1);
	CHECK(list(&script, others, &listed) == 0 && listed.count == 0);
	finish(&script, OK_RESULT("null"));
	CHECK(list(&script, NULL, &listed) == 0 && listed.ended == 1 && listed.exit_code == 7);
	listed.code = 5;
	CHECK(list(&script, NULL, &listed) == 5);
	destroy(run);
	end(&script);
}

static int sweep(struct script *script, const char *const *labels, uint64_t older_ms,
                 struct listed *listed)
{
	const struct resoluto_sweep_options options = { .struct_size = sizeof(options),
		                                        .backend = script->backend,
		                                        .labels = labels,
		                                        .older_ms = older_ms,
		                                        .removed = note,
		                                        .ctx = listed };

	*listed = (struct listed){ 0 };
	return resoluto_run_sweep(&options, NULL);
}

static void a_sweep_takes_what_has_ended_and_is_named(void)
{
	static const char *const mine[] = { "team=a", NULL }, *const others[] = { "team=b", NULL };
	struct resoluto_run_options options;
	struct listed listed;
	struct script script;

	begin(&script, "memory://");
	options = options_of(&script);
	options.labels = mine;
	resoluto_run_close(launch_with(&options));
	/* alive */
	CHECK(sweep(&script, NULL, 0, &listed) == 0);
	CHECK(sweep(&script, mine, 0, &listed) == 0);
	CHECK(sweep(&script, mine, 1, &listed) == 0 && script.fake.alive == 1);
	finish(&script, OK_RESULT("null"));
	/* ended, but kept: only when it is named */
	CHECK(sweep(&script, NULL, 0, &listed) == 0);
	CHECK(sweep(&script, others, 0, &listed) == 0);
	CHECK(sweep(&script, mine, UINT64_C(1000) * 3600 * 24 * 365 * 500, &listed) == 0);
	CHECK(sweep(&script, mine, 1000, &listed) == 1);
	CHECK_STR(listed.ids, "r1 ");
	CHECK(sweep(&script, mine, 1000, &listed) == 0);
	end(&script);
}

static void over_a_directory(void)
{
	struct resoluto_follow_options options;
	struct resoluto_run *run;
	struct script script;
	char url[] = "localfs:///tmp/resoluto-detached-store-XXXXXX";

	CHECK(mkdtemp(url + strlen("localfs://")));
	begin(&script, url);
	resoluto_run_close(launch(&script));
	say(&script, "one");
	finish(&script, OK_RESULT("null"));
	run = attach(&script, "r1");
	options = follow_of(&script);
	drive_to_end(run, &options);
	CHECK_STR(script.told, "one\n");
	destroy(run);
	end(&script);
	CHECK(remove_tree_at(AT_FDCWD, url + strlen("localfs://")) == 0);
}

int main(void)
{
	RUN(a_launch_returns_once_the_program_has_started);
	RUN(an_id_is_launched_once);
	RUN(a_program_that_never_starts_is_told_at_once);
	RUN(a_program_that_ended_at_once_is_kept);
	RUN(a_kept_run_leaves_the_error_alone);
	RUN(nothing_where_something_is_needed);
	RUN(nobody_wants_the_answer);
	RUN(a_launch_hands_over_its_input);
	RUN(a_launch_can_be_stopped);
	RUN(a_launch_refuses_what_it_cannot_do);
	RUN(a_hangup_leaves_the_run_to_itself);
	RUN(a_drive_tells_all_and_goes_on_from_a_cursor);
	RUN(a_drive_from_the_end_is_only_the_verdict);
	RUN(a_drive_can_begin_with_the_last_lines);
	RUN(a_reader_that_leaves_does_not_end_the_run);
	RUN(what_fell_silent_is_ended);
	RUN(what_is_gone_is_external_with_what_it_wrote);
	RUN(signals_reach_the_program);
	RUN(unknown_and_impossible_ids);
	RUN(outputs_are_collected_as_often_as_wanted);
	RUN(outputs_that_are_not_there_are_told_apart);
	RUN(runs_are_listed_with_their_verdicts);
	RUN(a_sweep_takes_what_has_ended_and_is_named);
	RUN(over_a_directory);
	return check_done();
}
