/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox.c - the facade: stage -> run -> collect.
 *
 * run_prepare() looks at the options and opens what they name; nothing is left behind if it fails.
 * run_claim() claims the id; from then on there is a result, whatever happens.  run_work() fetches
 * the image, stages, drives and collects; whatever it could not do becomes a verdict.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/path.h"
#include "base/random.h"
#include "resoluto/version.h"
#include "sandbox/admission.h"
#include "sandbox/backend.h"
#include "sandbox/collect.h"
#include "sandbox/environment.h"
#include "sandbox/evidence.h"
#include "sandbox/idle.h"
#include "sandbox/observer.h"
#include "sandbox/options.h"
#include "sandbox/sandbox_internal.h"
#include "sandbox/staging.h"
#include "sandbox/verdict.h"

#define NODE_ID "run"
#define DEFAULT_IMAGE "resoluto-sandbox-base:" RESOLUTO_VERSION

enum {
	LABEL_RUN_ID_MAX = 63, /* characters of a run id in its label */
	RUN_ID_SIZE = RESOLUTO_ID_MAX + 1,
};

struct run {
	struct resoluto_run_options options;
	const struct sandbox_tuning *tuning;
	char id[RUN_ID_SIZE];
	struct strv file_env, env, labels;
	int workspace_fd, output_fd;
	struct idle idle;
	struct place place;
	struct resoluto_image image;
	char host_boot_id[EVIDENCE_BOOT_ID_SIZE];
	struct observer observer;
	struct admission_slots slots;
	struct resoluto_admission admission; /* over slots */
	bool was_launched;
	bool input_failed; /* what the program was to read could not be read */
	struct resoluto_outcome outcome;
	struct node_result_doc node; /* root is NULL while the guest has given no verdict */
	struct verdict verdict;
	char detail[2 * RESOLUTO_ERR_TEXT]; /* what verdict.detail may point to */
	uint64_t start_ms, launch_ms;       /* monotonic */
	struct resoluto_result *result;
};

static void run_done(struct run *run)
{
	idle_close(&run->idle);
	fd_close(&run->workspace_fd);
	fd_close(&run->output_fd);
	node_result_doc_done(&run->node);
	resoluto_outcome_done(&run->outcome);
	observer_done(&run->observer);
	resoluto_image_done(&run->image);
	place_close(&run->place, run->options.keep_run);
	strv_done(&run->file_env);
	strv_done(&run->env);
	strv_done(&run->labels);
	resoluto_result_free(run->result);
}

/* Before the claim. */

static int open_dir(const char *what, const char *path, int *ret_fd, struct resoluto_err *err)
{
	*ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_fd >= 0)
		return 0;
	return resoluto_fail(err, -EINVAL, "%s %s: %s", what, path, strerrordesc_np(errno));
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
	return 0;
}

/* Now rather than behind the run: a place that cannot be written would lose the outputs. */
static int open_output(struct run *run, struct resoluto_err *err)
{
	const struct resoluto_run_options *options = &run->options;
	const char *path = options->output_dir ? options->output_dir : options->workspace;
	int r = 0;

	if (!options->output_paths || !options->output_paths[0])
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
		r = strv_add(&run->labels, "resoluto.node_id=" NODE_ID);
	return r < 0 ? resoluto_fail(err, r, "label the run") : 0;
}

static int run_prepare(struct run *run, const struct resoluto_run_options *options,
                       struct resoluto_err *err)
{
	int r = options_copy(&run->options, sizeof(run->options), options, options->struct_size,
	                     err);

	if (r == 0)
		r = options_check(&run->options, err);
	if (r < 0)
		return r;
	observer_init(&run->observer, &run->options);
	r = environment_read_file(run->options.env_file, &run->file_env, err);
	if (r == 0)
		r = open_workspace(run, err);
	if (r == 0)
		r = idle_open(&run->idle, &run->options.input, run->options.signal_fd,
		              run->tuning->grace_ms, err);
	if (r == 0)
		r = evidence_host_boot_id(run->host_boot_id, err);
	if (r == 0)
		r = choose_id(run, err);
	if (r == 0)
		r = add_labels(run, err);
	return r < 0 ? r : open_output(run, err);
}

