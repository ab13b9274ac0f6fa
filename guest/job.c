/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "guest/job.h"
#include "wire/chunk_writer.h"
#include "wire/contract.h"
#include "wire/glob.h"
#include "wire/keys.h"

enum { JOB_NAME_MAX = 64 }; /* bytes of a run or node id that are taken over */

static void json_release(json_t **value)
{
	json_decref(*value);
}

static const char *env_text(const json_t *env, const char *name)
{
	return json_string_value(json_object_get(env, name));
}

/* A member of env, or the default if it is missing or empty; NULL only when out of memory or by default. */
static int take_text(const json_t *env, const char *name, const char *fallback, char **ret)
{
	const char *text = env_text(env, name);

	if (!text || !*text)
		text = fallback;
	*ret = text ? strdup(text) : NULL;
	return text && !*ret ? -ENOMEM : 0;
}

static int take_number(const json_t *env, const char *name, uint64_t fallback, uint64_t max,
                       uint64_t *ret, struct resoluto_err *err)
{
	const char *text = env_text(env, name);
	unsigned long long number;
	char *end;

	*ret = fallback;
	if (!text || !*text)
		return 0;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || number > max)
		return resoluto_fail(err, -EINVAL, "%s is not a number up to %llu", name,
		                     (unsigned long long) max);
	*ret = number;
	return 0;
}

static int add_strings(const json_t *array, const char *what, struct strv *ret,
                       struct resoluto_err *err)
{
	size_t i;
	json_t *item;

	if (!json_is_array(array))
		return resoluto_fail(err, -EINVAL, "%s is not an array", what);
	json_array_foreach(array, i, item)
	{
		if (!json_is_string(item))
			return resoluto_fail(err, -EINVAL,
			                     "%s holds something that is not a string", what);
		if (strv_add(ret, json_string_value(item)) < 0)
			return resoluto_fail(err, -ENOMEM, "copy %s", what);
	}
	return 0;
}

/* A variable that holds a JSON array of strings; missing or empty: an empty list. */
static int take_list(const json_t *env, const char *name, struct strv *ret,
                     struct resoluto_err *err)
{
	CLEANUP(json_release) json_t *array = NULL;
	const char *text = env_text(env, name);

	if (!text || !*text)
		return 0;
	array = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	if (!array)
		return resoluto_fail(err, -EINVAL, "%s is not JSON", name);
	return add_strings(array, name, ret, err);
}

static int take_program_env(const json_t *env, struct job *job, struct resoluto_err *err)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *) env, name, value)
	{
		if (!json_is_string(value))
			return resoluto_fail(err, -EINVAL, "the variable %.100s is not a string",
			                     name);
		if (strncmp(name, ENV_PREFIX, strlen(ENV_PREFIX)) == 0)
			continue;
		if (!*name || strchr(name, '='))
			return resoluto_fail(err, -EINVAL, "'%.100s' is not a name of a variable",
			                     name);
		if (strv_addf(&job->env, "%s=%s", name, json_string_value(value)) < 0)
			return resoluto_fail(err, -ENOMEM, "copy the environment");
	}
	return 0;
}

static int check_absolute(const char *path, const char *what, struct resoluto_err *err)
{
	size_t len = strlen(path);

	if (path[0] != '/' || strstr(path, "/../") ||
	    (len >= 3 && strcmp(path + len - 3, "/..") == 0))
		return resoluto_fail(err, -EINVAL, "%s is not an absolute path without '..'", what);
	return 0;
}

static int take_paths(const json_t *env, struct job *job, struct resoluto_err *err)
{
	int r;

	if (take_text(env, ENV_WORKSPACE_DIR, "/workspace", &job->workspace_dir) < 0 ||
	    take_text(env, ENV_WORKLOAD_CWD, job->workspace_dir, &job->cwd) < 0)
		return resoluto_fail(err, -ENOMEM, "copy the paths");
	r = check_absolute(job->workspace_dir, ENV_WORKSPACE_DIR, err);
	if (r == 0 && strspn(job->workspace_dir, "/") == strlen(job->workspace_dir))
		r = resoluto_fail(err, -EINVAL, "%s must not be the root", ENV_WORKSPACE_DIR);
	if (r == 0)
		r = check_absolute(job->cwd, ENV_WORKLOAD_CWD, err);
	if (r == 0)
		r = take_list(env, ENV_OUTPUT_PATHS, &job->output_paths, err);
	for (size_t i = 0; r == 0 && i < job->output_paths.count; i++) {
		r = glob_check(job->output_paths.items[i], err);
		if (r < 0)
			r = resoluto_fail_in(err, r, "%s", ENV_OUTPUT_PATHS);
	}
	return r;
}

