/* SPDX-License-Identifier: Apache-2.0 */
/* rundir_look.c - run directories as they are: opened, read and judged, nothing in them changed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "runtime/microvm/record.h"
#include "runtime/microvm/rundir.h"
#include "wire/keys.h"

void rundir_done(struct rundir *dir)
{
	free(dir->path);
	fd_close(&dir->fd);
	fd_close(&dir->lock);
	*dir = RUNDIR_NONE;
}

/* --- whether it is alive --- */

/*
 * 0 if nobody holds the lock, -EWOULDBLOCK if somebody does, -ENOENT if there is none: its maker died, or has not come
 * that far.  Shared, so that those who look do not see each other.  What is no lock of ours, nobody holds; what we may
 * not open is for others to judge.
 */
static int try_lock(int dirfd)
{
	CLEANUP(fd_close) int lock = open_beneath(dirfd, "lock", O_RDONLY | O_NONBLOCK, 0);

	if (lock == -ELOOP || lock == -ENXIO)
		return 0;
	if (lock < 0)
		return lock;
	return flock(lock, LOCK_SH | LOCK_NB) < 0 ? -errno : 0;
}

/* Whether caller and shim are both gone. */
static bool is_dead(int dirfd)
{
	int r = try_lock(dirfd);

	return r == 0 || r == -ENOENT;
}

enum rundir_fate rundir_fate(int dirfd)
{
	CLEANUP(run_record_doc_done) struct run_record_doc doc = { .root = NULL };
	int r;

	if (!is_dead(dirfd))
		return RUNDIR_ALIVE;
	r = run_record_read(dirfd, &doc, NULL);
	return r == -ENOENT || (r == 0 && !doc.record.keep) ? RUNDIR_DEAD : RUNDIR_KEPT;
}

int rundir_open(const char *state_dir, const char *id, struct rundir *ret_dir,
                struct resoluto_err *err)
{
	CLEANUP(rundir_done) struct rundir dir = RUNDIR_NONE;

	if (!key_is_run_id(id) || asprintf(&dir.path, "%s/runs/%s", state_dir, id) < 0) {
		dir.path = NULL;
		return resoluto_fail(err, -ENOENT, "there is no run '%.60s'", id);
	}
	dir.fd = open(dir.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir.fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return resoluto_fail(err, -ENOENT, "there is no run '%s'", id);
	if (dir.fd < 0)
		return resoluto_fail(err, -errno, "open %s", dir.path);
	*ret_dir = dir;
	dir = RUNDIR_NONE;
	return 0;
}

/* The claim lock of the state directory that a run lies in. */
static int open_claim_above(int dirfd)
{
	int fd = openat(dirfd, "../../claim.lock", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

bool rundir_is_alive(int dirfd)
{
	CLEANUP(fd_close) int claim = -1;
	int r = try_lock(dirfd);

	if (r != -ENOENT)
		return r != 0;
	/* Whoever makes one holds the claim lock until its own lock is there, too. */
	claim = open_claim_above(dirfd);
	if (claim < 0 || flock(claim, LOCK_SH | LOCK_NB) < 0)
		return claim != -ENOENT;
	r = try_lock(dirfd);
	return r != 0 && r != -ENOENT;
}

/* Failures that come of what lies there, not of the host's state. */
static bool is_oddity(int code)
{
	return code == -ELOOP || code == -ENXIO || code == -ENOTDIR || code == -EISDIR ||
	       code == -EACCES || code == -EPERM || code == -E2BIG;
}

static int open_to_read(int dirfd, const char *name, bool is_launchers)
{
	CLEANUP(fd_close) int fd = open_beneath(dirfd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENXIO;
	return is_launchers && st.st_uid != geteuid() ? -EPERM : fd_take(&fd);
}

int rundir_read(int dirfd, const char *name, bool is_launchers, struct buf *buf,
                struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = open_to_read(dirfd, name, is_launchers);
	int r = fd < 0 ? fd : read_rest(fd, buf);

	if (r >= 0)
		return 0;
	return resoluto_fail(err, is_oddity(r) ? -EBADMSG : r, "read %s: %s", name,
	                     strerrordesc_np(-r));
}

bool rundir_is_removed(int dirfd)
{
	struct stat st;

	return fstat(dirfd, &st) == 0 && st.st_nlink == 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *) a, *(char *const *) b);
}

static int read_names(DIR *dir, struct strv *ids)
{
	for (;;) {
		const struct dirent *entry;
		int r = 0;

		errno = 0;
		entry = readdir(dir);
		if (!entry)
			return -errno;
		if (key_is_run_id(entry->d_name))
			r = strv_add(ids, entry->d_name);
		if (r < 0)
			return r;
	}
}

int rundir_names(const char *state_dir, struct strv *ret_ids, struct resoluto_err *err)
{
	CLEANUP(mem_free) char *path = NULL;
	CLEANUP(dir_close) DIR *dir = NULL;
	int r;

	if (asprintf(&path, "%s/runs", state_dir) < 0) {
		path = NULL;
		return resoluto_fail(err, -ENOMEM, "list the runs");
	}
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : resoluto_fail(err, -errno, "list %s", path);
	r = read_names(dir, ret_ids);
	if (r < 0)
		return resoluto_fail(err, r, "list %s", path);
	if (ret_ids->count > 1)
		qsort(ret_ids->items, ret_ids->count, sizeof(*ret_ids->items), by_text);
	return 0;
}
