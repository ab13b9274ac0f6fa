/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facade.c - stage -> run -> collect over the fake runtime and memory or localfs conduits: what
 * comes back, what is refused, what is left behind (nothing).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "check.h"
#include "conduit/conduit_backend.h"
#include "objects.h"
#include "sandbox/sandbox_internal.h"
#include "wire/event.h"
#include "wire/keys.h"
#include "wire/quota.h"
#include "wire/pack.h"
#include "wire/result.h"

#define GUEST_BOOT_ID "22222222-2222-2222-2222-222222222222"

/* What the guest of the fake runtime does, and what it saw. */
struct script {
	struct resoluto_fake fake;
	struct resoluto_runtime *runtime;
	struct resoluto_conduit *conduit;
	struct resoluto_backend *backend;
	char dir[64]; /* a temporary directory: ws/ and out/ within it */
	const char *const
		*lines;     /* alternating "1text" (stdout) and "2text" (stderr), NULL-terminated */
	const char *result; /* result.json; NULL: the guest dies before it */
	bool has_no_manifest;
	bool skips_line;    /* a number of output is left out before the last line */
	bool forgets_chunk; /* the manifest counts one more than there is */
	bool is_busy_once;
	const char *claims_run_id; /* in its events; NULL: its own */
	const char *noise;         /* a line among its events; NULL: none */
	struct resoluto_quotas quotas;
	const char *outbox_dir;   /* packed into the outbox; NULL: none */
	const char *outbox_key;   /* where; NULL: where ours puts it */
	const char *outbox_bytes; /* instead: these bytes as the archive */
	int signal_at_launch;     /* written to signal_fd when launched */
	int signal_write_fd;
	char spec_env[8192];
	char spec_labels[1024];
	struct resoluto_resources spec_resources;
	struct resoluto_quotas spec_quotas;
	bool saw_inbox;
	char inbox_members[1024];
	char streamed[4096];
	size_t streamed_len;
	int stream_code;
	unsigned stream_calls;
};

#define OK_RESULT \
	"{\"node_id\":\"run\",\"status\":\"success\",\"exit_code\":0,\"ran\":true,\"guest_boot_" \
	"id\":\"" GUEST_BOOT_ID "\",\"redactions\":3,\"output_is_complete\":true,\"timings_ms\":{" \
	"\"canary\":1,\"setup\":0,\"run\":999999999," \
	"\"boot\":-5,\"collect\":1e300},\"canary\":[{\"probe\":\"put\",\"ok\":true,\"detail\":" \
	"\"\"}]}"

static const struct sandbox_tuning tuning = { .grace_ms = 60000,
	                                      .poll_interval_ms = 1,
	                                      .admission_step_ms = 1 };

static void key_of(const struct resoluto_launch_spec *spec, const char *key, char whole[256])
{
	snprintf(whole, 256, "%s/%s", spec->store_prefix, key);
}

static int put(const struct resoluto_launch_spec *spec, const char *key, const void *bytes,
               size_t len)
{
	char whole[256];

	key_of(spec, key, whole);
	return resoluto_conduit_put_bytes(spec->conduit, whole, bytes, len, NULL);
}

static int put_line(struct buf *out, const char *run_id, const char *line, uint64_t seq)
{
	struct event_head head = {
		.run_id = run_id,
		.span_id = "00000000000000ab",
		.parent_span_id = "00000000000000aa",
		.kind = "log",
		.event = "log",
		.ts = 2,
	};
	struct event_piece piece = { .bytes = line + 1,
		                     .len = strlen(line + 1),
		                     .is_stderr = line[0] == '2',
		                     .has_newline = true,
		                     .seq = seq };

	return event_write_piece(out, &head, &piece);
}

/* As its runner was told; a liar says what it likes. */
static const char *run_id_of(const struct script *script, const struct resoluto_launch_spec *spec)
{
	return script->claims_run_id ? script->claims_run_id : spec->id;
}

static int put_events(const struct script *script, const struct resoluto_launch_spec *spec)
{
	struct event_head open = { .run_id = run_id_of(script, spec),
		                   .span_id = "00000000000000aa",
		                   .kind = "workload",
		                   .event = "open",
		                   .ts = 1 };
	struct buf out = BUF_INIT(8 * 1024 * 1024);
	int r = event_write(&out, &open, NULL);

	if (r == 0 && script->noise)
		r = buf_addf(&out, "%s\n", script->noise);
	for (size_t i = 0; script->lines[i] && r == 0; i++)
		r = put_line(&out, open.run_id, script->lines[i],
		             i + 1 + (script->skips_line && !script->lines[i + 1]));
	if (r == 0)
		r = put(spec, "events-000001.jsonl", out.data, out.len);
	buf_done(&out);
	return r;
}

static int to_buf(void *ctx, const void *bytes, size_t len)
{
	return buf_add(ctx, bytes, len);
}

