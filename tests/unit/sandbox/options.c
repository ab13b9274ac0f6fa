/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - what is refused before anything starts, and with which words. */
#include <errno.h>

#include "check.h"
#include "sandbox/options.h"

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static const char *const program[] = { "true", NULL };

static struct resoluto_run_options good(void)
{
	return (struct resoluto_run_options){
		.struct_size = sizeof(struct resoluto_run_options),
		.argv = program,
	};
}

/* As a run does it. */
static int check(const struct resoluto_run_options *options, struct resoluto_err *err)
{
	struct resoluto_run_options copy = *options;
	struct options_plain plain = { 0 };
	int r = options_make_plain(&copy, &plain, err);

	if (r == 0)
		r = options_check(&copy, err);
	options_plain_done(&plain);
	return r;
}

static void refused(const struct resoluto_run_options *options, const char *words)
{
	struct resoluto_err err = { 0 };

	CHECK(check(options, &err) == -EINVAL);
	if (!strstr(err.text, words))
		CHECK_STR(err.text, words);
}

static void accepts_what_is_right(void)
{
	struct resoluto_run_options options = good();

	CHECK(options_check(&options, NULL) == 0);
	options.backend_name = "local";
	options.workspace = "/w";
	options.paths = LIST("src", "a/b");
	options.exclude = LIST("node_modules", ".git");
	options.protect = LIST("dist", "keep/dist");
	options.output_paths = LIST("**/*.xml", "out");
	options.env = LIST("A=b", "EMPTY=", "X=a=b");
	options.labels = LIST("team=a", "resoluto.kind=agent");
	options.user = "1000:0";
	options.workdir = "/";
	options.id = "a-1";
	options.setup = LIST("sh", "-c", "");
	options.input = (struct resoluto_stdin){ .kind = RESOLUTO_STDIN_FD, .fd = 0 };
	CHECK(options_check(&options, NULL) == 0);
	options.input = (struct resoluto_stdin){ .kind = RESOLUTO_STDIN_BYTES };
	options.user = "nobody";
	CHECK(options_check(&options, NULL) == 0);
}

static void programs(void)
{
	struct resoluto_run_options options = good();

	options.argv = NULL;
	refused(&options, "no program is given");
	options.argv = (const char *const[]){ NULL };
	refused(&options, "no program is given");
	options.argv = LIST("");
	refused(&options, "name of the program is empty");
	options.argv = LIST("echo", "\xff");
	refused(&options, "argument 1 is not UTF-8");
	options = good();
	options.setup = (const char *const[]){ NULL };
	refused(&options, "setup: no program is given");
	options = good();
	options.cleanup = LIST("");
	refused(&options, "cleanup: the name");
}

static void variables(void)
{
	struct resoluto_run_options options = good();

	options.env = LIST("A");
	refused(&options, "'A' is not KEY=VALUE");
	options.env = LIST("=b");
	refused(&options, "a variable is not KEY=VALUE: it has no name before its '='");
	options.env = LIST("my.var=1", "1=", "\xc3\xa4=x");
	CHECK(options_check(&options, NULL) == 0);
	/* The names of a file, too. */
	options.env = LIST("A B=hunter2");
	refused(&options, "env: 'A B' is no name of a variable");
	options.env = LIST("RESOLUTO_STORE_KIND=hunter2");
	refused(&options, "RESOLUTO_STORE_KIND: names that begin with RESOLUTO_");
	options.env = LIST("SECRET=\xff\xfe");
	refused(&options, "the value of SECRET is not UTF-8");
}

static void a_value_is_never_repeated(void)
{
	struct resoluto_run_options options = good();
	struct resoluto_err err = { 0 };

	options.env = LIST("RESOLUTO_RUN_ID=hunter2");
	CHECK(options_check(&options, &err) < 0 && !strstr(err.text, "hunter2"));
}

