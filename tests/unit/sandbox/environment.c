/* SPDX-License-Identifier: Apache-2.0 */
/* environment.c - who wins, what the runner is told, and what is refused. */
#include <errno.h>
#include <unistd.h>

#include "check.h"
#include "sandbox/environment.h"

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static char *image_env[] = { "PATH=/image/bin", "A=image", "B=image", "RESOLUTO_RUN_ID=evil", "=x",
	                     "BAD=\xff",        NULL };

static struct resoluto_image image = { .env = image_env, .workdir = "/srv", .user = "app" };
static struct resoluto_run_options options;

static const char *const program[] = { "echo", "a \"b\"", "\xc3\xa4", NULL };

static struct environment_inputs inputs_of(void)
{
	options = (struct resoluto_run_options){ .argv = program };
	return (struct environment_inputs){
		.options = &options,
		.image = &image,
		.run_id = "run-1",
		.node_id = "run",
		.store_prefix = "run/run-1",
		.host_boot_id = "11111111-2222",
	};
}

static const char *value(const struct strv *env, const char *name)
{
	const char *found = NULL;
	size_t n = strlen(name);

	for (size_t i = 0; i < env->count; i++) {
		if (strncmp(env->items[i], name, n) == 0 && env->items[i][n] == '=') {
			CHECK(!found); /* each name once */
			found = env->items[i] + n + 1;
		}
	}
	return found;
}

static void later_wins(void)
{
	struct environment_inputs inputs = inputs_of();
	struct strv env = { 0 };

	inputs.file_env = LIST("B=file", "C=file", "C=file again");
	options.env = LIST("C=caller", "D=caller", "A2=x");
	CHECK(environment_compose(&inputs, &env, NULL) == 0);
	CHECK_STR(value(&env, "PATH"), "/image/bin");
	CHECK_STR(value(&env, "A"), "image");
	CHECK_STR(value(&env, "B"), "file");
	CHECK_STR(value(&env, "C"), "caller");
	CHECK_STR(value(&env, "D"), "caller");
	CHECK_STR(value(&env, "A2"), "x");
	CHECK(!value(&env, "BAD") && !value(&env, ""));
	strv_done(&env);
}

static void the_contract_is_ours(void)
{
	struct environment_inputs inputs = inputs_of();
	struct strv env = { 0 };

	options.output_paths = LIST("**/*.xml");
	options.setup = LIST("sh", "-c", "true");
	options.drain_timeout_ms = 7;
	options.redact_values_only = true;
	inputs.store_env = LIST("RESOLUTO_STORE_KIND=localfs");
	CHECK(environment_compose(&inputs, &env, NULL) == 0);
	CHECK_STR(value(&env, "RESOLUTO_WORKLOAD_ARGV"), "[\"echo\",\"a \\\"b\\\"\",\"\\u00e4\"]");
	CHECK_STR(value(&env, "RESOLUTO_SETUP_ARGV"), "[\"sh\",\"-c\",\"true\"]");
	CHECK_STR(value(&env, "RESOLUTO_OUTPUT_PATHS"), "[\"**/*.xml\"]");
	CHECK_STR(value(&env, "RESOLUTO_RUN_ID"), "run-1");
	CHECK_STR(value(&env, "RESOLUTO_NODE_ID"), "run");
	CHECK_STR(value(&env, "RESOLUTO_HOST_BOOT_IDS"), "11111111-2222");
	CHECK_STR(value(&env, "RESOLUTO_WORKSPACE_DIR"), "/workspace");
	CHECK_STR(value(&env, "RESOLUTO_DRAIN_TIMEOUT_MS"), "7");
	CHECK_STR(value(&env, "RESOLUTO_REDACT"), "values");
	CHECK_STR(value(&env, "RESOLUTO_STORE_KIND"), "localfs");
	CHECK_STR(value(&env, "RESOLUTO_STORE_PREFIX"), "run/run-1");
	CHECK(!value(&env, "RESOLUTO_CLEANUP_ARGV"));
	strv_done(&env);
}

static void workdir_and_user(const char *want_workdir, const char *want_user)
{
	struct environment_inputs inputs = inputs_of();
	struct strv env = { 0 };
	const char *got;

	(void) inputs;
	CHECK(environment_compose(&inputs, &env, NULL) == 0);
	got = value(&env, "RESOLUTO_WORKLOAD_CWD");
	CHECK(want_workdir ? got && strcmp(got, want_workdir) == 0 : !got);
	got = value(&env, "RESOLUTO_WORKLOAD_USER");
	CHECK(want_user ? got && strcmp(got, want_user) == 0 : !got);
	strv_done(&env);
}

