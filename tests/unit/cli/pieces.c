/* SPDX-License-Identifier: Apache-2.0 */

/* pieces.c - whole lines within a bound, and the count of what was left out. */

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "cli/pieces.h"

/* The lines "0\n", "1\n" ... of so many bytes of output each, printed with this bound. */
static void check_lines(unsigned count, uint64_t max, const char *want)
{
	struct output output = { .fds = { memfd_create("out", MFD_CLOEXEC), -1 }, .wake_fd = -1 };
	struct pieces pieces;
	char got[256];
	ssize_t len;

	pieces_init(&pieces, &output, max);
	for (unsigned i = 0; i < count; i++) {
		char line[8];

		snprintf(line, sizeof(line), "%u\n", i);
		CHECK(pieces_add(&pieces, line, 2, 10 + i) == 0);
		CHECK(pieces.held <= max / 2);
	}
	CHECK(pieces_end(&pieces) == 0 && pieces.held == 0);
	len = pread(output.fds[0], got, sizeof(got) - 1, 0);
	CHECK(len >= 0);
	got[len] = '\0';
	CHECK_STR(got, want);
	close(output.fds[0]);
	pieces_done(&pieces);
}

static void lines_within_the_bound_pass(void)
{
	check_lines(4, 0, "0\n1\n2\n3\n");
	check_lines(4, 8, "0\n1\n2\n3\n");
	check_lines(0, 8, "");
}

static void whole_lines_are_left_out_and_counted(void)
{
	check_lines(7, 8, "0\n1\n{\"dropped_pieces\":3,\"dropped_bytes\":39}\n5\n6\n");
	check_lines(4, 7, "0\n1\n{\"dropped_pieces\":1,\"dropped_bytes\":12}\n3\n");
	check_lines(2, 1, "{\"dropped_pieces\":2,\"dropped_bytes\":21}\n");
}

/* Once something waits for the end, nothing overtakes it. */
static void a_short_line_behind_a_long_one_waits(void)
{
	struct output output = { .fds = { memfd_create("out", MFD_CLOEXEC), -1 }, .wake_fd = -1 };
	struct pieces pieces;
	char got[64] = "";

	pieces_init(&pieces, &output, 8);
	CHECK(pieces_add(&pieces, "aaaaa\n", 6, 1) == 0);
	CHECK(pieces_add(&pieces, "b\n", 2, 1) == 0);
	CHECK(pieces_end(&pieces) == 0);
	CHECK(pread(output.fds[0], got, sizeof(got) - 1, 0) > 0);
	CHECK_STR(got, "{\"dropped_pieces\":1,\"dropped_bytes\":1}\nb\n");
	close(output.fds[0]);
	pieces_done(&pieces);
}

static void what_was_not_printed_is_released(void)
{
	struct output output = { .fds = { -1, -1 }, .wake_fd = -1 };
	struct pieces pieces;

	pieces_init(&pieces, &output, 8);
	CHECK(pieces_add(&pieces, "aaaaa\n", 6, 1) == 0);
	CHECK(pieces_add(&pieces, "b\n", 2, 1) == 0 && pieces.held == 2);
	output.code = -1;
	CHECK(pieces_add(&pieces, "c\n", 2, 1) < 0 && pieces_end(&pieces) < 0);
	pieces_done(&pieces);
	CHECK(!pieces.first && pieces.held == 0);
}

int main(void)
{
	RUN(lines_within_the_bound_pass);
	RUN(whole_lines_are_left_out_and_counted);
	RUN(a_short_line_behind_a_long_one_waits);
	RUN(what_was_not_printed_is_released);
	return check_done();
}