static int put_outbox(const struct script *script, const struct resoluto_launch_spec *spec)
{
	static const char *const no_excludes[] = { NULL };
	struct buf archive = BUF_INIT(64 * 1024 * 1024);
	struct resoluto_sink sink = { .write = to_buf, .ctx = &archive };
	struct pack_options options = { .excludes = no_excludes };
	struct pack_report report;
	int fd, r;

	const char *key = script->outbox_key ? script->outbox_key : KEY_OUTBOX_OUTPUT;

	if (script->outbox_bytes)
		return put(spec, key, script->outbox_bytes, strlen(script->outbox_bytes));
	fd = open(script->outbox_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = pack_tree(fd, &options, &sink, &report, NULL);
	if (r == 0)
		r = put(spec, key, archive.data, archive.len);
	close(fd);
	buf_done(&archive);
	return r;
}

static void remember(const char *const *entries, size_t size, char *lines)
{
	for (; entries && *entries; entries++) {
		size_t used = strlen(lines);

		snprintf(lines + used, size - used, "%s\n", *entries);
	}
}

static int add_name(void *ctx, const char *path)
{
	struct script *script = ctx;
	size_t used = strlen(script->inbox_members);

	snprintf(script->inbox_members + used, sizeof(script->inbox_members) - used, "%s ", path);
	return 0;
}

struct bytes {
	const char *at;
	size_t left;
};

static ssize_t from_bytes(void *ctx, void *buf, size_t cap)
{
	struct bytes *bytes = ctx;
	size_t n = bytes->left < cap ? bytes->left : cap;

	memcpy(buf, bytes->at, n);
	bytes->at += n;
	bytes->left -= n;
	return (ssize_t) n;
}

static void look_into_inbox(struct script *script, const struct resoluto_launch_spec *spec)
{
	struct unpack_options options = { .member = add_name, .ctx = script };
	struct unpack_report report;
	struct bytes bytes;
	char whole[256], dir[96], *archive;
	size_t len;
	int fd;

	key_of(spec, KEY_INBOX_WORKSPACE, whole);
	if (resoluto_conduit_get_bytes(spec->conduit, whole, 1 << 30, &archive, &len, NULL) < 0)
		return;
	script->saw_inbox = true;
	snprintf(dir, sizeof(dir), "%s/guest", script->dir);
	mkdir(dir, 0700);
	fd = open(dir, O_RDONLY | O_DIRECTORY);
	bytes = (struct bytes){ archive, len };
	(void) unpack_tree(fd, &(struct resoluto_source){ from_bytes, &bytes }, &options, &report,
	                   NULL);
	close(fd);
	free(archive);
}

static int guest(void *ctx, const struct resoluto_launch_spec *spec)
{
	struct script *script = ctx;
	unsigned char byte = (unsigned char) script->signal_at_launch;
	char manifest[64];
	int r = 0;

	if (script->is_busy_once) {
		script->is_busy_once = false;
		return -EBUSY;
	}
	remember(spec->env, sizeof(script->spec_env), script->spec_env);
	remember(spec->labels, sizeof(script->spec_labels), script->spec_labels);
	script->spec_resources = spec->resources;
	script->spec_quotas = spec->quotas;
	look_into_inbox(script, spec);
	if (byte && write(script->signal_write_fd, &byte, 1) != 1)
		return -EIO;
	if (script->lines)
		r = put_events(script, spec);
	if (r == 0 && (script->outbox_dir || script->outbox_bytes))
		r = put_outbox(script, spec);
	if (r == 0 && script->result)
		r = put(spec, KEY_RESULT, script->result, strlen(script->result));
	snprintf(manifest, sizeof(manifest), "{\"total_chunks\": %d}",
	         (script->lines ? 1 : 0) + script->forgets_chunk);
	if (r == 0 && !script->has_no_manifest)
		r = put(spec, KEY_MANIFEST, manifest, strlen(manifest));
	return r;
}

static int stream(void *ctx, bool is_stderr, const char *bytes, size_t len)
{
	struct script *script = ctx;

	script->stream_calls++;
	if (len < sizeof(script->streamed) - script->streamed_len)
		memcpy(script->streamed + script->streamed_len, bytes, len),
			script->streamed_len += len;
	return script->stream_code;
}

static void make_dirs(struct script *script)
{
	char path[96];

	snprintf(script->dir, sizeof(script->dir), "/tmp/resoluto-facade-XXXXXX");
	CHECK(mkdtemp(script->dir));
	snprintf(path, sizeof(path), "%s/ws", script->dir);
	CHECK(mkdir(path, 0755) == 0);
	snprintf(path, sizeof(path), "%s/box", script->dir);
	CHECK(mkdir(path, 0755) == 0);
}

static void script_init(struct script *script, const char *url)
{
	struct resoluto_backend_options options = { .struct_size = sizeof(options),
		                                    .image = "an-image" };

	memset(script, 0, sizeof(*script));
	make_dirs(script);
	script->fake = (struct resoluto_fake){ .struct_size = sizeof(script->fake),
		                               .guest = guest,
		                               .ctx = script };
	script->result = OK_RESULT;
	CHECK(resoluto_runtime_fake_new(&script->fake, &script->runtime, NULL) == 0);
	CHECK(resoluto_conduit_open_url(url, &script->conduit, NULL) == 0);
	options.runtime = script->runtime;
	options.conduit = script->conduit;
	CHECK(resoluto_backend_new(&options, &script->backend, NULL) == 0);
}

/* Nothing of the run is left: no sandbox, no object. */
static void script_done(struct script *script)
{
	CHECK(script->fake.alive == 0);
	CHECK(objects_in(script->conduit) == 0);
	resoluto_backend_free(script->backend);
	resoluto_conduit_close(script->conduit);
	resoluto_runtime_close(script->runtime);
	CHECK(remove_tree_at(AT_FDCWD, script->dir) == 0);
}

static const char *const program[] = { "program", "argument", NULL };
static const char *const greeting[] = { "1hello", "2oops", "1world", NULL };

static struct resoluto_run_options options_of(struct script *script)
{
	return (struct resoluto_run_options){
		.struct_size = sizeof(struct resoluto_run_options),
		.argv = program,
		.backend = script->backend,
		.id = "r1",
		.ctx = script,
		.signal_fd = -1,
	};
}

static struct resoluto_result *run(const struct resoluto_run_options *options)
{
	struct resoluto_result *result = NULL;
	struct resoluto_err err = { 0 };
	char *json;

	if (sandbox_run(options, &tuning, &result, &err) != 0)
		printf("# %s\n", err.text);
	CHECK(result);
	json = resoluto_result_to_json(result);
	CHECK(json && json[0] == '{');
	free(json);
	return result;
}

/* Every failure: a reason of the list, words for people, never ok. */
static void failed(const struct resoluto_result *result, enum resoluto_disposition disposition,
                   const char *reason, int exit_code)
{
	CHECK_STR(resoluto_disposition_name(result->disposition),
	          resoluto_disposition_name(disposition));
	CHECK_STR(result->reason, reason);
	if (result->exit_code != exit_code)
		printf("# exit code %d\n", result->exit_code);
	CHECK(result->exit_code == exit_code && !result->ok && result->detail[0]);
}

static void file_in(const struct script *script, const char *name, const char *text)
{
	char path[160];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", script->dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text));
	close(fd);
}

static char *path_in(const struct script *script, const char *name)
{
	char *path = NULL;

	CHECK(asprintf(&path, "%s/%s", script->dir, name) > 0);
	return path;
}

static void file_is(const struct script *script, const char *name, const char *want)
{
	struct buf text;
	char *path = path_in(script, name);

	CHECK(read_file_at(AT_FDCWD, path, 1 << 20, &text, NULL) == 0);
	CHECK_STR(text.data ? text.data : "", want);
	buf_done(&text);
	free(path);
}

static void a_run_that_goes_well(void)
{
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result;

	script_init(&script, "memory://");
	script.lines = greeting;
	options = options_of(&script);
	options.stream = stream;
	result = run(&options);
	CHECK(result->ok && result->ran && result->exit_code == 0 && result->signal == 0);
	CHECK(result->disposition == RESOLUTO_COMPLETED);
	CHECK_STR(result->reason, "");
	CHECK_STR(result->detail, "");
	CHECK_STR(result->run_id, "r1");
	CHECK_STR(result->output, "hello\noops\nworld\n");
	CHECK_STR(result->out, "hello\nworld\n");
	CHECK_STR(result->errors, "oops\n");
	CHECK(result->output_len == 17 && result->output_dropped_bytes == 0);
	CHECK(script.streamed_len == 17 && memcmp(script.streamed, result->output, 17) == 0);
	CHECK(script.stream_calls == 3 && result->redactions == 3);
	CHECK(!result->artifacts[0] && !result->result_json && result->staging.left_out == 0);
	CHECK(!result->warnings[0] && result->output_is_complete);
	CHECK_STR(result->staging.why, "");
	CHECK_STR(result->image_ref, "an-image");
	CHECK(strstr(result->isolation_json, "\"own_kernel\":false")); /* as the runtime says */
	CHECK(strstr(result->isolation_json, GUEST_BOOT_ID));
	CHECK_STR(result->canary_json, "[{\"probe\":\"put\",\"ok\":true,\"detail\":\"\"}]");
	CHECK_STR(result->substrate_logs, "fake: nothing was started\n");
	CHECK(script.fake.launches == 1 && script.fake.destroys == 1);
	resoluto_result_free(result);
	script_done(&script);
}

static void check_incomplete(const char *result_json, bool skips_line, const char *words)
{
	static const char *const lines[] = { "1a", "2b", "1c", NULL };
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result;

	script_init(&script, "memory://");
	script.lines = lines;
	script.skips_line = skips_line;
	script.result = result_json;
	options = options_of(&script);
	result = run(&options);
	CHECK(result->ran && result->exit_code == 0 && !result->output_is_complete);
	CHECK_STR(result->output, "a\nb\nc\n");
	CHECK(strstr(result->warnings[0], "output-incomplete: ") == result->warnings[0]);
	CHECK(strstr(result->warnings[0], words) && !result->warnings[1]);
	resoluto_result_free(result);
	script_done(&script);
}

static void output_that_may_be_missing_is_never_called_complete(void)
{
	check_incomplete("{\"status\":\"success\",\"exit_code\":0,\"ran\":true,\"guest_boot_id\":"
	                 "\"" GUEST_BOOT_ID "\",\"output_is_complete\":false}",
	                 false, "--drain-timeout");
	check_incomplete(OK_RESULT, true, "left out pieces");
}

/* As many and as long as a caller wants to read, the others not at all. */
static void warnings_of_the_guest_are_bounded(void)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(1 << 20);
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result;

	CHECK(buf_addf(&json, "%.*s,\"warnings\":[\"clock-rate: fast\",\"\",\"%0600d\"",
	               (int) strlen(OK_RESULT) - 1, OK_RESULT, 0) == 0);
	for (int i = 0; i < 20; i++)
		CHECK(buf_addf(&json, ",\"more %d\"", i) == 0);
	CHECK(buf_add_str(&json, "]}") == 0);
	script_init(&script, "memory://");
	script.result = json.data;
	options = options_of(&script);
	result = run(&options);
	CHECK(result->ok && strv_count((const char *const *) result->warnings) == 8);
	CHECK_STR(result->warnings[0], "clock-rate: fast");
	CHECK_STR(result->warnings[1], "more 0");
	CHECK_STR(result->warnings[7], "more 6");
	resoluto_result_free(result);
	script_done(&script);
}

