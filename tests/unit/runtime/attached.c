/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attached.c - runs of which only files are there: told as what they are, whatever lies in them; and nothing of
 * them reaches beyond their directory, blocks, or hides another run.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "base/proc.h"
#include "check.h"
#include "child.h"
#include "runtime/microvm/microvm.h"
#include "runtime/microvm/rundir.h"

enum {
	NOBODY = 65534,
	PATH_SIZE = 256,
	HUGE = 1024 * 1024, /* bytes, more than any file of ours has */
};

#define OTHER_BOOT_ID "11111111-1111-1111-1111-111111111111"
#define GOOD_RECORD(keep) \
	"{\"schema\":1,\"id\":\"good\",\"labels\":[\"team=a\"],\"image\":\"an-image\"," \
	"\"created\":7.5," \
	"\"boot_id\":\"" OTHER_BOOT_ID "\",\"accel\":\"tcg\",\"kernel\":\"6.1\",\"keep\":" keep \
	"}"
#define STATE(phase, reason, ended) \
	"{\"schema\":1,\"phase\":\"" phase "\",\"reason\":\"" reason \
	"\",\"detail\":\"\",\"shim_pid\":0," \
	"\"qemu_pid\":0,\"guest_boot_id\":\"\",\"own_kernel\":false,\"started_at\":1,\"ended_" \
	"at\":" ended ",\"confinement\":[]}"

static char state_dir[] = "/tmp/resoluto-attached-XXXXXX";
static struct resoluto_runtime *runtime;

/* --- runs as files --- */

/* Good until the next but one. */
static const char *path_of(const char *id, const char *name)
{
	static char paths[2][PATH_SIZE];
	static unsigned turn;
	char *path = paths[turn++ % 2];

	snprintf(path, PATH_SIZE, "%s/runs/%s%s%s", state_dir, id, name[0] ? "/" : "", name);
	return path;
}

