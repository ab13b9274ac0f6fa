/* SPDX-License-Identifier: Apache-2.0 */
/*
 * at_once.c - 64 runs at once over fake runtimes and one directory: what is staged, printed and brought back does not mix,
 * and nothing is left.  bench/at_once.sh repeats it.
 *
 * usage: sandbox-at-once [ROUNDS]
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
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

#define RESULT \
	"{\"node_id\":\"run\",\"status\":\"success\",\"exit_code\":0,\"ran\":true," \
	"\"guest_boot_id\":\"22222222-2222-2222-2222-222222222222\",\"output_is_complete\":true," \
	"\"output_archive\":\"outbox/output.tar.gz\"}"

enum {
	RUNS = 64,
	NAME_SIZE = 128,
	ARCHIVE_MAX = 1024 * 1024,
	ROUNDS_MAX = 100000,
};

static char dir[64];
static unsigned rounds = 1;

static const struct sandbox_tuning tuning = { .grace_ms = 60000,
	                                      .poll_interval_ms = 1,
	                                      .admission_step_ms = 1 };

/* --- a guest that prints who it is, and sends its inputs back --- */

static void key_of(const struct resoluto_launch_spec *spec, const char *name,
                   char ret_key[RESOLUTO_KEY_MAX])
{
	snprintf(ret_key, RESOLUTO_KEY_MAX, "%s/%s", spec->store_prefix, name);
}

static int put(const struct resoluto_launch_spec *spec, const char *name, const char *bytes,
               size_t len)
{
	char key[RESOLUTO_KEY_MAX];

	key_of(spec, name, key);
	return resoluto_conduit_put_bytes(spec->conduit, key, bytes, len, NULL);
}

static int put_output(const struct resoluto_launch_spec *spec)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(64 * 1024);
	const struct event_head open = { .run_id = spec->id,
		                         .span_id = "aa",
		                         .kind = "workload",
		                         .event = "open",
		                         .ts = 1 };
	const struct event_head head = { .run_id = spec->id,
		                         .span_id = "ab",
		                         .parent_span_id = "aa",
		                         .kind = "log",
		                         .event = "log",
		                         .ts = 2 };
	const struct event_piece piece = { .bytes = spec->id,
		                           .len = strlen(spec->id),
		                           .has_newline = true,
		                           .seq = 1 };
	int r = event_write(&out, &open, NULL);

	if (r == 0)
		r = event_write_piece(&out, &head, &piece);
	return r < 0 ? r : put(spec, "events-000001.jsonl", out.data, out.len);
}

static int send_back(const struct resoluto_launch_spec *spec)
{
	CLEANUP(mem_free) char *archive = NULL;
	char key[RESOLUTO_KEY_MAX];
	size_t len;
	int r;

	key_of(spec, KEY_INBOX_WORKSPACE, key);
	r = resoluto_conduit_get_bytes(spec->conduit, key, ARCHIVE_MAX, &archive, &len, NULL);
	return r < 0 ? r : put(spec, KEY_OUTBOX_OUTPUT, archive, len);
}

static int guest(void *ctx, const struct resoluto_launch_spec *spec)
{
	int r = put_output(spec);

	if (r == 0)
		r = send_back(spec);
	if (r == 0)
		r = put(spec, KEY_RESULT, RESULT, strlen(RESULT));
	return r < 0 ? r : put(spec, KEY_MANIFEST, "{\"total_chunks\":1}", 18);
}

/* --- one run with parts of its own, but for the directory --- */

struct worker {
	pthread_t thread;
	char id[RESOLUTO_ID_MAX + 1];
	char workspace[NAME_SIZE], outputs[NAME_SIZE];
	struct resoluto_fake fake;
	struct resoluto_runtime *runtime;
	struct resoluto_conduit *conduit;
	struct resoluto_backend *backend;
	char wrong[RESOLUTO_ERR_TEXT]; /* "" when all was right */
};

static bool is_file(const char *folder, const char *content)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(0);
	char path[NAME_SIZE + 16];

	snprintf(path, sizeof(path), "%s/name.txt", folder);
	return read_file_at(AT_FDCWD, path, 1024, &text, NULL) == 0 &&
	       text.len == strlen(content) && memcmp(text.data, content, text.len) == 0;
}

