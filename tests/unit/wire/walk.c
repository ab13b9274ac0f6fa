/* SPDX-License-Identifier: Apache-2.0 */
#include "archive.h"
#include "wire/walk.h"

enum { MEMORY = 64 * 1024, MANY = 1200, LONG = 80 };

static void count_tick(void *ctx)
{
	++*(unsigned *) ctx;
}

static struct walk *new_walk(unsigned *ticks)
{
	const struct walk_options options = { .memory = MEMORY, .tick = count_tick, .ctx = ticks };
	struct walk *walk;

	CHECK(walk_new(&options, &walk) == 0);
	return walk;
}

static void start(struct walk *walk, int dirfd)
{
	CHECK(walk_start(walk, openat(dirfd, ".", O_RDONLY | O_CLOEXEC), "", NULL, 7) == 0);
}

static void long_name(int number, char name[LONG])
{
	snprintf(name, LONG, "%04d-a-name-that-takes-its-room-in-the-list-and-is-longer-than-most",
	         number);
}

/* In an order that is not theirs. */
static void make_many(int dirfd)
{
	char name[LONG];

	for (int i = 0; i < MANY; i++) {
		long_name(i * 1009 % MANY, name);
		CHECK(mknodat(dirfd, name, S_IFREG | 0644, 0) == 0);
	}
}

/* Their names take twice the memory: they come in several parts, each once, in order; and again. */
static void gives_more_names_than_it_has_memory_for(void)
{
	unsigned ticks = 0;
	struct walk *walk = new_walk(&ticks);
	struct walk_entry at;
	struct place place;
	char want[LONG];

	place_open(&place);
	make_many(place.in);
	for (int time = 0; time < 2; time++) {
		start(walk, place.in);
		for (int i = 0; i < MANY; i++) {
			long_name(i, want);
			CHECK(walk_next(walk, &at) == 1 && at.tag == 7);
			CHECK_STR(at.path, want);
		}
		CHECK(walk_next(walk, &at) == 0);
	}
	CHECK(ticks > 2 * MANY * LONG / MEMORY);
	walk_free(&walk);
	place_close(&place);
}

/* What goes and what comes while it is walked is given once or not at all; what stays, once. */
static void stands_a_directory_that_changes(void)
{
	unsigned ticks = 0;
	struct walk *walk = new_walk(&ticks);
	struct walk_entry at;
	struct place place;
	char name[LONG], last[LONG] = "";
	int kept = 0;

	place_open(&place);
	make_many(place.in);
	start(walk, place.in);
	for (int i = 0; walk_next(walk, &at) == 1; i++) {
		CHECK(strcmp(at.name, last) > 0);
		snprintf(last, sizeof(last), "%s", at.name);
		kept += atoi(at.name) % 2 == 0 && at.name[0] != 'x';
		if (i < MANY / 4) {
			long_name(2 * (MANY / 2 - i) - 1, name);
			CHECK(unlinkat(place.in, name, 0) == 0);
			snprintf(name, sizeof(name), "x%04d", i);
			CHECK(mknodat(place.in, name, S_IFREG | 0644, 0) == 0);
		}
	}
	CHECK(kept == MANY / 2);
	walk_free(&walk);
	place_close(&place);
}

/* Ever deeper, many names each time: what cannot be entered is told, and all else still comes. */
static void tells_where_the_memory_ends(void)
{
	unsigned ticks = 0, refused = 0, given = 0;
	struct walk *walk = new_walk(&ticks);
	struct walk_entry at;
	struct place place;
	int dir;

	place_open(&place);
	dir = fcntl(place.in, F_DUPFD_CLOEXEC, 3);
	for (int level = 0; level < 6; level++) {
		int next;

		for (int i = 0; i < 150; i++) {
			char name[LONG];

			long_name(i, name);
			CHECK(mknodat(dir, name, S_IFREG | 0644, 0) == 0);
		}
		CHECK(mkdirat(dir, "0", 0755) == 0);
		next = openat(dir, "0", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(dir);
		dir = next;
	}
	close(dir);
	start(walk, place.in);
	while (walk_next(walk, &at) == 1) {
		int fd = openat(at.dirfd, at.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		int r = fd < 0 ? 0 : walk_enter(walk, fd, 0);

		CHECK(r == 0 || r == -E2BIG);
		refused += r < 0;
		given++;
	}
	CHECK(refused == 1 && given % 151 == 0 && given / 151 >= 2 && given / 151 < 6);
	walk_free(&walk);
	place_close(&place);
}

int main(void)
{
	RUN(gives_more_names_than_it_has_memory_for);
	RUN(stands_a_directory_that_changes);
	RUN(tells_where_the_memory_ends);
	return check_done();
}
