/* SPDX-License-Identifier: Apache-2.0 */

/* words.c - what is said to people: filled text, failures, progress, timings. */

#include <errno.h>

#include "base/cleanup.h"
#include "check.h"
#include "cli/failure.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "cli/timings.h"

static void text_is_filled_to_a_width(void)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;

	text_fill(&text, "one two three four", 4, 2, 11);
	CHECK_STR(text_string(&text), "one two\n  three\n  four\n");
}

static void paragraphs_stay_apart_and_long_words_whole(void)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;

	text_fill(&text, "a\n\nlonglonglong b", 0, 0, 5);
	CHECK_STR(text_string(&text), "a\n\nlonglonglong\nb\n");
}

static void a_text_that_is_too_long_says_so(void)
{
	CLEANUP(text_done) struct text text = { .buf = BUF_INIT(4) };

	text_add(&text, "1234");
	CHECK(text_ok(&text));
	text_add(&text, "5");
	CHECK(!text_ok(&text));
	CHECK_STR(text_string(&text), "1234");
}

static void check_printable(const char *bytes, size_t len, const char *want)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;

	failure_add_printable(&text, bytes, len);
	CHECK_STR(text_string(&text), want);
}

static void hostile_bytes_do_not_reach_a_terminal(void)
{
	check_printable("plain\ttext", 10, "plain\ttext");
	check_printable("\033[2J\r\n", 6, "\\x1b[2J\\x0d\\x0a");
	check_printable("a\0b", 3, "a\\x00b");
	check_printable("\x7f\x9b", 2, "\\x7f\\x9b");
	check_printable("\xc2\x9b"
	                "31m",
	                5, "\\xc2\\x9b31m"); /* CSI as one character */
	check_printable("gr\xc3\xbc\xc3\x9f", 6, "gr\xc3\xbc\xc3\x9f");
	check_printable("\xe2\x82\xac \xf0\x9f\x98\x80", 8, "\xe2\x82\xac \xf0\x9f\x98\x80");
	check_printable("\xe2\x82", 2, "\\xe2\\x82"); /* cut off */
	check_printable("\xff\xfe", 2, "\\xff\\xfe");
}

static void the_last_lines_are_found(void)
{
	CHECK_STR(failure_last_lines("1\n2\n3\n", 2), "2\n3\n");
	CHECK_STR(failure_last_lines("1\n2\n3", 1), "3");
	CHECK_STR(failure_last_lines("1\n2\n", 5), "1\n2\n");
	CHECK_STR(failure_last_lines("", 5), "");
	CHECK_STR(failure_last_lines("\n\n", 1), "\n");
}

/* What fn writes. */
static char *written_by(void (*fn)(FILE *out, const void *what), const void *what)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	CHECK(out != NULL);
	fn(out, what);
	fclose(out);
	return text;
}

static void print_err(FILE *out, const void *what)
{
	failure_print(out, "run", what);
}

static void check_err(int code, const char *text, const char *want)
{
	struct resoluto_err err = { 0 };
	CLEANUP(mem_free) char *got = NULL;

	(void) resoluto_fail(&err, code, "%s", text);
	got = written_by(print_err, &err);
	CHECK_STR(got, want);
}

static void the_systems_words_follow_where_they_help(void)
{
	check_err(-EACCES, "open /x", "resoluto-sandbox: run: open /x: Permission denied\n");
	check_err(-EINVAL, "--x: bad", "resoluto-sandbox: run: --x: bad\n");
	check_err(-EHOSTUNREACH, "x: no such host", "resoluto-sandbox: run: x: no such host\n");
	check_err(-ENOENT, "a\033b", "resoluto-sandbox: run: a?b: No such file or directory\n");
}

static void print_result(FILE *out, const void *what)
{
	failure_print_result(out, what, 0);
}

static void check_result(struct resoluto_result result, const char *want)
{
	CLEANUP(mem_free) char *got = written_by(print_result, &result);

	CHECK_STR(got, want);
}

static void a_program_that_fails_is_not_our_failure(void)
{
	check_result((struct resoluto_result){ .ran = true, .exit_code = 1, .reason = "" }, "");
	check_result((struct resoluto_result){ .ran = true, .ok = true }, "");
}

