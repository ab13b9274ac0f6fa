/* SPDX-License-Identifier: Apache-2.0 */
/* attached.c - open a run that is there, ask how it is, signal it, collect it, remove it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/path.h"
#include "runtime/microvm/microvm.h"
#include "sandbox/attached.h"
#include "sandbox/collect.h"
#include "sandbox/options.h"
#include "wire/keys.h"
#include "wire/reason.h"
#include "wire/result.h"

const char *resoluto_run_state_name(enum resoluto_run_state state)
{
	static const char *const names[] = {
		[RESOLUTO_RUN_STARTING] = "starting",
		[RESOLUTO_RUN_RUNNING] = "running",
		[RESOLUTO_RUN_ENDED] = "ended",
	};

	return (size_t) state < sizeof(names) / sizeof(names[0]) ? names[state] : "";
}

/* What was noted at the launch; nothing, while another process still has it in the foreground. */
static int find_request(struct resoluto_run *run, struct resoluto_err *err)
{
	struct resoluto_conduit *records;
	int r = place_records(&run->place, &records, err);

	if (r == 0)
		r = request_get(records, run->place.id, &run->request, err);
	if (r != -ENOENT && r != -EBADMSG && r != -EFBIG)
		return r;
	run->has_odd_request = r != -ENOENT;
	return evidence_host_boot_id(run->request.host_boot_id, err);
}

static int open_parts(struct resoluto_run *run, const struct resoluto_attach_options *options,
                      struct resoluto_err *err)
{
	const struct resoluto_runtime_ops *ops;
	int r = place_open_existing(&run->place, options->backend, options->id, err);

	if (r < 0)
		return r;
	ops = run->place.runtime->ops;
	r = ops->attach(run->place.runtime, options->id, &run->handle, err);
	/* The sandbox is gone, what it wrote is not: that is a run too. */
	if (r == -ENOENT && !run->place.own_runtime && place_has_objects(&run->place, NULL) == 1) {
		snprintf(run->handle.id, sizeof(run->handle.id), "%s", options->id);
		r = 0;
	}
	return r < 0 ? r : find_request(run, err);
}

int sandbox_attach(const struct resoluto_attach_options *given, const struct sandbox_tuning *tuning,
                   struct resoluto_run **ret_run, struct resoluto_err *err)
{
	struct resoluto_attach_options options;
	struct resoluto_err why = { 0 };
	struct resoluto_run *run;
	int r = options_copy(&options, sizeof(options), given, err);

	if (r < 0)
		return r;
	if (!ret_run)
		return resoluto_fail(err, -EINVAL, "no place for the run is given");
	if (!options.id || !key_is_run_id(options.id))
		return resoluto_fail(err, -EINVAL,
		                     "'%.60s' is not the id of a run: 1 to 40 of a-z, 0-9 and '-'",
		                     options.id ? options.id : "");
	run = calloc(1, sizeof(*run));
	if (!run)
		return resoluto_fail(err, -ENOMEM, "open run %s", options.id);
	run->cursor = 1;
	run->poll_interval_ms = tuning->poll_interval_ms;
	r = open_parts(run, &options, &why);
	if (r < 0) {
		resoluto_run_close(run);
		return resoluto_fail(err, r, "%s", why.text);
	}
	*ret_run = run;
	return 0;
}

int resoluto_run_attach(const struct resoluto_attach_options *options,
                        struct resoluto_run **ret_run, struct resoluto_err *err)
{
	const struct sandbox_tuning tuning = { 0 };

	return sandbox_attach(options, &tuning, ret_run, err);
}

void resoluto_run_close(struct resoluto_run *run)
{
	if (!run)
		return;
	if (run->handle.state)
		(void) run->place.runtime->ops->detach(run->place.runtime, &run->handle, NULL);
	request_done(&run->request);
	place_close(&run->place, true);
	free(run);
}

const char *resoluto_run_id(const struct resoluto_run *run)
{
	return run ? run->place.id : "";
}

uint64_t resoluto_run_cursor(const struct resoluto_run *run)
{
	return run ? run->cursor : 0;
}

int attached_check(const struct resoluto_run *run, bool has_place, struct resoluto_err *err)
{
	if (!run)
		return resoluto_fail(err, -EINVAL, "no run is given");
	return has_place ? 0 : resoluto_fail(err, -EINVAL, "no place for the answer is given");
}

uint64_t attached_silence_ms(const struct resoluto_run *run)
{
	return run->request.dead_after_ms ? run->request.dead_after_ms : UINT64_MAX;
}

int attached_state(struct resoluto_run *run, enum resoluto_run_state *ret_state,
                   struct resoluto_err *err)
{
	struct resoluto_runtime *runtime = run->place.runtime;
	struct resoluto_status status;
	int r;

	if (run->place.own_runtime && microvm_is_removed(&run->handle))
		return resoluto_fail(err, -ENOENT, "run %s was removed", run->place.id);
	r = runtime->ops->status(runtime, &run->handle, &status, err);
	if (r < 0)
		return r;
	switch (status.phase) {
	case RESOLUTO_PHASE_PENDING:
		*ret_state = RESOLUTO_RUN_STARTING;
		break;
	case RESOLUTO_PHASE_RUNNING:
		*ret_state = RESOLUTO_RUN_RUNNING;
		break;
	default:
		*ret_state = RESOLUTO_RUN_ENDED;
	}
	return 0;
}

int resoluto_run_look(struct resoluto_run *run, enum resoluto_run_state *ret_state,
                      struct resoluto_err *err)
{
	int r = attached_check(run, ret_state, err);

	return r < 0 ? r : attached_state(run, ret_state, err);
}