static int run_claim(struct run *run, struct resoluto_err *err)
{
	int r = place_open(&run->place, run->options.backend, run->id, err);

	if (r < 0)
		return r;
	run->result = calloc(1, sizeof(*run->result));
	return run->result ? 0 : resoluto_fail(err, -ENOMEM, "make a result");
}

/* Behind the claim: failures become a verdict. */

/* A failure in words for people: with what the system said, where it says more than the words. */
static const char *keep_detail(struct run *run, int code, const char *text)
{
	bool says_it_all = code == -EINVAL || code == -EBADMSG || code == -ECANCELED ||
	                   code == -EFBIG;

	if (says_it_all)
		snprintf(run->detail, sizeof(run->detail), "%s", text);
	else
		snprintf(run->detail, sizeof(run->detail), "%s: %s", text, strerrordesc_np(-code));
	return run->detail;
}

static void refuse(struct run *run, int code, const struct resoluto_err *err)
{
	enum reason reason = code == -ENOSPC || code == -EDQUOT ? REASON_STORE_FULL
	                                                        : REASON_REFUSED;

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
	enum reason reason = code == -ENOSPC ? REASON_STORE_FULL : REASON_STORE_FAILED;
	bool ran = run->observer.has_started;

	if (run->observer.was_cancelled)
		run->verdict = verdict_refused(RESOLUTO_STOPPED, REASON_CANCELLED, 0, "");
	else if (run->input_failed)
		run->verdict = verdict_refused(RESOLUTO_STOPPED, REASON_CANCELLED, 0,
		                               keep_detail(run, code, err->text));
	else
		run->verdict = verdict_refused(RESOLUTO_EXTERNAL, reason, 0,
		                               keep_detail(run, code, err->text));
	run->verdict.ran = ran;
	if (ran)
		run->verdict.exit_code = RESOLUTO_EXIT_SANDBOX;
}

static const char *image_ref_of(const struct run *run)
{
	const char *ref = run->options.image ? run->options.image : run->place.image_ref;

	return ref && ref[0] ? ref : DEFAULT_IMAGE;
}

static int find_image(struct run *run, struct resoluto_err *err)
{
	const struct resoluto_run_options *options = &run->options;
	struct resoluto_image_options how = {
		.struct_size = sizeof(how),
		.pull = options->pull,
		.platform = options->platform,
		.authfile = options->authfile,
		.progress = options->progress,
		.ctx = options->ctx,
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
		.node_id = NODE_ID,
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

static int on_idle(void *ctx, struct resoluto_handle *handle, struct resoluto_err *err)
{
	struct run *run = ctx;

	int r = idle_run(&run->idle, run->place.runtime, handle, err);

	run->input_failed = r < 0 && r != -ECANCELED;
	return r;
}

/* Wait for a slot; signals that do not ask to stop do not end the waiting. */
static int acquire(void *ctx, struct resoluto_runtime *runtime,
                   const struct resoluto_launch_spec *spec, int extra_fd,
                   struct resoluto_handle *ret_handle, struct resoluto_err *err)
{
	struct run *run = ctx;
	uint64_t start_ms = clock_mono_ms(), waited_ms = 0;
	int r;

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
	return r;
}

static void release(void *ctx, struct resoluto_handle *handle)
{
	struct run *run = ctx;

	run->admission.release(&run->slots, handle);
}

static struct resoluto_resources resources_of(const struct run *run)
{
	struct resoluto_resources resources = run->options.resources;

	if (resources.memory_bytes == 0)
		resources.memory_bytes = run->place.resources.memory_bytes;
	if (resources.memory_bytes == 0)
		resources.memory_bytes = RESOLUTO_DEFAULT_MEMORY_BYTES;
	if (resources.cpu_milli == 0)
		resources.cpu_milli = run->place.resources.cpu_milli;
	if (resources.cpu_milli == 0)
		resources.cpu_milli = RESOLUTO_DEFAULT_CPU_MILLI;
	if (resources.disk_bytes == 0)
		resources.disk_bytes = run->place.resources.disk_bytes;
	return resources;
}

static uint64_t dead_after_of(const struct run *run)
{
	if (run->options.dead_after_ms)
		return run->options.dead_after_ms;
	return run->place.dead_after_ms ? run->place.dead_after_ms : RESOLUTO_FACADE_DEAD_AFTER_MS;
}

static int drive(struct run *run, struct resoluto_err *err)
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
		.deadline_ms = run->options.deadline_ms,
		.has_stdin = run->options.input.kind != RESOLUTO_STDIN_NONE,
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
		.dead_after_ms = dead_after_of(run),
		.poll_interval_ms = run->tuning->poll_interval_ms,
		.on_idle = on_idle,
		.idle_fd = run->idle.epoll_fd,
	};

	run->slots = (struct admission_slots){ .step_ms = run->tuning->admission_step_ms };
	run->admission = admission_slots(&run->slots);
	return resoluto_drive_node(&options, &run->outcome, err);
}