static void a_failed_sandbox_says_why(void)
{
	check_result(
		(struct resoluto_result){ .ran = true, .signal = 11, .exit_code = 139 },
		"resoluto-sandbox: the program was killed by signal 11 (Segmentation fault)\n");
	check_result(
		(struct resoluto_result){ .reason = "not-found", .detail = "'x' is not there" },
		"resoluto-sandbox: not-found: 'x' is not there\n");
	check_result((struct resoluto_result){ .ran = true,
	                                       .signal = 9,
	                                       .reason = "out-of-memory",
	                                       .detail = "it was killed" },
	             "resoluto-sandbox: out-of-memory: it was killed; raise --memory\n");
	check_result((struct resoluto_result){ .reason = "out-of-memory",
	                                       .detail = "you must raise --memory" },
	             "resoluto-sandbox: out-of-memory: you must raise --memory\n");
	check_result((struct resoluto_result){ .disposition = RESOLUTO_EXTERNAL,
	                                       .reason = "boot-failed",
	                                       .detail = "no runner",
	                                       .substrate_logs = "a\033\r\nb\n" },
	             "resoluto-sandbox: boot-failed: no runner\n"
	             "resoluto-sandbox: the last lines of its console:\n  | a\\x1b\n  | b\n");
}

static void a_detail_without_a_reason_is_told(void)
{
	check_result((struct resoluto_result){ .ran = true,
	                                       .signal = 9,
	                                       .detail = "killed by signal 9" },
	             "resoluto-sandbox: killed by signal 9\n");
}

static void print_all_warnings(FILE *out, const void *what)
{
	failure_print_warnings(out, what, true);
}

static void print_warnings(FILE *out, const void *what)
{
	failure_print_warnings(out, what, false);
}

static void missing_output_is_told_to_everybody(void)
{
	char *warnings[] = { "clock-rate: fast", "output-incomplete: a\033b", NULL };
	struct resoluto_result result = { .ran = true, .ok = true, .warnings = warnings };
	CLEANUP(mem_free) char *some = written_by(print_warnings, &result);
	CLEANUP(mem_free) char *all = written_by(print_all_warnings, &result);
	CLEANUP(mem_free) char *none = NULL;

	CHECK_STR(some, "resoluto-sandbox: output-incomplete: a\\x1bb\n");
	CHECK_STR(all, "resoluto-sandbox: clock-rate: fast\n"
	               "resoluto-sandbox: output-incomplete: a\\x1bb\n");
	/* Only the guest says so. */
	result.output_is_complete = true;
	none = written_by(print_warnings, &result);
	CHECK_STR(none, "");
}

static void our_own_stop_is_no_news(void)
{
	struct resoluto_result result = { .ran = true, .signal = 2, .exit_code = 130 };
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	failure_print_result(out, &result, 2);
	fclose(out);
	CHECK_STR(text, "");
	free(text);
}

static void check_line(uint64_t done, uint64_t total, size_t columns, const char *want)
{
	char line[PROGRESS_LINE_MAX];

	CHECK(progress_line("fetch", done, total, columns, line) == strlen(want));
	CHECK_STR(line, want);
}

static void progress_fits_the_terminal(void)
{
	check_line(0, 0, 80, "fetch");
	check_line(1 << 20, 0, 80, "fetch  1.0 MiB");
	check_line(1 << 20, 4 << 20, 80, "fetch  1.0 MiB of 4.0 MiB (25 %)");
	check_line(8 << 20, 4 << 20, 80, "fetch  8.0 MiB of 4.0 MiB (100 %)");
	check_line(1 << 20, 4 << 20, 11, "fetch  1.0");
}

static void timings_are_a_table(void)
{
	CLEANUP(text_done) struct text text = TEXT_INIT;
	struct resoluto_timings timings = { .boot = 1234, .total = 61000 };

	timings_add(&text, &timings);
	CHECK_STR(text_string(&text),
	          "queue        0.000 s\nstage        0.000 s\nboot         1.234 s\n"
	          "canary       0.000 s\nsetup        0.000 s\nrun          0.000 s\n"
	          "collect      0.000 s\ntotal       61.000 s\n");
}

int main(void)
{
	RUN(text_is_filled_to_a_width);
	RUN(paragraphs_stay_apart_and_long_words_whole);
	RUN(a_text_that_is_too_long_says_so);
	RUN(hostile_bytes_do_not_reach_a_terminal);
	RUN(the_last_lines_are_found);
	RUN(the_systems_words_follow_where_they_help);
	RUN(a_program_that_fails_is_not_our_failure);
	RUN(a_failed_sandbox_says_why);
	RUN(a_detail_without_a_reason_is_told);
	RUN(missing_output_is_told_to_everybody);
	RUN(our_own_stop_is_no_news);
	RUN(progress_fits_the_terminal);
	RUN(timings_are_a_table);
	return check_done();
}
