/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/microvm/job.h"
#include "runtime/microvm/json.h"
#include "wire/contract.h"
#include "wire/frame.h"

enum { JOB_DUMP_MAX = 8 * FRAME_JOB_MAX }; /* escapes make it larger; only then it is measured */

static int add_variable(json_t *env, const char *pair, struct resoluto_err *err)
{
	const char *value = strchr(pair, '=');
	CLEANUP(mem_free) char *name = value ? strndup(pair, (size_t) (value - pair)) : NULL;
	json_t *text;

	if (!value)
		return resoluto_fail(err, -EINVAL, "a variable is not KEY=VALUE");
	if (!name)
		return resoluto_fail(err, -ENOMEM, "write the job");
	text = json_string(value + 1);
	if (!text || json_object_set_new(env, name, text) < 0)
		return resoluto_fail(err, -EINVAL,
		                     "the name or value of variable %.64s is not UTF-8", name);
	return 0;
}

static int add_env(json_t *env, const struct job *job, struct resoluto_err *err)
{
	for (size_t i = 0; job->env && job->env[i]; i++) {
		int r = add_variable(env, job->env[i], err);

		if (r < 0)
			return r;
	}
	if (!json_object_get(env, ENV_HOST_BOOT_IDS) &&
	    json_object_set_new(env, ENV_HOST_BOOT_IDS, json_string(job->host_boot_id)) < 0)
		return resoluto_fail(err, -ENOMEM, "write the job");
	return 0;
}

/* Only so that the guest can answer names: the gateway has its own list. */
static int add_egress(json_t *root, const struct job *job)
{
	json_t *egress = json_pack("{s[] sb sb}", "patterns", "learn", job->egress_learn, "wide",
	                           job->egress_wide);
	json_t *patterns = json_object_get(egress, "patterns");

	if (!egress || json_object_set_new(root, "egress", egress) < 0)
		return -ENOMEM;
	for (const char *const *at = job->egress_allow; at && *at; at++) {
		if (json_array_append_new(patterns, json_string(*at)) < 0)
			return -EINVAL;
	}
	return 0;
}

int job_write(const struct job *job, struct buf *ret_json, struct resoluto_err *err)
{
	CLEANUP(json_done) json_t *env = json_object();
	CLEANUP(json_done) json_t *root = NULL;
	CLEANUP(buf_done) struct buf text = BUF_INIT(JOB_DUMP_MAX);
	int r = env ? add_env(env, job, err) : -ENOMEM;

	if (r < 0)
		return r;
	root = json_pack("{si sO sb sb sb s[]}", "schema", 1, "env", env, "stdin", job->has_stdin,
	                 "scratch", job->has_scratch, "inbox", job->has_inbox, "redact");
	if (!root)
		return resoluto_fail(err, -ENOMEM, "write the job");
	if (job->heartbeat_ms &&
	    json_object_set_new(root, "heartbeat_ms",
	                        json_integer((json_int_t) job->heartbeat_ms)) < 0)
		return resoluto_fail(err, -ENOMEM, "write the job");
	r = job->has_egress ? add_egress(root, job) : 0;
	if (r < 0)
		return resoluto_fail(err, r, "write the names of egress into the job");
	r = json_write(&text, root);
	if (r < 0 || text.len > FRAME_JOB_MAX)
		return resoluto_fail(
			err, -E2BIG,
			"arguments and environment are %s%zu bytes together, the limit is %d",
			r < 0 ? "over " : "", text.len, FRAME_JOB_MAX);
	*ret_json = text;
	text = (struct buf){ 0 };
	return 0;
}