static void judge(struct run *run)
{
	const char *json = run->outcome.result_json;
	struct verdict_inputs inputs = {
		.outcome = &run->outcome,
		.has_started = run->observer.has_started,
		.stop_signo = run->idle.stops.signo,
	};

	if (json && node_result_parse(json, strlen(json), &run->node, NULL) == 0)
		inputs.node = &run->node.result;
	run->verdict = verdict_judge(&inputs);
}

/* Whatever the exit code; the archive is there as soon as the manifest is. */
static int collect(struct run *run)
{
	CLEANUP(collection_done) struct collection collection = { 0 };
	struct resoluto_err why = { 0 };
	uint64_t start = clock_mono_ms();
	bool has_archive = false;
	int r;

	if (run->output_fd < 0 || !run->node.root)
		return 0;
	r = collect_outputs(run->place.conduit, run->place.prefix, run->output_fd,
	                    run->options.output_paths, &collection, &has_archive, &why);
	if (r == 0 && !has_archive && run->node.result.output_archive)
		r = resoluto_fail(&why, -EBADMSG,
		                  "the archive of outputs that the sandbox names is not there");
	run->result->artifacts = mem_take(&collection.artifacts.items);
	collection.artifacts.count = 0;
	run->result->result_json = mem_take(&collection.result_json);
	run->result->timings_ms.collect = clock_mono_ms() - start;
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		verdict_spoil(&run->verdict, r == -ENOSPC ? REASON_STORE_FULL : REASON_BAD_OUTPUT,
		              keep_detail(run, r, why.text));
	return 0;
}

static int check_evidence(struct run *run)
{
	const struct evidence evidence = {
		.runtime_json = run->outcome.isolation_json,
		.runtime_name = run->place.runtime->ops->name,
		.node = run->node.root ? &run->node.result : NULL,
		.host_boot_id = run->host_boot_id,
		/* Without a verdict there is nothing to refuse, and the reason for that says more. */
		.ran = run->verdict.ran && run->node.root,
	};
	enum reason reason;
	int r = evidence_judge(&evidence, &run->result->isolation_json, &reason);

	if (r == 0 && reason != REASON_NONE) {
		verdict_spoil(&run->verdict, reason, "");
		run->verdict.disposition = RESOLUTO_REFUSED;
		run->verdict.exit_code = RESOLUTO_EXIT_SANDBOX;
	}
	return r;
}

static int run_work(struct run *run)
{
	struct resoluto_err why = { 0 };
	int r = find_image(run, &why);

	if (r == 0)
		r = stage(run, &why);
	if (r == 0)
		r = compose(run, &why);
	if (r < 0) {
		refuse(run, r, &why);
		return 0;
	}
	r = drive(run, &why);
	if (r < 0 && run->was_launched)
		broke_off(run, r, &why);
	else if (r < 0)
		refuse(run, r, &why);
	else
		judge(run);
	return r < 0 ? 0 : collect(run);
}