static void precedence_of_workdir_and_user(void)
{
	struct environment_inputs inputs = inputs_of();
	struct strv env = { 0 };

	workdir_and_user("/srv", "app");
	image.user = "0:0";
	workdir_and_user("/srv", NULL);
	image.user = "root";
	workdir_and_user("/srv", NULL);
	image.user = "";
	workdir_and_user("/srv", NULL);
	image.user = "app";

	options.workspace = "/w";
	CHECK(environment_compose(&inputs, &env, NULL) == 0);
	CHECK(!value(&env, "RESOLUTO_WORKLOAD_CWD"));
	strv_done(&env);
	options.workdir = "/mine";
	options.user = "1001";
	CHECK(environment_compose(&inputs, &env, NULL) == 0);
	CHECK_STR(value(&env, "RESOLUTO_WORKLOAD_CWD"), "/mine");
	CHECK_STR(value(&env, "RESOLUTO_WORKLOAD_USER"), "1001");
	strv_done(&env);
	inputs.image = NULL;
	options.workdir = options.workspace = options.user = NULL;
	CHECK(environment_compose(&inputs, &env, NULL) == 0);
	CHECK(!value(&env, "RESOLUTO_WORKLOAD_CWD") && !value(&env, "RESOLUTO_WORKLOAD_USER"));
	strv_done(&env);
}

static void more_than_a_job_can_carry(void)
{
	struct environment_inputs inputs = inputs_of();
	struct strv env = { 0 };
	size_t size = 9 * 1024 * 1024;
	char *huge = malloc(size + 1);

	memset(huge, 'x', size);
	huge[size] = '\0';
	options.argv = LIST("echo", huge);
	CHECK(environment_compose(&inputs, &env, NULL) == -E2BIG);
	free(huge);
}

/* Write text into a temporary file and read it as an env file. */
static struct stops no_stops = STOPS_NONE;

static int read_text(const char *text, struct strv *env, struct resoluto_err *err)
{
	char path[] = "/tmp/resoluto-env-XXXXXX";
	int fd = mkstemp(path), r;

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text));
	close(fd);
	r = environment_read_file(path, &no_stops, env, err);
	unlink(path);
	return r;
}

static void env_files(void)
{
	struct strv env = { 0 };
	struct resoluto_err err = { 0 };

	CHECK(environment_read_file(NULL, &no_stops, &env, NULL) == 0 && env.count == 0);
	CHECK(read_text("# comment\nexport A=1\nB='x y'\n", &env, NULL) == 0);
	CHECK(env.count == 2);
	strv_done(&env);
	CHECK(read_text("A=1\nRESOLUTO_RUN_ID=x\n", &env, &err) == -EINVAL);
	CHECK(strstr(err.text, ": line 2: RESOLUTO_RUN_ID: ") &&
	      strstr(err.text, "env file /tmp/resoluto-env-"));
	CHECK(read_text("A=1\n\nB=\xff\n", &env, &err) == -EINVAL);
	CHECK(strstr(err.text, ": line 3: the value of B is not UTF-8"));
	CHECK(read_text("my.var=1\n", &env, NULL) == 0 && env.count == 1);
	strv_done(&env);
	CHECK(read_text("A=1\nnonsense\n", &env, &err) == -EINVAL);
	CHECK(strstr(err.text, "2") && strstr(err.text, "/tmp/resoluto-env-"));
	CHECK(environment_read_file("/nonexistent/env", &no_stops, &env, &err) == -EINVAL);
	CHECK(strstr(err.text, "/nonexistent/env") && strstr(err.text, "No such file"));
	CHECK(environment_read_file("/", &no_stops, &env, &err) == -EINVAL);
	CHECK(strstr(err.text, "Is a directory"));
	CHECK(env.count == 0);
}

static void an_env_file_may_be_a_pipe(void)
{
	struct strv env = { 0 };
	char path[32];
	int pair[2];

	CHECK(pipe(pair) == 0 && write(pair[1], "A=1\n", 4) == 4);
	close(pair[1]);
	snprintf(path, sizeof(path), "/dev/fd/%d", pair[0]);
	CHECK(environment_read_file(path, &no_stops, &env, NULL) == 0 && env.count == 1);
	CHECK_STR(env.items[0], "A=1");
	strv_done(&env);
	close(pair[0]);
}

int main(void)
{
	RUN(later_wins);
	RUN(the_contract_is_ours);
	RUN(precedence_of_workdir_and_user);
	RUN(more_than_a_job_can_carry);
	RUN(env_files);
	RUN(an_env_file_may_be_a_pipe);
	return check_done();
}
