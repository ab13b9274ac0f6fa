/* SPDX-License-Identifier: Apache-2.0 */
/* run_prepare.c - the beginning and the end of a run: what its options name, and its claim. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/random.h"
#include "runtime/microvm/microvm.h"
#include "sandbox/egress.h"
#include "sandbox/environment.h"
#include "sandbox/run.h"
#include "wire/quota.h"

enum { LABEL_RUN_ID_MAX = 63 }; /* characters of a run id in its label */

static int open_dir(const char *what, const char *path, int *ret_fd, struct resoluto_err *err)
{
	*ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_fd >= 0)
		return 0;
	return resoluto_fail(err, -EINVAL, "%s %s: %s", what, path, strerrordesc_np(errno));
}

/* What cannot be read on the way to it is told as everything else in the workspace that cannot. */
static int check_path(const struct run *run, const char *path, struct resoluto_err *err)
{
	CLEANUP(fd_close) int parent = -1;
	struct stat st;
	const char *name;

	if (strcmp(path, ".") == 0)
		return 0;
	parent = open_parent_beneath(run->workspace_fd, path, false, 0, &name);
	if (parent == -ENOENT || parent == -ENOTDIR ||
	    (parent >= 0 && fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT))
		return resoluto_fail(err, -EINVAL, "path: there is no '%s' in the workspace %s",
		                     path, run->options.workspace);
	return 0;
}

static int check_paths(const struct run *run, struct resoluto_err *err)
{
	int r = 0;

	for (const char *const *path = run->options.paths; r == 0 && path && *path; path++)
		r = check_path(run, *path, err);
	return r;
}

static int open_workspace(struct run *run, struct resoluto_err *err)
{
	const char *path = run->options.workspace;
	int r;

	if (!path)
		return 0;
	r = open_dir("workspace", path, &run->workspace_fd, err);
	if (r < 0)
		return r;
	if (faccessat(run->workspace_fd, ".", R_OK | X_OK, AT_EACCESS) < 0)
		return resoluto_fail(err, -EINVAL, "workspace %s: %s", path,
		                     strerrordesc_np(errno));
	return check_paths(run, err);
}

/* Only where the machine will be one of this host. */
static int check_resources(const struct run *run, struct resoluto_err *err)
{
	return run->options.backend ? 0 : microvm_check_resources(&run->options.resources, err);
}

/* Now rather than behind the run: a place that cannot be written would lose the outputs. */
static int open_output(struct run *run, struct resoluto_err *err)
{
	const struct resoluto_run_options *options = &run->options;
	const char *path = options->output_dir ? options->output_dir : options->workspace;
	int r = 0;

	if (!options->output_paths || !options->output_paths[0] || run->is_launch)
		return 0;
	if (options->output_dir)
		r = mkdirs(path, 0777);
	if (r < 0)
		return resoluto_fail(err, -EINVAL, "output directory %s: %s", path,
		                     strerrordesc_np(-r));
	r = open_dir("output directory", path, &run->output_fd, err);
	if (r < 0)
		return r;
	if (faccessat(run->output_fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return resoluto_fail(err, -EINVAL, "output directory %s: %s", path,
		                     strerrordesc_np(errno));
	return 0;
}

static int choose_id(struct run *run, struct resoluto_err *err)
{
	char digits[RANDOM_ID_SIZE];
	int r;

	if (run->options.id) {
		memcpy(run->id, run->options.id, strlen(run->options.id) + 1);
		return 0;
	}
	r = random_id(digits);
	if (r < 0)
		return resoluto_fail(err, r, "choose a run id");
	snprintf(run->id, sizeof(run->id), "run-%s", digits);
	return 0;
}

static int add_labels(struct run *run, struct resoluto_err *err)
{
	int r = strv_add_all(&run->labels, run->options.labels);

	if (r == 0)
		r = strv_addf(&run->labels, "resoluto.run_id=%.*s", LABEL_RUN_ID_MAX, run->id);
	if (r == 0)
		r = strv_add(&run->labels, "resoluto.node_id=" RUN_NODE_ID);
	return r < 0 ? resoluto_fail(err, r, "label the run") : 0;
}

/* Where the caller asks to stop meanwhile, nothing is started: the run ends as any that is stopped before. */
static int read_files(struct run *run, struct resoluto_err *err)
{
	struct stops *stops = &run->idle.stops;
	struct resoluto_err why = { 0 };
	int r = environment_read_file(run->options.env_file, stops, &run->file_env, &why);

	if (r == 0)
		r = egress_compile(&run->options, stops, &run->egress, &run->egress_notes, &why);
	if (r == -ECANCELED && stops->signo != 0)
		return 0;
	return r < 0 ? resoluto_fail(err, r, "%s", why.text) : r;
}

int run_prepare(struct run *run, const struct resoluto_run_options *options,
                struct resoluto_err *err)
{
	int r = options_copy(&run->options, sizeof(run->options), options, err);

	if (r == 0)
		r = options_make_plain(&run->options, &run->plain, err);
	if (r == 0)
		r = run->is_launch ? options_check_launch(&run->options, err)
		                   : options_check(&run->options, err);
	if (r == 0)
		r = check_resources(run, err);
	if (r < 0)
		return r;
	run->options.quotas = quota_limits(&run->options.quotas);
	observer_init(&run->observer, &run->options);
	r = idle_open(&run->idle, &run->options.input, run->options.signal_fd,
	              run->tuning->grace_ms, err);
	run->idle.stops.leaves_on_hangup = run->options.detach_on_hangup;
	if (r == 0)
		r = read_files(run, err);
	if (r == 0)
		r = open_workspace(run, err);
	if (r == 0)
		r = evidence_host_boot_id(run->host_boot_id, err);
	if (r == 0)
		r = choose_id(run, err);
	if (r == 0)
		r = add_labels(run, err);
	return r < 0 ? r : open_output(run, err);
}

int run_claim(struct run *run, struct resoluto_err *err)
{
	run->result = calloc(1, sizeof(*run->result));
	if (!run->result)
		return resoluto_fail(err, -ENOMEM, "make a result");
	return place_open(&run->place, run->options.backend, run->id, err);
}

int run_refuse_claim(struct run *run, int code, struct resoluto_result **ret_result,
                     const struct resoluto_err *why)
{
	if (code == -EINVAL || code == -ENOMEM)
		return code;
	if (run->options.image)
		run->result->image_ref = strdup(run->options.image);
	run_refuse(run, code, why);
	return run_finish(run, ret_result) < 0 ? -ENOMEM : code;
}

void run_done(struct run *run)
{
	idle_close(&run->idle);
	fd_close(&run->workspace_fd);
	fd_close(&run->output_fd);
	node_result_doc_done(&run->node);
	resoluto_outcome_done(&run->outcome);
	observer_done(&run->observer);
	resoluto_image_done(&run->image);
	place_close(&run->place, run->options.keep_run && run->was_launched);
	options_plain_done(&run->plain);
	strv_done(&run->file_env);
	strv_done(&run->env);
	strv_done(&run->labels);
	strv_done(&run->egress);
	strv_done(&run->egress_notes);
	resoluto_result_free(run->result);
}
