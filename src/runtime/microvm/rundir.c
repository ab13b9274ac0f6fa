/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "base/proc.h"
#include "base/random.h"
#include "runtime/launch_spec.h"
#include "runtime/microvm/json.h"
#include "runtime/microvm/rundir.h"
#include "wire/keys.h"

#define DOOMED_PREFIX ".doomed-"

enum {
	RECORD_MAX = 256 * 1024, /* bytes of run.json */
	SHIM_END_MS = 5000,      /* from SIGKILL to gone, on a busy machine */
};

void rundir_done(struct rundir *dir)
{
	free(dir->path);
	fd_close(&dir->fd);
	fd_close(&dir->lock);
	*dir = RUNDIR_NONE;
}

static int open_state(const char *state_dir, int *ret_runs, int *ret_claim,
                      struct resoluto_err *err)
{
	CLEANUP(fd_close) int state = -1, runs = -1, claim = -1;
	int r = mkdirs(state_dir, 0700);

	if (r < 0)
		return resoluto_fail(err, r, "make the state directory %s", state_dir);
	state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (state < 0)
		return resoluto_fail(err, -errno, "open the state directory %s", state_dir);
	if (mkdirat(state, "runs", 0700) < 0 && errno != EEXIST)
		return resoluto_fail(err, -errno, "make %s/runs", state_dir);
	runs = open_beneath(state, "runs", O_RDONLY | O_DIRECTORY, 0);
	if (runs < 0)
		return resoluto_fail(err, runs, "open %s/runs", state_dir);
	claim = open_beneath(state, "claim.lock", O_RDWR | O_CREAT, 0600);
	if (claim < 0)
		return resoluto_fail(err, claim, "open %s/claim.lock", state_dir);
	*ret_runs = fd_take(&runs);
	*ret_claim = fd_take(&claim);
	return 0;
}

