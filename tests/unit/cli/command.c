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
	{ { "run", "--egress-learn", "--egress=example.org", "--", "true" },
	  "such a run is allowed nothing" },
	{ { "run", "--egress-wide", "--", "true" }, "allows nothing by itself" },
	{ { "run", "--output=x", "--", "true" }, "no place to land" },
	{ { "store", "ls" }, "store: this command is not yet in this version" },
	{ { "attach" }, "missing: [OPTION]... ID" },
	{ { "attach", "a", "b" }, "stray word 'b'" },
	{ { "attach", "--from", "-1", "run-1" }, "--from: '-1' is not a whole number" },
	{ { "attach", "--from=1e3", "run-1" }, "'1e3' is not a whole number" },
	{ { "attach", "--from=99999999999999999999", "run-1" }, "is not a whole number" },
	{ { "logs", "--stream", "stdin", "run-1" }, "is none of: stdout, stderr" },
	{ { "logs", "--tail", "x", "run-1" }, "is not a whole number" },
	{ { "kill", "--signal", "NONE", "run-1" }, "'NONE' is no signal" },
	{ { "kill", "--signal", "64", "run-1" }, "'64' is no signal" },
	{ { "kill" }, "missing: [OPTION]... ID..." },
	{ { "collect", "run-1" }, "name one with --workspace" },
	{ { "rm" }, "missing: [OPTION]... ID..." },
	{ { "ps", "x" }, "stray word 'x'" },
	{ { "sweep", "--older", "soon" }, "--older" },
	{ { "run", "--detach", "--output-dir=d", "--output=x", "--", "true" },
	  "collect ID --workspace DIR" },
	{ { "run", "--detach", "--timings", "--", "true" }, "give it to attach or wait" },
	{ { "run", "--detach", "--max-output=1Ki", "--", "true" }, "give it to attach or wait" },
	{ { "wait", "--max-output=1Ki", "run-1" }, "--max-output without --json" },
	{ { "run", "--detach", "--path=x", "--", "true" }, "give one with --workspace" },
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

static void the_json_of_what_was_not_claimed_is_its_refusal(void)
{
	CLEANUP(captured_done) struct captured a = { 0 }, b = { 0 }, c = { 0 };
	static const char said[] = "resoluto-sandbox: run: there is a run 'x' already\n";
	const struct fake_api taken = { .run_code = -EEXIST,
		                        .part_code = -EEXIST,
		                        .run_text = "there is a run 'x' already",
		                        .is_refused = true,
		                        .result = { .disposition = RESOLUTO_REFUSED },
		                        .json = "{\"schema\": 1}" };

	script(taken);
	a = MAIN("run", "--json", "--id=x", "--", "prog");
	CHECK(a.code == 125);
	CHECK_STR(a.out, "{\"schema\": 1}\n");
	CHECK_STR(a.errors, said);
	b = MAIN("run", "--id=x", "--", "prog");
	CHECK(b.code == 125);
	CHECK_STR(b.out, "");
	CHECK_STR(b.errors, said);
	c = MAIN("run", "--detach", "--json", "--id=x", "--", "prog");
	CHECK(c.code == 125);
	CHECK_STR(c.out, "{\"schema\": 1}\n");
	CHECK_STR(c.errors, said);
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
	CHECK(strstr(text.out, "  tar:/old.tar (gone)\n") != NULL);
	json = MAIN("image", "ls", "--json");
	CHECK(json.code == 0);
	CHECK(strstr(json.out, "\"size_bytes\": 3145728") != NULL);
	CHECK(strstr(json.out, "\"source_is_gone\": false") != NULL);
	CHECK(strstr(json.out, "\"source_is_gone\": true") != NULL);
}

static void images_are_pulled_named_and_removed(void)
{
	CLEANUP(captured_done)
	struct captured pull = { 0 }, import = { 0 }, removal = { 0 }, several = { 0 },
			prune = { 0 };

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
	several = MAIN("image", "rm", "none", "mine:3");
	CHECK(several.code == 125);
	CHECK_STR(fake_api.image_words[0], "mine:3"); /* the other one all the same */
	CHECK_STR(several.errors,
	          "resoluto-sandbox: image rm: no image none: No such file or directory\n");
	prune = MAIN("image", "prune");
	CHECK_STR(prune.out, "freed 3.0 MiB\n");
}