static void the_guests_clock_is_not_believed(void)
{
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result;

	script_init(&script, "memory://");
	options = options_of(&script);
	result = run(&options);
	CHECK(result->timings_ms.run <= result->timings_ms.total);
	CHECK(result->timings_ms.boot <= result->timings_ms.total &&
	      result->timings_ms.total < 60000);
	resoluto_result_free(result);
	script_done(&script);
}

static void what_the_sandbox_is_told(void)
{
	struct script script;
	struct resoluto_run_options options;

	script_init(&script, "memory://");
	options = options_of(&script);
	options.env = (const char *const[]){ "A=b", NULL };
	options.labels = (const char *const[]){ "kind=told", NULL };
	resoluto_result_free(run(&options));
	CHECK(strstr(script.spec_env, "A=b\n"));
	CHECK(strstr(script.spec_env, "RESOLUTO_WORKLOAD_ARGV=[\"program\",\"argument\"]\n"));
	CHECK(strstr(script.spec_env, "RESOLUTO_RUN_ID=r1\n"));
	CHECK(strstr(script.spec_env, "RESOLUTO_NODE_ID=run\n"));
	CHECK(strstr(script.spec_env, "RESOLUTO_STORE_PREFIX=run/r1\n"));
	CHECK(strstr(script.spec_env, "RESOLUTO_HOST_BOOT_IDS="));
	CHECK_STR(script.spec_labels, "kind=told\nresoluto.run_id=r1\nresoluto.node_id=run\n");
	CHECK(!script.saw_inbox);
	script_done(&script);
}

static void defaults_of_memory_and_processors_are_the_contracts(void)
{
	struct script script;
	struct resoluto_run_options options;

	script_init(&script, "memory://");
	options = options_of(&script);
	resoluto_result_free(run(&options));
	CHECK(script.spec_resources.memory_bytes == RESOLUTO_DEFAULT_MEMORY_BYTES &&
	      script.spec_resources.cpu_milli == RESOLUTO_DEFAULT_CPU_MILLI);
	options = options_of(&script);
	options.resources.memory_bytes = 1 << 29;
	options.resources.cpu_milli = 500;
	resoluto_result_free(run(&options));
	CHECK(script.spec_resources.memory_bytes == 1 << 29 &&
	      script.spec_resources.cpu_milli == 500);
	script_done(&script);
}

static void ids_are_made_up(void)
{
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *a, *b;

	script_init(&script, "memory://");
	options = options_of(&script);
	options.id = NULL;
	a = run(&options);
	b = run(&options);
	CHECK(strlen(a->run_id) == 20 && strncmp(a->run_id, "run-", 4) == 0 &&
	      key_is_run_id(a->run_id));
	CHECK(strcmp(a->run_id, b->run_id) != 0);
	resoluto_result_free(a);
	resoluto_result_free(b);
	script_done(&script);
}

static void an_exit_code_comes_back(void)
{
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result;

	script_init(&script, "memory://");
	script.result =
		"{\"status\":\"failure\",\"exit_code\":-9,\"guest_boot_id\":\"" GUEST_BOOT_ID "\"}";
	options = options_of(&script);
	result = run(&options);
	CHECK(result->exit_code == 137 && result->signal == 9 && result->ran && !result->ok);
	resoluto_result_free(result);
	script_done(&script);
}

static void output_over_the_cap_keeps_head_and_tail(void)
{
	static const char *const lines[] = { "1AAAAAAAAA", "2BBBBBBBBB", "1CCCCCCCCC", "1DDDDDDDDD",
		                             NULL };
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result;

	script_init(&script, "memory://");
	script.lines = lines;
	options = options_of(&script);
	options.max_output = 20;
	result = run(&options);
	CHECK_STR(result->output, "AAAAAAAAA\nDDDDDDDDD\n");
	CHECK(result->output_dropped_bytes == 20 && result->output_head_len == 10);
	CHECK(result->out_dropped_bytes == 10 && result->out_head_len == 10);
	CHECK(result->errors_dropped_bytes == 0 && result->errors_head_len == 10);
	CHECK_STR(result->out, "AAAAAAAAA\nDDDDDDDDD\n");
	CHECK_STR(result->errors, "BBBBBBBBB\n");
	resoluto_result_free(result);
	script_done(&script);
}

static void a_workspace_is_staged(void)
{
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result;
	char *path;

	script_init(&script, "memory://");
	file_in(&script, "ws/b.txt", "b");
	file_in(&script, "ws/a.txt", "a");
	path = path_in(&script, "ws/node_modules");
	CHECK(mkdir(path, 0755) == 0);
	free(path);
	path = path_in(&script, "ws/fifo");
	CHECK(mkfifo(path, 0644) == 0);
	free(path);
	path = path_in(&script, "ws/out-link");
	CHECK(symlink("/etc/passwd", path) == 0);
	free(path);
	path = path_in(&script, "ws");
	options = options_of(&script);
	options.workspace = path;
	result = run(&options);
	CHECK(result->ok && script.saw_inbox);
	CHECK(strstr(script.inbox_members, "a.txt") && strstr(script.inbox_members, "b.txt"));
	CHECK(!strstr(script.inbox_members, "fifo") && !strstr(script.inbox_members, "link"));
	CHECK(result->staging.left_out == 3);
	CHECK(strstr(result->staging.why, "1 fifo, socket or device") &&
	      strstr(result->staging.why, "1 link"));
	resoluto_result_free(result);
	free(path);
	script_done(&script);
}

/* The members that the sandbox finds when the workspace is staged with these choices. */
static void stages(struct script *script, const char *const *paths, const char *const *exclude,
                   const char *const *protect, const char *want)
{
	struct resoluto_run_options options = options_of(script);
	char *path = path_in(script, "ws");

	script->inbox_members[0] = '\0';
	options.workspace = path;
	options.paths = paths;
	options.exclude = exclude;
	options.protect = protect;
	resoluto_result_free(run(&options));
	CHECK_STR(script->inbox_members, want);
	free(path);
}

static void of_a_workspace_only_what_was_chosen_is_staged(void)
{
	static const char *const dirs[] = { "ws/src", "ws/src/build", "ws/src/dist" };
	static const char *const src[] = { "src", NULL }, *const x[] = { "x", NULL };
	static const char *const dist[] = { "dist", NULL };
	struct script script;

	script_init(&script, "memory://");
	for (size_t i = 0; i < 3; i++) {
		char *path = path_in(&script, dirs[i]);

		CHECK(mkdir(path, 0755) == 0);
		free(path);
	}
	file_in(&script, "ws/top", "t");
	file_in(&script, "ws/src/x", "x");
	file_in(&script, "ws/src/build/b", "b");
	file_in(&script, "ws/src/dist/d", "d");
	stages(&script, NULL, NULL, NULL, "src/x top ");
	stages(&script, src, NULL, NULL, "src/x ");
	stages(&script, NULL, NULL, dist, "src/dist/d src/x top ");
	stages(&script, src, x, NULL, "src/build/b src/dist/d ");
	stages(&script, src, x, x, "src/build/b src/dist/d src/x ");
	stages(&script, (const char *const[]){ "./src/", NULL }, NULL, NULL, "src/x ");
	stages(&script, (const char *const[]){ ".", NULL }, NULL, NULL, "src/x top ");
	stages(&script, NULL, NULL, (const char *const[]){ "dist/", NULL },
	       "src/dist/d src/x top ");
	stages(&script, NULL, NULL, (const char *const[]){ "./src//build", NULL },
	       "src/build/b src/x top ");
	stages(&script, NULL, (const char *const[]){ "src/", NULL }, NULL, "top ");
	script_done(&script);
}

/* An outbox of box/, patterns, and what lands in out/. */
static struct resoluto_result *run_with_outputs(struct script *script, const char *const *globs)
{
	struct resoluto_run_options options = options_of(script);
	struct resoluto_result *result;
	char *box = path_in(script, "box"), *out = path_in(script, "out/deep");

	options.quotas = script->quotas;
	options.output_paths = globs;
	options.output_dir = out;
	if (!script->outbox_bytes)
		script->outbox_dir = box;
	result = run(&options);
	free(box);
	free(out);
	return result;
}

static struct {
	const struct conduit_ops *real;
	int signal_fd, signo;
} landing;

