/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

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
	fd_close(&slot->fd);
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
		CLEANUP(fd_close) int fd = -1;
		char name[16];

		snprintf(name, sizeof(name), "%u", i);
		fd = open_beneath(slots, name, O_RDWR | O_CREAT, 0600);
		if (fd < 0)
			return resoluto_fail(err, fd, "open slot %u", i);
		if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
			*ret_slot = (struct slot){ .fd = fd_take(&fd), .number = i };
			return 0;
		}
		if (errno != EWOULDBLOCK)
			return resoluto_fail(err, -errno, "lock slot %u", i);
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