static void put(const char *id, const char *name, const char *text, size_t len)
{
	CLEANUP(fd_close)
	int fd = open(path_of(id, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && write_all(fd, text, len) == 0);
}

static void put_text(const char *id, const char *name, const char *text)
{
	put(id, name, text, strlen(text));
}

static void make_run(const char *id)
{
	CHECK(mkdirs(path_of(id, ""), 0700) == 0);
	put_text(id, "lock", "");
}

/* Somebody else's run, which must be told whatever lies beside it. */
static void make_good(void)
{
	make_run("good");
	put_text("good", "run.json", GOOD_RECORD("true"));
	put_text("good", "state.json", STATE("succeeded", "", "9.5"));
}

static void begin(void)
{
	char claim[PATH_SIZE];

	CHECK(remove_tree_at(AT_FDCWD, state_dir) == 0);
	CHECK(mkdirs(state_dir, 0700) == 0);
	snprintf(claim, sizeof(claim), "%s/claim.lock", state_dir);
	make_good();
	close(open(claim, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	resoluto_runtime_close(runtime);
	CHECK(microvm_reader_new(state_dir, &runtime, NULL) == 0);
}

/* --- what is told --- */

struct told {
	const char *id;
	unsigned all, times, good;
	bool is_alive, is_kept;
	unsigned label_count;
	double created;
	struct resoluto_status status;
};

static int note(void *ctx, const struct resoluto_sandbox_info *info)
{
	struct told *told = ctx;

	told->all++;
	if (strcmp(info->id, "good") == 0) {
		told->good++;
		CHECK(!info->is_alive && info->is_kept && info->created == 7.5);
		CHECK(info->status.phase == RESOLUTO_PHASE_SUCCEEDED && info->status.ended == 9.5);
		CHECK_STR(info->labels[0], "team=a");
	}
	if (!told->id || strcmp(info->id, told->id) != 0)
		return 0;
	told->times++;
	told->is_alive = info->is_alive;
	told->is_kept = info->is_kept;
	told->created = info->created;
	told->status = info->status;
	for (told->label_count = 0; info->labels && info->labels[told->label_count];)
		told->label_count++;
	return 0;
}

/* The good one is always among them. */
static struct told listed(const char *id)
{
	struct told told = { .id = id };

	CHECK(runtime->ops->list(runtime, NULL, note, &told, NULL) == 0);
	CHECK(told.good == 1);
	return told;
}

static void attach(const char *id, struct resoluto_handle *ret_handle)
{
	struct resoluto_err err = { 0 };
	int r = runtime->ops->attach(runtime, id, ret_handle, &err);

	if (r != 0)
		printf("# %s: %d %s\n", id, r, err.text);
	CHECK(r == 0);
}

/* Each operation comes back with an answer, and the last removes it. */
static void every_operation_answers(const char *id)
{
	const struct resoluto_runtime_ops *ops = runtime->ops;
	struct resoluto_handle handle;
	struct resoluto_status status;
	char *text = NULL;

	attach(id, &handle);
	CHECK(ops->status(runtime, &handle, &status, NULL) == 0);
	CHECK(status.phase == RESOLUTO_PHASE_SUCCEEDED || status.phase == RESOLUTO_PHASE_FAILED);
	CHECK(ops->signal(runtime, &handle, SIGTERM, NULL) < 0);
	CHECK(ops->wait(runtime, &handle, -1, 0, NULL) == 0);
	CHECK(ops->send_stdin(runtime, &handle, "x", 1, NULL) == -EPIPE);
	if (ops->logs(runtime, &handle, 10, &text, NULL) == 0)
		free(text);
	if (ops->isolation(runtime, &handle, &text, NULL) == 0)
		free(text);
	CHECK(ops->destroy(runtime, &handle, NULL) == 0);
	CHECK(access(path_of(id, ""), F_OK) < 0);
}

/* --- as it should be --- */

static void what_a_run_left_is_told(void)
{
	static const char *const team_a[] = { "team=a", NULL }, *const team_b[] = { "team=b",
		                                                                    NULL };
	struct resoluto_handle handle;
	struct resoluto_status status;
	struct told told;
	char *json = NULL;

	begin();
	told = listed("good");
	CHECK(told.all == 1 && told.label_count == 1);
	told = (struct told){ 0 };
	CHECK(runtime->ops->list(runtime, team_b, note, &told, NULL) == 0 && told.all == 0);
	CHECK(runtime->ops->list(runtime, team_a, note, &told, NULL) == 0 && told.all == 1);
	attach("good", &handle);
	CHECK(runtime->ops->status(runtime, &handle, &status, NULL) == 0 && status.exit_code == 0);
	CHECK(runtime->ops->isolation(runtime, &handle, &json, NULL) == 0 && strstr(json, "6.1"));
	free(json);
	CHECK(runtime->ops->detach(runtime, &handle, NULL) == 0);
	every_operation_answers("good");
}

static void none_at_all_is_none(void)
{
	struct resoluto_runtime *other = NULL;
	struct resoluto_handle handle;
	struct told told = { 0 };

	CHECK(microvm_reader_new("/tmp/resoluto-attached-nowhere", &other, NULL) == 0);
	CHECK(other->ops->list(other, NULL, note, &told, NULL) == 0 && told.all == 0);
	CHECK(other->ops->attach(other, "run-1", &handle, NULL) == -ENOENT);
	resoluto_runtime_close(other);
	CHECK(access("/tmp/resoluto-attached-nowhere", F_OK) < 0);
}

/* --- damaged and hostile files --- */

struct damage {
	const char *record, *state; /* NULL: there is none */
	enum resoluto_phase phase;
	const char *reason;
	bool is_kept;
};

static void damaged_files_are_told_as_an_end(void)
{
	static const struct damage damages[] = {
		/* Its launcher died before there was anything. */
		{ NULL, NULL, RESOLUTO_PHASE_FAILED, "caller-died", false },
		/* run.json: empty, cut short, no object, another version's, none at all. */
		{ "", NULL, RESOLUTO_PHASE_FAILED, "caller-died", true },
		{ "{\"schema\":1,\"id\":\"x\",\"lab", NULL, RESOLUTO_PHASE_FAILED, "caller-died",
		  true },
		{ "[1]", NULL, RESOLUTO_PHASE_FAILED, "caller-died", true },
		{ "{\"schema\":2,\"keep\":false}", NULL, RESOLUTO_PHASE_FAILED, "caller-died",
		  true },
		{ "{\"keep\":true}", NULL, RESOLUTO_PHASE_FAILED, "caller-died", true },
		{ "{\"schema\":\"1\"}", STATE("failed", "deadline", "5"), RESOLUTO_PHASE_FAILED,
		  "deadline", true },
		/* Members of the wrong kind say nothing. */
		{ "{\"schema\":1,\"labels\":{\"a\":1},\"created\":\"x\",\"shim\":[],\"keep\":"
		  "\"yes\","
		  "\"objects\":7,\"boot_id\":[]}",
		  NULL, RESOLUTO_PHASE_FAILED, "shim-killed", false },
		{ "{\"schema\":1,\"labels\":[1,null,\"a=1\"],\"created\":-1,\"shim\":{\"pid\":-1,"
		  "\"start\":-1},"
		  "\"caller\":{\"pid\":1e99}}",
		  NULL, RESOLUTO_PHASE_FAILED, "shim-killed", false },
		/* state.json: of a start of the machine before this one, then of this one. */
		{ GOOD_RECORD("true"), NULL, RESOLUTO_PHASE_FAILED, "external", true },
		{ GOOD_RECORD("true"), "", RESOLUTO_PHASE_FAILED, "external", true },
		{ GOOD_RECORD("true"), "\x01\x02", RESOLUTO_PHASE_FAILED, "external", true },
		{ GOOD_RECORD("true"), STATE("running", "", "0"), RESOLUTO_PHASE_FAILED, "external",
		  true },
		{ "{\"schema\":1}", "{\"schema\":1,\"phase\":\"runn", RESOLUTO_PHASE_FAILED,
		  "protocol", false },
		{ "{\"schema\":1}", STATE("dancing", "", "0"), RESOLUTO_PHASE_FAILED, "protocol",
		  false },
		{ "{\"schema\":1}", STATE("succeeded", "", "-1"), RESOLUTO_PHASE_FAILED, "protocol",
		  false },
		{ "{\"schema\":1}", STATE("succeeded", "", "1e300"), RESOLUTO_PHASE_FAILED,
		  "protocol", false },
		{ "{\"schema\":1}", STATE("pending", "", "0"), RESOLUTO_PHASE_FAILED, "shim-killed",
		  false },
	};

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		const struct damage *damage = &damages[i];
		struct told told;

		begin();
		make_run("odd");
		if (damage->record)
			put_text("odd", "run.json", damage->record);
		if (damage->state)
			put_text("odd", "state.json", damage->state);
		/* Twice: what the first look wrote down must read the same. */
		for (int look = 0; look < 2; look++) {
			told = listed("odd");
			if (told.status.phase != damage->phase || told.is_kept != damage->is_kept)
				printf("# case %zu, look %d\n", i, look);
			CHECK(told.times == 1 && !told.is_alive && told.is_kept == damage->is_kept);
			CHECK(told.status.phase == damage->phase);
			CHECK_STR(told.status.reason, damage->reason);
		}
		/* A plain sweep takes what nobody can want, and nothing else. */
		CHECK(microvm_tidy(runtime, NULL) == 0 || !damage->is_kept);
		CHECK((access(path_of("odd", ""), F_OK) == 0) == damage->is_kept);
		if (damage->is_kept)
			every_operation_answers("odd");
	}
}

static void files_are_not_read_without_bounds(void)
{
	CLEANUP(mem_free) char *huge = malloc(HUGE);

	CHECK(huge);
	for (int nested = 0; nested < 2; nested++) {
		memset(huge, nested ? '[' : ' ', HUGE);
		begin();
		make_run("odd");
		put("odd", "run.json", huge, HUGE);
		put("odd", "state.json", huge, HUGE);
		put("odd", "console.log", huge, HUGE);
		put("odd", "qemu.log", huge, HUGE);
		CHECK_STR(listed("odd").status.reason, "protocol");
		/* Deep, but not too long. */
		put("odd", "run.json", huge, 200 * 1024);
		put("odd", "state.json", huge, 15 * 1024);
		CHECK_STR(listed("odd").status.reason, "protocol");
		every_operation_answers("odd");
	}
}

/* --- what is no file --- */

static const char *const file_names[] = { "run.json", "state.json",  "lock",
	                                  "door",     "console.log", "qemu.log" };

typedef void make_odd_fn(const char *path);

static void make_fifo(const char *path)
{
	CHECK(mkfifo(path, 0600) == 0);
}

static void make_directory(const char *path)
{
	CHECK(mkdir(path, 0700) == 0);
}

static void make_socket(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	CLEANUP(fd_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *) &address, sizeof(address)) == 0);
}

