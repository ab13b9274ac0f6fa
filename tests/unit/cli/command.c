/* SPDX-License-Identifier: Apache-2.0 */

/* command.c - the command line as a whole, over a library that only plays a script. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture.h"
#include "check.h"
#include "cli/commands.h"
#include "fake_api.h"

#define MAIN(...) capture_main((const char *const[]){ __VA_ARGS__, NULL })

static void script(struct fake_api api)
{
	fake_api = api;
}

static const struct {
	const char *argv[8];
	const char *words; /* somewhere in the first line */
} misuses[] = {
	{ { NULL }, "no command" },
	{ { "rum" }, "did you mean run?" },
	{ { "frobnicate" }, "unknown command 'frobnicate'" },
	{ { "run" }, "no program" },
	{ { "run", "--" }, "no program" },
	{ { "run", "echo", "hi" }, "stray word 'echo': put -- before the program" },
	{ { "run", "stray", "--", "true" }, "stray word 'stray' before --" },
	{ { "run", "-t", "--", "sh" }, "no terminal" },
	{ { "run", "-it", "--", "sh" }, "no terminal" },
	{ { "run", "--memroy=1Gi", "--", "true" }, "did you mean --memory?" },
	{ { "run", "--backend=k8s", "--", "true" }, "--backend k8s is not yet in this version" },
	{ { "run", "--runtime=kata", "--", "true" }, "--runtime kata is not yet in this version" },
	{ { "run", "--egress=example.org", "--", "true" }, "--egress is not yet in this version" },
	{ { "run", "--output=x", "--", "true" }, "no place to land" },
	{ { "attach", "run-1" }, "attach: this command is not yet in this version" },
	{ { "image" }, "no command" },
	{ { "image", "lx" }, "did you mean ls?" },
	{ { "image", "build" }, "image build: this command is not yet" },
	{ { "image", "rm" }, "missing: [OPTION]... NAME..." },
	{ { "image", "pull", "a", "b" }, "stray word 'b'" },
	{ { "image", "import", "a" }, "missing: [OPTION]... REF NAME" },
	{ { "version", "now" }, "stray word 'now'" },
	{ { "doctor", "--fxi" }, "did you mean --fix?" },
	{ { "_generate", "html" }, "one of man, bash, zsh, fish" },
};

static void misuse_is_two_with_the_usage_line(void)
{
	script((struct fake_api){ .json = "{}" });
	for (size_t i = 0; i < sizeof(misuses) / sizeof(misuses[0]); i++) {
		CLEANUP(captured_done) struct captured captured = capture_main(misuses[i].argv);

		if (captured.code != 2 || !strstr(captured.errors, misuses[i].words))
			printf("# %zu: %d %s\n", i, captured.code, captured.errors);
		CHECK(captured.code == 2);
		CHECK(strncmp(captured.errors, "resoluto-sandbox: ", 18) == 0);
		CHECK(strstr(captured.errors, misuses[i].words) != NULL);
		CHECK(strstr(captured.errors, "\nusage: resoluto-sandbox ") != NULL);
		CHECK_STR(captured.out, "");
	}
	CHECK(fake_api.runs == 0);
}

static void run_hands_the_program_over_untouched(void)
{
	CLEANUP(captured_done) struct captured captured = { 0 };

	script((struct fake_api){ .result = { .ran = true, .ok = true } });
	captured = MAIN("run", "--cpus", "1", "--", "prog", "--cpus", "--", "-x", "");
	CHECK(captured.code == 0);
	CHECK(fake_api.argc == 5);
	CHECK_STR(fake_api.argv[0], "prog");
	CHECK_STR(fake_api.argv[1], "--cpus");
	CHECK_STR(fake_api.argv[2], "--");
	CHECK_STR(fake_api.argv[4], "");
	CHECK(fake_api.options.resources.cpu_milli == 1000);
	CHECK(fake_api.options.signal_fd > 2);
}