static const char *what_is_wrong(const struct worker *worker, const struct resoluto_result *result)
{
	const size_t len = strlen(worker->id);

	if (!result->ok)
		return result->reason;
	if (strcmp(result->run_id, worker->id) != 0)
		return "its id";
	if (result->output_len != len + 1 || memcmp(result->output, worker->id, len) != 0)
		return "its output";
	if (!result->artifacts[0] || strcmp(result->artifacts[0], "name.txt") != 0 ||
	    result->artifacts[1])
		return "its artifacts";
	if (!is_file(worker->outputs, worker->id))
		return "the content of its artifact";
	return worker->fake.launches == 1 && worker->fake.alive == 0 ? "" : "its sandboxes";
}

static void *work(void *ctx)
{
	static const char *const argv[] = { "program", NULL }, *const globs[] = { "**", NULL };
	struct worker *worker = ctx;
	const struct resoluto_run_options options = {
		.struct_size = sizeof(options),
		.argv = argv,
		.backend = worker->backend,
		.id = worker->id,
		.workspace = worker->workspace,
		.output_paths = globs,
		.output_dir = worker->outputs,
		.signal_fd = -1,
	};
	CLEANUP(result_free) struct resoluto_result *result = NULL;
	struct resoluto_err err = { 0 };
	int r = sandbox_run(&options, &tuning, &result, &err);

	snprintf(worker->wrong, sizeof(worker->wrong), "%s",
	         r == 0 ? what_is_wrong(worker, result) : err.text);
	return NULL;
}

static void worker_init(struct worker *worker, unsigned number)
{
	struct resoluto_backend_options options = { .struct_size = sizeof(options),
		                                    .image = "an-image" };
	char url[NAME_SIZE], file[NAME_SIZE + 16];

	*worker = (struct worker){ .fake = { .struct_size = sizeof(worker->fake),
		                             .guest = guest } };
	snprintf(worker->id, sizeof(worker->id), "once-%u", number);
	snprintf(worker->workspace, sizeof(worker->workspace), "%s/in-%u", dir, number);
	snprintf(worker->outputs, sizeof(worker->outputs), "%s/out-%u", dir, number);
	snprintf(file, sizeof(file), "%s/name.txt", worker->workspace);
	CHECK(mkdirs(worker->workspace, 0700) == 0 && mkdirs(worker->outputs, 0700) == 0);
	(void) unlink(file);
	CHECK(replace_file_unflushed_at(AT_FDCWD, file, worker->id, strlen(worker->id), 0600,
	                                NULL) == 0);
	snprintf(url, sizeof(url), "localfs://%s/conduit", dir);
	CHECK(resoluto_runtime_fake_new(&worker->fake, &worker->runtime, NULL) == 0);
	CHECK(resoluto_conduit_open_url(url, &worker->conduit, NULL) == 0);
	options.runtime = worker->runtime;
	options.conduit = worker->conduit;
	CHECK(resoluto_backend_new(&options, &worker->backend, NULL) == 0);
}

static void worker_done(struct worker *worker)
{
	resoluto_backend_free(worker->backend);
	resoluto_runtime_close(worker->runtime);
	resoluto_conduit_close(worker->conduit);
}

static unsigned open_fds(void)
{
	CLEANUP(dir_close) DIR *fds = opendir("/proc/self/fd");
	unsigned count = 0;

	while (readdir(fds))
		count++;
	return count;
}

static void one_round(unsigned round)
{
	static struct worker workers[RUNS];
	const unsigned fds = open_fds();
	unsigned left;

	for (unsigned i = 0; i < RUNS; i++)
		worker_init(&workers[i], round * RUNS + i);
	for (unsigned i = 0; i < RUNS; i++)
		CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
	for (unsigned i = 0; i < RUNS; i++)
		CHECK(pthread_join(workers[i].thread, NULL) == 0);
	left = objects_in(workers[0].conduit);
	for (unsigned i = 0; i < RUNS; i++) {
		CHECK_STR(workers[i].wrong, "");
		worker_done(&workers[i]);
	}
	CHECK(left == 0 && open_fds() == fds);
}

static void sixty_four_at_once(void)
{
	for (unsigned round = 0; round < rounds; round++)
		one_round(round);
}

int main(int argc, char **argv)
{
	const unsigned long wanted = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;

	/* In memory, where it can be: thousands of flushes would measure the disk. */
	snprintf(dir, sizeof(dir), "%s/resoluto-at-once-XXXXXX",
	         access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (wanted < 1 || wanted > ROUNDS_MAX || !mkdtemp(dir))
		return 2;
	rounds = (unsigned) wanted;
	RUN(sixty_four_at_once);
	(void) remove_tree_at(AT_FDCWD, dir);
	return check_done();
}