int resoluto_run_signal(struct resoluto_run *run, int signo, struct resoluto_err *err)
{
	enum resoluto_run_state state;
	int r = attached_check(run, true, err);

	if (r == 0)
		r = attached_state(run, &state, err);
	if (r == 0 && state == RESOLUTO_RUN_ENDED)
		r = resoluto_fail(err, -ESRCH, "run %s has ended", run->place.id);
	if (r < 0)
		return r;
	r = run->place.runtime->ops->signal(run->place.runtime, &run->handle, signo, err);
	return r < 0 ? resoluto_fail_in(err, r, "signal run %s", run->place.id) : 0;
}

int resoluto_run_destroy(struct resoluto_run *run, struct resoluto_err *err)
{
	int r = attached_check(run, true, err);

	if (r == 0)
		r = run->place.runtime->ops->destroy(run->place.runtime, &run->handle, err);
	return r < 0 ? r : place_remove(&run->place, err);
}

/* --- outputs --- */

void resoluto_outputs_done(struct resoluto_outputs *outputs)
{
	if (!outputs)
		return;
	for (char **artifact = outputs->artifacts; artifact && *artifact; artifact++)
		free(*artifact);
	free(outputs->artifacts);
	free(outputs->result_json);
	*outputs = (struct resoluto_outputs){ 0 };
}

static int open_target(const char *path, int *ret_fd, struct resoluto_err *err)
{
	int r = mkdirs(path, 0777);

	if (r < 0)
		return resoluto_fail(err, r, "make %s", path);
	*ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret_fd < 0 ? resoluto_fail(err, -errno, "open %s", path) : 0;
}

static int may_collect(struct resoluto_run *run, struct resoluto_err *err)
{
	enum resoluto_run_state state;
	int r = attached_state(run, &state, err);

	if (r < 0)
		return r;
	if (state != RESOLUTO_RUN_ENDED)
		return resoluto_fail(err, -EBUSY,
		                     "run %s has not ended; its outputs are packed at its end",
		                     run->place.id);
	if (run->has_odd_request)
		return resoluto_fail(
			err, -EBADMSG,
			"what run %s was to bring back is not known: the record of its "
			"launch cannot be read",
			run->place.id);
	if (run->request.outputs.count == 0)
		return resoluto_fail(err, -ENODATA,
		                     "run %s was launched without any outputs to "
		                     "bring back",
		                     run->place.id);
	return 0;
}

/* What the guest said at its end; root is NULL where it did not come to that. */
static int read_node(struct resoluto_run *run, struct node_result_doc *ret_doc,
                     struct resoluto_err *err)
{
	CLEANUP(mem_free) char *json = NULL;
	struct resoluto_err why = { 0 };
	char key[RESOLUTO_KEY_MAX + 1];
	size_t len = 0;
	int r;

	snprintf(key, sizeof(key), "%s/" KEY_RESULT, run->place.prefix);
	r = resoluto_conduit_get_bytes(run->place.conduit, key, RESULT_JSON_MAX, &json, &len, &why);
	if (r == 0)
		r = node_result_parse(json, len, ret_doc, &why);
	if (r == -ENOENT || r == -EBADMSG || r == -EFBIG)
		return 0;
	return r < 0 ? resoluto_fail(err, r, "%s", why.text) : 0;
}

/* No archive: nothing matched, if the guest says so; else it never came to packing one. */
static int check_missing(const struct resoluto_run *run, const struct node_result_doc *node,
                         struct resoluto_err *err)
{
	const char *id = run->place.id;

	if (!node->root)
		return resoluto_fail(err, -ENODATA, "run %s ended before its outputs were packed",
		                     id);
	if (reason_from_name(node->result.reason) == REASON_OUTPUTS_FAILED)
		return resoluto_fail(err, -ENODATA, "run %s: %s", id,
		                     reason_sentence(REASON_OUTPUTS_FAILED));
	return node->result.output_archive
	               ? resoluto_fail(err, -EBADMSG,
	                               "the archive of outputs that run %s names is not there", id)
	               : 0;
}

int resoluto_run_collect(struct resoluto_run *run, const char *output_dir,
                         struct resoluto_outputs *ret_outputs, struct resoluto_err *err)
{
	CLEANUP(collection_done) struct collection collection = { 0 };
	CLEANUP(node_result_doc_done) struct node_result_doc node = { 0 };
	CLEANUP(fd_close) int fd = -1;
	bool has_archive = false;
	int r = attached_check(run, output_dir && ret_outputs, err);

	if (r == 0)
		r = may_collect(run, err);
	if (r == 0)
		r = read_node(run, &node, err);
	if (r == 0)
		r = open_target(output_dir, &fd, err);
	if (r < 0)
		return r;
	r = collect_outputs(
		&(struct collect_options){
			.conduit = run->place.conduit,
			.store_prefix = run->place.prefix,
			.archive = node.result.output_archive,
			.output_fd = fd,
			.globs = (const char *const *) run->request.outputs.items,
			.quotas = &run->request.quotas },
		&collection, &has_archive, err);
	if (r == 0 && !has_archive)
		r = check_missing(run, &node, err);
	if (r == 0 && !collection.artifacts.items) {
		collection.artifacts.items = calloc(1, sizeof(char *));
		r = collection.artifacts.items ? 0 : resoluto_fail(err, -ENOMEM, "collect");
	}
	if (r < 0)
		return r;
	ret_outputs->artifacts = mem_take(&collection.artifacts.items);
	collection.artifacts.count = 0;
	ret_outputs->result_json = mem_take(&collection.result_json);
	return 0;
}
