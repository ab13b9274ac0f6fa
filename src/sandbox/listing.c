/* SPDX-License-Identifier: Apache-2.0 */
/* listing.c - all runs there are, and what is left of those that have ended. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "runtime/microvm/microvm.h"
#include "sandbox/attached.h"
#include "sandbox/options.h"

struct listing {
	const struct resoluto_backend *backend;
	resoluto_run_info_fn *each;
	void *ctx;
	struct resoluto_err *err;
	int result;  /* what each() returned */
	int failure; /* the first one, of a run that could not be looked at */
};

static void close_run(struct resoluto_run **run)
{
	resoluto_run_close(*run);
}

static enum resoluto_run_state state_of(const struct resoluto_sandbox_info *info)
{
	if (!info->is_alive || info->status.phase > RESOLUTO_PHASE_RUNNING)
		return RESOLUTO_RUN_ENDED;
	return info->status.phase == RESOLUTO_PHASE_RUNNING ? RESOLUTO_RUN_RUNNING
	                                                    : RESOLUTO_RUN_STARTING;
}

/* How it ended, without its output. */
static int add_verdict(struct resoluto_run *run, struct resoluto_run_info *info,
                       struct resoluto_result **ret_result, struct resoluto_err *err)
{
	const struct resoluto_follow_options options = { .struct_size = sizeof(options),
		                                         .from_seq = RESOLUTO_SEQ_END,
		                                         .until_now = true };
	int r = resoluto_run_drive(run, &options, ret_result, err);

	if (r != 0)
		return r;
	info->exit_code = (*ret_result)->exit_code;
	info->signal = (*ret_result)->signal;
	info->reason = (*ret_result)->reason;
	info->disposition = (*ret_result)->disposition;
	return 0;
}

/* A run that goes meanwhile is left out; one that cannot be looked at is told at the end. */
static int pass_over(struct listing *listing, int r, const struct resoluto_err *why)
{
	if (r != -ENOENT && listing->failure == 0)
		listing->failure = resoluto_fail(listing->err, r, "%s", why->text);
	return 0;
}

/* One of the runtime's sandboxes. */
static int list_one(void *ctx, const struct resoluto_sandbox_info *sandbox)
{
	static const char *const no_labels[] = { NULL };
	struct listing *listing = ctx;
	const struct resoluto_attach_options attach = { .struct_size = sizeof(attach),
		                                        .id = sandbox->id,
		                                        .backend = listing->backend };
	CLEANUP(result_free) struct resoluto_result *result = NULL;
	CLEANUP(close_run) struct resoluto_run *run = NULL;
	struct resoluto_run_info info = {
		.id = sandbox->id,
		.state = state_of(sandbox),
		.image = sandbox->image,
		.labels = sandbox->labels ? sandbox->labels : no_labels,
		.created = sandbox->created,
		.ended = sandbox->status.ended,
		.is_kept = sandbox->is_kept,
		.program = "",
		.reason = "",
	};
	struct resoluto_err why = { 0 };
	int r = resoluto_run_attach(&attach, &run, &why);

	if (r == 0 && info.state == RESOLUTO_RUN_ENDED)
		r = add_verdict(run, &info, &result, &why);
	if (r < 0)
		return pass_over(listing, r, &why);
	if (run->request.program)
		info.program = run->request.program;
	if (run->request.image_ref && run->request.image_ref[0])
		info.image = run->request.image_ref;
	listing->result = listing->each(listing->ctx, &info);
	return listing->result != 0;
}

static int list_all(struct place *place, const char *const *labels, struct listing *listing)
{
	struct resoluto_err why = { 0 };
	int r = place->runtime->ops->list(place->runtime, labels, list_one, listing, &why);

	if (listing->result != 0)
		return listing->result;
	if (listing->failure < 0)
		return listing->failure;
	return r < 0 ? resoluto_fail(listing->err, r, "%s", why.text) : 0;
}

