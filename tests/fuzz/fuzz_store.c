/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_store.c - a guest's bytes all the way into a directory, under small quotas: frames, rules, objects.  The first two
 * bytes choose the quotas; frames follow, each behind a byte that says whether its checksum is put right.
 *
 * Whatever is said, what lies there is of the protocol, whole, and within the quotas.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "shim/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct guest {
	struct demux demux;
	struct store store;
	struct resoluto_quotas quotas;
	bool has_ended;
};

static void require(int truth)
{
	if (!truth)
		abort();
}

/* As guest.c of the shim does. */
static int act(struct guest *guest, struct demux_action *action)
{
	struct resoluto_err err = { 0 };

	switch (action->what) {
	case DEMUX_BEGIN:
		return store_begin(&guest->store, action->slot, action->put, &err);
	case DEMUX_DATA:
		return store_write(&guest->store, action->slot, action->bytes, action->len, &err);
	case DEMUX_END:
		return store_commit(&guest->store, action->slot, action->put->kind, &err);
	case DEMUX_DAMAGED:
		store_abort(&guest->store, action->slot);
		return FRAME_NAK_CRC;
	default:
		return 0;
	}
}

static void take(struct guest *guest, const struct frame *frame, enum demux_port port)
{
	struct demux_action action;
	int r = demux_frame(&guest->demux, port, frame, &action, NULL);

	if (r == 0)
		r = act(guest, &action);
	guest->has_ended = r < 0;
	if (r > 0)
		demux_failed(&guest->demux, action.put);
	else if (r == 0 && action.what == DEMUX_END)
		demux_stored(&guest->demux, action.put);
	if (r > 0 && (action.what == DEMUX_END || action.what == DEMUX_DAMAGED))
		action.put->is_open = false;
	require(guest->store.bytes <= guest->store.limits.bytes &&
	        guest->store.objects <= guest->store.limits.objects);
}

/* A fuzzer does not find a crc32c: it is told where one belongs. */
static void mend(const struct guest *guest, struct frame *frame, uint8_t crc[4])
{
	for (int i = 0; i < DEMUX_PUTS_MAX; i++) {
		const struct demux_put *put = &guest->demux.puts[i];

		if (frame->type != FRAME_PUT_END || !put->is_open || put->stream != frame->stream)
			continue;
		for (int byte = 0; byte < 4; byte++)
			crc[byte] = (uint8_t) (put->crc >> (8 * byte));
		frame->payload = crc;
		frame->len = 4;
	}
}

static void play(struct guest *guest, const uint8_t *data, size_t size)
{
	while (size > 1 && !guest->has_ended) {
		uint8_t crc[4];
		struct frame frame;
		size_t used;

		if (frame_parse(data + 1, size - 1, &frame, &used) < 0)
			return;
		if (data[0] & 2)
			mend(guest, &frame, crc);
		take(guest, &frame, data[0] & 1 ? DEMUX_CONDUIT : DEMUX_CONTROL);
		data += 1 + used;
		size -= 1 + used;
	}
}

/* Everything beneath dirfd; returns what it costs. */
static uint64_t look(int dirfd, const char *folder)
{
	DIR *dir = fdopendir(openat(dirfd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	const struct dirent *entry;
	uint64_t cost = 0;

	require(dir != NULL);
	while ((entry = readdir(dir))) {
		const bool is_top = strcmp(folder, ".") == 0;
		char key[KEY_SIZE];
		struct stat st;
		uint32_t number;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		snprintf(key, sizeof(key), "%s%s", is_top ? "" : "outbox/", entry->d_name);
		require(fstatat(dirfd, key, &st, AT_SYMLINK_NOFOLLOW) == 0);
		if (is_top && strcmp(key, "outbox") == 0) {
			cost += look(dirfd, "outbox");
			continue;
		}
		require(S_ISREG(st.st_mode) && st.st_nlink == 1);
		require(key_classify(key, strlen(key), &number) != KEY_IS_UNKNOWN);
		cost += quota_cost((uint64_t) st.st_size);
	}
	closedir(dir);
	return cost;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct guest *guest = calloc(1, sizeof(*guest));
	const char *temp = getenv("TMPDIR");
	char path[120];
	int fd;

	require(guest != NULL);
	if (size > 2) {
		snprintf(path, sizeof(path), "%.80s/fuzz-store-XXXXXX", temp ? temp : "/tmp");
		require(mkdtemp(path) != NULL);
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		guest->quotas.bytes = (1 + data[0]) * 512ull;
		guest->quotas.objects = 1 + data[1] % 16u;
		guest->quotas.archive_bytes = 1 + data[1] * 64ull;
		require(store_init(&guest->store, fd, &guest->quotas, NULL) == 0);
		play(guest, data + 2, size - 2);
		store_done(&guest->store);
		require(look(fd, ".") <= guest->quotas.bytes);
		close(fd);
		require(remove_tree_at(AT_FDCWD, path) == 0);
	}
	free(guest);
	return 0;
}