static int take_numbers(const json_t *env, struct job *job, struct resoluto_err *err)
{
	uint64_t port;
	int r = take_number(env, ENV_CANARY_PROBE_PORT, 80, UINT16_MAX, &port, err);

	if (r < 0)
		return r;
	job->probe_port = (uint16_t) port;
	return take_number(env, ENV_DRAIN_TIMEOUT_MS, JOB_DRAIN_MS, JOB_DRAIN_MAX_MS,
	                   &job->drain_timeout_ms, err);
}

static int take_texts(const json_t *env, struct job *job, struct resoluto_err *err)
{
	const char *redact = env_text(env, ENV_REDACT), *flush = env_text(env, ENV_FLUSH);

	job->redacts_patterns = !redact || strcmp(redact, "values") != 0;
	job->has_object_store = flush && strcmp(flush, "object") == 0;
	if (take_text(env, ENV_WORKLOAD_USER, "", &job->user) < 0 ||
	    take_text(env, ENV_CANARY_PROBE_HOST, "1.1.1.1", &job->probe_host) < 0 ||
	    take_text(env, ENV_HOST_BOOT_IDS, NULL, &job->boot_ids) < 0 ||
	    take_text(env, ENV_IMAGE_VERSION, NULL, &job->image_version) < 0)
		return resoluto_fail(err, -ENOMEM, "copy the job");
	return 0;
}

/* First of all, so that a refusal can be reported under the right name. */
static int take_ids(const json_t *env, struct job *job, struct resoluto_err *err)
{
	const char *run_id = env_text(env, ENV_RUN_ID), *node_id = env_text(env, ENV_NODE_ID);

	if (!node_id || !*node_id)
		node_id = "run";
	if (run_id && strlen(run_id) <= JOB_NAME_MAX)
		job->run_id = strdup(run_id);
	if (strlen(node_id) <= JOB_NAME_MAX)
		job->node_id = strdup(node_id);
	if (!job->run_id || !*job->run_id)
		return resoluto_fail(err, -EINVAL, "%s is missing or too long", ENV_RUN_ID);
	return job->node_id ? 0 : resoluto_fail(err, -EINVAL, "%s is too long", ENV_NODE_ID);
}

static int add_pattern(const json_t *item, struct egress_policy *policy, struct resoluto_err *err)
{
	const char *text = json_string_value(item);
	struct egress_pattern pattern;
	int r;

	if (!text)
		return resoluto_fail(err, -EINVAL, "egress holds a pattern that is not a string");
	r = egress_pattern_parse(text, policy->is_wide, &pattern, NULL, err);
	return r < 0 ? r : egress_policy_add(policy, &pattern, err);
}

/* No such member: no network at all, and nobody who answers names. */
static int take_egress(const json_t *root, struct job *job, struct resoluto_err *err)
{
	const json_t *egress = json_object_get(root, "egress");
	const json_t *patterns = json_object_get(egress, "patterns");
	size_t i;
	json_t *item;
	int r = 0;

	if (!egress)
		return 0;
	if (!json_is_array(patterns) || json_array_size(patterns) > EGRESS_PATTERNS_MAX)
		return resoluto_fail(err, -EINVAL, "egress has no list of at most %d patterns",
		                     EGRESS_PATTERNS_MAX);
	job->has_egress = true;
	job->egress.is_wide = json_is_true(json_object_get(egress, "wide"));
	job->egress.is_learning = json_is_true(json_object_get(egress, "learn"));
	json_array_foreach(patterns, i, item)
	{
		if (r == 0)
			r = add_pattern(item, &job->egress, err);
	}
	return r;
}