/* The name of a file that is not there, and that of one with a line that is no setting. */
static void doctor_tells_a_configuration_it_cannot_use(void)
{
	CLEANUP(captured_done) struct captured text = { 0 }, json = { 0 }, odd = { 0 };
	char path[] = "/tmp/doctor-XXXXXX";
	int fd = mkstemp(path);

	script((struct fake_api){ .image_code = -ENOENT });
	CHECK(setenv("RESOLUTO_LOCAL_ENV", "/nonexist", 1) == 0);
	text = MAIN("doctor");
	json = MAIN("doctor", "--json");
	CHECK(fd >= 0 && write(fd, "A=1\n\nRESOLUTO_LOCAL_ACCEL tcg\n", 31) == 31);
	CHECK(setenv("RESOLUTO_LOCAL_ENV", path, 1) == 0);
	odd = MAIN("doctor");
	unsetenv("RESOLUTO_LOCAL_ENV");
	unlink(path);
	close(fd);
	CHECK(text.code == 1 && json.code == 1);
	CHECK(strstr(text.out,
	             "[MISSING] configuration (load configuration: open /nonexist: No such "
	             "file or directory)\n    -> ") == text.out);
	CHECK_STR(text.errors, "");
	CHECK(strstr(json.out, "\"ok\": false") && strstr(json.out, "\"id\": \"configuration\""));
	CHECK(strstr(odd.out, "[absent] keys of the configuration (no KEY=VALUE: line 3)\n"));
	CHECK(strstr(odd.out, " is not in the cache)\n"));
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

static void detach_prints_the_id_and_nothing_else(void)
{
	CLEANUP(captured_done) struct captured a = { 0 }, b = { 0 };

	script((struct fake_api){ .result = { .run_id = "run-1" } });
	a = MAIN("run", "--detach", "--output", "x", "--", "prog");
	CHECK(a.code == 0 && fake_api.launched == 1 && fake_api.opened == 0);
	CHECK(!fake_api.options.stream && !fake_api.options.detach_on_hangup);
	CHECK_STR(a.out, "run-1\n");
	CHECK_STR(a.errors, "");
	b = MAIN("run", "--detach", "--json", "--", "prog");
	CHECK_STR(b.out, "{\"schema\":1,\"run_id\":\"run-1\"}\n");
}

static void detach_of_what_never_starts_is_told_as_run_does(void)
{
	CLEANUP(captured_done) struct captured captured = { 0 };

	script((struct fake_api){ .never_starts = true,
	                          .result = { .reason = "not-found", .detail = "no prog" } });
	captured = MAIN("run", "--detach", "--", "prog");
	CHECK(captured.code == 127);
	CHECK_STR(captured.out, "");
	CHECK_STR(captured.errors, "resoluto-sandbox: not-found: no prog\n");
}

static void a_program_that_is_only_here_needs_a_workspace(void)
{
	static const char hint[] = "resoluto-sandbox: no --workspace was given";
	CLEANUP(captured_done)
	struct captured path = { 0 }, word = { 0 }, given = { 0 }, other = { 0 }, detached = { 0 };

	script((struct fake_api){ .result = { .reason = "not-found", .detail = "./job" },
	                          .never_starts = true });
	path = MAIN("run", "--", "./job");
	CHECK(path.code == 127 && strstr(path.errors, hint));
	detached = MAIN("run", "--detach", "--", "./job");
	CHECK(detached.code == 127 && strstr(detached.errors, hint));
	/* Looked for in the image's PATH, which a workspace does not change. */
	word = MAIN("run", "--", "job");
	CHECK(word.code == 127 && !strstr(word.errors, hint));
	given = MAIN("run", "--workspace", ".", "--", "./job");
	CHECK(given.code == 127 && !strstr(given.errors, hint));
	script((struct fake_api){ .result = { .reason = "not-executable", .detail = "/etc" } });
	other = MAIN("run", "--", "/etc");
	CHECK(other.code == 126 && !strstr(other.errors, hint));
}

static void a_run_in_the_foreground_outlives_its_terminal(void)
{
	CLEANUP(captured_done) struct captured captured = { 0 };

	script((struct fake_api){ .run_code = 1, .result = { .run_id = "run-1" } });
	captured = MAIN("run", "--", "prog");
	CHECK(fake_api.options.detach_on_hangup);
	CHECK(captured.code == 128 + SIGHUP);
	CHECK(strstr(captured.errors, "attach run-1"));
}

static void attach_ends_as_the_program_did(void)
{
	CLEANUP(captured_done) struct captured a = { 0 }, b = { 0 };

	script((struct fake_api){ .result = { .ran = true, .exit_code = 9 }, .out = "text" });
	a = MAIN("attach", "--from", "12", "run-1");
	CHECK(a.code == 9 && fake_api.opened == 0);
	CHECK_STR(a.out, "text");
	CHECK(fake_api.follow.from_seq == 12 && fake_api.follow.stop_fd > 2);
	CHECK(!fake_api.follow.until_now && !fake_api.follow.is_read_only);
	script((struct fake_api){
		.result = { .disposition = RESOLUTO_EXTERNAL, .reason = "shim-killed" },
		.out = "text",
		.json = "{}" });
	b = MAIN("attach", "--json", "--max-output", "1Ki", "run-1");
	CHECK(b.code == 125 && fake_api.follow.max_output == 1024);
	CHECK_STR(b.out, "{}\n");
	CHECK(strstr(b.errors, "shim-killed"));
}

static void wait_reads_no_output_unless_asked(void)
{
	CLEANUP(captured_done) struct captured a = { 0 }, b = { 0 };

	script((struct fake_api){ .result = { .ran = true, .exit_code = 9 }, .out = "text" });
	a = MAIN("wait", "run-1");
	CHECK(a.code == 9 && fake_api.follow.from_seq == RESOLUTO_SEQ_END);
	CHECK_STR(a.out, "");
	fake_api.json = "{}";
	b = MAIN("wait", "--json", "run-1");
	CHECK(b.code == 9 && fake_api.follow.from_seq == 0);
	CHECK_STR(b.out, "{}\n");
}

#define LEFT_OUT "\nresoluto-sandbox: stdout: left out 4 bytes behind the first 3 (--max-output)\n"

/* Head and tail of each stream; what lies between them is said where it is missing. */
static void printed_output_has_its_limit(void)
{
	CLEANUP(captured_done) struct captured a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };

	script((struct fake_api){ .result = { .ran = true, .ok = true, .output_is_complete = true },
	                          .out = "abcdefghi",
	                          .errors = "01234" });
	a = MAIN("run", "--max-output=5", "--", "prog");
	CHECK(a.code == 0);
	CHECK_STR(a.out, "abchi");
	CHECK_STR(a.errors, "01234" LEFT_OUT);
	b = MAIN("attach", "--max-output=5", "run-1");
	CHECK_STR(b.out, "abchi");
	CHECK_STR(b.errors, LEFT_OUT);
	fake_api.plays_piece = true;
	c = MAIN("logs", "--max-output=1", "run-1");
	CHECK_STR(c.errors, "a\nresoluto-sandbox: stderr: left out 1 bytes behind the first 1 "
	                    "(--max-output)\n");
	fake_api.run_code = 1; /* left to itself: its readers come later */
	d = MAIN("run", "--max-output=5", "--", "prog");
	CHECK_STR(d.out, "abc");
}