static void output_comes_out_exactly_and_nothing_of_ours(void)
{
	CLEANUP(captured_done) struct captured captured = { 0 };

	script((struct fake_api){ .result = { .ran = true, .exit_code = 3 },
	                          .out = "out\n\n no newline",
	                          .errors = "\033[31merr\r\n" });
	captured = MAIN("run", "--", "prog");
	CHECK(captured.code == 3);
	CHECK_STR(captured.out, "out\n\n no newline");
	CHECK_STR(captured.errors, "\033[31merr\r\n");
}

static void json_is_all_there_is(void)
{
	CLEANUP(captured_done) struct captured captured = { 0 };

	script((struct fake_api){ .result = { .ran = true, .exit_code = 3 },
	                          .out = "out",
	                          .errors = "err",
	                          .json = "{\"schema\": 1}" });
	captured = MAIN("run", "--json", "--", "prog");
	CHECK(captured.code == 3);
	CHECK(!fake_api.options.stream);
	CHECK_STR(captured.out, "{\"schema\": 1}\n");
	CHECK_STR(captured.errors, "");
}

static void a_failed_sandbox_is_125_and_says_why_even_when_quiet(void)
{
	CLEANUP(captured_done) struct captured captured = { 0 };

	script((struct fake_api){ .result = { .disposition = RESOLUTO_EXTERNAL,
	                                      .reason = "emulator-killed",
	                                      .detail = "QEMU was killed from outside" } });
	captured = MAIN("run", "--quiet", "--", "prog");
	CHECK(captured.code == 125);
	CHECK_STR(captured.errors,
	          "resoluto-sandbox: emulator-killed: QEMU was killed from outside\n");
}

static void a_refusal_of_the_library_is_misuse_or_failure(void)
{
	CLEANUP(captured_done) struct captured a = { 0 }, b = { 0 };

	script((struct fake_api){ .run_code = -EINVAL, .run_text = "id: 'X' is none" });
	a = MAIN("run", "--id=X", "--", "prog");
	CHECK(a.code == 2);
	CHECK_STR(a.errors, "resoluto-sandbox: run: id: 'X' is none\n");
	script((struct fake_api){ .run_code = -ENOENT, .run_text = "open the kernel" });
	b = MAIN("run", "--", "prog");
	CHECK(b.code == 125);
	CHECK_STR(b.errors, "resoluto-sandbox: run: open the kernel: No such file or directory\n");
}

static void timings_are_printed_where_asked_for(void)
{
	CLEANUP(captured_done) struct captured captured = { 0 };

	script((struct fake_api){ .result = { .ran = true, .timings_ms = { .total = 1500 } },
	                          .out = "x" });
	captured = MAIN("run", "--timings", "--", "prog");
	CHECK_STR(captured.out, "x");
	CHECK(strstr(captured.errors, "total        1.500 s\n") != NULL);
}

/* The exit code of a run whose standard output is fd. */
static int code_with_output_to(int fd)
{
	const char *const argv[] = { "resoluto-sandbox", "run", "--quiet", "--", "prog", NULL };
	int before = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), code;

	fflush(NULL);
	CHECK(dup2(fd, STDOUT_FILENO) >= 0);
	code = command_main(cli_commands, argv);
	CHECK(dup2(before, STDOUT_FILENO) >= 0);
	fd_close(&before);
	return code;
}

static void a_reader_that_goes_away_stops_the_run(void)
{
	int pair[2];

	script((struct fake_api){ .result = { .ran = true, .disposition = RESOLUTO_STOPPED },
	                          .out = "x" });
	CHECK(pipe2(pair, O_CLOEXEC) == 0);
	fd_close(&pair[0]);
	CHECK(code_with_output_to(pair[1]) == 128 + SIGPIPE);
	CHECK(fake_api.stream_code == -EPIPE);
	fd_close(&pair[1]);
}

static void output_that_cannot_be_written_is_a_failure(void)
{
	CLEANUP(fd_close) int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	script((struct fake_api){ .result = { .ran = true, .disposition = RESOLUTO_STOPPED },
	                          .out = "x" });
	CHECK(code_with_output_to(full) == 125);
	CHECK(fake_api.stream_code == -ENOSPC);
}

