/* SPDX-License-Identifier: Apache-2.0 */
/* run_work.c - image, staging, drive, outputs; failures become a verdict. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err_word.h"
#include "resoluto/version.h"
#include "sandbox/collect.h"
#include "sandbox/environment.h"
#include "sandbox/run.h"
#include "sandbox/staging.h"
#include "wire/reason.h"

enum { BOOT_ATTEMPTS = 2 };

#define NO_OUTPUTS \
	"the runner of the sandbox sent no outputs: the Python original's takes their paths as " \
	"they are, and each must be there"
#define DEFAULT_IMAGE "resoluto-sandbox-base:" RESOLUTO_VERSION

/* A failure in words for people: with what the system said, where it says more than the words. */
static const char *keep_detail(struct run *run, int code, const char *text)
{
	const char *word = err_word(code, text);

	snprintf(run->detail, sizeof(run->detail), "%s%s%s", text, word ? ": " : "",
	         word ? word : "");
	return run->detail;
}

static __attribute__((format(printf, 2, 3))) void add_detail(struct run *run, const char *format,
                                                             ...)
{
	size_t len = strlen(run->detail);
	va_list args;

	va_start(args, format);
	(void) vsnprintf(run->detail + len, sizeof(run->detail) - len, format, args);
	va_end(args);
}

static bool is_full(int code)
{
	return code == -ENOSPC || code == -EDQUOT;
}

void run_refuse(struct run *run, int code, const struct resoluto_err *err)
{
	enum reason reason = is_full(code) ? REASON_STORE_FULL : REASON_REFUSED;

	if (code == -ECANCELED)
		run->verdict = verdict_refused(RESOLUTO_STOPPED, REASON_SIGNAL,
		                               run->idle.stops.signo, "");
	else
		run->verdict = verdict_refused(RESOLUTO_REFUSED, reason, 0,
		                               keep_detail(run, code, err->text));
}

/* The drive itself failed: a callback of the caller's, its input, or the store. */
static void broke_off(struct run *run, int code, const struct resoluto_err *err)
{
	enum reason reason = is_full(code) ? REASON_STORE_FULL : REASON_STORE_FAILED;
	bool ran = run->observer.has_started;

	if (run->observer.was_cancelled)
		run->verdict = verdict_refused(RESOLUTO_STOPPED, REASON_CANCELLED, 0, "");
	else if (run->input_failed)
		run->verdict = verdict_refused(RESOLUTO_STOPPED, REASON_CANCELLED, 0,
		                               keep_detail(run, code, err->text));
	else
		run->verdict = verdict_refused(RESOLUTO_EXTERNAL, reason, 0,
		                               keep_detail(run, code, err->text));
	run->drive_failed = true;
	run->verdict.ran = ran;
	if (ran)
		run->verdict.exit_code = RESOLUTO_EXIT_SANDBOX;
}

static const char *image_ref_of(const struct run *run)
{
	const char *ref = run->options.image ? run->options.image : run->place.image_ref;

	return ref && ref[0] ? ref : DEFAULT_IMAGE;
}

static void show_image(void *ctx, const char *step, uint64_t done, uint64_t total)
{
	const struct run *run = ctx;

	run->options.progress(run->options.ctx, step, done, total);
}

static bool is_stopped(void *ctx)
{
	struct run *run = ctx;

	return stops_asked(&run->idle.stops);
}

static int find_image(struct run *run, struct resoluto_err *err)
{
	const struct resoluto_run_options *options = &run->options;
	struct resoluto_image_options how = {
		.struct_size = sizeof(how),
		.pull = options->pull,
		.platform = options->platform,
		.authfile = options->authfile,
		/* What nobody looks at need not be found out. */
		.progress = options->progress ? show_image : NULL,
		.is_stopped = is_stopped,
		.ctx = run,
	};
	const char *ref = image_ref_of(run);

	run->result->image_ref = strdup(ref);
	if (!run->result->image_ref)
		return resoluto_fail(err, -ENOMEM, "find the image");
	if (!run->place.boots_squashfs)
		return 0;
	return resoluto_image_get(ref, &how, &run->image, err);
}