static uint64_t guest_ms(const struct run *run, const char *step, uint64_t at_most)
{
	json_t *value = json_object_get(run->node.root ? run->node.result.timings_ms : NULL, step);
	json_int_t ms = json_is_integer(value) ? json_integer_value(value) : 0;

	if (ms <= 0)
		return 0;
	return (uint64_t) ms < at_most ? (uint64_t) ms : at_most;
}

/* The guest's own words are bounded by what our clock saw. */
static void take_timings(struct run *run)
{
	struct resoluto_timings *timings = &run->result->timings_ms;
	uint64_t total = clock_mono_ms() - run->start_ms;

	timings->total = total;
	if (run->was_launched && run->observer.first_event_ms > run->launch_ms)
		timings->boot = run->observer.first_event_ms - run->launch_ms;
	else
		timings->boot = guest_ms(run, "boot", total);
	timings->canary = guest_ms(run, "canary", total);
	timings->setup = guest_ms(run, "setup", total);
	timings->run = guest_ms(run, "run", total);
	timings->stage += guest_ms(run, "stage", total);
	timings->collect += guest_ms(run, "collect", total);
}

static int take_verdict(struct run *run)
{
	struct resoluto_result *result = run->result;
	const struct verdict *verdict = &run->verdict;

	result->ran = verdict->ran;
	result->exit_code = verdict->exit_code;
	result->ok = verdict->exit_code == 0;
	result->signal = verdict->signal;
	result->disposition = verdict->disposition;
	result->reason = strdup(reason_name(verdict->reason));
	result->detail = strdup(verdict->detail);
	return result->reason && result->detail ? 0 : -ENOMEM;
}

/* No pointer of a result is NULL but those that say so. */
static int fill_empty(struct resoluto_result *result)
{
	if (!result->artifacts)
		result->artifacts = calloc(1, sizeof(*result->artifacts));
	if (!result->substrate_logs)
		result->substrate_logs = strdup("");
	if (!result->staging.why)
		result->staging.why = strdup("");
	return result->artifacts && result->substrate_logs && result->staging.why ? 0 : -ENOMEM;
}

static int run_finish(struct run *run, struct resoluto_result **ret_result)
{
	struct resoluto_result *result = run->result;
	int r = check_evidence(run);

	if (r == 0)
		r = take_verdict(run);
	if (r == 0)
		r = observer_take(&run->observer, result);
	if (r < 0)
		return r;
	result->run_id = strdup(run->id);
	result->canary_json = evidence_canary(run->node.root ? run->node.result.canary : NULL);
	result->redactions = run->node.root ? run->node.result.redactions : 0;
	result->substrate_logs = mem_take(&run->outcome.substrate_logs);
	result->image_digest = mem_take(&run->image.digest);
	if (!result->run_id || !result->canary_json || fill_empty(result) < 0)
		return -ENOMEM;
	take_timings(run);
	*ret_result = mem_take(&run->result);
	return 0;
}

int sandbox_run(const struct resoluto_run_options *options, const struct sandbox_tuning *tuning,
                struct resoluto_result **ret_result, struct resoluto_err *err)
{
	CLEANUP(run_done)
	struct run run = {
		.tuning = tuning,
		.workspace_fd = -1,
		.output_fd = -1,
		.idle = IDLE_NONE,
		.start_ms = clock_mono_ms(),
	};
	int r = run_prepare(&run, options, err);

	if (r == 0)
		r = run_claim(&run, err);
	if (r < 0)
		return r;
	r = run_work(&run);
	if (r == 0)
		r = run_finish(&run, ret_result);
	return r < 0 ? resoluto_fail(err, r, "make the result of run %s", run.id) : 0;
}

int resoluto_sandbox_run(const struct resoluto_run_options *options,
                         struct resoluto_result **ret_result, struct resoluto_err *err)
{
	const struct sandbox_tuning tuning = { .grace_ms = RESOLUTO_STOP_GRACE_MS };

	return sandbox_run(options, &tuning, ret_result, err);
}