static void make_loop(const char *path)
{
	CHECK(symlink(path, path) == 0);
}

static void make_dangling(const char *path)
{
	CHECK(symlink("/tmp/resoluto-attached-nowhere", path) == 0);
}

/* Of the very same kind and content, so that only following it would tell the difference. */
static void make_link_to_good(const char *path)
{
	char target[PATH_SIZE];

	snprintf(target, sizeof(target), "../good/%s", strrchr(path, '/') + 1);
	CHECK(symlink(target, path) == 0);
}

static void make_closed(const char *path)
{
	CLEANUP(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0);

	CHECK(fd >= 0);
}

static make_odd_fn *const odd_kinds[] = { make_fifo,     make_directory,    make_socket, make_loop,
	                                  make_dangling, make_link_to_good, make_closed };

static void what_is_no_file_is_neither_followed_nor_waited_for(void)
{
	for (size_t kind = 0; kind < sizeof(odd_kinds) / sizeof(odd_kinds[0]); kind++) {
		for (size_t name = 0; name < sizeof(file_names) / sizeof(file_names[0]); name++) {
			struct told told;

			begin();
			put_text("good", "console.log", "good's\n");
			make_run("odd");
			put_text("odd", "run.json", "{\"schema\":1,\"keep\":true}");
			put_text("odd", "state.json", STATE("failed", "deadline", "5"));
			(void) unlink(path_of("odd", file_names[name]));
			odd_kinds[kind](path_of("odd", file_names[name]));
			told = listed("odd");
			if (told.times != 1 || told.is_alive)
				printf("# kind %zu, %s\n", kind, file_names[name]);
			CHECK(told.times == 1 && !told.is_alive && told.is_kept);
			CHECK(told.status.phase == RESOLUTO_PHASE_FAILED && told.label_count == 0);
			every_operation_answers("odd");
			/* And good's are as they were. */
			CHECK(listed("good").times == 1);
		}
	}
}

