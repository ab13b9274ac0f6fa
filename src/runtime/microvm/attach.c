/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach.c - runs that another process launched, or that were let go: opened, watched, ended, listed.
 *
 * What is known of such a run is what lies in its directory; whether it is alive says its lock, and its
 * shim's pidfd says when to look.  docs/design/detached.md has the whole picture.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/path.h"
#include "runtime/launch_spec.h"
#include "runtime/microvm/door.h"
#include "runtime/microvm/host.h"
#include "runtime/microvm/run.h"
#include "wire/frame.h"
#include "wire/reason.h"

#define RESTARTED "the machine was restarted while the run was going on"

enum {
	LOOK_MS = 100,             /* between two looks where nothing wakes us */
	LET_GO_MS = 1000,          /* for a shim that is gone to have let go of its lock */
	END_MS = 5 * 1000,         /* for a shim to end by itself, and again after SIGKILL */
	DETACH_MS = 5 * 1000,      /* for a shim to take what it was sent */
	INOTIFY_BYTES = 16 * 1024, /* of events read at once; what is left wakes us again */
};

/* --- opening --- */

int microvm_add_foreign_claim(struct microvm *microvm, const char *id, struct claim **ret_claim,
                              struct resoluto_err *err)
{
	struct claim *claim = calloc(1, sizeof(*claim));
	int r;

	if (!claim)
		return resoluto_fail(err, -ENOMEM, "open run %s", id);
	claim->dir = RUNDIR_NONE;
	claim->is_foreign = true;
	r = rundir_open(microvm->state_dir, id, &claim->dir, err);
	if (r < 0) {
		free(claim);
		return r;
	}
	snprintf(claim->id, sizeof(claim->id), "%s", id);
	claim->next = microvm->claims;
	microvm->claims = claim;
	*ret_claim = claim;
	return 0;
}

static struct claim *find_opened(const struct microvm *microvm, const char *id)
{
	for (struct claim *claim = microvm->claims; claim; claim = claim->next) {
		if (claim->is_foreign && !claim->is_in_use && strcmp(claim->id, id) == 0)
			return claim;
	}
	return NULL;
}

static void watch_objects(struct run *run)
{
	const uint32_t events = IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW;

	if (run->inotify_fd < 0 || run->watches_objects || !run->record.root)
		return;
	run->watches_objects = inotify_add_watch(run->inotify_fd, run->record.record.objects,
	                                         events) >= 0;
}

/* Before the first look, so that nothing is missed between that and the first wait. */
static void watch(struct run *run)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", run->claim->dir.fd);
	run->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (run->inotify_fd >= 0 &&
	    inotify_add_watch(run->inotify_fd, path, IN_MOVED_TO | IN_MOVE_SELF | IN_DELETE_SELF) <
	            0)
		fd_close(&run->inotify_fd);
	watch_objects(run);
}

static void read_record(struct run *run)
{
	struct run_record_doc doc;
	int r = run_record_read(run->claim->dir.fd, &doc, NULL);

	run->has_odd_record = r < 0 && r != -ENOENT;
	if (r < 0)
		return;
	run_record_doc_done(&run->record);
	run->record = doc;
	snprintf(run->kernel, sizeof(run->kernel), "%s", doc.record.kernel);
	snprintf(run->accel, sizeof(run->accel), "%s", doc.record.accel);
}

/* The user that a root's run had may be another's next. */
static void take_back(const struct run *run)
{
	CLEANUP(fd_close) int objects = -1;

	if (geteuid() != 0)
		return;
	if (fchown(run->claim->dir.fd, 0, 0) < 0 || fchmod(run->claim->dir.fd, 0700) < 0)
		return;
	if (run->record.root)
		objects = open(run->record.record.objects,
		               O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (objects >= 0)
		(void) !fchown(objects, 0, 0);
}

static bool is_readable(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) > 0;
}