static void labels(void)
{
	struct resoluto_run_options options = good();

	options.labels = LIST("team");
	refused(&options, "'team' is not KEY=VALUE");
	options.labels = LIST("resoluto.run_id=x");
	refused(&options, "resoluto.run_id is set by the sandbox itself");
}

static void places(void)
{
	struct resoluto_run_options options = good();

	options.output_paths = LIST("out.xml");
	refused(&options, "no place to put them");
	options.output_dir = "";
	refused(&options, "output_dir: the name of the directory is empty");
	options.output_dir = "/o";
	options.output_paths = LIST("../x");
	refused(&options, "output path '../x'");
	options.output_paths = LIST("/etc/passwd");
	refused(&options, "output path '/etc/passwd'");
	options.output_paths = LIST("a[");
	refused(&options, "output path 'a['");
	options = good();
	options.paths = LIST("src");
	refused(&options, "none is given");
	options.workspace = "";
	refused(&options, "workspace: the name of the directory is empty");
	options.workspace = "/w";
	options.paths = LIST("../x");
	refused(&options, "path: '../x'");
	options.paths = LIST("/abs");
	refused(&options, "path: '/abs'");
	options.paths = NULL;
	options.exclude = LIST("a/b");
	refused(&options, "exclude: 'a/b'");
	options.exclude = LIST("./a");
	refused(&options, "exclude: './a' is not a single name");
	options.exclude = LIST(".");
	refused(&options, "exclude: '.'");
	options.exclude = NULL;
	options.protect = LIST("a/../b");
	refused(&options, "protect: 'a/../b'");
	options.protect = LIST(".");
	refused(&options, "protect: '.'");
	options.protect = NULL;
	options.paths = LIST("");
	refused(&options, "path: ''");
}

static void a_path_has_many_spellings(void)
{
	struct resoluto_run_options options = good();
	struct options_plain plain = { 0 };
	const char *const *const none = (const char *const[]){ NULL };

	options.workspace = "/w";
	options.paths = LIST("./src/", ".", "a//b");
	options.exclude = LIST("bin/", "lib//");
	options.protect = LIST("build/", "./keep/./dist");
	options.workdir = "//workspace/./x/";
	CHECK(check(&options, NULL) == 0);
	CHECK(options_make_plain(&options, &plain, NULL) == 0);
	CHECK_STR(options.paths[0], "src");
	CHECK_STR(options.paths[1], ".");
	CHECK_STR(options.paths[2], "a/b");
	CHECK(!options.paths[3]);
	CHECK_STR(options.exclude[0], "bin");
	CHECK_STR(options.exclude[1], "lib");
	CHECK_STR(options.protect[0], "build");
	CHECK_STR(options.protect[1], "keep/dist");
	CHECK_STR(options.workdir, "/workspace/x");
	options_plain_done(&plain);
	/* An empty list of exclude is not the built-in one. */
	options = good();
	options.exclude = none;
	plain = (struct options_plain){ 0 };
	CHECK(options_make_plain(&options, &plain, NULL) == 0 && options.exclude == none);
	options_plain_done(&plain);
}

static void images(void)
{
	struct resoluto_run_options options = good();

	options.image = "UPPER";
	refused(&options, "image: 'UPPER' is no image reference");
	options.image = "name@sha256:zz";
	refused(&options, "image: 'name@sha256:zz'");
	/* Others have references of their own. */
	options.backend = (const struct resoluto_backend *) &options;
	CHECK(check(&options, NULL) == 0);
	options = good();
	options.platform = "win";
	refused(&options, "platform 'win' is not linux/ARCH");
	options.platform = "linux/arm64/v8";
	options.image = "localhost:5000/x:1";
	CHECK(check(&options, NULL) == 0);
}

static void users(void)
{
	static const char *const roots[] = { "root", "0", "0:0", "00", "root:users", "0:1000" };
	static const char *const bad[] = { "",    ":",     "a:",         ":b",
		                           "a b", "a/b",   "4294967295", "99999999999",
		                           "-x",  "1000:", "a:b:c",      "\xc3\xa4" };
	struct resoluto_run_options options = good();

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		options.user = roots[i];
		refused(&options, "never runs as root");
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		options.user = bad[i];
		refused(&options, "is not NAME, UID");
	}
	CHECK(!options_user_is_root("rooty") && !options_user_is_root("10") &&
	      !options_user_is_root(""));
}