/* Somebody asks to stop just when the archive is asked for. */
static int get_and_signal(struct resoluto_conduit *conduit, const char *key,
                          const struct resoluto_sink *sink, struct resoluto_err *err)
{
	unsigned char byte = (unsigned char) landing.signo;

	if (strstr(key, KEY_OUTBOX_OUTPUT))
		CHECK(write(landing.signal_fd, &byte, 1) == 1);
	return landing.real->get(conduit, key, sink, err);
}

static struct resoluto_result *land_with_signal(struct script *script, int signo, int before)
{
	static const char *const all[] = { "*", NULL };
	struct resoluto_run_options options = options_of(script);
	struct resoluto_result *result;
	struct conduit_ops ops = *script->conduit->ops;
	char *box = path_in(script, "box"), *out = path_in(script, "out");
	int ends[2];

	CHECK(pipe(ends) == 0);
	landing.real = script->conduit->ops;
	landing.signal_fd = ends[1];
	landing.signo = signo;
	ops.get = get_and_signal;
	script->conduit->ops = &ops;
	script->outbox_dir = box;
	script->signal_write_fd = ends[1];
	script->signal_at_launch = before;
	options.output_paths = all;
	options.output_dir = out;
	options.signal_fd = ends[0];
	options.detach_on_hangup = signo == SIGHUP;
	result = run(&options);
	script->conduit->ops = landing.real;
	free(box);
	free(out);
	close(ends[0]);
	close(ends[1]);
	return result;
}

static void a_request_to_stop_ends_the_landing_of_outputs(void)
{
	struct script script;
	struct resoluto_result *result;

	script_init(&script, "memory://");
	file_in(&script, "box/a", "a");
	result = land_with_signal(&script, SIGINT, 0);
	failed(result, RESOLUTO_STOPPED, "signal", 128 + SIGINT);
	CHECK(result->ran && !result->artifacts[0]);
	CHECK(strstr(result->detail, "stopped while the outputs were written"));
	resoluto_result_free(result);
	script_done(&script);
}

/* One for the program, one that asks for nothing, and a terminal that is gone: all that the program left shall land. */
static void other_signals_do_not(void)
{
	static const int signals[][2] = { { SIGWINCH, 0 }, { SIGWINCH, SIGINT }, { SIGHUP, 0 } };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		struct script script;
		struct resoluto_result *result;

		script_init(&script, "memory://");
		file_in(&script, "box/a", "a");
		result = land_with_signal(&script, signals[i][0], signals[i][1]);
		CHECK(result->exit_code == 0 && result->artifacts[0]);
		CHECK_STR(result->artifacts[0], "a");
		resoluto_result_free(result);
		script_done(&script);
	}
}

static void outputs_come_back_as_asked(void)
{
	static const char *const globs[] = { "*.xml", "result.json", "tree", NULL };
	struct script script;
	struct resoluto_result *result;
	char *path;

	script_init(&script, "memory://");
	file_in(&script, "box/z.xml", "zz");
	file_in(&script, "box/a.xml", "aa");
	file_in(&script, "box/evil.sh", "no");
	file_in(&script, "box/result.json", "{\"score\" : [1, 2.5],\n \"\xc3\xa4\": null}");
	path = path_in(&script, "box/tree");
	CHECK(mkdir(path, 0755) == 0);
	free(path);
	file_in(&script, "box/tree/leaf", "l");
	result = run_with_outputs(&script, globs);
	CHECK(result->ok);
	CHECK_STR(result->artifacts[0], "a.xml");
	CHECK_STR(result->artifacts[1], "result.json");
	CHECK_STR(result->artifacts[2], "tree/leaf");
	CHECK_STR(result->artifacts[3], "z.xml");
	CHECK(!result->artifacts[4]);
	CHECK_STR(result->result_json, "{\"score\":[1,2.5],\"\\u00e4\":null}");
	CHECK(!result->warnings[0]);
	file_is(&script, "out/deep/a.xml", "aa");
	path = path_in(&script, "out/deep/evil.sh");
	CHECK(access(path, F_OK) < 0);
	free(path);
	resoluto_result_free(result);
	script_done(&script);
}

/* The contract lets a guest name its archive, beneath its own prefix. */
static void outputs_come_back_under_another_name(void)
{
	static const char *const globs[] = { "**", NULL };
	struct script script;
	struct resoluto_result *result;

	script_init(&script, "memory://");
	script.outbox_key = "outbox/other.tar.gz";
	script.result =
		"{\"status\":\"success\",\"exit_code\":0,\"output_archive\":\"run/r1/outbox/"
		"other.tar.gz\",\"guest_boot_id\":\"" GUEST_BOOT_ID "\"}";
	file_in(&script, "box/junit.xml", "x");
	result = run_with_outputs(&script, globs);
	CHECK(result->ok);
	CHECK_STR(result->artifacts[0], "junit.xml");
	resoluto_result_free(result);
	script_done(&script);
}

static void outputs_come_back_from_failed_programs_too(void)
{
	static const char *const globs[] = { "**", NULL };
	struct script script;
	struct resoluto_result *result;

	script_init(&script, "memory://");
	script.result = "{\"status\":\"failure\",\"exit_code\":3,\"guest_boot_id\":\"" GUEST_BOOT_ID
			"\"}";
	file_in(&script, "box/junit.xml", "x");
	result = run_with_outputs(&script, globs);
	CHECK(result->exit_code == 3);
	CHECK_STR(result->artifacts[0], "junit.xml");
	CHECK_STR(result->reason, "");
	resoluto_result_free(result);
	script_done(&script);
}

static void results_of_programs_that_are_no_json(void)
{
	static const char *const texts[] = { "", "{", "{\"a\":1}x", "nan", "\"\xff\"", "[1e999]" };
	static const char *const globs[] = { "result.json", NULL };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct script script;
		struct resoluto_result *result;

		script_init(&script, "memory://");
		file_in(&script, "box/result.json", texts[i]);
		result = run_with_outputs(&script, globs);
		CHECK(result->ok && !result->result_json && result->warnings[0]);
		CHECK(strncmp(result->warnings[0], "result-not-json: ", 17) == 0);
		CHECK_STR(result->artifacts[0], "result.json");
		resoluto_result_free(result);
		script_done(&script);
	}
}

static void results_of_programs_stay_as_they_were_written(void)
{
	static const struct {
		const char *text, *want;
	} results[] = {
		{ "{ \"n\" : 18446744073709551615 }\n", "{\"n\":18446744073709551615}" },
		{ "{\"s\":\"a\\u0000b \\\" c\"}", "{\"s\":\"a\\u0000b \\\" c\"}" },
		{ "[0.1,\t1e-9 , -0]", "[0.1,1e-9,-0]" },
		{ " null ", "null" },
		{ "{\"a\":1,\"a\":2}", "{\"a\":2}" }, /* said twice: one of them counts */
	};
	static const char *const globs[] = { "result.json", NULL };

	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		struct script script;
		struct resoluto_result *result;

		script_init(&script, "memory://");
		file_in(&script, "box/result.json", results[i].text);
		result = run_with_outputs(&script, globs);
		CHECK(result->ok && !result->warnings[0]);
		CHECK_STR(result->result_json, results[i].want);
		resoluto_result_free(result);
		script_done(&script);
	}
}

static void hostile_archives_are_refused(void)
{
	static const char *const globs[] = { "**", NULL };
	static const char *const archives[] = { "this is no archive", "\x1f\x8b\x08", "" };

	for (size_t i = 0; i < sizeof(archives) / sizeof(archives[0]); i++) {
		struct script script;
		struct resoluto_result *result;

		script_init(&script, "memory://");
		script.outbox_bytes = archives[i];
		result = run_with_outputs(&script, globs);
		failed(result, RESOLUTO_COMPLETED, "bad-output", RESOLUTO_EXIT_SANDBOX);
		CHECK(result->ran && !result->artifacts[0]);
		resoluto_result_free(result);
		script_done(&script);
	}
}