static void what_is_no_run_is_passed_over(void)
{
	struct resoluto_handle handle;

	begin();
	put_text("", "file", "x");
	CHECK(rename(path_of("file", ""), path_of("a-file", "")) == 0);
	make_fifo(path_of("a-fifo", ""));
	make_socket(path_of("a-socket", ""));
	make_loop(path_of("a-loop", ""));
	CHECK(symlink("good", path_of("a-link", "")) == 0);
	CHECK(mkdir(path_of("Upper", ""), 0700) == 0);
	CHECK(mkdir(path_of(".doomed-x-0123", ""), 0700) == 0);
	CHECK(mkdir(path_of("a_b\n", ""), 0700) == 0);
	CHECK(listed(NULL).all == 1);
	CHECK(runtime->ops->attach(runtime, "a-link", &handle, NULL) == -ENOENT);
	CHECK(runtime->ops->attach(runtime, "a-fifo", &handle, NULL) == -ENOENT);
	CHECK(runtime->ops->attach(runtime, "../runs/good", &handle, NULL) == -ENOENT);
	CHECK(runtime->ops->attach(runtime, "", &handle, NULL) == -ENOENT);
}

/* --- processes --- */

static pid_t start_sleeper(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		pause();
		_exit(0);
	}
	return pid;
}

