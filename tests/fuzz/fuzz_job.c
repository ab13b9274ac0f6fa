/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_job.c - the JOB message: what the runner takes over is complete and in range, or it is refused with a sentence. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guest/job.h"
#include "wire/glob.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

static void check_path(const char *path)
{
	size_t len = strlen(path);

	require(path[0] == '/' && !strstr(path, "/../"));
	require(len < 3 || strcmp(path + len - 3, "/..") != 0);
}

/* NULL at the end, as exec wants it. */
static void check_list(const struct strv *list)
{
	for (size_t i = 0; i < list->count; i++)
		require(list->items[i] != NULL);
	require(list->count == 0 || !list->items[list->count]);
}

static void check_env(const struct strv *env)
{
	for (size_t i = 0; i < env->count; i++) {
		const char *value = strchr(env->items[i], '=');

		require(value && value > env->items[i]);
		require(strncmp(env->items[i], "RESOLUTO_", strlen("RESOLUTO_")) != 0);
	}
}

static void check_job(const struct job *job)
{
	require(job->run_id && job->run_id[0] && job->node_id && job->user && job->probe_host);
	check_path(job->workspace_dir);
	check_path(job->cwd);
	require(strspn(job->workspace_dir, "/") < strlen(job->workspace_dir));
	require(job->drain_timeout_ms <= JOB_DRAIN_MAX_MS);
	require(job->argv.count > 0);
	check_list(&job->argv);
	check_list(&job->setup_argv);
	check_list(&job->cleanup_argv);
	check_list(&job->redact);
	check_list(&job->env);
	check_env(&job->env);
	for (size_t i = 0; i < job->output_paths.count; i++)
		require(glob_check(job->output_paths.items[i], NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct resoluto_err err = { 0 };
	struct job job;
	int r = job_parse((const char *) data, size, &job, &err);

	if (r == 0)
		check_job(&job);
	else
		require(r == -EINVAL && err.code == r && err.text[0]);
	job_done(&job);
	require(!job.run_id && job.env.count == 0);
	return 0;
}