static int stage(struct run *run, struct resoluto_err *err)
{
	const struct staging staging = {
		.workspace_fd = run->workspace_fd,
		.options = &run->options,
		.conduit = run->place.conduit,
		.store_prefix = run->place.prefix,
		.idle = &run->idle,
	};
	struct pack_report report = { 0 };
	uint64_t start = clock_mono_ms();
	int r;

	if (run->workspace_fd < 0)
		return 0;
	r = staging_run(&staging, &report, err);
	if (r < 0)
		return r;
	run->result->timings_ms.stage = clock_mono_ms() - start;
	r = staging_explain(&report, &run->result->staging.left_out, &run->result->staging.why);
	return r < 0 ? resoluto_fail(err, r, "tell what was left out") : 0;
}

static int compose(struct run *run, struct resoluto_err *err)
{
	const struct environment_inputs inputs = {
		.options = &run->options,
		.image = run->place.boots_squashfs ? &run->image : NULL,
		.file_env = (const char *const *) run->file_env.items,
		.store_env = run->place.store_env,
		.run_id = run->id,
		.node_id = RUN_NODE_ID,
		.store_prefix = run->place.prefix,
		.host_boot_id = run->host_boot_id,
	};

	return environment_compose(&inputs, &run->env, err);
}

static int on_event(void *ctx, const struct resoluto_event *event)
{
	struct run *run = ctx;

	return observer_event(&run->observer, event, clock_mono_ms());
}

static bool wants_to_leave(const struct run *run)
{
	if (run->is_launch)
		return run->observer.has_started && idle_has_fed(&run->idle);
	return run->idle.stops.has_hung_up;
}

static int on_idle(void *ctx, struct resoluto_handle *handle, struct resoluto_err *err)
{
	struct run *run = ctx;

	int r = idle_run(&run->idle, run->place.runtime, handle, err);

	run->input_failed = r < 0 && r != -ECANCELED;
	return r >= 0 && wants_to_leave(run) ? RESOLUTO_IDLE_LEAVE : r;
}

/* Wait for a slot; signals that do not ask to stop do not end the waiting. */
static int acquire(void *ctx, struct resoluto_runtime *runtime,
                   const struct resoluto_launch_spec *spec, int extra_fd,
                   struct resoluto_handle *ret_handle, struct resoluto_err *err)
{
	struct run *run = ctx;
	uint64_t start_ms = clock_mono_ms(), waited_ms = 0;
	int r;

	if (run->options.progress)
		run->options.progress(run->options.ctx, "boot the sandbox", 0, 0);
	do {
		r = idle_asked_to_stop(&run->idle, err);
		if (r < 0)
			break;
		r = run->admission.acquire(&run->slots, runtime, spec, extra_fd, ret_handle, err);
		waited_ms += run->slots.queue_ms;
	} while (r == -ECANCELED);
	run->result->timings_ms.queue = waited_ms;
	run->launch_ms = start_ms + waited_ms;
	run->was_launched = r >= 0;
	if (r >= 0)
		run_tell_others(run);
	return r;
}

static void release(void *ctx, struct resoluto_handle *handle)
{
	struct run *run = ctx;

	run->admission.release(&run->slots, handle);
}

/* What is 0 still is the microVM's default: it alone knows whether the host has that much.  Others are told the
 * contract's. */
static struct resoluto_resources resources_of(const struct run *run)
{
	struct resoluto_resources resources = run->options.resources;

	if (resources.memory_bytes == 0)
		resources.memory_bytes = run->place.resources.memory_bytes;
	if (resources.cpu_milli == 0)
		resources.cpu_milli = run->place.resources.cpu_milli;
	if (resources.disk_bytes == 0)
		resources.disk_bytes = run->place.resources.disk_bytes;
	if (run->place.boots_squashfs)
		return resources;
	if (resources.memory_bytes == 0)
		resources.memory_bytes = RESOLUTO_DEFAULT_MEMORY_BYTES;
	if (resources.cpu_milli == 0)
		resources.cpu_milli = RESOLUTO_DEFAULT_CPU_MILLI;
	return resources;
}

uint64_t run_dead_after_ms(const struct run *run)
{
	if (run->options.dead_after_ms)
		return run->options.dead_after_ms;
	return run->place.dead_after_ms ? run->place.dead_after_ms : RESOLUTO_FACADE_DEAD_AFTER_MS;
}

