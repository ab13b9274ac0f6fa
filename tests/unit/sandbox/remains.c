/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remains.c - local runs of which only files are there, through the library: what the guest wrote is told,
 * the rest is unknown with a reason, and no file of one run keeps another from being listed, read or removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "check.h"
#include "resoluto/sandbox.h"
#include "sandbox/attached.h"

enum {
	NAME_SIZE = 64,
	FILE_SIZE = 128,
	HUGE = 6 * 1024 * 1024, /* bytes, more than a reader takes of a chunk or a result */
};

#define OTHER_BOOT_ID "11111111-1111-1111-1111-111111111111"
#define GUEST_BOOT_ID "22222222-2222-2222-2222-222222222222"
/* Of a run %s, twice. */
#define ONE_LINE \
	"{\"run_id\":\"%s\",\"span_id\":\"aa\",\"kind\":\"workload\",\"event\":\"open\",\"ts\":1." \
	"0}\n" \
	"{\"run_id\":\"%s\",\"span_id\":\"l1\",\"parent_span_id\":\"aa\",\"kind\":\"log\"," \
	"\"event\":\"log\",\"ts\":2.0,\"data\":{\"line\":\"one\",\"stream\":\"stdout\",\"seq\":1}" \
	"}\n"
#define RESULT \
	"{\"node_id\":\"run\",\"status\":\"success\",\"exit_code\":5,\"ran\":true,\"guest_boot_" \
	"id\":\"" GUEST_BOOT_ID "\"}"
#define REQUEST(more) \
	"{\"schema\":1,\"program\":\"job\",\"image\":\"an-image\",\"digest\":\"\",\"host_boot_" \
	"id\":\"" OTHER_BOOT_ID "\",\"outputs\":[\"out/**\"],\"dead_after_ms\":5000" more "}"

static char state_dir[64];

/* --- runs as files --- */

static void put(const char *name, const char *bytes, size_t len)
{
	CLEANUP(fd_close) int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && write_all(fd, bytes, len) == 0);
}

static void put_in(const char *folder, const char *name, const char *text)
{
	char path[FILE_SIZE];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	put(path, text, strlen(text));
}

static void make(const char *folder)
{
	CHECK(mkdirs(folder, 0700) == 0);
}

/* A kept run that the restart of the machine ended, with a line of output. */
static void make_run(const char *id)
{
	char folder[NAME_SIZE], objects[NAME_SIZE], record[512], events[512];

	snprintf(objects, sizeof(objects), "runs/%s/conduit/run/%s", id, id);
	make(objects);
	snprintf(events, sizeof(events), ONE_LINE, id, id);
	put_in(objects, "events-000001.jsonl", events);
	snprintf(record, sizeof(record),
	         "{\"schema\":1,\"id\":\"%s\",\"labels\":[\"id=%s\"],\"image\":\"i\",\"created\":1."
	         "0,\"keep\":true,"
	         "\"boot_id\":\"" OTHER_BOOT_ID "\",\"objects\":\"%s/%s\"}",
	         id, id, state_dir, objects);
	snprintf(folder, sizeof(folder), "runs/%s", id);
	put_in(folder, "run.json", record);
	put_in(folder, "lock", "");
}

static void note(const char *id, const char *request)
{
	char folder[NAME_SIZE];

	snprintf(folder, sizeof(folder), "launch/%s", id);
	make(folder);
	put_in(folder, "request.json", request);
}

static void begin(void)
{
	CHECK(remove_tree_at(AT_FDCWD, "runs") == 0 && remove_tree_at(AT_FDCWD, "launch") == 0);
	make_run("good");
	make_run("odd");
	note("good", REQUEST(""));
}

/* --- what is told --- */

struct told {
	const char *id;
	unsigned all, times, good;
	char program[32], reason[32];
	enum resoluto_disposition disposition;
	int exit_code;
};

static int tell(void *ctx, const struct resoluto_run_info *info)
{
	struct told *told = ctx;

	told->all++;
	if (strcmp(info->id, "good") == 0) {
		told->good++;
		CHECK_STR(info->program, "job");
		CHECK_STR(info->reason, "external");
		CHECK(info->state == RESOLUTO_RUN_ENDED && info->is_kept);
	}
	if (strcmp(info->id, "odd") != 0)
		return 0;
	told->times++;
	snprintf(told->program, sizeof(told->program), "%s", info->program);
	snprintf(told->reason, sizeof(told->reason), "%s", info->reason);
	told->disposition = info->disposition;
	told->exit_code = info->exit_code;
	return 0;
}

static struct told listed(void)
{
	struct told told = { 0 };
	struct resoluto_err err = { 0 };
	int r = resoluto_run_list(NULL, tell, &told, &err);