/* Of an archive that is unpacked: what was within it stays, and is told. */
static void a_quota_of_outputs_ends_the_run(void)
{
	static const char *const globs[] = { "**", NULL };
	static const struct {
		struct resoluto_quotas quotas;
		const char *name;
		int program, exit_code;
	} cases[] = {
		{ { .members = 2 }, "members", 0, RESOLUTO_EXIT_SANDBOX },
		{ { .members = 2 }, "members", 7, RESOLUTO_EXIT_SANDBOX },
		{ { .archive_bytes = 2 * 5120 }, "archive-bytes", 0, RESOLUTO_EXIT_SANDBOX },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct script script;
		struct resoluto_result *result;
		char verdict[128];
		char *json;

		script_init(&script, "memory://");
		script.quotas = cases[i].quotas;
		snprintf(verdict, sizeof(verdict),
		         "{\"status\":\"%s\",\"exit_code\":%d,\"guest_boot_id\":\"" GUEST_BOOT_ID
		         "\"}",
		         cases[i].program ? "failure" : "success", cases[i].program);
		script.result = verdict;
		file_in(&script, "box/a", "1");
		file_in(&script, "box/b", "2");
		file_in(&script, "box/c", "3");
		result = run_with_outputs(&script, globs);
		failed(result, RESOLUTO_STOPPED, "quota", cases[i].exit_code);
		CHECK_STR(result->quota, cases[i].name);
		CHECK(quota_told(result->detail) != QUOTA_NONE);
		CHECK_STR(result->artifacts[0], "a");
		CHECK_STR(result->artifacts[1], "b");
		CHECK(!result->artifacts[2]);
		json = resoluto_result_to_json(result);
		CHECK(json && strstr(json, "\"exceeded\":true"));
		free(json);
		resoluto_result_free(result);
		script_done(&script);
	}
}

static void an_archive_that_is_named_and_missing(void)
{
	static const char *const globs[] = { "**", NULL };
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result;
	char *out;

	script_init(&script, "memory://");
	script.result = "{\"status\":\"success\",\"exit_code\":0,\"output_archive\":\"outbox/"
			"output.tar.gz\",\"guest_boot_id\":\"" GUEST_BOOT_ID "\"}";
	options = options_of(&script);
	out = path_in(&script, "out");
	options.output_paths = globs;
	options.output_dir = out;
	result = run(&options);
	failed(result, RESOLUTO_COMPLETED, "bad-output", RESOLUTO_EXIT_SANDBOX);
	resoluto_result_free(result);
	free(out);
	script_done(&script);
}

/* Without an archive: what each runner means by that. */
static void outputs_that_did_not_come(void)
{
	static const char *const globs[] = { "**", NULL };
	static const struct {
		const char *members;
		bool is_ok;
	} results[] = {
		{ "\"output_archive\":null", true },
		{ "\"ran\":true", true },
		{ "\"output_archive\":null,\"ran\":true", true },
		{ "\"redactions\":0", false }, /* does not say */
		/* as the original writes it */
		{ "\"output_archive\":null,\"reason\":\"\",\"observed_phase\":\"\"", false },
	};

	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		struct script script;
		struct resoluto_run_options options;
		struct resoluto_result *result;
		char json[512], *out;

		script_init(&script, "memory://");
		snprintf(
			json, sizeof(json),
			"{\"status\":\"success\",\"exit_code\":0,\"guest_boot_id\":\"" GUEST_BOOT_ID
			"\",%s}",
			results[i].members);
		script.result = json;
		options = options_of(&script);
		out = path_in(&script, "out");
		options.output_paths = globs;
		options.output_dir = out;
		result = run(&options);
		if (results[i].is_ok)
			CHECK(result->ok && !result->reason[0] && !result->artifacts[0]);
		else
			failed(result, RESOLUTO_COMPLETED, "outputs-failed", RESOLUTO_EXIT_SANDBOX);
		resoluto_result_free(result);
		free(out);
		script_done(&script);
	}
}

/* No more than the contract asks of a guest, over a runtime that has no kernels to give. */
static void a_runtime_that_has_no_kernels(void)
{
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result;

	script_init(&script, "memory://");
	script.lines = greeting;
	script.result = "{\"node_id\":\"run\",\"status\":\"success\",\"exit_code\":0}";
	options = options_of(&script);
	result = run(&options);
	CHECK(result->ok && result->ran && !result->reason[0] && !result->detail[0]);
	CHECK_STR(result->out, "hello\nworld\n");
	CHECK(strstr(result->isolation_json, "\"own_kernel\":false"));
	resoluto_result_free(result);
	script_done(&script);
}

/* The fake runtime, but for what it says of its sandboxes' kernels: nothing. */
static struct resoluto_runtime_ops reticent_ops;

static int say_nothing(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                       char **ret_json, struct resoluto_err *err)
{
	*ret_json = strdup("{}");
	return *ret_json ? 0 : -ENOMEM;
}

static void make_reticent(struct script *script)
{
	reticent_ops = *script->runtime->ops;
	reticent_ops.isolation = say_nothing;
	script->runtime->ops = &reticent_ops;
}

static void no_own_kernel_no_result(void)
{
	static const char without[] = "{\"status\":\"success\",\"exit_code\":0,\"ran\":true}";
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result;
	char same[512];
	struct buf id;

	script_init(&script, "memory://");
	make_reticent(&script);
	options = options_of(&script);
	result = run(&options);
	CHECK(result->ok && strstr(result->isolation_json, "\"own_kernel\":true"));
	resoluto_result_free(result);
	script.result = without;
	result = run(&options);
	failed(result, RESOLUTO_REFUSED, "own-kernel-unproven", RESOLUTO_EXIT_SANDBOX);
	CHECK(result->ran && !strstr(result->detail, "not started"));
	resoluto_result_free(result);

	CHECK(read_file_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 100, &id, NULL) == 0);
	snprintf(
		same, sizeof(same),
		"{\"status\":\"success\",\"exit_code\":0,\"ran\":true,\"guest_boot_id\":\"%.36s\"}",
		id.data);
	buf_done(&id);
	script.result = same;
	result = run(&options);
	failed(result, RESOLUTO_REFUSED, "shared-kernel", RESOLUTO_EXIT_SANDBOX);
	CHECK(!strstr(result->detail, "not started"));
	CHECK(strstr(result->isolation_json, "\"own_kernel\":false"));
	resoluto_result_free(result);
	script_done(&script);
}

static void a_canary_that_fails(void)
{
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result;

	script_init(&script, "memory://");
	script.result = "{\"status\":\"failure\",\"exit_code\":null,\"ran\":false,\"reason\":"
			"\"canary-failed\",\"detail\":\"1.1.1.1:80 is "
			"reachable\"}";
	options = options_of(&script);
	result = run(&options);
	failed(result, RESOLUTO_COMPLETED, "canary-failed", 1);
	CHECK(!result->ran);
	CHECK_STR(result->detail, "1.1.1.1:80 is reachable");
	resoluto_result_free(result);
	script_done(&script);
}

/* A sandbox whose runtime tells these phases and that never gives a verdict. */
static struct resoluto_result *run_with_status(struct script *script, enum resoluto_phase phase,
                                               const char *reason)
{
	struct resoluto_run_options options = options_of(script);
	struct resoluto_status status = { .phase = phase, .exit_code = -1 };

	snprintf(status.reason, sizeof(status.reason), "%s", reason);
	script->fake.statuses = &status;
	script->fake.status_count = 1;
	script->has_no_manifest = true;
	script->result = NULL;
	return run(&options);
}

static void every_other_end(void)
{
	static const struct {
		enum resoluto_phase phase;
		const char *said;
		enum resoluto_disposition disposition;
		const char *reason;
		int exit_code, exit_code_if_started;
	} ends[] = {
		{ RESOLUTO_PHASE_PENDING, "ErrImagePull", RESOLUTO_UNSTARTABLE, "unstartable", 1,
		  125 },
		{ RESOLUTO_PHASE_UNKNOWN, "", RESOLUTO_EXTERNAL, "external", 1, 125 },
		{ RESOLUTO_PHASE_SUCCEEDED, "", RESOLUTO_EXTERNAL, "no-result", 1, 125 },
		{ RESOLUTO_PHASE_FAILED, "guest-panic", RESOLUTO_EXTERNAL, "guest-panic", 1, 125 },
		{ RESOLUTO_PHASE_FAILED, "Evicted", RESOLUTO_EXTERNAL, "external", 1, 125 },
		{ RESOLUTO_PHASE_FAILED, "deadline", RESOLUTO_STOPPED, "deadline", 124, 124 },
		{ RESOLUTO_PHASE_FAILED, "quota", RESOLUTO_STOPPED, "quota", 1, 125 },
		{ RESOLUTO_PHASE_FAILED, "caller-died", RESOLUTO_STOPPED, "caller-died", 1, 125 },
		{ RESOLUTO_PHASE_FAILED, "shared-kernel", RESOLUTO_REFUSED, "shared-kernel", 1,
		  125 },
	};

	for (size_t i = 0; i < 2 * sizeof(ends) / sizeof(ends[0]); i++) {
		bool has_started = i % 2 == 1;
		struct script script;
		struct resoluto_result *result;

		script_init(&script, "memory://");
		script.lines = has_started ? greeting : NULL;
		result = run_with_status(&script, ends[i / 2].phase, ends[i / 2].said);
		failed(result, ends[i / 2].disposition, ends[i / 2].reason,
		       has_started ? ends[i / 2].exit_code_if_started : ends[i / 2].exit_code);
		CHECK(result->ran == has_started);
		CHECK(!has_started || !strstr(result->detail, "not started"));
		CHECK(result->output_len == (has_started ? 17 : 0)); /* what was said is not lost */
		resoluto_result_free(result);
		script_done(&script);
	}
}

