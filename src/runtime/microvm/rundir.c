/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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
#include "base/random.h"
#include "runtime/launch_spec.h"
#include "runtime/microvm/record.h"
#include "runtime/microvm/rundir.h"
#include "wire/keys.h"

#define DOOMED_PREFIX ".doomed-"
#define LOCK_UNHELD "lock.new"

enum {
	SHIM_END_MS = 5000, /* from SIGKILL to gone, on a busy machine */
};

/* The state directory and what of it counts here. */
struct places {
	int state, runs, claim;
};

#define PLACES_NONE ((struct places){ -1, -1, -1 })

static void places_done(struct places *places)
{
	fd_close(&places->state);
	fd_close(&places->runs);
	fd_close(&places->claim);
}

static int open_places(const char *state_dir, struct places *places, struct resoluto_err *err)
{
	int r = mkdirs(state_dir, 0700);

	if (r < 0)
		return resoluto_fail(err, r, "make the state directory %s", state_dir);
	places->state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (places->state < 0)
		return resoluto_fail(err, -errno, "open the state directory %s", state_dir);
	if (mkdirat(places->state, "runs", 0700) < 0 && errno != EEXIST)
		return resoluto_fail(err, -errno, "make %s/runs", state_dir);
	places->runs = open_beneath(places->state, "runs", O_RDONLY | O_DIRECTORY, 0);
	if (places->runs < 0)
		return resoluto_fail(err, places->runs, "open %s/runs", state_dir);
	places->claim = open_beneath(places->state, "claim.lock", O_RDWR | O_CREAT, 0600);
	if (places->claim < 0)
		return resoluto_fail(err, places->claim, "open %s/claim.lock", state_dir);
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

/* It gets its name with the lock on it: one that nobody holds would be that of a run whose maker died. */
static int make_lock(int dirfd)
{
	CLEANUP(fd_close)
	int lock = open_beneath(dirfd, LOCK_UNHELD, O_RDWR | O_CREAT | O_EXCL, 0600);
	int r = lock < 0 ? lock : lock_whole(lock);

	if (r < 0)
		return r;
	if (renameat(dirfd, LOCK_UNHELD, dirfd, "lock") < 0)
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

/* What was noted about a run that is gone: now, for the next one of this id may come as soon as we let go. */
static void forget(const struct places *places, const char *id)
{
	CLEANUP(fd_close)
	int launch = open_beneath(places->state, RUNDIR_LAUNCH, O_RDONLY | O_DIRECTORY, 0);

	if (launch >= 0)
		(void) remove_tree_at(launch, id);
}

/* Rename away under the claim lock; the tree goes when the lock is released. */
static int doom(const struct places *places, const char *id, char ret_name[NAME_MAX + 1])
{
	char random[RANDOM_ID_SIZE];
	int r = random_id(random);

	if (r < 0)
		return r;
	snprintf(ret_name, NAME_MAX + 1, DOOMED_PREFIX "%s-%s", id, random);
	if (renameat(places->runs, id, places->runs, ret_name) < 0)
		return -errno;
	forget(places, id);
	return 0;
}

int rundir_claim(const char *state_dir, const char *id, struct rundir *ret_dir,
                 struct resoluto_err *err)
{
	CLEANUP(places_done) struct places places = PLACES_NONE;
	CLEANUP(rundir_done) struct rundir dir = RUNDIR_NONE;
	int r;

	/* One that cannot be removed is in nobody's way; doctor counts it and says why it stays. */
	(void) rundir_sweep_dead(state_dir, NULL);
	r = open_places(state_dir, &places, err);
	if (r < 0)
		return r;
	r = lock_whole(places.claim);
	if (r < 0)
		return resoluto_fail(err, r, "lock %s/claim.lock", state_dir);
	r = make_run(places.runs, state_dir, id, &dir, err);
	if (r < 0) {
		if (dir.fd >= 0)
			(void) remove_tree_at(places.runs, id);
		return r;
	}
	forget(&places, id);
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
	CLEANUP(places_done) struct places places = PLACES_NONE;
	char doomed[NAME_MAX + 1];
	int r = open_places(state_dir, &places, err);

	if (r == 0)
		r = lock_whole(places.claim);
	if (r < 0)
		return r;
	r = is_same_run(places.runs, id, dir) ? doom(&places, id, doomed) : -ENOENT;
	rundir_done(dir);
	fd_close(&places.claim);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = remove_tree_at(places.runs, doomed);
	return r < 0 ? resoluto_fail(err, r, "remove the directory of run %s", id) : 0;
}

static void end_shim(const struct run_record *record)
{
	CLEANUP(fd_close) int pidfd = run_record_open_shim(record);
	struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };

	if (pidfd < 0)
		return;
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0)
		(void) poll(&poll_fd, 1, SHIM_END_MS);
}