static void name_shim(const char *id, long long pid, unsigned long long start)
{
	char record[256];

	snprintf(record, sizeof(record),
	         "{\"schema\":1,\"keep\":true,\"shim\":{\"pid\":%lld,\"start\":%llu}}", pid, start);
	make_run(id);
	put_text(id, "run.json", record);
}

/* Its pid is another's by now, or was never a shim's: nobody is waited for, signalled or ended. */
static void a_pid_alone_is_nobody(void)
{
	pid_t sleeper = start_sleeper();
	uint64_t start = 0;
	long long pids[] = { sleeper,       getpid(), getppid(), 1, 0, -1, 4294967296LL + sleeper,
		             -4294967295LL, INT64_MAX };

	CHECK(proc_start_time(sleeper, &start) == 0 && start > 0);
	for (size_t i = 0; i < sizeof(pids) / sizeof(pids[0]); i++) {
		struct told told;

		begin();
		/* Even with the start time of the very process. */
		name_shim("odd", pids[i], start);
		told = listed("odd");
		CHECK(told.times == 1 && !told.is_alive);
		CHECK_STR(told.status.reason, "shim-killed");
		every_operation_answers("odd");
		CHECK(kill(sleeper, 0) == 0);
	}
	CHECK(kill(sleeper, SIGKILL) == 0 && waitpid(sleeper, NULL, 0) == sleeper);
}