/* The runtime's words say which one it was. */
static void a_quota_of_objects_is_named(void)
{
	struct resoluto_status status = { .phase = RESOLUTO_PHASE_FAILED, .reason = "quota" };
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result;

	script_init(&script, "memory://");
	quota_explain(QUOTA_OBJECTS, 9, status.detail);
	script.lines = greeting;
	script.has_no_manifest = true;
	script.fake.statuses = &status;
	script.fake.status_count = 1;
	options = options_of(&script);
	options.quotas.objects = 9;
	result = run(&options);
	failed(result, RESOLUTO_STOPPED, "quota", RESOLUTO_EXIT_SANDBOX);
	CHECK_STR(result->quota, "objects");
	CHECK_STR(result->detail, status.detail);
	CHECK(result->quotas.objects == 9 && result->quotas.ratio == RESOLUTO_QUOTA_RATIO);
	CHECK(script.spec_quotas.objects == 9 && result->output_len == 17);
	resoluto_result_free(result);
	script_done(&script);
}

/* A guest that speaks for another run is not heard, and that is told. */
static void events_of_another_run_are_not_believed(void)
{
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result;

	script_init(&script, "memory://");
	script.lines = greeting;
	script.claims_run_id = "another-run";
	script.result = OK_RESULT;
	options = options_of(&script);
	result = run(&options);
	CHECK(result->output_len == 0 && result->warnings[0]);
	CHECK(strncmp(result->warnings[0], "foreign-events: 4 events", 24) == 0);
	resoluto_result_free(result);
	script_done(&script);
}

/* A line that nobody can read may have been output. */
static void lines_that_are_no_events_are_told(void)
{
	static const char *const noises[] = {
		"{\"run_id\":\"r1\",\"span_id\":\"b\",\"kind\":\"log\"}",
		"garbage",
		/* a string, by the protocol, or not there */
		"{\"run_id\":\"r1\",\"span_id\":\"b\",\"parent_span_id\":null,\"kind\":\"log\","
		"\"event\":\"log\","
		"\"ts\":1}",
	};

	for (size_t i = 0; i < sizeof(noises) / sizeof(noises[0]); i++) {
		struct script script;
		struct resoluto_run_options options;
		struct resoluto_result *result;

		script_init(&script, "memory://");
		script.lines = greeting;
		script.noise = noises[i];
		options = options_of(&script);
		result = run(&options);
		CHECK(result->ok && result->output_len == 17 && !result->output_is_complete);
		CHECK(result->warnings[0] && !result->warnings[1]);
		CHECK(strncmp(result->warnings[0], "bad-events: 1 lines", 19) == 0);
		resoluto_result_free(result);
		script_done(&script);
	}
}

static void a_silent_sandbox(void)
{
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result;

	script_init(&script, "memory://");
	script.has_no_manifest = true;
	options = options_of(&script);
	options.dead_after_ms = 1;
	result = run(&options);
	failed(result, RESOLUTO_SILENT, "silent", 1);
	CHECK(script.fake.destroys == 1);
	resoluto_result_free(result);
	script_done(&script);
}

static void a_chunk_is_missing(void)
{
	struct resoluto_status status = { .phase = RESOLUTO_PHASE_SUCCEEDED };
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result;

	script_init(&script, "memory://");
	script.lines = greeting;
	script.forgets_chunk = true;
	script.fake.statuses = &status;
	script.fake.status_count = 1;
	options = options_of(&script);
	result = run(&options);
	failed(result, RESOLUTO_EXTERNAL, "protocol", RESOLUTO_EXIT_SANDBOX);
	CHECK(result->output_len == 17);
	resoluto_result_free(result);
	script_done(&script);
}

static void a_bad_result_is_told(void)
{
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result;

	script_init(&script, "memory://");
	script.lines = greeting;
	script.result = "{\"status\":\"maybe\"}";
	options = options_of(&script);
	result = run(&options);
	failed(result, RESOLUTO_COMPLETED, "bad-result", RESOLUTO_EXIT_SANDBOX);
	resoluto_result_free(result);
	script_done(&script);
}

static void a_stream_that_fails_stops_the_run(void)
{
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result;

	script_init(&script, "memory://");
	script.lines = greeting;
	script.stream_code = -EPIPE;
	options = options_of(&script);
	options.stream = stream;
	result = run(&options);
	failed(result, RESOLUTO_STOPPED, "cancelled", RESOLUTO_EXIT_SANDBOX);
	CHECK(script.stream_calls == 1 && script.fake.destroys == 1 && result->ran);
	resoluto_result_free(result);
	script_done(&script);
}

/* Run with a pipe as signal_fd; early: the signal is there before anything starts. */
static struct resoluto_result *run_with_signal(struct script *script, int signo, bool early,
                                               bool twice)
{
	struct resoluto_run_options options = options_of(script);
	unsigned char byte = (unsigned char) signo;
	struct resoluto_result *result;
	int ends[2];

	CHECK(pipe(ends) == 0);
	options.signal_fd = ends[0];
	script->signal_write_fd = ends[1];
	if (early)
		CHECK(write(ends[1], &byte, 1) == 1);
	else
		script->signal_at_launch = signo;
	if (twice)
		CHECK(write(ends[1], "\x1c", 1) == 1); /* SIGWINCH: nobody is asked to stop by it */
	result = run(&options);
	close(ends[0]);
	close(ends[1]);
	return result;
}

static void stopped_before_the_launch(void)
{
	struct script script;
	struct resoluto_result *result;

	script_init(&script, "memory://");
	result = run_with_signal(&script, SIGINT, true, false);
	failed(result, RESOLUTO_STOPPED, "signal", 128 + SIGINT);
	CHECK(!result->ran && script.fake.launches == 0);
	resoluto_result_free(result);
	script_done(&script);
}

static void stopped_while_staging(void)
{
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result;
	int ends[2];
	char *path;

	script_init(&script, "memory://");
	file_in(&script, "ws/a", "a");
	path = path_in(&script, "ws");
	CHECK(pipe(ends) == 0 && write(ends[1], "\x0f", 1) == 1);
	options = options_of(&script);
	options.workspace = path;
	options.signal_fd = ends[0];
	result = run(&options);
	failed(result, RESOLUTO_STOPPED, "signal", 128 + SIGTERM);
	CHECK(script.fake.launches == 0);
	resoluto_result_free(result);
	free(path);
	close(ends[0]);
	close(ends[1]);
	script_done(&script);
}

static void a_program_that_ends_by_itself_after_a_signal_has_the_last_word(void)
{
	struct script script;
	struct resoluto_result *result;

	script_init(&script, "memory://");
	script.lines = greeting;
	script.result = "{\"status\":\"failure\",\"exit_code\":130,\"signal\":2,\"guest_boot_id\":"
			"\"" GUEST_BOOT_ID "\"}";
	result = run_with_signal(&script, SIGINT, false, false);
	CHECK(result->exit_code == 130 && result->disposition == RESOLUTO_COMPLETED);
	CHECK_STR(result->reason, "");
	resoluto_result_free(result);
	script_done(&script);
}