/*
 * Its lock says it.  A shim that is gone while the lock is held has a caller that concludes the run itself,
 * or boots it once more: then there is another shim.
 */
void attached_look(struct run *run)
{
	const int dir = run->claim->dir.fd;

	if (run->has_ended || (run->shim.pidfd >= 0 && !is_readable(run->shim.pidfd)))
		return;
	fd_close(&run->shim.pidfd);
	read_record(run);
	watch_objects(run);
	if (run->record.root)
		run->shim.pidfd = run_record_open_shim(&run->record.record);
	if (run->shim.pidfd >= 0)
		return;
	run->shim.pidfd = -1;
	if (rundir_is_removed(dir)) {
		run->has_ended = true;
	} else if (!rundir_is_alive(dir)) {
		run->has_ended = true;
		take_back(run);
	}
}

static int open_run(struct microvm *microvm, const char *id, bool watches, struct run **ret_run,
                    struct resoluto_err *err)
{
	struct claim *claim = find_opened(microvm, id);
	struct run *run;
	int r = 0;

	if (!claim)
		r = microvm_add_foreign_claim(microvm, id, &claim, err);
	if (r < 0)
		return r;
	run = malloc(sizeof(*run));
	if (!run) {
		if (!claim->is_callers)
			microvm_forget_claim(microvm, claim);
		return resoluto_fail(err, -ENOMEM, "open run %s", id);
	}
	run_init(run, claim);
	run->is_attached = true;
	claim->is_in_use = true;
	read_record(run);
	if (watches)
		watch(run);
	attached_look(run);
	*ret_run = run;
	return 0;
}

static void close_run(struct microvm *microvm, struct run *run)
{
	struct claim *claim = run->claim;

	run_leave(run);
	free(run);
	claim->is_in_use = false;
	if (!claim->is_callers)
		microvm_forget_claim(microvm, claim);
}

int microvm_attach(struct resoluto_runtime *runtime, const char *id,
                   struct resoluto_handle *ret_handle, struct resoluto_err *err)
{
	struct microvm *microvm = (struct microvm *) runtime;
	struct run *run;
	int r = open_run(microvm, id, true, &run, err);

	if (r < 0)
		return r;
	run->next = microvm->runs;
	microvm->runs = run;
	snprintf(ret_handle->id, sizeof(ret_handle->id), "%s", id);
	ret_handle->state = run;
	return 0;
}

/* --- letting go --- */

static void unlink_run(struct microvm *microvm, const struct run *run)
{
	struct run **at = &microvm->runs;

	while (*at != run)
		at = &(*at)->next;
	*at = run->next;
}

/* Everything that was to be sent is in the socket, and DETACH is its end. */
static int say_detach(struct run *run)
{
	const uint64_t until = clock_mono_ms() + DETACH_MS;
	int r = run_send(run, FRAME_DETACH, NULL, 0);

	while (r == 0 && run->out.len > 0 && !run->has_ended) {
		bool extra;

		if (clock_mono_ms() > until)
			return -ETIMEDOUT;
		r = run_poll(run, -1, LOOK_MS, &extra);
	}
	return r;
}

int microvm_detach(struct resoluto_runtime *runtime, struct resoluto_handle *handle,
                   struct resoluto_err *err)
{
	struct microvm *microvm = (struct microvm *) runtime;
	struct run *run = handle->state;
	int r;

	if (!run)
		return resoluto_fail(err, -ENOENT, "run %s is not there any more", handle->id);
	if (!run->is_attached) {
		/* First kept, then let go: in between it is a run whose caller died. */
		r = run_record_keep(run->claim->dir.fd, handle->id, err);
		if (r < 0)
			return r;
		r = run->has_ended ? 0 : say_detach(run);
		if (r < 0 && !run->has_ended)
			return resoluto_fail(err, r, "let run %s go", handle->id);
	}
	unlink_run(microvm, run);
	close_run(microvm, run);
	handle->state = NULL;
	return 0;
}