static void logs_choose_stream_and_lines(void)
{
	CLEANUP(captured_done) struct captured a = { 0 }, b = { 0 }, c = { 0 };

	script((struct fake_api){ .plays_piece = true, .part_code = 1 });
	a = MAIN("logs", "--tail", "0", "--stream", "stderr", "run-1");
	CHECK(a.code == 0 && fake_api.follow.has_tail && fake_api.follow.tail_lines == 0);
	CHECK(fake_api.follow.tail_streams == RESOLUTO_STREAMS_STDERR);
	CHECK(fake_api.follow.until_now && fake_api.follow.is_read_only);
	CHECK_STR(a.out, "");
	CHECK_STR(a.errors, "a\n");
	b = MAIN("logs", "-f", "--stream=stdout", "run-1");
	CHECK(b.code == 0 && !fake_api.follow.until_now && !fake_api.follow.has_tail);
	CHECK_STR(b.errors, "");
	c = MAIN("logs", "--json", "run-1");
	CHECK_STR(c.out, "{\"seq\":5,\"stream\":\"stderr\",\"ts\":1.250000,\"text\":\"a\\n\"}\n");
	CHECK_STR(c.errors, "");
}

static void ps_says_how_they_are(void)
{
	CLEANUP(captured_done) struct captured a = { 0 }, b = { 0 };

	script((struct fake_api){ .state = RESOLUTO_RUN_ENDED });
	a = MAIN("ps", "--label", "team=a");
	CHECK(a.code == 0);
	CHECK_STR(fake_api.label, "team=a");
	CHECK(strstr(a.out, "run-1 ") && strstr(a.out, "exit 7") &&
	      strstr(a.out, "python3  team=a"));
	CHECK(!strstr(a.out, "resoluto."));
	b = MAIN("ps", "--json");
	CHECK(strstr(b.out, "\"exit_code\": 7") && strstr(b.out, "\"team\": \"a\""));
	CHECK(strstr(b.out, "\"state\": \"ended\"") && b.out[0] == '[');
}

static void kill_sends_what_is_named(void)
{
	CLEANUP(captured_done) struct captured a = { 0 }, b = { 0 }, c = { 0 };

	script((struct fake_api){ .run_text = "it has ended" });
	a = MAIN("kill", "run-1");
	CHECK(a.code == 0 && fake_api.signo == SIGTERM);
	b = MAIN("kill", "--signal", "sigusr1", "run-1");
	CHECK(b.code == 0 && fake_api.signo == SIGUSR1);
	fake_api.part_code = -ESRCH;
	c = MAIN("kill", "--signal=9", "run-1");
	CHECK(c.code == 125 && fake_api.signo == SIGKILL);
	CHECK_STR(c.errors, "resoluto-sandbox: kill: it has ended\n");
}

