/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "sandbox/environment.h"
#include "sandbox/options.h"
#include "secrets/dotenv.h"
#include "wire/contract.h"
#include "wire/frame.h"
#include "wire/json_text.h"

int environment_read_file(const char *path, struct stops *stops, struct strv *ret_env,
                          struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(0);
	CLEANUP(strv_done) struct strv env = { 0 };
	struct resoluto_err why = { 0 };
	int r;

	if (!path)
		return 0;
	r = read_given_file(path, DOTENV_MAX, stops_await, stops, &text, &why);
	if (r < 0)
		return resoluto_fail(err, r == -ECANCELED ? r : -EINVAL, "env file: %s: %s",
		                     why.text, strerrordesc_np(-r));
	r = dotenv_parse(text.data ? text.data : "", text.len, options_check_variable, &env, err);
	if (r < 0)
		return resoluto_fail_in(err, r, "env file %s", path);
	*ret_env = env;
	env = (struct strv){ 0 };
	return 0;
}

/* An entry and where it stood, so that of two with one name the later one is kept. */
struct ranked {
	const char *entry;
	size_t rank;
};

static int compare_names(const char *a, const char *b)
{
	size_t a_len = strcspn(a, "="), b_len = strcspn(b, "=");
	int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

static int by_name_and_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	int order = compare_names(x->entry, y->entry);

	return order != 0 ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

static int add_last_of_each(const struct strv *all, struct strv *ret_env)
{
	CLEANUP(mem_free) struct ranked *ranked = calloc(all->count + 1, sizeof(*ranked));
	int r = 0;

	if (!ranked)
		return -ENOMEM;
	for (size_t i = 0; i < all->count; i++)
		ranked[i] = (struct ranked){ .entry = all->items[i], .rank = i };
	qsort(ranked, all->count, sizeof(*ranked), by_name_and_rank);
	for (size_t i = 0; i < all->count && r == 0; i++) {
		if (i + 1 == all->count || compare_names(ranked[i].entry, ranked[i + 1].entry) != 0)
			r = strv_add(ret_env, ranked[i].entry);
	}
	return r;
}

/* The program's own variables, each name once. */
static int add_program_env(const struct environment_inputs *inputs, struct strv *env)
{
	CLEANUP(strv_done) struct strv all = { 0 };
	char **image_env = inputs->image ? inputs->image->env : NULL;
	int r = 0;

	for (; image_env && *image_env && r == 0; image_env++) {
		/* An image is foreign: it configures nothing of ours, and what JSON cannot carry stays out. */
		if (strchr(*image_env, '=') > *image_env && !options_is_reserved(*image_env) &&
		    options_is_utf8(*image_env))
			r = strv_add(&all, *image_env);
	}
	if (r == 0)
		r = strv_add_all(&all, inputs->file_env);
	if (r == 0)
		r = strv_add_all(&all, inputs->options->env);
	return r < 0 ? r : add_last_of_each(&all, env);
}

/* NAME=["a","b"]; a NULL list adds nothing. */
static int add_list(struct strv *env, const char *name, const char *const *list)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(FRAME_JOB_MAX);
	int r;

	if (!list)
		return 0;
	r = buf_addf(&json, "%s=[", name);
	for (size_t i = 0; list[i] && r == 0; i++) {
		r = i > 0 ? buf_add_str(&json, ",") : 0;
		if (r == 0)
			r = json_add_string(&json, list[i], strlen(list[i]), NULL);
	}
	if (r == 0)
		r = buf_add_str(&json, "]");
	return r < 0 ? r : strv_add(env, json.data);
}

static int add_value(struct strv *env, const char *name, const char *value)
{
	return value && value[0] ? strv_addf(env, "%s=%s", name, value) : 0;
}

/* Precedence as sandbox.h says; NULL leaves it to the runner, which starts in the workspace. */
static const char *workdir_of(const struct environment_inputs *inputs)
{
	if (inputs->options->workdir)
		return inputs->options->workdir;
	if (inputs->options->workspace || !inputs->image)
		return NULL;
	return inputs->image->workdir;
}

static const char *user_of(const struct environment_inputs *inputs)
{
	const char *user = inputs->image ? inputs->image->user : NULL;

	if (inputs->options->user)
		return inputs->options->user;
	/* Most images are root's: then the program gets the ordinary user of the sandbox. */
	return user && !options_user_is_root(user) ? user : NULL;
}

static int add_store(const struct environment_inputs *inputs, struct strv *env)
{
	int r = strv_add_all(env, inputs->store_env);

	return r < 0 ? r : add_value(env, ENV_STORE_PREFIX, inputs->store_prefix);
}

static int add_programs(const struct resoluto_run_options *options, struct strv *env)
{
	int r = add_list(env, ENV_WORKLOAD_ARGV, options->argv);

	if (r == 0)
		r = add_list(env, ENV_SETUP_ARGV, options->setup);
	if (r == 0)
		r = add_list(env, ENV_CLEANUP_ARGV, options->cleanup);
	if (r == 0)
		r = add_list(env, ENV_OUTPUT_PATHS, options->output_paths);
	return r;
}

static int add_contract(const struct environment_inputs *inputs, struct strv *env)
{
	const struct resoluto_run_options *options = inputs->options;
	uint64_t drain = options->drain_timeout_ms ? options->drain_timeout_ms
	                                           : RESOLUTO_DRAIN_TIMEOUT_MS;
	int r = add_programs(options, env);

	if (r == 0)
		r = add_value(env, ENV_WORKSPACE_DIR, ENVIRONMENT_WORKSPACE);
	if (r == 0)
		r = add_value(env, ENV_WORKLOAD_CWD, workdir_of(inputs));
	if (r == 0)
		r = add_value(env, ENV_WORKLOAD_USER, user_of(inputs));
	if (r == 0)
		r = add_value(env, ENV_RUN_ID, inputs->run_id);
	if (r == 0)
		r = add_value(env, ENV_NODE_ID, inputs->node_id);
	if (r == 0)
		r = add_value(env, ENV_HOST_BOOT_IDS, inputs->host_boot_id);
	if (r == 0)
		r = strv_addf(env, ENV_DRAIN_TIMEOUT_MS "=%" PRIu64, drain);
	if (r == 0)
		r = add_value(env, ENV_REDACT, options->redact_values_only ? "values" : "all");
	return r < 0 ? r : add_store(inputs, env);
}

int environment_compose(const struct environment_inputs *inputs, struct strv *ret_env,
                        struct resoluto_err *err)
{
	CLEANUP(strv_done) struct strv env = { 0 };
	int r = add_program_env(inputs, &env);

	if (r == 0)
		r = add_contract(inputs, &env);
	if (r == -E2BIG)
		return resoluto_fail(err, r, "arguments are larger than the %d MiB a job can carry",
		                     FRAME_JOB_MAX >> 20);
	if (r < 0)
		return resoluto_fail(err, r, "compose the environment");
	*ret_env = env;
	env = (struct strv){ 0 };
	return 0;
}
