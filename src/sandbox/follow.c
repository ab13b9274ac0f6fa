/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow.c - drive a run that is there already: tell its output from a cursor on, and make its verdict
 * of what is stored.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "sandbox/attached.h"
#include "sandbox/options.h"
#include "sandbox/run.h"
#include "wire/contract.h"

enum { OFF_MS = 10 * 1000 }; /* from the last word of the guest to the end of its machine */

/* One drive.  `view` is the run as its launcher would have had it. */
struct follow {
	struct resoluto_run *run;
	const struct resoluto_follow_options *options;
	struct resoluto_run_options told; /* what the observer tells to whom */
	struct run view;
};

static int on_event(void *ctx, const struct resoluto_event *event)
{
	struct follow *follow = ctx;
	int r = observer_event(&follow->view.observer, event, clock_mono_ms());

	if (r == 0 && event->is_output && event->seq >= follow->run->cursor)
		follow->run->cursor = event->seq + 1;
	return r;
}

static bool wants_to_leave(const struct resoluto_follow_options *options)
{
	struct pollfd stop = { .fd = options->stop_fd, .events = POLLIN };

	return options->stop_fd > 0 && poll(&stop, 1, 0) > 0;
}

static int on_idle(void *ctx, struct resoluto_handle *handle, struct resoluto_err *err)
{
	struct follow *follow = ctx;
	enum resoluto_run_state state;
	int r;

	if (wants_to_leave(follow->options))
		return RESOLUTO_IDLE_LEAVE;
	r = attached_state(follow->run, &state, err);
	return r == -ENOENT ? r : 0;
}

static uint64_t silence_window(const struct follow *follow)
{
	if (follow->options->is_read_only || follow->options->until_now)
		return UINT64_MAX;
	return attached_silence_ms(follow->run);
}

static int drive(struct follow *follow, struct resoluto_err *err)
{
	const struct resoluto_follow_options *options = follow->options;
	struct resoluto_run *run = follow->run;
	char run_id[sizeof(ENV_RUN_ID) + RESOLUTO_ID_MAX + 1];
	const char *const env[] = { run_id, NULL };
	const struct resoluto_launch_spec spec = { .struct_size = sizeof(spec),
		                                   .id = run->place.id,
		                                   .env = env,
		                                   .store_prefix = run->place.prefix };
	const struct resoluto_drive_options drive = {
		.struct_size = sizeof(drive),
		.runtime = run->place.runtime,
		.conduit = run->place.conduit,
		.spec = &spec,
		.handle = &run->handle,
		.on_event = on_event,
		.ctx = follow,
		.dead_after_ms = silence_window(follow),
		.poll_interval_ms = run->poll_interval_ms,
		.on_idle = on_idle,
		.idle_fd = options->stop_fd > 0 ? options->stop_fd : -1,
		.from_seq = options->from_seq,
		.has_tail = options->has_tail,
		.tail_lines = options->tail_lines,
		.tail_streams = options->tail_streams,
		.until_now = options->until_now,
	};
	int r;

	snprintf(run_id, sizeof(run_id), ENV_RUN_ID "=%s", run->place.id);
	r = resoluto_drive_node(&drive, &follow->view.outcome, err);

	if (r < 0 && follow->view.observer.was_cancelled)
		return resoluto_fail(err, -ECANCELED, "left");
	return r;
}

/* Told as silent to everybody from now on: by its shim, or because nothing of it is left. */
static void end_silent(struct follow *follow)
{
	struct resoluto_run *run = follow->run;

	if (follow->view.outcome.disposition == RESOLUTO_SILENT)
		(void) run->place.runtime->ops->destroy(run->place.runtime, &run->handle, NULL);
}

/* The verdict is read before the machine is off; whoever waits may want to remove the run next. */
static void await_off(struct resoluto_run *run)
{
	const uint64_t until = clock_mono_ms() + OFF_MS;
	struct resoluto_runtime *runtime = run->place.runtime;
	enum resoluto_run_state state = RESOLUTO_RUN_RUNNING;

	while (run->place.own_runtime && run->handle.state && clock_mono_ms() < until &&
	       attached_state(run, &state, NULL) == 0 && state != RESOLUTO_RUN_ENDED) {
		if (runtime->ops->wait(runtime, &run->handle, -1, 1000, NULL) < 0)
			return;
	}
}