static int take_heartbeat(const json_t *root, struct job *job, struct resoluto_err *err)
{
	const json_t *heartbeat = json_object_get(root, "heartbeat_ms");
	const json_int_t ms = json_integer_value(heartbeat);

	if (heartbeat && (ms < CHUNK_HEARTBEAT_MIN_MS || ms > CHUNK_HEARTBEAT_MS))
		return resoluto_fail(err, -EINVAL, "heartbeat_ms is not a number from %d to %d",
		                     CHUNK_HEARTBEAT_MIN_MS, CHUNK_HEARTBEAT_MS);
	job->heartbeat_ms = (uint64_t) ms;
	return 0;
}

static int take_flags(const json_t *root, struct job *job, struct resoluto_err *err)
{
	const json_t *redact = json_object_get(root, "redact");
	const int r = take_heartbeat(root, job, err);

	if (r < 0)
		return r;
	job->has_stdin = json_is_true(json_object_get(root, "stdin"));
	job->has_scratch = json_is_true(json_object_get(root, "scratch"));
	job->has_inbox = json_is_true(json_object_get(root, "inbox"));
	return redact ? add_strings(redact, "redact", &job->redact, err) : 0;
}

static int take_env(const json_t *env, struct job *job, struct resoluto_err *err)
{
	int r = take_ids(env, job, err);

	if (r == 0)
		r = take_texts(env, job, err);
	if (r == 0)
		r = take_numbers(env, job, err);
	if (r == 0)
		r = take_paths(env, job, err);
	if (r == 0)
		r = take_list(env, ENV_WORKLOAD_ARGV, &job->argv, err);
	if (r == 0 && job->argv.count == 0)
		r = resoluto_fail(err, -EINVAL, "%s is missing or empty", ENV_WORKLOAD_ARGV);
	if (r == 0)
		r = take_list(env, ENV_SETUP_ARGV, &job->setup_argv, err);
	if (r == 0)
		r = take_list(env, ENV_CLEANUP_ARGV, &job->cleanup_argv, err);
	return r < 0 ? r : take_program_env(env, job, err);
}

int job_parse(const char *json, size_t len, struct job *ret_job, struct resoluto_err *err)
{
	CLEANUP(json_release) json_t *root = NULL;
	json_error_t json_err;
	const json_t *env;
	int r;

	*ret_job = (struct job){ .probe_port = 80 };
	root = json_loadb(json, len, JSON_REJECT_DUPLICATES, &json_err);
	env = json_object_get(root, "env");
	if (!json_is_object(root) || !json_is_object(env))
		return resoluto_fail(err, -EINVAL,
		                     "the job is not a JSON object with an object env");
	if (json_integer_value(json_object_get(root, "schema")) != JOB_SCHEMA)
		return resoluto_fail(err, -EINVAL, "the job is not of schema %d", JOB_SCHEMA);
	r = take_env(env, ret_job, err);
	if (r == 0)
		r = take_flags(root, ret_job, err);
	return r < 0 ? r : take_egress(root, ret_job, err);
}

void strv_wipe(struct strv *strv)
{
	for (size_t i = 0; i < strv->count; i++)
		explicit_bzero(strv->items[i], strlen(strv->items[i]));
}

static void strv_wipe_done(struct strv *strv)
{
	strv_wipe(strv);
	strv_done(strv);
}

void job_done(struct job *job)
{
	char *texts[] = { job->run_id, job->node_id,    job->workspace_dir, job->cwd,
		          job->user,   job->probe_host, job->boot_ids,      job->image_version };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		free(texts[i]);
	strv_wipe_done(&job->argv);
	strv_wipe_done(&job->setup_argv);
	strv_wipe_done(&job->cleanup_argv);
	strv_wipe_done(&job->env);
	strv_wipe_done(&job->redact);
	strv_done(&job->output_paths);
	egress_policy_done(&job->egress);
	*job = (struct job){ .run_id = NULL };
}

const char *job_env(const struct job *job, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < job->env.count; i++) {
		if (strncmp(job->env.items[i], name, len) == 0 && job->env.items[i][len] == '=')
			return job->env.items[i] + len + 1;
	}
	return NULL;
}

int job_env_default(struct job *job, const char *name, const char *value)
{
	return job_env(job, name) ? 0 : strv_addf(&job->env, "%s=%s", name, value);
}