struct sweep {
	struct places places;
	const char *const *labels;
	bool live_too;
	struct strv doomed; /* names to remove when the claim lock is released */
	int count;
};

/* One entry of runs/. */
static int sweep_one(struct sweep *sweep, const char *name, struct resoluto_err *err)
{
	CLEANUP(fd_close) int dirfd = -1;
	CLEANUP(run_record_doc_done) struct run_record_doc doc = { .root = NULL };
	char doomed[NAME_MAX + 1];
	enum rundir_fate fate;
	int r;

	if (strncmp(name, DOOMED_PREFIX, strlen(DOOMED_PREFIX)) == 0)
		return strv_add(&sweep->doomed, name);
	if (!key_is_run_id(name))
		return 0;
	dirfd = open_beneath(sweep->places.runs, name, O_RDONLY | O_DIRECTORY, 0);
	if (dirfd < 0)
		return dirfd == -ENOENT
		               ? 0
		               : resoluto_fail(err, dirfd, "open the directory of run %s", name);
	fate = rundir_fate(dirfd);
	if (fate == RUNDIR_KEPT || (fate == RUNDIR_ALIVE && !sweep->live_too))
		return 0;
	/* Alive and without a record: it is being launched right now, by somebody who cleans up himself. */
	if (run_record_read(dirfd, &doc, NULL) < 0 && fate == RUNDIR_ALIVE)
		return 0;
	if (!runtime_labels_match(doc.record.labels, sweep->labels))
		return 0;
	if (fate == RUNDIR_ALIVE)
		end_shim(&doc.record);
	r = doom(&sweep->places, name, doomed);
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
	CLEANUP(fd_close)
	int fd = openat(sweep->places.runs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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

/* What was noted about a run that is not there any more, whoever removed it. */
static void forget_orphans(const struct places *places)
{
	CLEANUP(dir_close) DIR *dir = NULL;
	int fd = open_beneath(places->state, RUNDIR_LAUNCH, O_RDONLY | O_DIRECTORY, 0);
	const struct dirent *entry;

	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		fd_close(&fd);
		return;
	}
	while ((entry = readdir(dir))) {
		if (key_is_run_id(entry->d_name) &&
		    faccessat(places->runs, entry->d_name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
		    errno == ENOENT)
			(void) remove_tree_at(fd, entry->d_name);
	}
}

static int sweep_state(const char *state_dir, const char *const *labels, bool live_too,
                       struct resoluto_err *err)
{
	struct sweep sweep = { .places = PLACES_NONE, .labels = labels, .live_too = live_too };
	int r = open_places(state_dir, &sweep.places, err);

	if (r == 0) {
		r = lock_whole(sweep.places.claim);
		if (r < 0)
			resoluto_fail(err, r, "lock %s/claim.lock", state_dir);
	}
	if (r == 0) {
		r = sweep_all(&sweep, err);
		forget_orphans(&sweep.places);
	}
	fd_close(&sweep.places.claim);
	for (size_t i = 0; i < sweep.doomed.count; i++) {
		int removed = remove_tree_at(sweep.places.runs, sweep.doomed.items[i]);

		if (removed < 0 && r == 0)
			r = resoluto_fail(err, removed, "remove %s/runs/%s", state_dir,
			                  sweep.doomed.items[i]);
	}
	strv_done(&sweep.doomed);
	places_done(&sweep.places);
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