static void workdirs(void)
{
	struct resoluto_run_options options = good();

	options.workdir = "relative";
	refused(&options, "workdir: 'relative'");
	options.workdir = "/a/../b";
	refused(&options, "workdir: '/a/../b'");
	options.workdir = "";
	refused(&options, "workdir: ''");
}

static void inputs(void)
{
	struct resoluto_run_options options = good();

	options.input = (struct resoluto_stdin){ .kind = RESOLUTO_STDIN_BYTES, .len = 3 };
	refused(&options, "there are none");
	options.input = (struct resoluto_stdin){ .kind = RESOLUTO_STDIN_FILE };
	refused(&options, "name of the file is empty");
	options.input = (struct resoluto_stdin){ .kind = RESOLUTO_STDIN_FD, .fd = -1 };
	refused(&options, "-1 is not a descriptor");
	options.input = (struct resoluto_stdin){ .kind = (enum resoluto_stdin_kind) 9 };
	refused(&options, "unknown kind 9");
}

static void drain_timeouts(void)
{
	struct resoluto_run_options options = good();

	options.drain_timeout_ms = 24 * 60 * 60 * 1000;
	CHECK(options_check(&options, NULL) == 0);
	options.drain_timeout_ms++;
	refused(&options, "drain_timeout: 86400001 ms is more than 86400000 ms (24h)");
}

static void backends(void)
{
	struct resoluto_run_options options = good();

	options.backend_name = "k8s";
	refused(&options, "'k8s' is not part of version");
	options.backend_name = "docker";
	refused(&options, "'docker' is unknown");
	options.backend_name = "local";
	options.backend = (const struct resoluto_backend *) &options;
	refused(&options, "one of them");
}

static void ids(void)
{
	struct resoluto_run_options options = good();

	options.id = "";
	refused(&options, "id: ''");
	options.id = "-a";
	refused(&options, "id: '-a'");
	options.id = "../x";
	refused(&options, "id: '../x'");
	options.id = "A";
	refused(&options, "id: 'A'");
	options.id = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	refused(&options, "1 to 40");
}

struct newer {
	struct resoluto_run_options known;
	long unknown;
};

static void sizes_of_other_versions(void)
{
	struct newer newer = { .known = good() };
	struct resoluto_run_options copy;

	/* an older caller: what it does not know is 0 */
	newer.known.max_output = 5;
	newer.known.struct_size = offsetof(struct resoluto_run_options, max_output);
	CHECK(options_copy(&copy, sizeof(copy), &newer, NULL) == 0);
	CHECK(copy.argv == newer.known.argv && copy.max_output == 0);
	/* a newer one: fine as long as it does not use what we do not know */
	newer.known.struct_size = sizeof(newer);
	CHECK(options_copy(&copy, sizeof(copy), &newer, NULL) == 0);
	newer.unknown = 1;
	CHECK(options_copy(&copy, sizeof(copy), &newer, NULL) == -EINVAL);
	newer.known.struct_size = 0;
	CHECK(options_copy(&copy, sizeof(copy), &newer, NULL) == -EINVAL);
	CHECK(options_copy(&copy, sizeof(copy), NULL, NULL) == -EINVAL);
}

int main(void)
{
	RUN(accepts_what_is_right);
	RUN(programs);
	RUN(variables);
	RUN(a_value_is_never_repeated);
	RUN(labels);
	RUN(places);
	RUN(a_path_has_many_spellings);
	RUN(images);
	RUN(users);
	RUN(workdirs);
	RUN(inputs);
	RUN(drain_timeouts);
	RUN(backends);
	RUN(ids);
	RUN(sizes_of_other_versions);
	return check_done();
}