static void images_are_listed(void)
{
	CLEANUP(captured_done) struct captured text = { 0 }, json = { 0 };

	script((struct fake_api){ 0 });
	text = MAIN("image", "ls");
	CHECK(text.code == 0);
	CHECK(strstr(text.out, "sha256:0123456789ab ") != NULL);
	CHECK(strstr(text.out, "  mine:1\n") != NULL);
	json = MAIN("image", "ls", "--json");
	CHECK(json.code == 0);
	CHECK(strstr(json.out, "\"size_bytes\": 3145728") != NULL);
}

static void images_are_pulled_named_and_removed(void)
{
	CLEANUP(captured_done)
	struct captured pull = { 0 }, import = { 0 }, removal = { 0 }, prune = { 0 };

	script((struct fake_api){ 0 });
	pull = MAIN("image", "pull", "reg/x:1");
	CHECK(pull.code == 0 && fake_api.pull == RESOLUTO_PULL_ALWAYS);
	CHECK_STR(fake_api.image_words[0], "reg/x:1");
	CHECK(strncmp(pull.out, "sha256:0123", 11) == 0);
	import = MAIN("image", "import", "tar:/x", "mine:2");
	CHECK(import.code == 0);
	CHECK_STR(fake_api.image_words[0], "tar:/x");
	CHECK_STR(fake_api.image_words[1], "mine:2");
	removal = MAIN("image", "rm", "--", "-odd");
	CHECK(removal.code == 0);
	CHECK_STR(fake_api.image_words[0], "-odd");
	prune = MAIN("image", "prune");
	CHECK_STR(prune.out, "freed 3.0 MiB\n");
}

static void an_image_that_is_not_there_is_125(void)
{
	CLEANUP(captured_done) struct captured captured = { 0 };

	script((struct fake_api){ .image_code = -ENOENT });
	captured = MAIN("image", "pull", "nope");
	CHECK(captured.code == 125);
	CHECK_STR(captured.errors,
	          "resoluto-sandbox: image pull: no image nope: No such file or directory\n");
	CHECK_STR(captured.out, "");
}

static void version_is_one_line(void)
{
	CLEANUP(captured_done) struct captured a = { 0 }, b = { 0 };

	a = MAIN("version");
	CHECK(a.code == 0);
	CHECK_STR(a.out, "resoluto-sandbox 0.1.0\n");
	b = MAIN("--version");
	CHECK_STR(b.out, a.out);
}

static void help_is_the_same_by_all_its_names(void)
{
	CLEANUP(captured_done)
	struct captured a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 }, e = { 0 };

	a = MAIN("image", "rm", "--help");
	b = MAIN("help", "image", "rm");
	CHECK(a.code == 0 && b.code == 0);
	CHECK_STR(b.out, a.out);
	c = MAIN("help");
	d = MAIN("-h");
	CHECK(c.code == 0 && d.code == 0);
	CHECK_STR(d.out, c.out);
	e = MAIN("help", "image", "frob");
	CHECK(e.code == 2);
}

int main(void)
{
	(void) signal(SIGPIPE, SIG_IGN);
	RUN(misuse_is_two_with_the_usage_line);
	RUN(run_hands_the_program_over_untouched);
	RUN(output_comes_out_exactly_and_nothing_of_ours);
	RUN(json_is_all_there_is);
	RUN(a_failed_sandbox_is_125_and_says_why_even_when_quiet);
	RUN(a_refusal_of_the_library_is_misuse_or_failure);
	RUN(timings_are_printed_where_asked_for);
	RUN(a_reader_that_goes_away_stops_the_run);
	RUN(output_that_cannot_be_written_is_a_failure);
	RUN(images_are_listed);
	RUN(images_are_pulled_named_and_removed);
	RUN(an_image_that_is_not_there_is_125);
	RUN(version_is_one_line);
	RUN(help_is_the_same_by_all_its_names);
	return check_done();
}
