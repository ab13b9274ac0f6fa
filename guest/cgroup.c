/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "guest/cgroup.h"

static const char root_dir[] = "/sys/fs/cgroup", programs_dir[] = "sandbox";

enum {
	LOOK_AGAIN_MS = 2,
	STAT_SIZE = 8192, /* bytes of memory.stat that are read: some 1,500 are there */
};

/* What stays with kernel and runner. */
static uint64_t without(uint64_t bytes, uint64_t kept)
{
	return bytes - (kept > bytes / 4 ? bytes / 4 : kept);
}

uint64_t cgroup_memory_max(uint64_t machine_bytes, uint64_t available_bytes)
{
	const uint64_t by_size = without(machine_bytes, (uint64_t) CGROUP_KEPT_MIB << 20);
	const uint64_t by_room = without(available_bytes, (uint64_t) CGROUP_ROOM_MIB << 20);

	return by_room < by_size ? by_room : by_size;
}

static int set(int dirfd, const char *name, const char *value, struct resoluto_err *err)
{
	CLEANUP(fd_close) int fd = openat(dirfd, name, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		return resoluto_fail(err, -errno, "set %s to %s", name, value);
	return 0;
}

/* Of the machine, now: free, and of files that can be dropped. */
static uint64_t available_bytes(void)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(0);

	if (read_file_at(AT_FDCWD, "/proc/meminfo", STAT_SIZE, &text, NULL) < 0)
		return UINT64_MAX;
	return cgroup_read_stat(text.data, "MemAvailable:") << 10;
}

int cgroup_fit_memory(const struct cgroup *cgroup, struct resoluto_err *err)
{
	struct sysinfo info;
	char memory[32];

	if (sysinfo(&info) < 0)
		return resoluto_fail(err, -errno, "ask for the size of the memory");
	snprintf(memory, sizeof(memory), "%" PRIu64,
	         cgroup_memory_max((uint64_t) info.totalram * info.mem_unit, available_bytes()));
	return set(cgroup->dir, "memory.max", memory, err);
}

static int set_limits(const struct cgroup *cgroup, struct resoluto_err *err)
{
	char pids[32];
	int r = cgroup_fit_memory(cgroup, err);

	snprintf(pids, sizeof(pids), "%d", CGROUP_PIDS_MAX);
	return r < 0 ? r : set(cgroup->dir, "pids.max", pids, err);
}

static bool read_text(const struct cgroup *cgroup, const char *file, char *ret, size_t cap)
{
	CLEANUP(fd_close) int fd = openat(cgroup->dir, file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read_up_to(fd, ret, cap - 1);

	ret[n > 0 ? n : 0] = '\0';
	return n >= 0;
}

/* The controllers that limits need; one that the kernel does not have is named. */
static int turn_on_controllers(int root, struct resoluto_err *err)
{
	static const char *const needed[][2] = {
		{ "memory", "CONFIG_MEMCG" },
		{ "pids", "CONFIG_CGROUP_PIDS" },
	};
	const struct cgroup cgroup = { .dir = root };
	char there[STAT_SIZE];
	int r = set(root, "cgroup.subtree_control", "+memory +pids", err);

	if (r == 0 || !read_text(&cgroup, "cgroup.controllers", there, sizeof(there)))
		return r;
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		if (!strstr(there, needed[i][0]))
			return resoluto_fail(err, r, "this kernel lacks %s", needed[i][1]);
	}
	return r;
}

static int make(int root, struct cgroup *cgroup, struct resoluto_err *err)
{
	int r = turn_on_controllers(root, err);

	if (r < 0)
		return r;
	if (mkdirat(root, programs_dir, 0755) < 0)
		return resoluto_fail(err, -errno, "make a cgroup");
	cgroup->dir = openat(root, programs_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return cgroup->dir < 0 ? resoluto_fail(err, -errno, "open the cgroup")
	                       : set_limits(cgroup, err);
}

int cgroup_create(struct cgroup *ret_cgroup, struct resoluto_err *err)
{
	CLEANUP(fd_close) int root = open(root_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(cgroup_done) struct cgroup cgroup = CGROUP_NONE;
	int r;

	if (root < 0)
		return resoluto_fail(err, -errno, "open %s", root_dir);
	/* Whole, if /early made it: else it has told that it broke off (early.h). */
	cgroup.dir = openat(root, programs_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = cgroup.dir < 0 ? make(root, &cgroup, err) : 0;
	if (r < 0)
		return r;
	ret_cgroup->dir = fd_take(&cgroup.dir);
	return 0;
}

static bool read_stat(const struct cgroup *cgroup, const char *file, const char *name,
                      uint64_t *ret)
{
	char text[STAT_SIZE];

	if (!read_text(cgroup, file, text, sizeof(text)))
		return false;
	*ret = cgroup_read_stat(text, name);
	return true;
}

static uint64_t read_number(const struct cgroup *cgroup, const char *file)
{
	char text[64];

	return read_text(cgroup, file, text, sizeof(text)) ? strtoull(text, NULL, 10) : 0;
}

int cgroup_read_memory(const struct cgroup *cgroup, struct cgroup_memory *ret_memory)
{
	char text[STAT_SIZE];

	if (!read_text(cgroup, "memory.stat", text, sizeof(text)))
		return -EIO;
	*ret_memory = (struct cgroup_memory){
		.limit_bytes = read_number(cgroup, "memory.max"),
		.used_bytes = read_number(cgroup, "memory.current"),
		.file_bytes = cgroup_read_stat(text, "file"),
		.refaults = cgroup_read_stat(text, "workingset_refault_file"),
	};
	return 0;
}

bool cgroup_is_stalled(const struct cgroup_memory *before, const struct cgroup_memory *now)
{
	return now->used_bytes >= now->limit_bytes - now->limit_bytes / CGROUP_STALL_SHARE &&
	       now->file_bytes < now->limit_bytes / CGROUP_STALL_SHARE &&
	       now->refaults - before->refaults >= CGROUP_STALL_REFAULTS;
}

uint64_t cgroup_read_stat(const char *text, const char *name)
{
	size_t len = strlen(name);

	while (*text) {
		if (strncmp(text, name, len) == 0 && text[len] == ' ')
			return strtoull(text + len + 1, NULL, 10);
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return 0;
}

int cgroup_kill_now(const struct cgroup *cgroup)
{
	return set(cgroup->dir, "cgroup.kill", "1", NULL);
}

/* Some of them: whoever starts processes without end must be killed meanwhile. */
static void reap_some(void)
{
	for (int i = 0; i < CGROUP_REAP_MAX && waitpid(-1, NULL, WNOHANG) > 0; i++)
		;
}

int cgroup_kill(const struct cgroup *cgroup)
{
	uint64_t give_up = clock_mono_ms() + CGROUP_KILL_MS, populated = 1;

	for (bool is_killed = false;; is_killed = true) {
		reap_some();
		if (!read_stat(cgroup, "cgroup.events", "populated", &populated))
			return -EIO;
		if (!populated)
			return 0;
		if (clock_mono_ms() > give_up)
			return -ETIMEDOUT;
		if (is_killed)
			(void) poll(NULL, 0, LOOK_AGAIN_MS);
		else if (cgroup_kill_now(cgroup) < 0)
			return -EIO;
	}
}

uint64_t cgroup_oom_kills(const struct cgroup *cgroup)
{
	uint64_t kills = 0;

	(void) read_stat(cgroup, "memory.events", "oom_kill", &kills);
	return kills;
}

void cgroup_done(struct cgroup *cgroup)
{
	fd_close(&cgroup->dir);
}