/* --- news --- */

static void drain(int fd)
{
	char bytes[INOTIFY_BYTES];

	(void) !read(fd, bytes, sizeof(bytes));
}

int attached_poll(struct run *run, int extra_fd, int timeout_ms, bool *ret_extra)
{
	const bool hears_all = run->watches_objects && run->shim.pidfd >= 0;
	struct pollfd polls[3] = { { .fd = -1 }, { .fd = -1 }, { extra_fd, POLLIN, 0 } };

	if (!run->has_ended) {
		polls[0] = (struct pollfd){ run->inotify_fd, POLLIN, 0 };
		polls[1] = (struct pollfd){ run->shim.pidfd, POLLIN, 0 };
		if (!hears_all && timeout_ms > LOOK_MS)
			timeout_ms = LOOK_MS;
	}
	if (poll(polls, 3, timeout_ms) < 0 && errno != EINTR)
		return -errno;
	*ret_extra = polls[2].revents != 0;
	if (polls[0].revents)
		drain(run->inotify_fd);
	if (polls[0].revents || polls[1].revents || !hears_all)
		run->news++;
	attached_look(run);
	return 0;
}

/* --- the end --- */

/* When the last object came: nobody was there who would have written down the end. */
static double last_written(const struct run *run)
{
	struct stat st;

	if (!run->record.root || stat(run->record.record.objects, &st) < 0)
		return clock_wall();
	return (double) st.st_mtim.tv_sec + (double) st.st_mtim.tv_nsec / 1e9;
}

bool attached_has_restarted(const struct run *run)
{
	char boot_id[BOOT_ID_SIZE];

	return run->record.root && run->record.record.boot_id[0] &&
	       host_boot_id(boot_id, NULL) == 0 && strcmp(boot_id, run->record.record.boot_id) != 0;
}

static enum reason why_it_ended(const struct run *run)
{
	if (!run->record.root)
		return REASON_CALLER_DIED;
	return attached_has_restarted(run) ? REASON_EXTERNAL : REASON_SHIM_KILLED;
}

void attached_conclude(struct run *run, struct run_state *state)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(STATE_JSON_MAX);
	const int dir = run->claim->dir.fd;
	const enum reason reason = why_it_ended(run);

	state->phase = RESOLUTO_PHASE_FAILED;
	state->ended_at = last_written(run);
	snprintf(state->reason, sizeof(state->reason), "%s", reason_name(reason));
	if (reason == REASON_EXTERNAL)
		snprintf(state->detail, sizeof(state->detail), RESTARTED);
	/* Once and for all: after the next restart of the machine it would look like another end. */
	if (!rundir_is_removed(dir) && run_state_write(&json, state) == 0)
		(void) replace_file_at(dir, "state.json", json.data, json.len, 0600, NULL);
}

bool attached_may_go_on(const struct run *run, const struct run_state *state)
{
	return !run->has_ended && strcmp(state->reason, reason_name(REASON_BOOT_FAILED)) == 0;
}

static bool ends_within(struct run *run, int timeout_ms)
{
	struct pollfd poll_fd = { .fd = run->shim.pidfd, .events = POLLIN };
	const uint64_t until = clock_mono_ms() + (uint64_t) timeout_ms;
	int n;

	do {
		const uint64_t now = clock_mono_ms();

		n = poll(&poll_fd, 1, now < until ? (int) (until - now) : 0);
	} while (n < 0 && errno == EINTR);
	return n > 0;
}

/* A shim on its way out has no program any more, by which it is known, while its files are still open. */
static void await_lock(struct run *run)
{
	const struct timespec again = { .tv_nsec = 10 * 1000 * 1000 };
	const uint64_t until = clock_mono_ms() + LET_GO_MS;

	while (!run->has_ended && run->shim.pidfd < 0 && clock_mono_ms() < until) {
		(void) nanosleep(&again, NULL);
		attached_look(run);
	}
}

