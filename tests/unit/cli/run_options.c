/* SPDX-License-Identifier: Apache-2.0 */

/* run_options.c - from arguments to the options of the library. */

#include <errno.h>

#include "base/cleanup.h"
#include "check.h"
#include "cli/run_options.h"

static const char *const program[] = { "prog", "arg", NULL };
static const char *const environment[] = { "HOME=/root", "TOKEN=abc=d", "EMPTY=", NULL };

/* The request of a command line: owns its lists. */
struct filled {
	struct run_args args;
	struct run_request request;
	struct resoluto_err err;
	int r;
};

static void filled_done(struct filled *filled)
{
	run_request_done(&filled->request);
	options_done(run_option_table, &filled->args);
}

#define FILL(filled, ...) fill(filled, (const char *const[]){ __VA_ARGS__, NULL })

static void fill(struct filled *filled, const char *const *argv)
{
	CLEANUP(option_words_done) struct option_words words = { 0 };

	*filled = (struct filled){ 0 };
	filled->r = options_parse(run_option_table, argv, &filled->args, &words, &filled->err);
	if (filled->r == 0)
		filled->r = run_request_fill(&filled->request, &filled->args, program, environment,
		                             &filled->err);
}

static void defaults_are_the_librarys(void)
{
	CLEANUP(filled_done) struct filled f;
	struct resoluto_run_options *options = &f.request.options;

	FILL(&f, "--quiet");
	CHECK(f.r == 0);
	CHECK(options->struct_size == sizeof(*options));
	CHECK(options->argv == program);
	CHECK(!options->image && !options->workspace && !options->env && !options->setup);
	CHECK(options->input.kind == RESOLUTO_STDIN_NONE);
	CHECK(options->pull == RESOLUTO_PULL_MISSING);
	CHECK(options->signal_fd == -1 && options->max_output == 0);
}

static void everything_reaches_the_library(void)
{
	CLEANUP(filled_done) struct filled f;
	struct resoluto_run_options *options = &f.request.options;

	FILL(&f, "--image=img", "--pull=always", "--platform=linux/arm64", "--authfile=auth",
	     "--workspace=ws", "--path=p", "--exclude=e", "--protect=k", "--workdir=/w",
	     "--user=me", "--env-file=ef", "--output=o", "--output-dir=od", "--memory=1Gi",
	     "--cpus=1.5", "--disk=2Gi", "--id=id", "--label=a=b", "--deadline=1m",
	     "--dead-after=2m", "--drain-timeout=3s", "--max-output=4Ki", "--keep",
	     "--no-redact-patterns", "--backend=local", "--runtime=microvm", "--flavor=plain",
	     "--cold", "--quota=bytes=1Gi", "--quota", "ratio=9", "--quota=bytes=2Gi");
	CHECK_STR(f.err.text, "");
	CHECK(options->quotas.bytes == 2ull << 30 && options->quotas.ratio == 9);
	CHECK(options->quotas.objects == 0);
	CHECK_STR(options->image, "img");
	CHECK(options->pull == RESOLUTO_PULL_ALWAYS);
	CHECK_STR(options->platform, "linux/arm64");
	CHECK_STR(options->authfile, "auth");
	CHECK_STR(options->workspace, "ws");
	CHECK_STR(options->paths[0], "p");
	CHECK_STR(options->exclude[0], "e");
	CHECK_STR(options->protect[0], "k");
	CHECK_STR(options->workdir, "/w");
	CHECK_STR(options->user, "me");
	CHECK_STR(options->env_file, "ef");
	CHECK_STR(options->output_paths[0], "o");
	CHECK_STR(options->output_dir, "od");
	CHECK(options->resources.memory_bytes == 1ull << 30);
	CHECK(options->resources.cpu_milli == 1500);
	CHECK(options->resources.disk_bytes == 2ull << 30);
	CHECK_STR(options->id, "id");
	CHECK_STR(options->labels[0], "a=b");
	CHECK(options->deadline_ms == 60000 && options->dead_after_ms == 120000);
	CHECK(options->drain_timeout_ms == 3000 && options->max_output == 4096);
	CHECK(options->keep_run && options->redact_values_only);
	CHECK_STR(options->backend_name, "local");
}

