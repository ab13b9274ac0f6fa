/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "runtime/microvm/slots.h"

enum {
	SLOTS_MAX = 4096,
	UID_MIN = 1000, /* below are the system's own */
	UID_MAX = 0x7ffffffe,
};

static const uint64_t memory_per_slot = 512ull << 20; /* bytes */

void slot_done(struct slot *slot)
{
	fd_close(&slot->uid_fd);
	fd_close(&slot->fd);
}

/* The lock of that number in a directory, or -EWOULDBLOCK: somebody has it. */
static int lock_number(int dir, unsigned number)
{
	CLEANUP(fd_close) int fd = -1;
	char name[16];

	snprintf(name, sizeof(name), "%u", number);
	fd = open_beneath(dir, name, O_RDWR | O_CREAT, 0600);
	if (fd < 0)
		return fd;
	return flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : fd_take(&fd);
}

static int open_slots(const char *state_dir, struct resoluto_err *err)
{
	CLEANUP(mem_free) char *path = NULL;
	int fd, r;

	if (asprintf(&path, "%s/slots", state_dir) < 0) {
		path = NULL;
		return resoluto_fail(err, -ENOMEM, "open the slots");
	}
	r = mkdirs(path, 0700);
	if (r < 0)
		return resoluto_fail(err, r, "make %s", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? resoluto_fail(err, -errno, "open %s", path) : fd;
}

int slot_try(const char *state_dir, unsigned count, struct slot *ret_slot, struct resoluto_err *err)
{
	CLEANUP(fd_close) int slots = open_slots(state_dir, err);

	if (slots < 0)
		return slots;
	for (unsigned i = 0; i < count; i++) {
		const int fd = lock_number(slots, i);

		if (fd >= 0) {
			*ret_slot = (struct slot){ .fd = fd, .number = i, .uid_fd = -1 };
			return 0;
		}
		if (fd != -EWOULDBLOCK)
			return resoluto_fail(err, fd, "lock slot %u", i);
	}
	return resoluto_fail(err, -EBUSY,
	                     "all %u slots for microVMs are taken (RESOLUTO_LOCAL_MAX_RUNS)",
	                     count);
}

int slot_count(const char *configured, uint64_t available_bytes, unsigned *ret_count,
               struct resoluto_err *err)
{
	uint64_t count = available_bytes / memory_per_slot;
	char *end;

	if (configured && *configured) {
		errno = 0;
		count = strtoull(configured, &end, 10);
		if (errno || *end || configured[0] < '0' || configured[0] > '9' || count < 1 ||
		    count > SLOTS_MAX)
			return resoluto_fail(
				err, -EINVAL,
				"RESOLUTO_LOCAL_MAX_RUNS=%s is not a number from 1 to %d",
				configured, SLOTS_MAX);
	}
	*ret_count = count < 1 ? 1 : count > SLOTS_MAX ? SLOTS_MAX : (unsigned) count;
	return 0;
}

static bool parse_id(const char *text, char end, uint32_t *ret_id, const char **ret_rest)
{
	char *rest;
	unsigned long long id;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	id = strtoull(text, &rest, 10);
	if (errno || *rest != end || id < UID_MIN || id > UID_MAX)
		return false;
	*ret_id = (uint32_t) id;
	*ret_rest = rest;
	return true;
}

int uid_range_parse(const char *text, struct uid_range *ret_range, struct resoluto_err *err)
{
	struct uid_range range;
	const char *rest;

	if (!parse_id(text, '-', &range.first, &rest) ||
	    !parse_id(rest + 1, '\0', &range.last, &rest) || range.first > range.last)
		return resoluto_fail(err, -EINVAL,
		                     "RESOLUTO_LOCAL_UIDS=%s is not FIRST-LAST with ids from %d on",
		                     text, UID_MIN);
	*ret_range = range;
	return 0;
}

/* A directory where nobody but us makes, removes or renames anything, made if need be. */
static int open_own(int dirfd, const char *name)
{
	CLEANUP(fd_close) int fd = -1;
	struct stat st;

	if (mkdirat(dirfd, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = open_beneath(dirfd, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) ? -EPERM : fd_take(&fd);
}

static int open_uid_locks(const char *top, struct resoluto_err *err)
{
	CLEANUP(fd_close) int top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ours = -1;
	int locks;

	if (top_fd < 0)
		return resoluto_fail(err, -errno,
		                     "open %s, where the users that runs have are locked", top);
	ours = open_own(top_fd, "resoluto-sandbox");
	locks = ours < 0 ? ours : open_own(ours, "uids");
	if (locks < 0)
		return resoluto_fail(err, locks,
		                     "open %s/resoluto-sandbox/uids, where the users that runs "
		                     "have are locked: it must be writable for its owner alone",
		                     top);
	return locks;
}

int slot_take_uid(struct slot *slot, const char *top, const struct uid_range *range,
                  struct resoluto_err *err)
{
	CLEANUP(fd_close) int locks = open_uid_locks(top, err);

	if (locks < 0)
		return locks;
	for (uint32_t uid = range->first; uid <= range->last; uid++) {
		const int fd = lock_number(locks, uid);

		if (fd >= 0) {
			slot->uid_fd = fd;
			slot->uid = uid;
			return 0;
		}
		if (fd != -EWOULDBLOCK)
			return resoluto_fail(err, fd, "lock user %u", (unsigned) uid);
	}
	return resoluto_fail(err, -EBUSY,
	                     "all users of RESOLUTO_LOCAL_UIDS=%u-%u are taken by runs of this "
	                     "host",
	                     (unsigned) range->first, (unsigned) range->last);
}