static void a_program_that_ignores_signals_is_stopped(void)
{
	static const struct sandbox_tuning impatient = { .grace_ms = 1, .poll_interval_ms = 1 };
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result = NULL;
	int ends[2];

	script_init(&script, "memory://");
	script.lines = greeting;
	script.has_no_manifest = true;
	script.result = NULL;
	script.signal_at_launch = SIGTERM;
	CHECK(pipe(ends) == 0);
	script.signal_write_fd = ends[1];
	options = options_of(&script);
	options.signal_fd = ends[0];
	CHECK(sandbox_run(&options, &impatient, &result, NULL) == 0);
	failed(result, RESOLUTO_STOPPED, "signal", 128 + SIGTERM);
	CHECK(script.fake.signals == 1 && script.fake.destroys == 1 && result->ran);
	CHECK(result->output_len == 17);
	resoluto_result_free(result);
	close(ends[0]);
	close(ends[1]);
	script_done(&script);
}

static void a_signal_that_asks_for_nothing_does_not_end_the_queue(void)
{
	struct script script;
	struct resoluto_result *result;

	script_init(&script, "memory://");
	script.is_busy_once = true;
	result = run_with_signal(&script, SIGWINCH, true, false);
	CHECK(result->ok && script.fake.launches == 2);
	resoluto_result_free(result);
	script_done(&script);
}

static void stdin_reaches_the_sandbox(void)
{
	struct resoluto_status statuses[] = { { .phase = RESOLUTO_PHASE_RUNNING },
		                              { .phase = RESOLUTO_PHASE_RUNNING },
		                              { .phase = RESOLUTO_PHASE_SUCCEEDED } };
	struct script script;
	struct resoluto_run_options options;

	script_init(&script, "memory://");
	script.has_no_manifest = true; /* a moment of life, so that there is time to feed */
	script.fake.statuses = statuses;
	script.fake.status_count = 3;
	options = options_of(&script);
	options.input = (struct resoluto_stdin){ .kind = RESOLUTO_STDIN_BYTES,
		                                 .bytes = "12345",
		                                 .len = 5 };
	resoluto_result_free(run(&options));
	CHECK(script.fake.stdin_bytes == 5);
	script_done(&script);
}

/* Nothing of the run has happened yet, so it may start again; but not for ever. */
/* A guest that is done as soon as it is launched is given its input all the same. */
static void stdin_reaches_a_sandbox_that_is_done_at_once(void)
{
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result;

	script_init(&script, "memory://");
	options = options_of(&script);
	options.input = (struct resoluto_stdin){ .kind = RESOLUTO_STDIN_BYTES,
		                                 .bytes = "12345",
		                                 .len = 5 };
	result = run(&options);
	CHECK(result->ok && script.fake.stdin_bytes == 5);
	resoluto_result_free(result);
	script_done(&script);
}

static void a_deadline_ends_a_run_over_the_fake_runtime(void)
{
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result;

	script_init(&script, "memory://");
	script.lines = greeting;
	script.has_no_manifest = true;
	options = options_of(&script);
	options.deadline_ms = 1;
	result = run(&options);
	failed(result, RESOLUTO_STOPPED, "deadline", RESOLUTO_EXIT_DEADLINE);
	CHECK(result->output_len == 17 && script.fake.destroys == 1);
	resoluto_result_free(result);
	script_done(&script);
}

static void a_machine_that_did_not_boot_is_booted_once_more(void)
{
	struct resoluto_status status = { .phase = RESOLUTO_PHASE_FAILED, .reason = "boot-failed" };
	struct resoluto_run_options options;
	struct resoluto_result *result;
	struct script script;

	script_init(&script, "memory://");
	script.fake.guest = NULL;
	script.fake.statuses = &status;
	script.fake.status_count = 1;
	options = options_of(&script);
	result = run(&options);
	CHECK(!result->ran && !result->ok);
	CHECK_STR(result->reason, "boot-failed");
	CHECK(script.fake.launches == 2 && script.fake.destroys == 2 && script.fake.alive == 0);
	resoluto_result_free(result);
	/* One that was heard of before it went is not. */
	status = (struct resoluto_status){ .phase = RESOLUTO_PHASE_FAILED,
		                           .reason = "guest-panic",
		                           .detail = "it panicked: VFS" };
	result = run(&options);
	CHECK_STR(result->reason, "guest-panic");
	CHECK_STR(result->detail, "it panicked: VFS");
	CHECK(script.fake.launches == 3);
	resoluto_result_free(result);
	script_done(&script);
}

/* -EINVAL, before anything was made. */
static void misuse(struct script *script, const struct resoluto_run_options *options,
                   const char *words)
{
	struct resoluto_result *result = NULL;
	struct resoluto_err err = { 0 };

	CHECK(sandbox_run(options, &tuning, &result, &err) == -EINVAL && !result);
	if (!strstr(err.text, words))
		CHECK_STR(err.text, words);
	CHECK(script->fake.launches == 0);
}

static void what_is_wrong_is_said_before_anything_starts(void)
{
	struct script script;
	struct resoluto_run_options options;
	char *file;

	script_init(&script, "memory://");
	file_in(&script, "ws/file", "x");
	file = path_in(&script, "ws/file");
	options = options_of(&script);
	options.workspace = "/nonexistent/workspace";
	misuse(&script, &options, "workspace /nonexistent/workspace: No such file");
	options.workspace = file;
	misuse(&script, &options, "Not a directory");
	options = options_of(&script);
	options.env_file = "/nonexistent/env";
	misuse(&script, &options, "/nonexistent/env");
	options = options_of(&script);
	options.input = (struct resoluto_stdin){ .kind = RESOLUTO_STDIN_FILE,
		                                 .path = "/nonexistent/in" };
	misuse(&script, &options, "/nonexistent/in");
	options = options_of(&script);
	options.output_paths = (const char *const[]){ "x", NULL };
	misuse(&script, &options, "no place to put them");
	options.output_dir = file;
	misuse(&script, &options, "output directory");
	options = options_of(&script);
	options.struct_size = 0;
	misuse(&script, &options, "struct_size");
	free(file);
	script_done(&script);
}

static void a_workspace_that_cannot_be_read_is_refused(void)
{
	bool is_root = geteuid() == 0; /* who reads everything, unless it becomes somebody else */
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result;
	char *path;

	script_init(&script, "memory://");
	file_in(&script, "ws/secret", "x");
	CHECK(chmod(script.dir, 0755) == 0);
	path = path_in(&script, "ws/secret");
	CHECK(chmod(path, 0) == 0);
	free(path);
	path = path_in(&script, "ws");
	options = options_of(&script);
	options.workspace = path;
	CHECK(!is_root || seteuid(65534) == 0);
	result = run(&options);
	CHECK(!is_root || seteuid(0) == 0);
	failed(result, RESOLUTO_REFUSED, "refused", 1);
	CHECK(strstr(result->detail, "secret") && script.fake.launches == 0);
	resoluto_result_free(result);
	free(path);
	script_done(&script);
}

static void a_path_that_is_missing_is_misuse_and_named(void)
{
	struct script script;
	struct resoluto_run_options options;
	char *path;

	script_init(&script, "memory://");
	path = path_in(&script, "ws");
	options = options_of(&script);
	options.workspace = path;
	options.paths = (const char *const[]){ "src/missing", NULL };
	misuse(&script, &options, "there is no 'src/missing' in the workspace");
	file_in(&script, "ws/src", "no directory");
	misuse(&script, &options, "there is no 'src/missing' in the workspace");
	free(path);
	script_done(&script);
}

static int cannot_launch(void *ctx, const struct resoluto_launch_spec *spec)
{
	return -ENOENT;
}

static void a_launch_that_fails_is_refused(void)
{
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result;

	script_init(&script, "memory://");
	script.fake.guest = cannot_launch;
	options = options_of(&script);
	result = run(&options);
	failed(result, RESOLUTO_REFUSED, "refused", 1);
	CHECK(strstr(result->detail, "No such file") && !result->ran);
	resoluto_result_free(result);
	script_done(&script);
}