int resoluto_run_list(const struct resoluto_list_options *given, resoluto_run_info_fn *each,
                      void *ctx, struct resoluto_err *err)
{
	struct resoluto_list_options options = { .struct_size = sizeof(options) };
	struct listing listing = { .each = each, .ctx = ctx, .err = err };
	struct place place;
	int r = 0;

	if (given)
		r = options_copy(&options, sizeof(options), given, err);
	if (r == 0 && !each)
		r = resoluto_fail(err, -EINVAL, "nobody is given who is told of the runs");
	if (r == 0)
		r = place_open_existing(&place, options.backend, NULL, err);
	if (r < 0)
		return r;
	listing.backend = options.backend;
	r = list_all(&place, options.labels, &listing);
	place_close(&place, true);
	return r;
}

/* --- sweep --- */

struct sweep {
	const struct resoluto_sweep_options *options;
	double now;
	int count, failure;
	struct resoluto_err *err;
};

static bool is_swept(const struct sweep *sweep, const struct resoluto_run_info *info)
{
	const struct resoluto_sweep_options *options = sweep->options;
	bool is_named = (options->labels && options->labels[0]) || options->older_ms > 0;

	if (info->state != RESOLUTO_RUN_ENDED || (info->is_kept && !is_named))
		return false;
	return options->older_ms == 0 ||
	       sweep->now - info->ended >= (double) options->older_ms / 1000;
}

/* Looked at once more through the handle that is destroyed: by now the id may be another run's. */
static int remove_ended(const struct sweep *sweep, const char *id, struct resoluto_err *err)
{
	const struct resoluto_attach_options attach = { .struct_size = sizeof(attach),
		                                        .id = id,
		                                        .backend = sweep->options->backend };
	CLEANUP(close_run) struct resoluto_run *run = NULL;
	enum resoluto_run_state state;
	struct resoluto_err why = { 0 };
	int r = resoluto_run_attach(&attach, &run, &why);

	if (r == 0)
		r = attached_state(run, &state, &why);
	if (r == -ENOENT || (r == 0 && state != RESOLUTO_RUN_ENDED))
		return 0;
	if (r == 0)
		r = resoluto_run_destroy(run, &why);
	return r < 0 ? resoluto_fail(err, r, "%s", why.text) : 1;
}

static int sweep_one(void *ctx, const struct resoluto_run_info *info)
{
	struct sweep *sweep = ctx;
	int r = is_swept(sweep, info)
	                ? remove_ended(sweep, info->id, sweep->failure ? NULL : sweep->err)
	                : 0;

	if (r < 0 && sweep->failure == 0)
		sweep->failure = r;
	if (r != 1)
		return 0;
	sweep->count++;
	return sweep->options->removed ? sweep->options->removed(sweep->options->ctx, info) : 0;
}

/* Half removed directories have no name any more: only the runtime knows them. */
static int sweep_nameless(struct resoluto_err *err)
{
	struct place place;
	int r = place_open_existing(&place, NULL, NULL, err);

	if (r < 0)
		return r;
	r = microvm_tidy(place.runtime, err);
	place_close(&place, true);
	return r < 0 ? r : 0;
}

int resoluto_run_sweep(const struct resoluto_sweep_options *given, struct resoluto_err *err)
{
	struct resoluto_sweep_options options;
	struct resoluto_list_options list = { .struct_size = sizeof(list) };
	struct sweep sweep = { .options = &options, .now = clock_wall(), .err = err };
	int r = options_copy(&options, sizeof(options), given, err);

	if (r < 0)
		return r;
	list.backend = options.backend;
	list.labels = options.labels;
	r = resoluto_run_list(&list, sweep_one, &sweep, err);
	if (r == 0)
		r = sweep.failure;
	if (r == 0 && !options.backend)
		r = sweep_nameless(err);
	return r < 0 ? r : sweep.count;
}