	if (r != 0)
		printf("# %d %s\n", r, err.text);
	CHECK(r == 0 && told.good == 1);
	return told;
}

static struct resoluto_run *attach(const char *id)
{
	const struct resoluto_attach_options options = { .struct_size = sizeof(options), .id = id };
	struct resoluto_err err = { 0 };
	struct resoluto_run *run = NULL;

	if (resoluto_run_attach(&options, &run, &err) != 0)
		printf("# %s\n", err.text);
	CHECK(run);
	return run;
}

/* The verdict of "odd", and its output. */
static struct resoluto_result *driven(struct resoluto_run *run)
{
	const struct resoluto_follow_options options = { .struct_size = sizeof(options) };
	struct resoluto_result *result = NULL;
	struct resoluto_err err = { 0 };
	int r = resoluto_run_drive(run, &options, &result, &err);

	if (r != 0)
		printf("# %d %s\n", r, err.text);
	CHECK(r == 0 && result);
	return result;
}

static int collect(struct resoluto_run *run)
{
	struct resoluto_outputs outputs = { 0 };
	int r = resoluto_run_collect(run, "back", &outputs, NULL);

	resoluto_outputs_done(&outputs);
	return r;
}

static void remove_odd(struct resoluto_run *run)
{
	CHECK(resoluto_run_destroy(run, NULL) == 0);
	resoluto_run_close(run);
	CHECK(access("runs/odd", F_OK) < 0 && access("launch/odd", F_OK) < 0);
	CHECK(listed().all == 1);
}

/* --- what was asked for --- */

static void what_was_asked_for_is_told(void)
{
	struct resoluto_run *run;
	struct told told;

	begin();
	note("odd", REQUEST(",\"queue_ms\":7"));
	told = listed();
	CHECK_STR(told.program, "job");
	CHECK_STR(told.reason, "external");
	CHECK(told.disposition == RESOLUTO_EXTERNAL && told.exit_code == RESOLUTO_EXIT_SANDBOX);
	run = attach("odd");
	CHECK(attached_silence_ms(run) == 5000);
	CHECK(collect(run) == -ENODATA);
	remove_odd(run);
}

/* A foreground run of another process may be watched over as its caller wished: a reader does not know. */
static void without_a_note_a_reader_judges_no_silence(void)
{
	struct resoluto_run *run;

	begin();
	run = attach("odd");
	CHECK(attached_silence_ms(run) == UINT64_MAX);
	CHECK(collect(run) == -ENODATA);
	remove_odd(run);
}

static void a_note_that_cannot_be_read_costs_only_what_it_said(void)
{
	static const char *const odd[] = {
		"",         "{",
		"[]",       "{\"schema\":2}",
		"\xff\xfe", "{\"schema\":1,\"host_boot_id\":\"\",\"outputs\":[7]}"
	};

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]) + 1; i++) {
		struct resoluto_result *result;
		struct resoluto_run *run;

		begin();
		note("odd", i < sizeof(odd) / sizeof(odd[0]) ? odd[i] : "");
		if (i == sizeof(odd) / sizeof(odd[0]))
			CHECK(truncate("launch/odd/request.json", HUGE) == 0);
		CHECK_STR(listed().program, "");
		run = attach("odd");
		result = driven(run);
		CHECK_STR(result->output, "one\n");
		CHECK_STR(result->reason, "external");
		resoluto_result_free(result);
		CHECK(collect(run) == -EBADMSG);
		remove_odd(run);
	}
}

/* --- what the guest is said to have written --- */

static const char *const object_names[] = { "events-000001.jsonl", "result.json", "_manifest.json",
	                                    "outbox" };

typedef void make_odd_fn(const char *path);

static void make_fifo(const char *path)
{
	CHECK(mkfifo(path, 0600) == 0);
}

static void make_directory(const char *path)
{
	CHECK(mkdir(path, 0700) == 0);
}

static void make_link(const char *path)
{
	CHECK(symlink("/etc/passwd", path) == 0);
}

static void make_huge(const char *path)
{
	CHECK(close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) == 0 &&
	      truncate(path, HUGE) == 0);
}

static void make_garbage(const char *path)
{
	CLEANUP(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && write_all(fd, "\xff\0{{{[[[\n\n", 10) == 0);
}

static make_odd_fn *const odd_kinds[] = { make_fifo, make_directory, make_link, make_huge,
	                                  make_garbage };