static int take_names(struct follow *follow)
{
	const struct request *request = &follow->run->request;
	struct run *view = &follow->view;

	view->result = calloc(1, sizeof(*view->result));
	if (!view->result)
		return -ENOMEM;
	if (request->image_ref && request->image_ref[0])
		view->result->image_ref = strdup(request->image_ref);
	if (request->image_digest && request->image_digest[0])
		view->image.digest = strdup(request->image_digest);
	memcpy(view->id, follow->run->place.id, sizeof(view->id));
	memcpy(view->host_boot_id, request->host_boot_id, sizeof(view->host_boot_id));
	view->place = follow->run->place; /* borrowed */
	view->options.quotas = request->quotas;
	return 0;
}

static uint64_t end_ms(const struct resoluto_run *run)
{
	struct resoluto_runtime *runtime = run->place.runtime;
	struct resoluto_handle handle = run->handle;
	struct resoluto_status status;

	if (runtime->ops->status(runtime, &handle, &status, NULL) == 0 && status.ended > 0)
		return (uint64_t) (status.ended * 1000);
	return clock_wall_ns() / 1000000;
}

/* From the launch to the end of the machine, whenever that was: what the guest says of its times is bounded by
 * it, not by how long this reader was here. */
static uint64_t start_ms(const struct follow *follow)
{
	const struct request *request = &follow->run->request;
	const uint64_t end = end_ms(follow->run);

	if (!request->launched_ms || end <= request->launched_ms)
		return follow->view.start_ms;
	return clock_mono_ms() - (end - request->launched_ms);
}

static void take_times(const struct request *request, struct resoluto_timings *timings)
{
	timings->queue = request->queue_ms;
	timings->stage += request->stage_ms;
}

static int conclude(struct follow *follow, struct resoluto_result **ret_result)
{
	struct run *view = &follow->view;
	int r = take_names(follow);

	if (r < 0)
		return r;
	/* Who began at the end saw no program start.  Where the guest does not say, the proof of its kernel
	 * does, which came right before. */
	if (follow->options->from_seq == RESOLUTO_SEQ_END && !view->outcome.result_json)
		view->outcome.has_started |= evidence_has_guest(view->outcome.isolation_json);
	r = run_judge(view, NULL);
	if (r < 0)
		return r;
	view->start_ms = start_ms(follow);
	r = run_finish(view, ret_result);
	if (r == 0)
		take_times(&follow->run->request, &(*ret_result)->timings_ms);
	return r;
}

static void follow_done(struct follow *follow)
{
	struct run *view = &follow->view;

	node_result_doc_done(&view->node);
	resoluto_outcome_done(&view->outcome);
	observer_done(&view->observer);
	free(view->image.digest);
	resoluto_result_free(view->result);
}

static int check(const struct resoluto_follow_options *options, struct resoluto_err *err)
{
	if (options->has_tail && options->from_seq > 0)
		return resoluto_fail(err, -EINVAL,
		                     "from_seq and has_tail: a reader begins at one place");
	return 0;
}

static int run_follow(struct follow *follow, struct resoluto_result **ret_result,
                      struct resoluto_err *err)
{
	int r = drive(follow, err);

	if (r < 0)
		return r;
	if (follow->view.outcome.has_left)
		return 1;
	end_silent(follow);
	await_off(follow->run);
	r = conclude(follow, ret_result);
	return r < 0 ? resoluto_fail(err, r, "make the result of run %s", follow->run->place.id)
	             : 0;
}

int resoluto_run_drive(struct resoluto_run *run, const struct resoluto_follow_options *given,
                       struct resoluto_result **ret_result, struct resoluto_err *err)
{
	CLEANUP(follow_done)
	struct follow follow = { .run = run, .view = { .start_ms = clock_mono_ms() } };
	CLEANUP(result_free) struct resoluto_result *unwanted = NULL;
	struct resoluto_follow_options options;
	int r = options_copy(&options, sizeof(options), given, err);

	if (r == 0)
		r = attached_check(run, true, err);
	if (r == 0)
		r = check(&options, err);
	if (r < 0)
		return r;
	follow.options = &options;
	follow.told = (struct resoluto_run_options){
		.stream = options.stream,
		.on_event = options.on_event,
		.ctx = options.ctx,
		.max_output = options.max_output,
	};
	observer_init(&follow.view.observer, &follow.told);
	return run_follow(&follow, ret_result ? ret_result : &unwanted, err);
}
