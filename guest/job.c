/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "guest/job.h"
#include "guest/job_read.h"
#include "wire/chunk_writer.h"
#include "wire/contract.h"
#include "wire/glob.h"
#include "wire/keys.h"

enum { JOB_NAME_MAX = 64 }; /* bytes of a run or node id that are taken over */

/* A member of env, or the default if it is missing or empty; NULL only when out of memory or by default. */
static int take_text(const struct strv *env, const char *name, const char *fallback, char **ret)
{
	const char *text = job_value(env, name);

	if (!text || !*text)
		text = fallback;
	*ret = text ? strdup(text) : NULL;
	return text && !*ret ? -ENOMEM : 0;
}

static int take_number(const struct strv *env, const char *name, uint64_t fallback, uint64_t max,
                       uint64_t *ret, struct resoluto_err *err)
{
	const char *text = job_value(env, name);
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

/* A variable that holds a JSON array of strings; missing or empty: an empty list. */
static int take_list(const struct strv *env, const char *name, struct strv *ret,
                     struct resoluto_err *err)
{
	const char *text = job_value(env, name);
	struct json_scan at, whole;

	if (!text || !*text)
		return 0;
	whole = at = (struct json_scan){ .at = text, .end = text + strlen(text) };
	if (json_scan_skip(&whole) < 0 || json_scan_end(&whole) < 0)
		return resoluto_fail(err, -EINVAL, "%s is not JSON", name);
	return job_read_strings(at, name, ret, err);
}

static int take_program_env(const struct strv *env, struct job *job, struct resoluto_err *err)
{
	for (size_t i = 0; i < env->count; i++) {
		const char *pair = env->items[i];

		if (strncmp(pair, ENV_PREFIX, strlen(ENV_PREFIX)) != 0 &&
		    strv_add(&job->env, pair) < 0)
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

static int take_paths(const struct strv *env, struct job *job, struct resoluto_err *err)
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

static int take_numbers(const struct strv *env, struct job *job, struct resoluto_err *err)
{
	uint64_t port;
	int r = take_number(env, ENV_CANARY_PROBE_PORT, 80, UINT16_MAX, &port, err);

	if (r < 0)
		return r;
	job->probe_port = (uint16_t) port;
	return take_number(env, ENV_DRAIN_TIMEOUT_MS, JOB_DRAIN_MS, JOB_DRAIN_MAX_MS,
	                   &job->drain_timeout_ms, err);
}

static int take_texts(const struct strv *env, struct job *job, struct resoluto_err *err)
{
	const char *redact = job_value(env, ENV_REDACT), *flush = job_value(env, ENV_FLUSH);

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
static int take_ids(const struct strv *env, struct job *job, struct resoluto_err *err)
{
	const char *run_id = job_value(env, ENV_RUN_ID), *node_id = job_value(env, ENV_NODE_ID);

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

static int add_patterns(const struct strv *texts, struct egress_policy *policy,
                        struct resoluto_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < texts->count; i++) {
		struct egress_pattern pattern;

		r = egress_pattern_parse(texts->items[i], policy->is_wide, &pattern, NULL, err);
		if (r == 0)
			r = egress_policy_add(policy, &pattern, err);
	}
	return r;
}

/* No such member: no network at all, and nobody who answers names. */
static int take_egress(struct json_scan at, struct job *job, struct resoluto_err *err)
{
	enum { PATTERNS, LEARN, WIDE, COUNT };
	static const char *const names[COUNT] = { "patterns", "learn", "wide" };
	CLEANUP(strv_done) struct strv texts = { 0 };
	struct json_scan members[COUNT] = { { 0 } };
	int r;

	if (!at.at)
		return 0;
	if (job_find_members(&at, names, COUNT, members) < 0 || !members[PATTERNS].at)
		return resoluto_fail(err, -EINVAL, "egress has no list of patterns");
	r = job_read_strings(members[PATTERNS], "egress.patterns", &texts, err);
	if (r == 0 && texts.count > EGRESS_PATTERNS_MAX)
		r = resoluto_fail(err, -EINVAL, "egress has more than %d patterns",
		                  EGRESS_PATTERNS_MAX);
	if (r < 0)
		return r;
	job->has_egress = true;
	job->egress.is_wide = job_is_true(members[WIDE]);
	job->egress.is_learning = job_is_true(members[LEARN]);
	return add_patterns(&texts, &job->egress, err);
}

static int take_heartbeat(struct json_scan heartbeat, struct job *job, struct resoluto_err *err)
{
	const int64_t ms = job_integer(heartbeat);

	if (heartbeat.at && (ms < CHUNK_HEARTBEAT_MIN_MS || ms > CHUNK_HEARTBEAT_MS))
		return resoluto_fail(err, -EINVAL, "heartbeat_ms is not a number from %d to %d",
		                     CHUNK_HEARTBEAT_MIN_MS, CHUNK_HEARTBEAT_MS);
	job->heartbeat_ms = (uint64_t) ms;
	return 0;
}

static int take_env(const struct strv *env, struct job *job, struct resoluto_err *err)
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

static void strv_wipe_done(struct strv *strv)
{
	strv_wipe(strv);
	strv_done(strv);
}

enum { SCHEMA, ENV, STDIN, SCRATCH, INBOX, HEARTBEAT, REDACT, EGRESS, MEMBER_COUNT };

static int take_members(const struct json_scan members[MEMBER_COUNT], struct job *job,
                        struct resoluto_err *err)
{
	int r = take_heartbeat(members[HEARTBEAT], job, err);

	job->has_stdin = job_is_true(members[STDIN]);
	job->has_scratch = job_is_true(members[SCRATCH]);
	job->has_inbox = job_is_true(members[INBOX]);
	if (r == 0 && members[REDACT].at)
		r = job_read_strings(members[REDACT], "redact", &job->redact, err);
	return r < 0 ? r : take_egress(members[EGRESS], job, err);
}

int job_parse(const char *json, size_t len, struct job *ret_job, struct resoluto_err *err)
{
	static const char *const names[MEMBER_COUNT] = { "schema",  "env",   "stdin",
		                                         "scratch", "inbox", "heartbeat_ms",
		                                         "redact",  "egress" };
	CLEANUP(strv_wipe_done) struct strv env = { 0 };
	struct resoluto_err complaint = { .code = 0 };
	struct json_scan root = { .at = json, .end = json + len },
			 members[MEMBER_COUNT] = { { 0 } };
	int r;

	*ret_job = (struct job){ .probe_port = 80 };
	r = job_find_members(&root, names, MEMBER_COUNT, members);
	if (r == 0)
		r = json_scan_end(&root);
	if (r == 0)
		r = members[ENV].at ? job_read_variables(members[ENV], &env, &complaint) : -EBADMSG;
	if (r == -EBADMSG)
		return resoluto_fail(err, -EINVAL,
		                     "the job is not a JSON object with an object env");
	if (r < 0)
		return resoluto_fail(err, r, "read the job");
	if (job_integer(members[SCHEMA]) != JOB_SCHEMA)
		return resoluto_fail(err, -EINVAL, "the job is not of schema %d", JOB_SCHEMA);
	r = take_env(&env, ret_job, err);
	if (r == 0 && complaint.code) {
		if (err)
			*err = complaint;
		r = complaint.code;
	}
	return r < 0 ? r : take_members(members, ret_job, err);
}

void strv_wipe(struct strv *strv)
{
	for (size_t i = 0; i < strv->count; i++)
		explicit_bzero(strv->items[i], strlen(strv->items[i]));
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
	return job_value(&job->env, name);
}