static int drive(struct run *run, uint64_t deadline_ms, struct resoluto_err *err)
{
	const struct resoluto_launch_spec spec = {
		.struct_size = sizeof(spec),
		.id = run->id,
		.image = run->place.boots_squashfs ? run->image.path : run->result->image_ref,
		.env = (const char *const *) run->env.items,
		.labels = (const char *const *) run->labels.items,
		.resources = resources_of(run),
		.conduit = run->place.conduit,
		.store_prefix = run->place.prefix,
		.deadline_ms = deadline_ms,
		.has_stdin = run->options.input.kind != RESOLUTO_STDIN_NONE,
		.outlives_caller = run->is_launch,
		.dead_after_ms = run_dead_after_ms(run),
		.quotas = run->options.quotas,
		.egress_allow = (const char *const *) run->egress.items,
		.egress_learn = run->options.egress_learn,
		.egress_wide = run->options.egress_wide,
		.egress_proxy = run->options.egress_proxy,
		.drops_objects = run->place.own_runtime && !run->is_launch &&
		                 !run->options.keep_run,
	};
	const struct resoluto_admission admission = { .acquire = acquire,
		                                      .release = release,
		                                      .ctx = run };
	const struct resoluto_drive_options options = {
		.struct_size = sizeof(options),
		.runtime = run->place.runtime,
		.conduit = run->place.conduit,
		.spec = &spec,
		.admission = &admission,
		.on_event = on_event,
		.ctx = run,
		.dead_after_ms = run_dead_after_ms(run),
		.poll_interval_ms = run->tuning->poll_interval_ms,
		.on_idle = on_idle,
		.idle_fd = run->idle.epoll_fd,
	};

	run->slots = (struct admission_slots){ .step_ms = run->tuning->admission_step_ms };
	run->admission = admission_slots(&run->slots);
	return resoluto_drive_node(&options, &run->outcome, err);
}

static bool did_not_boot(const struct run *run)
{
	return run->outcome.chunks == 0 && run->idle.stops.signo == 0 && !run->idle.feed.has_sent &&
	       strcmp(run->outcome.reason, reason_name(REASON_BOOT_FAILED)) == 0;
}

/* What is left of it; 0: there is none. */
static uint64_t deadline_left_ms(const struct run *run, uint64_t began_ms)
{
	const uint64_t deadline = run->options.deadline_ms, gone = clock_mono_ms() - began_ms;

	if (deadline == 0)
		return 0;
	return gone < deadline ? deadline - gone : 1;
}

/* An emulated machine stands still in its boot once in many hundred times, before anything of the run has
 * happened: it is booted once more. */
static int drive_once_more(struct run *run, struct resoluto_err *err)
{
	const uint64_t began_ms = clock_mono_ms();
	int r = drive(run, run->options.deadline_ms, err);

	for (int attempt = 1; r >= 0 && attempt < BOOT_ATTEMPTS && did_not_boot(run); attempt++) {
		resoluto_outcome_done(&run->outcome);
		run->was_launched = false;
		feed_again(&run->idle.feed);
		r = drive(run, deadline_left_ms(run, began_ms), err);
	}
	return r;
}

int run_judge(struct run *run, struct resoluto_err *err)
{
	const char *json = run->outcome.result_json;
	const bool has_started = run->observer.has_started || run->outcome.has_started;
	struct verdict_inputs inputs = {
		.outcome = &run->outcome,
		.has_started = has_started,
		.has_only_setup = run->observer.has_setup && !has_started,
		.stop_signo = run->idle.stops.signo,
	};

	int r = json ? node_result_parse(json, strlen(json), &run->node, err) : -ENOENT;

	if (r == -ENOMEM)
		return r;
	if (r == 0)
		inputs.node = &run->node.result;
	run->verdict = verdict_judge(&inputs);
	return 0;
}

/* An archive that is null says that nothing matched, but for the original's runner: it sends one whenever all
 * went well, and its result without one comes of an output path that is a glob or not there.  It is known by the
 * members of the host, which it writes, too.  Ours says `ran` and need not say more. */
static bool says_none_matched(json_t *root)
{
	return json_object_get(root, "ran") ||
	       (json_is_null(json_object_get(root, "output_archive")) &&
	        !json_object_get(root, "observed_phase"));
}

static bool lacks_outputs(const struct run *run, bool has_archive)
{
	return !has_archive && run->verdict.ran && run->node.result.success &&
	       !says_none_matched(run->node.root);
}

