/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "cli/leftovers.h"

enum { RECORD_MAX = 256 * 1024 }; /* bytes of run.json */

static bool is_kept(int run)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(RECORD_MAX);
	CLEANUP(fd_close) int fd = open_beneath(run, "run.json", O_RDONLY | O_NONBLOCK, 0);
	json_t *record;
	bool keep;

	if (fd < 0 || read_rest(fd, &text) < 0 || !text.data)
		return false;
	record = json_loadb(text.data, text.len, 0, NULL);
	keep = json_is_true(json_object_get(record, "keep"));
	json_decref(record);
	return keep;
}

/* Caller and shim share the lock; it is free once both are gone. */
static bool is_alive(int run)
{
	CLEANUP(fd_close) int lock = open_beneath(run, "lock", O_RDONLY | O_NONBLOCK, 0);

	return lock >= 0 && flock(lock, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

static void count_one(int runs, const char *name, struct leftovers *count)
{
	CLEANUP(fd_close) int run = open_beneath(runs, name, O_RDONLY | O_DIRECTORY, 0);

	/* What cannot even be looked into, such as root's in a user's directory, is nothing that runs. */
	if (run == -ENOENT)
		return;
	if (run >= 0 && is_alive(run))
		count->alive++;
	else if (run >= 0 && is_kept(run))
		count->kept++;
	else
		count->dead++;
}

int leftovers_count(const char *state_dir, struct leftovers *ret_count, struct resoluto_err *err)
{
	CLEANUP(fd_close) int state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(fd_close) int claim = -1;
	CLEANUP(dir_close) DIR *dir = NULL;
	const struct dirent *entry;
	int runs;

	*ret_count = (struct leftovers){ 0 };
	if (state < 0)
		return errno == ENOENT ? 0 : resoluto_fail(err, -errno, "open %s", state_dir);
	runs = open_beneath(state, "runs", O_RDONLY | O_DIRECTORY, 0);
	if (runs < 0)
		return runs == -ENOENT ? 0 : resoluto_fail(err, runs, "open %s/runs", state_dir);
	dir = fdopendir(runs);
	if (!dir) {
		fd_close(&runs);
		return resoluto_fail(err, -ENOMEM, "list %s/runs", state_dir);
	}
	/* As everybody who looks at locks of runs does: nobody makes or removes one meanwhile. */
	claim = open_beneath(state, "claim.lock", O_RDONLY | O_NONBLOCK, 0);
	if (claim >= 0)
		(void) flock(claim, LOCK_EX);
	while ((entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			count_one(dirfd(dir), entry->d_name, ret_count);
	}
	return 0;
}