static void collect_names_what_came_back(void)
{
	CLEANUP(captured_done) struct captured a = { 0 }, b = { 0 }, c = { 0 };

	script((struct fake_api){ .run_text = "no outputs" });
	a = MAIN("collect", "run-1", "--workspace", "here");
	CHECK(a.code == 0);
	CHECK_STR(fake_api.directory, "here");
	CHECK_STR(a.out, "out/a\\x1bb\n");
	b = MAIN("collect", "--json", "--workspace=here", "run-1");
	CHECK_STR(b.out, "{\"schema\":1,\"run_id\":\"run-1\",\"artifacts\":[\"out/a\\u001Bb\"],"
	                 "\"result\":{\"score\": 1}}\n");
	fake_api.part_code = -ENODATA;
	c = MAIN("collect", "--workspace=here", "run-1");
	CHECK(c.code == 125);
	CHECK_STR(c.errors, "resoluto-sandbox: collect: no outputs\n");
}

static void rm_spares_what_is_alive(void)
{
	CLEANUP(captured_done) struct captured a = { 0 }, b = { 0 }, c = { 0 };

	script((struct fake_api){ .state = RESOLUTO_RUN_RUNNING });
	a = MAIN("rm", "run-1");
	CHECK(a.code == 125 && fake_api.destroyed == 0 && fake_api.opened == 0);
	CHECK(strstr(a.errors, "run run-1 is running; wait for it, kill it, or rm --force"));
	b = MAIN("rm", "--force", "run-1");
	CHECK(b.code == 0 && fake_api.destroyed == 1);
	fake_api.state = RESOLUTO_RUN_ENDED;
	c = MAIN("rm", "none", "run-1");
	CHECK(c.code == 125 && fake_api.destroyed == 2); /* the other one all the same */
	CHECK_STR(c.errors, "resoluto-sandbox: rm: there is no run 'none'\n");
}

static void sweep_prints_what_it_removed(void)
{
	CLEANUP(captured_done) struct captured a = { 0 }, b = { 0 };

	script((struct fake_api){ .run_text = "cannot remove one" });
	a = MAIN("sweep", "--label", "team=a", "--older", "2h");
	CHECK(a.code == 0 && fake_api.sweep.older_ms == 2 * 3600 * 1000);
	CHECK_STR(fake_api.label, "team=a");
	CHECK_STR(a.out, "run-1\n");
	fake_api.part_code = -EACCES;
	b = MAIN("sweep", "--json");
	CHECK(b.code == 125);
	CHECK_STR(b.out, "{\"schema\":1,\"removed\":[\"run-1\"]}\n");
	CHECK(strstr(b.errors, "cannot remove one"));
}

static void an_unknown_id_is_said_plainly(void)
{
	static const char *const commands[][5] = {
		{ "attach", "run-9" }, { "wait", "run-9" }, { "logs", "run-9" },
		{ "kill", "run-9" },   { "rm", "run-9" },   { "collect", "--workspace=d", "run-9" },
	};

	script((struct fake_api){ 0 });
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		CLEANUP(captured_done) struct captured captured = capture_main(commands[i]);
		char want[128];

		snprintf(want, sizeof(want), "resoluto-sandbox: %s: there is no run 'run-9'\n",
		         commands[i][0]);
		CHECK(captured.code == 125);
		CHECK_STR(captured.errors, want);
		CHECK_STR(captured.out, "");
	}
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
	RUN(the_json_of_what_was_not_claimed_is_its_refusal);
	RUN(timings_are_printed_where_asked_for);
	RUN(a_reader_that_goes_away_stops_the_run);
	RUN(output_that_cannot_be_written_is_a_failure);
	RUN(images_are_listed);
	RUN(images_are_pulled_named_and_removed);
	RUN(doctor_tells_a_configuration_it_cannot_use);
	RUN(an_image_that_is_not_there_is_125);
	RUN(version_is_one_line);
	RUN(help_is_the_same_by_all_its_names);
	RUN(detach_prints_the_id_and_nothing_else);
	RUN(detach_of_what_never_starts_is_told_as_run_does);
	RUN(a_program_that_is_only_here_needs_a_workspace);
	RUN(a_run_in_the_foreground_outlives_its_terminal);
	RUN(attach_ends_as_the_program_did);
	RUN(wait_reads_no_output_unless_asked);
	RUN(printed_output_has_its_limit);
	RUN(logs_choose_stream_and_lines);
	RUN(ps_says_how_they_are);
	RUN(kill_sends_what_is_named);
	RUN(collect_names_what_came_back);
	RUN(rm_spares_what_is_alive);
	RUN(sweep_prints_what_it_removed);
	RUN(an_unknown_id_is_said_plainly);
	return check_done();
}