/* Over a quota the run counts as stopped, however its program had ended. */
static void spoil(struct run *run, int code, enum quota over, const struct resoluto_err *why)
{
	enum reason reason = is_full(code) ? REASON_STORE_FULL : REASON_BAD_OUTPUT;

	if (over != QUOTA_NONE)
		reason = REASON_QUOTA;
	(void) keep_detail(run, code, why->text);
	if (reason == REASON_STORE_FULL)
		add_detail(run, "; free space in %s",
		           run->options.output_dir ? run->options.output_dir
		                                   : run->options.workspace);
	verdict_spoil(&run->verdict, reason, run->detail);
	if (over == QUOTA_NONE)
		return;
	run->verdict.disposition = RESOLUTO_STOPPED;
	if (run->verdict.ran)
		run->verdict.exit_code = RESOLUTO_EXIT_SANDBOX;
}

/* The program is over: whoever asks to stop now means what lands. */
static int landing_goes_on(void *ctx)
{
	struct run *run = ctx;
	int signo = stops_asked_anew(&run->idle.stops);

	if (signo == 0)
		return 0;
	run->landing_signo = signo;
	return -ECANCELED;
}

static void landing_stopped(struct run *run)
{
	run->verdict.reason = REASON_SIGNAL;
	run->verdict.disposition = RESOLUTO_STOPPED;
	run->verdict.exit_code = RESOLUTO_EXIT_SIGNAL + run->landing_signo;
	run->verdict.detail = "stopped while the outputs were written: some of them may be missing";
}

/* Whatever the exit code; the archive is there as soon as the manifest is. */
static int collect(struct run *run)
{
	CLEANUP(collection_done) struct collection collection = { 0 };
	const struct collect_options options = {
		.conduit = run->place.conduit,
		.store_prefix = run->place.prefix,
		.archive = run->node.result.output_archive,
		.output_fd = run->output_fd,
		.globs = run->options.output_paths,
		.quotas = &run->options.quotas,
		.tick = landing_goes_on,
		.tick_ctx = run,
	};
	struct resoluto_err why = { 0 };
	uint64_t start = clock_mono_ms();
	bool has_archive = false;
	int r;

	if (run->output_fd < 0 || !run->node.root)
		return 0;
	/* What was asked before was about the program. */
	(void) stops_asked_anew(&run->idle.stops);
	r = collect_outputs(&options, &collection, &has_archive, &why);
	if (r == 0 && !has_archive && run->node.result.output_archive)
		r = resoluto_fail(&why, -EBADMSG,
		                  "the archive of outputs that the sandbox names is not there");
	if (r == 0 && lacks_outputs(run, has_archive))
		verdict_spoil(&run->verdict, REASON_OUTPUTS_FAILED, NO_OUTPUTS);
	run->result->artifacts = mem_take(&collection.artifacts.items);
	collection.artifacts.count = 0;
	run->result->result_json = mem_take(&collection.result_json);
	run->has_odd_result = collection.has_odd_result;
	run->result->timings_ms.collect = clock_mono_ms() - start;
	if (r == -ENOMEM)
		return r;
	if (r < 0 && run->landing_signo != 0)
		landing_stopped(run);
	else if (r < 0)
		spoil(run, r, collection.over, &why);
	return 0;
}

/* A runtime that does not know of it would run the program without, and say nothing. */
static int check_runtime(const struct run *run, struct resoluto_err *err)
{
	const char *name = run->place.runtime->ops->name;

	if ((run->egress.count == 0 && !run->options.egress_learn) || strcmp(name, "microvm") == 0)
		return 0;
	return resoluto_fail(err, -EOPNOTSUPP,
	                     "egress: the runtime '%s' cannot reach anything; microvm can", name);
}

int run_work(struct run *run)
{
	struct resoluto_err why = { 0 };
	int r = check_runtime(run, &why);

	if (r == 0)
		r = find_image(run, &why);
	if (r == 0)
		r = stage(run, &why);
	if (r == 0)
		r = compose(run, &why);
	if (r < 0) {
		run_refuse(run, r, &why);
		return 0;
	}
	r = drive_once_more(run, &why);
	if (r >= 0 && !run->outcome.has_left)
		r = run_judge(run, &why);
	/* Another run got the id first: what lies beneath the prefix is not ours to remove. */
	if (r == -EEXIST && !run->was_launched && !run->place.own_runtime)
		run->place.is_claimed = false;
	if (r < 0 && run->was_launched)
		broke_off(run, r, &why);
	else if (r < 0)
		run_refuse(run, r, &why);
	else if (run->outcome.has_left)
		run->verdict = (struct verdict){ .ran = run->observer.has_started, .detail = "" };
	return r < 0 || run->outcome.has_left ? 0 : collect(run);
}