static int lock_whole(int fd)
{
	int r;

	do {
		r = flock(fd, LOCK_EX);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

static int make_lock(int dirfd)
{
	CLEANUP(fd_close) int lock = open_beneath(dirfd, "lock", O_RDWR | O_CREAT | O_EXCL, 0600);

	if (lock < 0)
		return lock;
	if (flock(lock, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	return fd_take(&lock);
}

/* Under the claim lock, so nobody sees the directory without its lock. */
static int make_run(int runs, const char *state_dir, const char *id, struct rundir *dir,
                    struct resoluto_err *err)
{
	if (mkdirat(runs, id, 0700) < 0) {
		if (errno == EEXIST)
			return resoluto_fail(
				err, -EEXIST,
				"there is a run %s already; choose another id or remove it", id);
		return resoluto_fail(err, -errno, "make the run directory");
	}
	dir->fd = open_beneath(runs, id, O_RDONLY | O_DIRECTORY, 0);
	if (dir->fd < 0)
		return resoluto_fail(err, dir->fd, "open the run directory");
	dir->lock = make_lock(dir->fd);
	if (dir->lock < 0)
		return resoluto_fail(err, dir->lock, "lock the run directory");
	if (asprintf(&dir->path, "%s/runs/%s", state_dir, id) < 0) {
		dir->path = NULL;
		return resoluto_fail(err, -ENOMEM, "make the run directory");
	}
	return 0;
}

/* Rename away under the claim lock; the tree goes when the lock is released. */
static int doom(int runs, const char *id, char ret_name[NAME_MAX + 1])
{
	char random[RANDOM_ID_SIZE];
	int r = random_id(random);

	if (r < 0)
		return r;
	snprintf(ret_name, NAME_MAX + 1, DOOMED_PREFIX "%s-%s", id, random);
	return renameat(runs, id, runs, ret_name) < 0 ? -errno : 0;
}

int rundir_claim(const char *state_dir, const char *id, struct rundir *ret_dir,
                 struct resoluto_err *err)
{
	CLEANUP(fd_close) int runs = -1, claim = -1;
	CLEANUP(rundir_done) struct rundir dir = RUNDIR_NONE;
	int r;

	/* One that cannot be removed is in nobody's way; doctor counts it and says why it stays. */
	(void) rundir_sweep_dead(state_dir, NULL);
	r = open_state(state_dir, &runs, &claim, err);
	if (r < 0)
		return r;
	r = lock_whole(claim);
	if (r < 0)
		return resoluto_fail(err, r, "lock %s/claim.lock", state_dir);
	r = make_run(runs, state_dir, id, &dir, err);
	if (r < 0) {
		if (dir.fd >= 0)
			(void) remove_tree_at(runs, id);
		return r;
	}
	*ret_dir = dir;
	dir = RUNDIR_NONE;
	return 0;
}

/* Whether the directory of that name is still the one that was claimed: after a sweep it may be another's. */
static bool is_same_run(int runs, const char *id, const struct rundir *dir)
{
	struct stat claimed, named;

	return dir->fd >= 0 && fstat(dir->fd, &claimed) == 0 &&
	       fstatat(runs, id, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       claimed.st_dev == named.st_dev && claimed.st_ino == named.st_ino;
}

int rundir_remove(const char *state_dir, const char *id, struct rundir *dir,
                  struct resoluto_err *err)
{
	CLEANUP(fd_close) int runs = -1, claim = -1;
	char doomed[NAME_MAX + 1];
	int r = open_state(state_dir, &runs, &claim, err);

	if (r == 0)
		r = lock_whole(claim);
	if (r < 0)
		return r;
	r = is_same_run(runs, id, dir) ? doom(runs, id, doomed) : -ENOENT;
	rundir_done(dir);
	fd_close(&claim);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = remove_tree_at(runs, doomed);
	return r < 0 ? resoluto_fail(err, r, "remove the directory of run %s", id) : 0;
}

static json_t *record_to_json(const struct run_record *record)
{
	CLEANUP(json_done) json_t *labels = json_array();

	for (size_t i = 0; labels && record->labels && record->labels[i]; i++) {
		if (json_array_append_new(labels, json_text(record->labels[i])) < 0)
			return NULL;
	}
	return json_pack("{si ss sO so sf s{si sI} s{si sI} sb}", "schema", 1, "id", record->id,
	                 "labels", labels, "image", json_text(record->image ? record->image : ""),
	                 "created", record->created, "caller", "pid", (int) record->caller_pid,
	                 "start", (json_int_t) record->caller_start, "shim", "pid",
	                 (int) record->shim_pid, "start", (json_int_t) record->shim_start, "keep",
	                 record->keep);
}

static int put_record(int dirfd, const json_t *json, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(RECORD_MAX);
	int r = json ? json_write(&text, json) : -ENOMEM;

	if (r < 0)
		return resoluto_fail(err, r, "write run.json");
	return replace_file_at(dirfd, "run.json", text.data, text.len, 0600, err);
}

int run_record_write(int dirfd, const struct run_record *record, struct resoluto_err *err)
{
	CLEANUP(json_done) json_t *json = record_to_json(record);

	return put_record(dirfd, json, err);
}

/* NULL: no record, or none that can be read. */
static json_t *read_record(int dirfd)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(0);
	CLEANUP(fd_close) int fd = open_beneath(dirfd, "run.json", O_RDONLY | O_NONBLOCK, 0);

	text.max = RECORD_MAX;
	if (fd < 0 || read_rest(fd, &text) < 0 || !text.data)
		return NULL;
	return json_loadb(text.data, text.len, 0, NULL);
}

int run_record_keep(int dirfd, const char *id, struct resoluto_err *err)
{
	CLEANUP(json_done) json_t *json = read_record(dirfd);

	if (!json)
		json = record_to_json(&(struct run_record){ .id = id });
	if (!json || json_object_set_new(json, "keep", json_true()) < 0)
		return resoluto_fail(err, -ENOMEM, "write run.json");
	return put_record(dirfd, json, err);
}

static bool record_matches(const json_t *record, const char *const *labels)
{
	const json_t *have = json_object_get(record, "labels");

	for (; labels && *labels; labels++) {
		bool found = false;

		for (size_t i = 0; i < json_array_size(have) && !found; i++) {
			const char *label = json_string_value(json_array_get(have, i));

			found = label && strcmp(label, *labels) == 0;
		}
		if (!found)
			return false;
	}
	return true;
}

/* The process the record names, if it is still that one: same pid, same start, and a shim. */
static int open_shim(const json_t *record)
{
	json_int_t start = 0;
	uint64_t now;
	char path[64], exe[PATH_MAX];
	const char *name;
	ssize_t n;
	int pid = 0, pidfd;

	if (json_unpack((json_t *) record, "{s{si sI}}", "shim", "pid", &pid, "start", &start) <
	            0 ||
	    pid <= 1)
		return -ESRCH;
	pidfd = (int) syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	exe[n > 0 ? n : 0] = '\0';
	name = strrchr(exe, '/');
	/* Looked at after the pidfd was taken, so what was seen is what the pidfd names. */
	if (!name || strncmp(name + 1, "resoluto-shim", 13) != 0 ||
	    proc_start_time(pid, &now) < 0 || now != (uint64_t) start) {
		fd_close(&pidfd);
		return -ESRCH;
	}
	return pidfd;
}

static void end_shim(const json_t *record)
{
	CLEANUP(fd_close) int pidfd = open_shim(record);
	struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };

	if (pidfd < 0)
		return;
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0)
		(void) poll(&poll_fd, 1, SHIM_END_MS);
}

/* Whether caller and shim are both gone.  A directory without a lock is one whose maker died. */
static bool is_dead(int dirfd)
{
	CLEANUP(fd_close) int lock = open_beneath(dirfd, "lock", O_RDWR | O_NONBLOCK, 0);

	return lock == -ENOENT || (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0);
}

struct sweep {
	int runs;
	const char *const *labels;
	bool live_too;
	struct strv doomed; /* names to remove when the claim lock is released */
	int count;
};

/* One entry of runs/. */
static int sweep_one(struct sweep *sweep, const char *name, struct resoluto_err *err)
{
	CLEANUP(fd_close) int dirfd = -1;
	CLEANUP(json_done) json_t *record = NULL;
	char doomed[NAME_MAX + 1];
	bool dead;
	int r;

	if (strncmp(name, DOOMED_PREFIX, strlen(DOOMED_PREFIX)) == 0)
		return strv_add(&sweep->doomed, name);
	if (!key_is_run_id(name))
		return 0;
	dirfd = open_beneath(sweep->runs, name, O_RDONLY | O_DIRECTORY, 0);
	if (dirfd < 0)
		return dirfd == -ENOENT
		               ? 0
		               : resoluto_fail(err, dirfd, "open the directory of run %s", name);
	dead = is_dead(dirfd);
	if (!dead && !sweep->live_too)
		return 0;
	record = read_record(dirfd);
	/* Alive and without a record: it is being launched right now, by somebody who cleans up himself. */
	if (!dead && !record)
		return 0;
	if (!record_matches(record, sweep->labels) ||
	    (dead && json_is_true(json_object_get(record, "keep"))))
		return 0;
	if (!dead)
		end_shim(record);
	r = doom(sweep->runs, name, doomed);
	if (r < 0)
		return r == -ENOENT ? 0
		                    : resoluto_fail(err, r, "remove the directory of run %s", name);
	sweep->count++;
	return strv_add(&sweep->doomed, doomed);
}

/* One that fails does not keep the others; the first failure is told. */
static int sweep_all(struct sweep *sweep, struct resoluto_err *err)
{
	CLEANUP(dir_close) DIR *dir = NULL;
	CLEANUP(fd_close) int fd = openat(sweep->runs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct dirent *entry;
	int r = 0, one;

	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return resoluto_fail(err, -errno, "list the runs");
	fd = -1;
	for (;;) {
		errno = 0;
		entry = readdir(dir);
		if (!entry)
			break;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		one = sweep_one(sweep, entry->d_name, r == 0 ? err : NULL);
		r = r == 0 ? one : r;
	}
	return errno && r == 0 ? resoluto_fail(err, -errno, "list the runs") : r;
}

static int sweep_state(const char *state_dir, const char *const *labels, bool live_too,
                       struct resoluto_err *err)
{
	CLEANUP(fd_close) int runs = -1, claim = -1;
	struct sweep sweep = { .labels = labels, .live_too = live_too };
	int r = open_state(state_dir, &runs, &claim, err);

	if (r < 0)
		return r;
	r = lock_whole(claim);
	if (r < 0)
		return resoluto_fail(err, r, "lock %s/claim.lock", state_dir);
	sweep.runs = runs;
	r = sweep_all(&sweep, err);
	fd_close(&claim);
	for (size_t i = 0; i < sweep.doomed.count; i++) {
		int removed = remove_tree_at(runs, sweep.doomed.items[i]);

		if (removed < 0 && r == 0)
			r = resoluto_fail(err, removed, "remove %s/runs/%s", state_dir,
			                  sweep.doomed.items[i]);
	}
	strv_done(&sweep.doomed);
	return r < 0 ? r : sweep.count;
}

int rundir_sweep(const char *state_dir, const char *const *labels, struct resoluto_err *err)
{
	return sweep_state(state_dir, labels, true, err);
}

int rundir_sweep_dead(const char *state_dir, struct resoluto_err *err)
{
	return sweep_state(state_dir, NULL, false, err);
}