static void an_id_is_used_once(void)
{
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result = NULL;
	struct resoluto_err err = { 0 };

	script_init(&script, "memory://");
	CHECK(resoluto_conduit_put_bytes(script.conduit, "run/r1/x", "x", 1, NULL) == 0);
	CHECK(resoluto_conduit_put_bytes(script.conduit, "run/r10/x", "x", 1, NULL) == 0);
	options = options_of(&script);
	options.image = "asked-for";
	CHECK(sandbox_run(&options, &tuning, &result, &err) == -EEXIST && result);
	CHECK(strstr(err.text, "'r1'") &&
	      objects_in(script.conduit) == 2); /* what was there is left alone */
	failed(result, RESOLUTO_REFUSED, "refused", 1);
	CHECK_STR(result->run_id, "r1");
	CHECK_STR(result->image_ref, "asked-for");
	CHECK(!result->ran && strstr(result->detail, "'r1'"));
	resoluto_result_free(result);
	options.image = NULL;
	options.id = "r";
	resoluto_result_free(run(&options));
	CHECK(resoluto_conduit_delete_prefix(script.conduit, "run", NULL) == 2);
	script_done(&script);
}

/* Another run of that id began after this one had found nothing beneath the prefix. */
static int another_was_first(void *ctx, const struct resoluto_launch_spec *spec)
{
	CHECK(put(spec, KEY_CANARY, "ok", 2) == 0);
	return -EEXIST;
}

static void an_id_that_another_run_took_meanwhile(void)
{
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_result *result;

	script_init(&script, "memory://");
	script.fake.guest = another_was_first;
	options = options_of(&script);
	result = run(&options);
	failed(result, RESOLUTO_REFUSED, "refused", 1);
	CHECK(objects_in(script.conduit) == 1); /* of the other run, which goes on */
	resoluto_result_free(result);
	CHECK(resoluto_conduit_delete_prefix(script.conduit, "run/r1", NULL) == 1);
	script_done(&script);
}

static void kept_if_asked_to(void)
{
	struct script script;
	struct resoluto_run_options options;

	script_init(&script, "memory://");
	options = options_of(&script);
	options.keep_run = true;
	resoluto_result_free(run(&options));
	CHECK(objects_in(script.conduit) == 3);
	CHECK(resoluto_conduit_delete_prefix(script.conduit, "run/r1", NULL) == 2);
	CHECK(resoluto_conduit_delete_prefix(script.conduit, "launch/r1", NULL) == 1);
	script_done(&script);
}

static void over_a_directory(void)
{
	static const char *const globs[] = { "**", NULL };
	char dir[] = "/tmp/resoluto-conduit-XXXXXX", url[64];
	struct script script;
	struct resoluto_result *result;

	CHECK(mkdtemp(dir));
	snprintf(url, sizeof(url), "localfs://%s", dir);
	script_init(&script, url);
	script.lines = greeting;
	file_in(&script, "box/f", "content");
	result = run_with_outputs(&script, globs);
	CHECK(result->ok && result->output_len == 17);
	file_is(&script, "out/deep/f", "content");
	resoluto_result_free(result);
	script_done(&script);
	CHECK(remove_tree_at(AT_FDCWD, dir) == 0);
}

static void backends_are_checked(void)
{
	struct resoluto_backend_options options = { .struct_size = sizeof(options) };
	struct resoluto_backend *backend = NULL;
	struct script script;

	script_init(&script, "memory://");
	CHECK(resoluto_backend_new(&options, &backend, NULL) == -EINVAL);
	options.runtime = script.runtime;
	options.conduit = script.conduit;
	CHECK(resoluto_backend_new(&options, &backend, NULL) == -EINVAL);
	options.image = "i";
	options.store_env = (const char *const[]){ "AWS_SECRET_ACCESS_KEY=x", NULL };
	CHECK(resoluto_backend_new(&options, &backend, NULL) == -EINVAL && !backend);
	resoluto_backend_free(NULL);
	script_done(&script);
}

static void nobody_wants_the_result(void)
{
	struct script script;
	struct resoluto_run_options options;
	struct resoluto_err err = { 0 };

	script_init(&script, "memory://");
	script.lines = greeting;
	options = options_of(&script);
	CHECK(sandbox_run(&options, &tuning, NULL, &err) == 0 && err.code == 0);
	CHECK(script.fake.launches == 1 && script.fake.destroys == 1);
	options.argv = NULL;
	CHECK(sandbox_run(&options, &tuning, NULL, &err) == -EINVAL);
	script_done(&script);
}

static void nothing_where_something_is_needed(void)
{
	struct resoluto_backend_options options = { .struct_size = sizeof(options) };
	struct resoluto_drive_options drive = { .struct_size = sizeof(drive) };
	struct resoluto_result *result = NULL;
	struct resoluto_backend *backend = NULL;
	struct resoluto_outcome outcome;
	struct resoluto_err err = { 0 };

	CHECK(resoluto_sandbox_run(NULL, &result, &err) == -EINVAL && err.text[0] && !result);
	CHECK(resoluto_backend_new(NULL, &backend, NULL) == -EINVAL && !backend);
	CHECK(resoluto_backend_new(&options, NULL, NULL) == -EINVAL);
	CHECK(resoluto_drive_node(NULL, &outcome, NULL) == -EINVAL);
	CHECK(resoluto_drive_node(&drive, NULL, NULL) == -EINVAL);
	CHECK(resoluto_runtime_microvm_new(NULL, NULL, NULL) == -EINVAL);
	CHECK(!resoluto_result_to_json(NULL));
	resoluto_outcome_done(NULL);
	resoluto_result_free(NULL);
	resoluto_runtime_close(NULL);
}

static unsigned open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

int main(void)
{
	unsigned before = open_fds();

	RUN(a_run_that_goes_well);
	RUN(output_that_may_be_missing_is_never_called_complete);
	RUN(warnings_of_the_guest_are_bounded);
	RUN(the_guests_clock_is_not_believed);
	RUN(what_the_sandbox_is_told);
	RUN(defaults_of_memory_and_processors_are_the_contracts);
	RUN(ids_are_made_up);
	RUN(an_exit_code_comes_back);
	RUN(output_over_the_cap_keeps_head_and_tail);
	RUN(a_workspace_is_staged);
	RUN(of_a_workspace_only_what_was_chosen_is_staged);
	RUN(outputs_come_back_as_asked);
	RUN(a_request_to_stop_ends_the_landing_of_outputs);
	RUN(other_signals_do_not);
	RUN(outputs_come_back_under_another_name);
	RUN(outputs_come_back_from_failed_programs_too);
	RUN(results_of_programs_that_are_no_json);
	RUN(results_of_programs_stay_as_they_were_written);
	RUN(hostile_archives_are_refused);
	RUN(a_quota_of_outputs_ends_the_run);
	RUN(an_archive_that_is_named_and_missing);
	RUN(outputs_that_did_not_come);
	RUN(a_runtime_that_has_no_kernels);
	RUN(no_own_kernel_no_result);
	RUN(a_canary_that_fails);
	RUN(every_other_end);
	RUN(a_quota_of_objects_is_named);
	RUN(events_of_another_run_are_not_believed);
	RUN(lines_that_are_no_events_are_told);
	RUN(a_silent_sandbox);
	RUN(a_chunk_is_missing);
	RUN(a_bad_result_is_told);
	RUN(a_stream_that_fails_stops_the_run);
	RUN(stopped_before_the_launch);
	RUN(stopped_while_staging);
	RUN(a_program_that_ends_by_itself_after_a_signal_has_the_last_word);
	RUN(a_program_that_ignores_signals_is_stopped);
	RUN(a_signal_that_asks_for_nothing_does_not_end_the_queue);
	RUN(stdin_reaches_the_sandbox);
	RUN(stdin_reaches_a_sandbox_that_is_done_at_once);
	RUN(a_deadline_ends_a_run_over_the_fake_runtime);
	RUN(what_is_wrong_is_said_before_anything_starts);
	RUN(a_workspace_that_cannot_be_read_is_refused);
	RUN(a_path_that_is_missing_is_misuse_and_named);
	RUN(a_launch_that_fails_is_refused);
	RUN(an_id_is_used_once);
	RUN(an_id_that_another_run_took_meanwhile);
	RUN(kept_if_asked_to);
	RUN(over_a_directory);
	RUN(backends_are_checked);
	RUN(nobody_wants_the_result);
	RUN(nothing_where_something_is_needed);
	RUN(a_machine_that_did_not_boot_is_booted_once_more);
	if (open_fds() != before)
		printf("# %u descriptors were left open\n", open_fds() - before);
	return check_done() || open_fds() != before;
}