static int refuse_busy(const struct run *run, struct resoluto_err *err)
{
	const pid_t pid = run->record.root ? run->record.record.caller_pid : 0;
	char who[64] = "the process that launches it";

	if (pid > 0)
		snprintf(who, sizeof(who), "process %d", (int) pid);
	return resoluto_fail(
		err, -EBUSY,
		"run %s is being prepared or concluded by %s, which ends it if asked to "
		"stop",
		run->claim->id, who);
}

int attached_end(struct run *run, struct resoluto_err *err)
{
	const char *why = reason_name(REASON_SIGNAL);

	attached_look(run);
	await_lock(run);
	if (!run->has_ended && run->shim.pidfd < 0)
		return refuse_busy(run, err);
	if (!run->has_ended) {
		(void) door_send(run->claim->dir.fd, FRAME_DESTROY, why, strlen(why), NULL);
		if (!ends_within(run, END_MS))
			(void) proc_kill(&run->shim, SIGKILL);
		if (!ends_within(run, END_MS))
			return resoluto_fail(err, -EBUSY, "run %s does not end", run->claim->id);
		attached_look(run);
	}
	run_leave(run);
	return 0;
}

/* --- all of them --- */

struct listed {
	struct run_record_doc doc;
	struct run_state state;
	bool is_alive, is_kept;
};

static void listed_done(struct listed *listed)
{
	run_record_doc_done(&listed->doc);
}

/* 1: it is there; 0: it went meanwhile, or it has nothing to show yet. */
static int look_at(struct microvm *microvm, const char *id, struct listed *listed,
                   struct resoluto_err *err)
{
	struct run *run;
	int r = open_run(microvm, id, false, &run, err);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = run_read_state(run, &listed->state, err);
	listed->is_alive = !run->has_ended;
	listed->is_kept = run->record.record.keep || run->has_odd_record;
	listed->doc = run->record;
	run->record = (struct run_record_doc){ .root = NULL };
	if (r == 0)
		r = !rundir_is_removed(run->claim->dir.fd);
	close_run(microvm, run);
	return r;
}

static int tell(const struct listed *listed, const char *id, resoluto_sandbox_fn *each, void *ctx)
{
	const struct run_record *record = &listed->doc.record;
	struct resoluto_sandbox_info info = {
		.id = id,
		.image = record->image ? record->image : "",
		.labels = record->labels,
		.is_alive = listed->is_alive,
		.is_kept = listed->is_kept,
		.created = record->created > 0 ? record->created : listed->state.started_at,
	};

	run_state_tell(&listed->state, &info.status);
	return each(ctx, &info);
}

/* What each() said, or 0.  *failure is the first that came of the run itself. */
static int list_one(struct microvm *microvm, const char *id, const char *const *labels,
                    resoluto_sandbox_fn *each, void *ctx, int *failure, struct resoluto_err *err)
{
	CLEANUP(listed_done) struct listed listed = { .doc = { .root = NULL } };
	int r = look_at(microvm, id, &listed, *failure ? NULL : err);

	if (r < 0 && *failure == 0)
		*failure = r;
	if (r != 1 || !runtime_labels_match(listed.doc.record.labels, labels))
		return 0;
	return tell(&listed, id, each, ctx);
}

int microvm_list(struct resoluto_runtime *runtime, const char *const *labels,
                 resoluto_sandbox_fn *each, void *ctx, struct resoluto_err *err)
{
	struct microvm *microvm = (struct microvm *) runtime;
	CLEANUP(strv_done) struct strv ids = { 0 };
	int failure = 0, r = rundir_names(microvm->state_dir, &ids, err);

	for (size_t i = 0; i < ids.count && r == 0; i++)
		r = list_one(microvm, ids.items[i], labels, each, ctx, &failure, err);
	if (r == 1)
		return 0;
	return r < 0 ? r : failure;
}