static void env_takes_values_from_here(void)
{
	CLEANUP(filled_done) struct filled f;

	FILL(&f, "--env=A=1", "--env", "TOKEN", "--env=EMPTY");
	CHECK(f.r == 0);
	CHECK_STR(f.request.options.env[0], "A=1");
	CHECK_STR(f.request.options.env[1], "TOKEN=abc=d");
	CHECK_STR(f.request.options.env[2], "EMPTY=");
	CHECK(!f.request.options.env[3]);
}

static void env_that_is_not_here_is_refused(void)
{
	CLEANUP(filled_done) struct filled f;

	FILL(&f, "--env=TOKE");
	CHECK(f.r == -EINVAL);
	CHECK_STR(f.err.text,
	          "--env TOKE: there is no such variable here to pass on; set it, or write "
	          "TOKE=VALUE");
}

static void input_is_a_file_or_ours(void)
{
	CLEANUP(filled_done) struct filled a, b, c;

	FILL(&a, "-i");
	CHECK(a.request.options.input.kind == RESOLUTO_STDIN_FD && a.request.options.input.fd == 0);
	FILL(&b, "--stdin", "-");
	CHECK(b.request.options.input.kind == RESOLUTO_STDIN_FD && b.request.options.input.fd == 0);
	FILL(&c, "--stdin=file");
	CHECK(c.request.options.input.kind == RESOLUTO_STDIN_FILE);
	CHECK_STR(c.request.options.input.path, "file");
}

static void hooks_are_shell_lines_or_json(void)
{
	CLEANUP(filled_done) struct filled f;

	FILL(&f, "--setup=a && b", "--cleanup=[\"rm\", \"-f\", \"x y\"]");
	CHECK(f.r == 0);
	CHECK_STR(f.request.options.setup[0], "/bin/sh");
	CHECK_STR(f.request.options.setup[1], "-c");
	CHECK_STR(f.request.options.setup[2], "a && b");
	CHECK(!f.request.options.setup[3]);
	CHECK_STR(f.request.options.cleanup[2], "x y");
	CHECK(!f.request.options.cleanup[3]);
}

static void hooks_that_are_no_json_are_refused(void)
{
	static const char *const wrong[] = { "--setup=[",
		                             "--setup=[]",
		                             "--setup=[1]",
		                             "--setup=[\"a\", 1]",
		                             "--setup=[ -f x ] && y",
		                             NULL };

	for (size_t i = 0; wrong[i]; i++) {
		CLEANUP(filled_done) struct filled f;

		FILL(&f, wrong[i]);
		CHECK(f.r == -EINVAL);
		CHECK(strstr(f.err.text, "is not a JSON array of strings") != NULL);
	}
}

static const struct {
	const char *argv[4];
	const char *word; /* in the text */
} combinations[] = {
	{ { "--output=x" }, "no place to land" },
	{ { "--output-dir=x", "--workspace=w" }, "--output-dir without --output" },
	{ { "--path=x" }, "--workspace" },
	{ { "--exclude=x" }, "--workspace" },
	{ { "--protect=x" }, "--workspace" },
	{ { "-i", "--stdin=file" }, "one standard input" },
	{ { "--quota=byte=1" }, "--quota: 'byte' is no quota: there are bytes, objects, " },
	{ { "--quota=ratio" }, "--quota: ratio needs a value, as in ratio=1100" },
	{ { "--quota=members=0" }, "--quota: '0' is no value for members" },
};

static void what_does_not_go_together_is_refused(void)
{
	for (size_t i = 0; i < sizeof(combinations) / sizeof(combinations[0]); i++) {
		CLEANUP(filled_done) struct filled f;

		fill(&f, combinations[i].argv);
		CHECK(f.r == -EINVAL);
		CHECK(strstr(f.err.text, combinations[i].word) != NULL);
	}
}

int main(void)
{
	RUN(defaults_are_the_librarys);
	RUN(everything_reaches_the_library);
	RUN(env_takes_values_from_here);
	RUN(env_that_is_not_here_is_refused);
	RUN(input_is_a_file_or_ours);
	RUN(hooks_are_shell_lines_or_json);
	RUN(hooks_that_are_no_json_are_refused);
	RUN(what_does_not_go_together_is_refused);
	return check_done();
}
