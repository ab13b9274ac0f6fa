/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "cli/leftovers.h"
#include "runtime/microvm/rundir.h"
#include "wire/keys.h"

enum {
	DISK_BLOCK = 512, /* bytes that st_blocks counts */
	DEPTH_MAX = 8,    /* directories within each other; there are six */
};

/* What a directory and all beneath it take up; what cannot be read counts nothing. */
static uint64_t bytes_beneath(int at, const char *name, unsigned depth)
{
	CLEANUP(dir_close) DIR *dir = NULL;
	int fd = open_beneath(at, name, O_RDONLY | O_DIRECTORY, 0);
	const struct dirent *entry;
	uint64_t bytes = 0;
	struct stat st;

	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir && fd >= 0)
		fd_close(&fd);
	while (dir && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		bytes += (uint64_t) st.st_blocks * DISK_BLOCK;
		if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
			bytes += bytes_beneath(fd, entry->d_name, depth + 1);
	}
	return bytes;
}

static void count_one(int runs, const char *name, struct leftovers *count)
{
	CLEANUP(fd_close) int run = open_beneath(runs, name, O_RDONLY | O_DIRECTORY, 0);

	/* What cannot even be looked into, such as root's in a user's directory, is nothing that runs. */
	if (run == -ENOENT)
		return;
	/* A name that no run can have: it is half removed. */
	switch (run < 0 || !key_is_run_id(name) ? RUNDIR_DEAD : rundir_fate(run)) {
	case RUNDIR_ALIVE:
		count->alive++;
		break;
	case RUNDIR_KEPT:
		count->kept++;
		break;
	case RUNDIR_DEAD:
		count->dead++;
	}
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
	ret_count->bytes = bytes_beneath(state, "runs", 0);
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
