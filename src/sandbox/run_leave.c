/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_leave.c - a run that outlives us: what its later readers need is stored first, then it is let go
 * (docs/design/detached.md has the order and why).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "runtime/microvm/microvm.h"
#include "sandbox/request.h"
#include "sandbox/run.h"

static int copy(char **to, const char *from)
{
	*to = strdup(from ? from : "");
	return *to ? 0 : -ENOMEM;
}

static int fill_request(const struct run *run, struct request *request)
{
	int r = copy(&request->program, run->options.argv[0]);

	if (r == 0)
		r = copy(&request->image_ref, run->result->image_ref);
	if (r == 0)
		r = copy(&request->image_digest, run->image.digest);
	if (r == 0)
		r = strv_add_all(&request->outputs, run->options.output_paths);
	memcpy(request->host_boot_id, run->host_boot_id, sizeof(request->host_boot_id));
	request->launched_ms = clock_wall_ns() / 1000000 - (clock_mono_ms() - run->start_ms);
	request->dead_after_ms = run_dead_after_ms(run);
	request->quotas = run->options.quotas;
	request->queue_ms = run->result->timings_ms.queue;
	request->stage_ms = run->result->timings_ms.stage;
	return r;
}

static int note(struct run *run, bool is_lasting, struct resoluto_err *err)
{
	CLEANUP(request_done) struct request request = { 0 };
	struct resoluto_conduit *records;
	int r;

	r = fill_request(run, &request);
	if (r < 0)
		return resoluto_fail(err, r, "note what was asked for");
	r = place_records(&run->place, &records, err);
	if (r == 0)
		r = request_put(records, run->id, &request, is_lasting, err);
	return r;
}

int run_note_request(struct run *run, struct resoluto_err *err)
{
	int r = run->is_noted ? 0 : note(run, true, err);

	run->is_noted = r == 0;
	return r;
}

void run_tell_others(struct run *run)
{
	if (!run->place.own_runtime)
		return;
	if (run->is_launch || run->options.keep_run)
		(void) run_note_request(run, NULL);
	else
		(void) note(run, false, NULL);
	if (run->options.keep_run)
		(void) microvm_keep(run->place.own_runtime, run->id, NULL);
}

int run_let_go(struct run *run, struct resoluto_err *err)
{
	struct resoluto_runtime *runtime = run->place.runtime;
	int r = run_note_request(run, err);

	if (r == 0)
		r = runtime->ops->detach(runtime, &run->outcome.handle, err);
	if (r < 0) {
		(void) runtime->ops->destroy(runtime, &run->outcome.handle, NULL);
		return r;
	}
	run->options.keep_run = true;
	return 0;
}

static void init(struct run *run, const struct sandbox_tuning *tuning)
{
	*run = (struct run){
		.tuning = tuning,
		.is_launch = true,
		.workspace_fd = -1,
		.output_fd = -1,
		.idle = IDLE_NONE,
		.start_ms = clock_mono_ms(),
	};
}

/* Its program has ended before we could leave: what is stored of it is kept as if we had. */
static int keep_ended(struct run *run, struct resoluto_err *err)
{
	run->options.keep_run = true;
	return run_note_request(run, err);
}

/* Not stopped by us, nor by what failed on our side. */
static bool has_run_by_itself(const struct run *run)
{
	return run->verdict.ran && !run->drive_failed && run->idle.stops.signo == 0;
}

/* 1: it goes on, or went well enough to be kept; 0: the program was never started. */
static int launch(struct run *run, const struct resoluto_run_options *options,
                  struct resoluto_result **ret_result, struct resoluto_err *err)
{
	struct resoluto_err why = { 0 };
	bool is_there;
	int r = run_prepare(run, options, err);

	if (r < 0)
		return r;
	r = run_claim(run, &why);
	if (r < 0) {
		(void) resoluto_fail(err, r, "%s", why.text);
		return run_refuse_claim(run, r, ret_result, &why);
	}
	r = run_work(run);
	if (r < 0)
		return resoluto_fail(err, r, "launch run %s", run->id);
	is_there = run->outcome.has_left || has_run_by_itself(run);
	if (run->outcome.has_left)
		r = run_let_go(run, err);
	else if (is_there)
		r = keep_ended(run, err);
	if (r == 0)
		r = run_finish(run, ret_result);
	return r < 0 ? r : is_there;
}

int sandbox_launch(const struct resoluto_run_options *options, const struct sandbox_tuning *tuning,
                   struct resoluto_run **ret_run, struct resoluto_result **ret_result,
                   struct resoluto_err *err)
{
	CLEANUP(result_free) struct resoluto_result *result = NULL;
	struct resoluto_attach_options attach = { .struct_size = sizeof(attach) };
	struct run run;
	char id[RESOLUTO_ID_MAX + 1];
	int r;

	if (!ret_run)
		return resoluto_fail(err, -EINVAL, "no place for the run is given");
	init(&run, tuning);
	r = launch(&run, options, &result, err);
	attach.backend = run.options.backend;
	attach.id = memcpy(id, run.id, sizeof(id));
	run_done(&run);
	if (r < 0) {
		if (ret_result && result)
			*ret_result = mem_take(&result);
		return r;
	}
	*ret_run = NULL;
	r = r == 1 ? sandbox_attach(&attach, tuning, ret_run, err) : 0;
	if (r < 0)
		return resoluto_fail_in(err, r, "run %s was launched and goes on", id);
	if (r == 0 && ret_result)
		*ret_result = mem_take(&result);
	return r;
}

int resoluto_run_launch(const struct resoluto_run_options *options, struct resoluto_run **ret_run,
                        struct resoluto_result **ret_result, struct resoluto_err *err)
{
	const struct sandbox_tuning tuning = { .grace_ms = RESOLUTO_STOP_GRACE_MS };

	return sandbox_launch(options, &tuning, ret_run, ret_result, err);
}