/* A process that holds a lock until it is killed. */
static pid_t start_holder(const char *path)
{
	int ready[2];
	char byte;
	pid_t pid;

	CHECK(pipe2(ready, O_CLOEXEC) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		int fd = open(path, O_RDWR | O_CLOEXEC);

		if (fd < 0 || flock(fd, LOCK_EX) < 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	CHECK(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	return pid;
}

static void end_holder(pid_t pid)
{
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

static void who_holds_the_lock_is_alive(void)
{
	struct resoluto_handle handle;
	struct resoluto_err err = { 0 };
	pid_t holder;

	begin();
	make_run("odd");
	holder = start_holder(path_of("odd", "lock"));
	CHECK(listed("odd").is_alive);
	attach("odd", &handle);
	/* It has no sandbox yet, and whoever prepares it is the one to ask. */
	CHECK(runtime->ops->signal(runtime, &handle, SIGTERM, &err) == -EAGAIN);
	CHECK(runtime->ops->destroy(runtime, &handle, &err) == -EBUSY);
	CHECK(strstr(err.text, "the process that launches it"));
	put_text("odd", "run.json", "{\"schema\":1,\"caller\":{\"pid\":4711}}");
	CHECK(runtime->ops->destroy(runtime, &handle, &err) == -EBUSY &&
	      strstr(err.text, "process 4711"));
	CHECK(microvm_tidy(runtime, NULL) == 0 && access(path_of("odd", ""), F_OK) == 0);
	end_holder(holder);
	CHECK(!listed("odd").is_alive);
	CHECK(runtime->ops->destroy(runtime, &handle, NULL) == 0);
}

/* As a shim that has just exited does. */
static void who_is_about_to_let_go_is_waited_for(void)
{
	const struct timespec soon = { .tv_nsec = 100 * 1000 * 1000 };
	struct resoluto_handle handle;
	pid_t holder, killer;

	begin();
	make_run("odd");
	put_text("odd", "run.json", "{\"schema\":1,\"caller\":{\"pid\":4711}}");
	holder = start_holder(path_of("odd", "lock"));
	attach("odd", &handle);
	killer = fork();
	if (killer == 0) {
		nanosleep(&soon, NULL);
		kill(holder, SIGKILL);
		_exit(0);
	}
	CHECK(runtime->ops->destroy(runtime, &handle, NULL) == 0);
	CHECK(waitpid(killer, NULL, 0) == killer && waitpid(holder, NULL, 0) == holder);
}

/* A directory without a lock is being made while the claim lock is held; else its maker is gone. */
static void a_run_without_a_lock_is_not_alive_for_ever(void)
{
	char claim[PATH_SIZE];
	pid_t maker;

	begin();
	make_run("odd");
	CHECK(unlink(path_of("odd", "lock")) == 0);
	snprintf(claim, sizeof(claim), "%s/claim.lock", state_dir);
	maker = start_holder(claim);
	CHECK(listed("odd").is_alive);
	end_holder(maker);
	CHECK(!listed("odd").is_alive);
	every_operation_answers("odd");
}

/* --- other users --- */

/* As nobody, over a state directory that has a run of root's in it. */
static int look_as_nobody(void)
{
	struct resoluto_err err = { 0 };
	struct told told = { 0 };
	int r;

	if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
	    setresuid(NOBODY, NOBODY, NOBODY) < 0)
		return 1;
	r = runtime->ops->list(runtime, NULL, note, &told, &err);
	/* The others are told, and then what could not be looked at. */
	if (r != -EACCES || !strstr(err.text, "a-roots"))
		return 2;
	return told.all == 2 && told.good == 1 ? 0 : 3;
}

static void give_to_nobody(const char *path)
{
	CHECK(lchown(path, NOBODY, NOBODY) == 0);
}

static void a_run_of_root_hides_no_other(void)
{
	if (geteuid() != 0)
		SKIP("only root can leave what a user cannot look at");
	begin();
	make_run("a-roots");
	make_run("own");
	give_to_nobody(state_dir);
	give_to_nobody(path_of("", ""));
	give_to_nobody(path_of("good", ""));
	give_to_nobody(path_of("good", "run.json"));
	give_to_nobody(path_of("good", "state.json"));
	give_to_nobody(path_of("good", "lock"));
	give_to_nobody(path_of("own", ""));
	give_to_nobody(path_of("own", "lock"));
	CHECK(in_child(look_as_nobody) == 0);
}

/* A shim that was taken over wrote it before root could: nothing in it is believed, least of all a path. */
static void a_record_of_another_user_is_not_believed(void)
{
	char elsewhere[] = "/tmp/resoluto-elsewhere-XXXXXX", record[PATH_SIZE];
	struct stat st;
	struct told told;

	if (geteuid() != 0)
		SKIP("only root has runs of other users");
	begin();
	CHECK(mkdtemp(elsewhere) && chown(elsewhere, NOBODY, NOBODY) == 0);
	snprintf(record, sizeof(record),
	         "{\"schema\":1,\"keep\":false,\"labels\":[\"team=a\"],\"objects\":\"%s\"}",
	         elsewhere);
	make_run("odd");
	put_text("odd", "run.json", record);
	give_to_nobody(path_of("odd", "run.json"));
	told = listed("odd");
	CHECK(told.label_count == 0 && !told.is_alive && told.is_kept);
	CHECK(stat(elsewhere, &st) == 0 && st.st_uid == NOBODY);
	every_operation_answers("odd");
	/* Root's own is: the objects of its run are root's again once it has ended. */
	make_run("odd");
	put_text("odd", "run.json", record);
	CHECK(listed("odd").label_count == 1);
	CHECK(stat(elsewhere, &st) == 0 && st.st_uid == 0);
	CHECK(rmdir(elsewhere) == 0);
}

int main(void)
{
	CHECK(mkdtemp(state_dir));
	RUN(what_a_run_left_is_told);
	RUN(none_at_all_is_none);
	RUN(damaged_files_are_told_as_an_end);
	RUN(files_are_not_read_without_bounds);
	RUN(what_is_no_file_is_neither_followed_nor_waited_for);
	RUN(what_is_no_run_is_passed_over);
	RUN(a_pid_alone_is_nobody);
	RUN(who_holds_the_lock_is_alive);
	RUN(who_is_about_to_let_go_is_waited_for);
	RUN(a_run_without_a_lock_is_not_alive_for_ever);
	RUN(a_run_of_root_hides_no_other);
	RUN(a_record_of_another_user_is_not_believed);
	resoluto_runtime_close(runtime);
	(void) remove_tree_at(AT_FDCWD, state_dir);
	return check_done();
}
