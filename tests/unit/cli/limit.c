/* SPDX-License-Identifier: Apache-2.0 */

/* limit.c - head, note and tail of printed output, however it comes in pieces. */

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "check.h"
#include "cli/limit.h"

/* What stands in the two files, and the limit that wrote there. */
struct printed {
	struct output output;
	struct limit limit;
	char texts[2][512];
};

static void begin(struct printed *printed, uint64_t max)
{
	printed->output = (struct output){ .fds = { memfd_create("out", MFD_CLOEXEC),
		                                    memfd_create("errors", MFD_CLOEXEC) },
		                           .wake_fd = -1 };
	limit_init(&printed->limit, &printed->output, max);
}

static void end(struct printed *printed)
{
	CHECK(limit_end(&printed->limit) == 0);
	for (int i = 0; i < 2; i++) {
		ssize_t n = pread(printed->output.fds[i], printed->texts[i],
		                  sizeof(printed->texts[i]) - 1, 0);

		CHECK(n >= 0);
		printed->texts[i][n] = '\0';
		close(printed->output.fds[i]);
	}
	limit_done(&printed->limit);
}

/* text of stdout in pieces of step bytes. */
static void check_printed(uint64_t max, const char *text, size_t step, const char *want,
                          const char *want_note)
{
	struct printed printed;
	size_t len = strlen(text);

	begin(&printed, max);
	for (size_t at = 0; at < len; at += step)
		CHECK(limit_write(&printed.limit, false, text + at,
		                  len - at < step ? len - at : step) == 0);
	end(&printed);
	CHECK_STR(printed.texts[0], want);
	CHECK_STR(printed.texts[1], want_note);
}

static void without_a_limit_everything_passes(void)
{
	check_printed(0, "0123456789", 3, "0123456789", "");
}

static void what_fits_passes(void)
{
	for (size_t step = 1; step <= 10; step++) {
		check_printed(10, "0123456789", step, "0123456789", "");
		check_printed(11, "0123456789", step, "0123456789", "");
	}
}

static void the_middle_is_left_out_and_counted(void)
{
	for (size_t step = 1; step <= 10; step++)
		check_printed(5, "0123456789", step, "01289",
		              "\nresoluto-sandbox: stdout: left out 5 bytes behind the first 3 "
		              "(--max-output)\n");
	check_printed(1, "0123456789", 4, "0",
	              "\nresoluto-sandbox: stdout: left out 9 bytes behind the first 1 "
	              "(--max-output)\n");
}

static void after_a_whole_line_the_note_needs_no_other(void)
{
	check_printed(6, "01\n0123456789", 3, "01\n789",
	              "resoluto-sandbox: stdout: left out 7 bytes behind the first 3 "
	              "(--max-output)\n");
}

/* A piece never ends within a character, so neither does the head. */
static void no_character_is_torn(void)
{
	check_printed(6, "ab\xe2\x82\xac-----\xe2\x82\xac", 32, "ab\xe2\x82\xac",
	              "\nresoluto-sandbox: stdout: left out 8 bytes behind the first 2 "
	              "(--max-output)\n");
	check_printed(10, "ab\xe2\x82\xac\xe2\x82\xacz", 32, "ab\xe2\x82\xac\xe2\x82\xacz", "");
}

static void each_stream_has_its_own(void)
{
	struct printed printed;

	begin(&printed, 2);
	CHECK(limit_write(&printed.limit, true, "e1", 2) == 0);
	CHECK(limit_write(&printed.limit, false, "abc", 3) == 0);
	CHECK(limit_write(&printed.limit, true, "23", 2) == 0);
	end(&printed);
	CHECK_STR(printed.texts[0], "ac");
	CHECK_STR(
		printed.texts[1],
		"e\nresoluto-sandbox: stderr: left out 2 bytes behind the first 1 (--max-output)\n"
		"3\nresoluto-sandbox: stdout: left out 1 bytes behind the first 1 "
		"(--max-output)\n");
}

static void a_failure_to_write_stays(void)
{
	struct printed printed;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	begin(&printed, 4);
	close(printed.output.fds[0]);
	printed.output.fds[0] = fd;
	CHECK(limit_write(&printed.limit, false, "abcdef", 6) < 0);
	CHECK(limit_write(&printed.limit, false, "g", 1) < 0 && limit_end(&printed.limit) < 0);
	CHECK(lseek(printed.output.fds[1], 0, SEEK_END) == 0);
	close(fd);
	close(printed.output.fds[1]);
	limit_done(&printed.limit);
}

int main(void)
{
	RUN(without_a_limit_everything_passes);
	RUN(what_fits_passes);
	RUN(the_middle_is_left_out_and_counted);
	RUN(after_a_whole_line_the_note_needs_no_other);
	RUN(no_character_is_torn);
	RUN(each_stream_has_its_own);
	RUN(a_failure_to_write_stays);
	return check_done();
}