static void odd_objects_are_an_end_with_a_reason(void)
{
	for (size_t kind = 0; kind < sizeof(odd_kinds) / sizeof(odd_kinds[0]); kind++) {
		for (size_t name = 0; name < sizeof(object_names) / sizeof(object_names[0]);
		     name++) {
			struct resoluto_result *result;
			struct resoluto_run *run;
			char path[FILE_SIZE];

			begin();
			note("odd", REQUEST(""));
			put_in("runs/odd/conduit/run/odd", "result.json", RESULT);
			put_in("runs/odd/conduit/run/odd", "_manifest.json",
			       "{\"total_chunks\":1}");
			snprintf(path, sizeof(path), "runs/odd/conduit/run/odd/%s",
			         object_names[name]);
			(void) unlink(path);
			odd_kinds[kind](path);
			if (listed().times != 1)
				printf("# kind %zu, %s\n", kind, object_names[name]);
			CHECK(listed().times == 1);
			run = attach("odd");
			result = driven(run);
			CHECK(result->exit_code != 0);
			CHECK(!strstr(result->output, "root:"));
			resoluto_result_free(result);
			CHECK(collect(run) < 0 || access("back/passwd", F_OK) < 0);
			remove_odd(run);
		}
	}
}

static void odd_places_hide_no_other_run(void)
{
	static const char *const places[] = { "runs/odd/conduit/run/odd", "runs/odd/conduit/run",
		                              "runs/odd/conduit" };

	for (size_t kind = 0; kind < sizeof(odd_kinds) / sizeof(odd_kinds[0]); kind++) {
		for (size_t place = 0; place < sizeof(places) / sizeof(places[0]); place++) {
			struct resoluto_run *run;
			struct told told = { 0 };

			begin();
			CHECK(remove_tree_at(AT_FDCWD, places[place]) == 0);
			odd_kinds[kind](places[place]);
			/* It may be one that cannot be looked at: the other is told all the same. */
			(void) resoluto_run_list(NULL, tell, &told, NULL);
			CHECK(told.good == 1);
			run = attach("odd");
			remove_odd(run);
		}
	}
}

/* --- sweeping --- */

static int count_removed(void *ctx, const struct resoluto_run_info *info)
{
	++*(unsigned *) ctx;
	return 0;
}

static int sweep(const char *const *labels, uint64_t older_ms)
{
	unsigned removed = 0;
	const struct resoluto_sweep_options options = { .struct_size = sizeof(options),
		                                        .labels = labels,
		                                        .older_ms = older_ms,
		                                        .removed = count_removed,
		                                        .ctx = &removed };
	int r = resoluto_run_sweep(&options, NULL);

	CHECK(r < 0 || (unsigned) r == removed);
	return r;
}

static void what_cannot_be_understood_goes_only_when_it_is_named(void)
{
	static const char *const labels[] = { "id=good", NULL };

	begin();
	put("runs/odd/run.json", "{\"schema\":99}", 13);
	CHECK(sweep(NULL, 0) == 0);
	CHECK(sweep(labels, 0) == 1 && access("runs/good", F_OK) < 0);
	CHECK(access("launch/good", F_OK) < 0);
	/* Its last object came just now. */
	CHECK(sweep(NULL, 3600 * 1000) == 0 && access("runs/odd", F_OK) == 0);
	CHECK(sweep(NULL, 1) == 1 && access("runs/odd", F_OK) < 0);
}

static void what_is_alive_is_never_swept(void)
{
	CLEANUP(fd_close) int lock = -1;
	static const char *const labels[] = { "id=odd", NULL };

	begin();
	lock = open("runs/odd/lock", O_RDWR | O_CLOEXEC);
	CHECK(lock >= 0 && flock(lock, LOCK_EX) == 0);
	CHECK(sweep(labels, 0) == 0 && sweep(NULL, 1) >= 0);
	CHECK(access("runs/odd", F_OK) == 0);
}

int main(void)
{
	/* In memory, where it can be: each end that is written down is flushed. */
	snprintf(state_dir, sizeof(state_dir), "%s/resoluto-remains-XXXXXX",
	         access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!mkdtemp(state_dir) || chdir(state_dir) < 0)
		return 2;
	setenv("RESOLUTO_STATE_DIR", state_dir, 1);
	put("local.env", "", 0);
	setenv("RESOLUTO_LOCAL_ENV", "local.env", 1);
	/* Whatever waits for ever is a failure. */
	alarm(100);
	RUN(what_was_asked_for_is_told);
	RUN(without_a_note_a_reader_judges_no_silence);
	RUN(a_note_that_cannot_be_read_costs_only_what_it_said);
	RUN(odd_objects_are_an_end_with_a_reason);
	RUN(odd_places_hide_no_other_run);
	RUN(what_cannot_be_understood_goes_only_when_it_is_named);
	RUN(what_is_alive_is_never_swept);
	(void) remove_tree_at(AT_FDCWD, state_dir);
	return check_done();
}
