/* SPDX-License-Identifier: Apache-2.0 */
/* A ship that keeps what it is given, and refuses when told to. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "check.h"
#include "guest/outputs.h"
#include "wire/keys.h"

struct fake {
	struct ship ship;
	struct buf bytes;
	int begun, ended, abandoned,
		refusals; /* refusals: so many waits are answered with `refusal` */
	int refusal;
};

static struct fake *fake_of(struct ship *ship)
{
	return (struct fake *) ship;
}

static int fake_begin(struct ship *ship, const char *key, uint64_t size, uint32_t *ret_put,
                      struct resoluto_err *err)
{
	CHECK_STR(key, KEY_OUTBOX_OUTPUT);
	CHECK(size == SHIP_SIZE_UNKNOWN);
	buf_clear(&fake_of(ship)->bytes);
	*ret_put = (uint32_t) ++fake_of(ship)->begun;
	return 0;
}

static int fake_data(struct ship *ship, uint32_t put, const void *bytes, size_t len,
                     struct resoluto_err *err)
{
	if (fake_of(ship)->refusal == -ENOSPC && fake_of(ship)->refusals > 0)
		return resoluto_fail(err, -ENOSPC, "full");
	return buf_add(&fake_of(ship)->bytes, bytes, len);
}

static int fake_end(struct ship *ship, uint32_t put, struct resoluto_err *err)
{
	fake_of(ship)->ended++;
	return 0;
}

static int fake_wait(struct ship *ship, uint32_t put, struct resoluto_err *err)
{
	struct fake *fake = fake_of(ship);

	return fake->refusals-- > 0 ? resoluto_fail(err, fake->refusal, "refused") : 0;
}

static int fake_abandon(struct ship *ship, uint32_t put, struct resoluto_err *err)
{
	fake_of(ship)->abandoned++;
	return 0;
}

static int fake_pause(struct ship *ship, int ms, struct resoluto_err *err)
{
	return 0;
}

static const struct ship_ops fake_ops = { fake_begin, fake_data,    fake_end,
	                                  fake_wait,  fake_abandon, fake_pause };

static struct fake fake_make(int refusal, int refusals)
{
	return (struct fake){ .ship = { &fake_ops },
		              .bytes = BUF_INIT(1 << 20),
		              .refusal = refusal,
		              .refusals = refusals };
}

static void fake_done(struct fake *fake)
{
	buf_done(&fake->bytes);
}

static void remove_workspace(char (*path)[32])
{
	(void) remove_tree_at(AT_FDCWD, *path);
}

/* A directory with a.txt (small) and big (some 200 KiB that do not pack). */
static int make_workspace(char path[32])
{
	CLEANUP(mem_free) char *big = malloc(200000);
	uint32_t state = 1;
	int dir;

	snprintf(path, 32, "/tmp/guest-outputs.XXXXXX");
	CHECK(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(dir >= 0 && replace_file_at(dir, "a.txt", "text", 4, 0644, NULL) == 0);
	for (int i = 0; i < 200000; i++) {
		state = state * 1664525 + 1013904223;
		big[i] = (char) (state >> 24);
	}
	CHECK(replace_file_at(dir, "big", big, 200000, 0644, NULL) == 0);
	return dir;
}

static int ship(struct fake *fake, const char *glob, struct pack_report *report)
{
	CLEANUP(remove_workspace) char path[32] = "";
	CLEANUP(fd_close) int dir = make_workspace(path);
	CLEANUP(strv_done) struct strv globs = { 0 };

	CHECK(strv_add(&globs, glob) == 0);
	return outputs_ship(dir, &globs, &fake->ship, NULL, NULL, report, NULL);
}

static void what_matches_is_stored(void)
{
	CLEANUP(fake_done) struct fake fake = fake_make(0, 0);
	struct pack_report report;

	CHECK(ship(&fake, "*.txt", &report) == 1);
	CHECK(report.entries == 1 && report.bytes == 4 && fake.begun == 1 && fake.ended == 1);
	CHECK(fake.bytes.len > 20 && memcmp(fake.bytes.data, "\x1f\x8b", 2) == 0);
}

static void nothing_that_matches_is_no_archive(void)
{
	CLEANUP(fake_done) struct fake fake = fake_make(0, 0);
	struct pack_report report;

	CHECK(ship(&fake, "*.none", &report) == 0 && fake.begun == 0);
}

static void a_large_archive_begins_before_it_is_whole(void)
{
	CLEANUP(fake_done) struct fake fake = fake_make(0, 0);
	struct pack_report report;

	CHECK(ship(&fake, "big", &report) == 1);
	CHECK(fake.bytes.len > 190000 && fake.begun == 1 && fake.ended == 1 && fake.abandoned == 0);
}

static void a_store_that_failed_is_asked_again(void)
{
	CLEANUP(fake_done) struct fake fake = fake_make(-EAGAIN, 2), never = fake_make(-EAGAIN, 99);
	struct pack_report report;

	CHECK(ship(&fake, "*", &report) == 1 && fake.begun == 3);
	CHECK(ship(&never, "*", &report) == -EAGAIN && never.begun == OUTPUTS_TRIES);
	fake_done(&never);
}

static void half_an_archive_is_abandoned(void)
{
	CLEANUP(fake_done) struct fake fake = fake_make(-ENOSPC, 1);
	struct pack_report report;

	CHECK(ship(&fake, "big", &report) < 0);
	CHECK(fake.begun == 1 && fake.abandoned == 1 && fake.ended == 0);
}

int main(void)
{
	RUN(what_matches_is_stored);
	RUN(nothing_that_matches_is_no_archive);
	RUN(a_large_archive_begins_before_it_is_whole);
	RUN(a_store_that_failed_is_asked_again);
	RUN(half_an_archive_is_abandoned);
	return check_done();
}
