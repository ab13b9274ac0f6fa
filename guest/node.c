/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "guest/canary.h"
#include "guest/clock_sync.h"
#include "guest/egress.h"
#include "guest/identity.h"
#include "guest/inputs.h"
#include "guest/mounts.h"
#include "guest/node.h"
#include "guest/outputs.h"
#include "guest/prefetch.h"
#include "guest/program.h"
#include "guest/streams.h"
#include "guest/verdict.h"
#include "resoluto/version.h"

#define METADATA_HOST "169.254.169.254"

enum {
	METADATA_PORT = 80,
	OUTPUT_ARCHIVE_IS_THERE = 1,
};

/* What the steps below share.  Their contract: 0 also when the run failed (verdict.reason says so); negative
 * only when the way out is broken. */
struct node {
	struct channel *channel;
	struct job *job;
	struct ship *ship;
	struct redactor *redactor; /* owned */
	struct report report;
	struct report_span span; /* of the whole node */
	struct clock_sync clock;
	struct egress egress;
	struct canary canary;
	struct report_span canary_span;
	bool canary_passed;
	double canary_untold; /* seconds since the epoch: when it was through, and is not told yet; 0: it is */
	int canary_code; /* of telling it */
	int place_code;  /* of making the program's root, with its words */
	struct resoluto_err place_err;
	bool is_ready;              /* root, user and workspace are there */
	char boot_id[BOOT_ID_SIZE]; /* of this kernel; "" before it was read */
	struct root *root;
	struct prefetch prefetch; /* what the program needs first, where it starts ahead */
	struct verdict verdict;
	bool has_output;
	json_t *timings; /* owned */
	uint64_t step_began_ms;
};

static void node_done(struct node *node)
{
	egress_done(&node->egress);
	report_done(&node->report);
	redactor_free(&node->redactor);
	prefetch_done(&node->prefetch);
	json_decref(node->timings);
}

static bool has_failed(const struct node *node)
{
	return node->verdict.reason != REASON_NONE;
}

/* The time since the last call belongs to this step. */
static void end_step(struct node *node, const char *step)
{
	uint64_t now = clock_mono_ms();

	(void) json_object_set_new(node->timings, step,
	                           json_integer((json_int_t) (now - node->step_began_ms)));
	node->step_began_ms = now;
}

static int refuse(struct node *node, enum reason reason, const struct resoluto_err *err)
{
	verdict_set(&node->verdict, err->code == -ENOSPC ? REASON_GUEST_DISK_FULL : reason,
	            "%s%s%s", err->text, err->code ? ": " : "",
	            err->code ? strerrordesc_np(-err->code) : "");
	return 0;
}

/* --- the place of the program --- */

/* A disk that the job speaks of and nobody attached: not a smaller run, none. */
static int check_disks(const struct node *node, struct resoluto_err *err)
{
	if (node->job->has_inbox && node->root->inbox_disk < 0)
		return resoluto_fail(err, -ENOENT, "find the disk with the inputs");
	if (node->job->has_scratch && !node->root->has_scratch)
		return resoluto_fail(err, -ENOENT, "find the scratch disk");
	return 0;
}

static int make_place(struct node *node, struct resoluto_err *err)
{
	int r = root_await(node->root, err);

	/* What job, redaction and egress took is not the program's to have. */
	if (r == 0)
		r = cgroup_fit_memory(&node->root->cgroup, err);
	if (r == 0)
		r = check_disks(node, err);
	/* It entered before where it starts ahead: open_first_files(). */
	return r < 0 || root_starts_ahead(node->job) ? r : mount_enter_root(err);
}

/* --- guard, canary, own kernel --- */

static int check_version(struct node *node)
{
	struct resoluto_err err = { .code = 0 };

	if (node->job->image_version && resoluto_version_guard(node->job->image_version, &err) < 0)
		verdict_set(&node->verdict, REASON_VERSION_MISMATCH, "%s", err.text);
	return 0;
}

static int wait_before_next_try(struct node *node, struct resoluto_err *err)
{
	int r = report_tick(&node->report);

	return r < 0 ? r : node->ship->ops->pause(node->ship, CANARY_AGAIN_MS, err);
}

static const char store_probe[] = "ok";

enum { STORE_PROBE_SIZE = sizeof(store_probe) - 1 };

/* 0 also when the object was refused: that is the probe's answer. */
static int note_store(struct node *node, int r, const struct resoluto_err *store_err,
                      struct resoluto_err *err)
{
	node->canary.store_ok = r == 0;
	snprintf(node->canary.store_detail, sizeof(node->canary.store_detail), "%.*s",
	         CANARY_DETAIL - 1, r == 0 ? "stored" : store_err->text);
	if (r != -EPIPE && r != -EPROTO)
		return 0;
	*err = *store_err;
	return r;
}

static void probe_network(struct node *node)
{
	canary_connect(node->job->probe_host, node->job->probe_port, &node->canary.external);
	canary_connect(METADATA_HOST, METADATA_PORT, &node->canary.metadata);
	if (node->canary.has_egress)
		canary_egress(&node->job->egress, node->job->probe_host, &node->canary.egress);
}

/* While the thread makes the rest of its place.  Where it does not start ahead, the thread does that, too. */
static int open_first_files(struct node *node, struct resoluto_err *err)
{
	const struct job *job = node->job;
	const char *path = program_path(&(struct program){ .env = &job->env });
	int r = root_await_image(node->root);

	/* make_place() says why. */
	if (r < 0)
		return 0;
	r = mount_enter_root(err);
	if (r == 0)
		prefetch_open(job->argv.items[0], path, job->cwd, &node->prefetch);
	return r;
}

/* While the store answers, the place of the program is made. */
static int probe_all(struct node *node, struct resoluto_err *err)
{
	struct resoluto_err store_err = { .code = 0 };
	uint32_t put = 0;
	int r = ship_send(node->ship, KEY_CANARY, store_probe, STORE_PROBE_SIZE, &put, &store_err);

	probe_network(node);
	if (root_starts_ahead(node->job))
		node->place_code = open_first_files(node, &node->place_err);
	if (node->place_code == 0)
		node->place_code = make_place(node, &node->place_err);
	if (r == 0)
		r = ship_settle(node->ship, KEY_CANARY, store_probe, STORE_PROBE_SIZE, put,
		                &store_err);
	return note_store(node, r, &store_err, err);
}

static int probe_until_clear(struct node *node, enum canary_verdict *ret, struct resoluto_err *err)
{
	int r = probe_all(node, err);

	for (int tries = 1; r == 0; tries++) {
		*ret = canary_judge(&node->canary, tries);
		if (*ret != CANARY_AGAIN)
			return 0;
		r = wait_before_next_try(node, err);
		if (r == 0)
			probe_network(node);
	}
	return r;
}

static int report_egress_canary(struct node *node, const struct report_span *span)
{
	const struct canary_egress *egress = &node->canary.egress;
	const struct canary_probe *probes[] = { &egress->refused, &egress->allowed,
		                                &egress->address, &egress->address6 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(probes) / sizeof(probes[0]); i++)
		r = report_line(&node->report, span, "canary: %s: %s", probes[i]->name,
		                probes[i]->detail);
	return r;
}

static int report_canary(struct node *node, const struct report_span *span)
{
	const struct canary *canary = &node->canary;
	int r = report_line(&node->report, span, "canary: %s: %s", canary->external.name,
	                    canary->external.detail);

	if (r == 0)
		r = report_line(&node->report, span, "canary: %s: %s", canary->metadata.name,
		                canary->metadata.detail);
	if (r == 0)
		r = report_line(&node->report, span, "canary: store: %s", canary->store_detail);
	if (r == 0 && canary->has_egress)
		r = report_egress_canary(node, span);
	return r < 0 ? r : report_close(&node->report, span, node->canary_passed);
}

/* What came of it, once: as late as its place among the events allows, since the program may run meanwhile. */
static int tell_canary(struct node *node)
{
	if (node->canary_untold == 0)
		return node->canary_code;
	node->report.told_late = node->canary_untold;
	node->canary_code = report_canary(node, &node->canary_span);
	node->report.told_late = node->canary_untold = 0;
	return node->canary_code;
}

static void refuse_canary(struct node *node)
{
	const struct canary *canary = &node->canary;
	const struct canary_egress *egress = &canary->egress;

	if (canary->has_egress)
		verdict_set(&node->verdict, REASON_CANARY_FAILED,
		            "%s; %s; store: %s; %s; %s; %s; %s", canary->external.detail,
		            canary->metadata.detail, canary->store_detail, egress->refused.detail,
		            egress->allowed.detail, egress->address.detail,
		            egress->address6.detail);
	else
		verdict_set(&node->verdict, REASON_CANARY_FAILED, "%s; %s; store: %s",
		            canary->external.detail, canary->metadata.detail, canary->store_detail);
}

static int run_canary(struct node *node, struct resoluto_err *err)
{
	enum canary_verdict verdict = CANARY_FAILED;
	int r = report_open(&node->report, "egress_canary", &node->span, &node->canary_span);

	node->canary.external.name = "external";
	node->canary.metadata.name = "metadata";
	if (r == 0)
		r = probe_until_clear(node, &verdict, err);
	if (r < 0)
		return r;
	node->canary_passed = verdict == CANARY_PASSED;
	if (!node->canary_passed)
		refuse_canary(node);
	node->canary_untold = clock_wall();
	return 0;
}

/* Without it nothing is lost but what was allowed: but then it was asked for, and the run is refused. */
static int start_egress(struct node *node)
{
	struct resoluto_err err = { .code = 0 };
	int r;

	if (!node->job->has_egress)
		return 0;
	node->canary.has_egress = true;
	r = egress_start(&node->egress, node->job, &err);
	return r < 0 ? refuse(node, REASON_CANARY_FAILED, &err) : 0;
}

static int prove_own_kernel(struct node *node)
{
	enum reason reason;

	memcpy(node->boot_id, node->root->boot_id, sizeof(node->boot_id));
	reason = identity_judge(node->boot_id, node->job->boot_ids);
	if (reason != REASON_NONE)
		verdict_set(&node->verdict, reason, "guest boot id '%s', host boot ids '%.300s'",
		            node->boot_id, node->job->boot_ids ? node->job->boot_ids : "");
	return 0;
}

/* --- inputs --- */

/* A heartbeat, if it was quiet for long.  What fails is kept in the report. */
static void staging_goes_on(void *ctx)
{
	struct node *node = ctx;

	(void) report_tick(&node->report);
}

static int stage(struct node *node)
{
	struct resoluto_err err = { .code = 0 };
	struct inputs_report inputs;
	struct root *root = node->root;
	int r;

	if (node->place_code < 0)
		return refuse(node, REASON_INPUTS_FAILED, &node->place_err);
	node->is_ready = true;
	if (!node->job->has_inbox)
		return 0;
	r = tell_canary(node);
	if (r < 0)
		return r;
	r = inputs_unpack(root->inbox_disk, root->workspace, &root->user, staging_goes_on, node,
	                  &inputs, &err);
	fd_close(&root->inbox_disk);
	if (r == 0 && inputs.archives > 0)
		r = cgroup_fit_memory(&node->root->cgroup, &err);
	if (r < 0)
		return refuse(node, REASON_INPUTS_FAILED, &err);
	return report_line(&node->report, &node->span,
	                   "staged %u archive%s: %llu entries, %llu bytes", inputs.archives,
	                   inputs.archives == 1 ? "" : "s", (unsigned long long) inputs.members,
	                   (unsigned long long) inputs.bytes);
}

/* --- the result --- */

/* NULL: there are none. */
static json_t *warnings_of(const struct node *node)
{
	static const char lost[] = "egress-lost: the process in the sandbox that answers names "
				   "and carries connections ended before the run did";
	const char *clock = node->clock.warning;

	if (clock[0])
		return node->egress.is_lost ? json_pack("[ss]", clock, lost)
		                            : json_pack("[s]", clock);
	return node->egress.is_lost ? json_pack("[s]", lost) : NULL;
}

static int write_result(struct node *node, struct buf *out)
{
	const struct verdict *verdict = &node->verdict;
	CLEANUP(buf_done) struct buf detail = BUF_INIT(8 * PROGRAM_DETAIL);
	struct node_result result = {
		.node_id = node->job->node_id ? node->job->node_id : "run",
		.success = verdict_is_success(verdict),
		.has_exit_code = verdict->has_exit_code,
		.exit_code = verdict->exit_code,
		.output_archive = node->has_output ? KEY_OUTBOX_OUTPUT : NULL,
		.reason = reason_name(verdict->reason),
		.signal = verdict->signal,
		.ran = verdict->ran,
		.guest_boot_id = node->boot_id,
		.timings_ms = node->timings,
		.canary = verdict_canary_json(&node->canary),
		.warnings = warnings_of(node),
		.output_is_complete = verdict->is_complete,
	};
	int r = redact_text(node->redactor, verdict->detail, &detail);

	result.detail = detail.data ? detail.data : "";
	result.redactions = redactor_count(node->redactor);
	if (r == 0)
		r = node_result_write(out, &result);
	json_decref(result.canary);
	json_decref(result.warnings);
	return r;
}

/* Thrown away: under emulation what is done for the first time takes long, and when the program has ended somebody waits for
 * it. */
static void draft_result(struct node *node)
{
	CLEANUP(buf_done) struct buf draft = BUF_INIT(RESULT_JSON_MAX);

	(void) write_result(node, &draft);
	(void) cgroup_oom_kills(&node->root->cgroup);
}

/* --- programs --- */

static struct program describe_hook(struct node *node, const struct strv *argv)
{
	return (struct program){ .argv = argv,
		                 .env = &node->root->env,
		                 .cwd = node->job->workspace_dir,
		                 .user = &node->root->user,
		                 .cgroup = &node->root->cgroup };
}

/* A program that runs by now, to its end. */
static int follow(struct node *node, const struct report_span *span, struct program_child *child,
                  bool is_hook, struct program_end *ret_end, struct resoluto_err *err)
{
	const struct stream_options options = {
		.channel = node->channel,
		.clock = &node->clock,
		.egress = &node->egress,
		.report = &node->report,
		.span = span,
		.cgroup = &node->root->cgroup,
		.drain_timeout_ms = node->job->drain_timeout_ms,
		.is_hook = is_hook,
	};

	return streams_run(&options, child, ret_end, err);
}

/* *ret_failure receives what went wrong with the hook, "" for nothing. */
static int run_hook(struct node *node, const char *kind, const struct strv *argv,
                    char ret_failure[PROGRAM_DETAIL], struct resoluto_err *err)
{
	struct program program = describe_hook(node, argv);
	struct program_child child = PROGRAM_CHILD_NONE;
	struct program_failure failure;
	struct program_end end;
	struct report_span span;
	int unused_code, r = tell_canary(node);

	if (r == 0)
		r = report_open(&node->report, kind, &node->span, &span);
	ret_failure[0] = '\0';
	if (r < 0)
		return r;
	r = program_start(&program, &child, &failure, err);
	if (r == 0) {
		r = follow(node, &span, &child, true, &end, err);
		if (r == 0 && !end.is_complete)
			r = report_line(&node->report, &span,
			                "the %s hook left a process behind that held its output "
			                "open beyond "
			                "the drain time: it was killed",
			                kind);
		if (r < 0)
			return r;
		if (!WIFEXITED(end.wait_status) || WEXITSTATUS(end.wait_status) != 0)
			snprintf(ret_failure, PROGRAM_DETAIL, "the %s hook ended with %s %d", kind,
			         WIFEXITED(end.wait_status) ? "exit code" : "signal",
			         WIFEXITED(end.wait_status) ? WEXITSTATUS(end.wait_status)
			                                    : WTERMSIG(end.wait_status));
	} else if (r == -ECHILD) {
		(void) program_explain(&program, &failure, &unused_code, ret_failure);
	} else {
		snprintf(ret_failure, PROGRAM_DETAIL, "%s", err->text);
	}
	return report_close(&node->report, &span, !ret_failure[0]);
}

static int run_setup(struct node *node, struct resoluto_err *err)
{
	char failure[PROGRAM_DETAIL];
	int r;

	if (node->job->setup_argv.count == 0)
		return 0;
	r = run_hook(node, "setup", &node->job->setup_argv, failure, err);
	if (r == 0 && failure[0])
		verdict_set(&node->verdict, REASON_SETUP_FAILED, "%s", failure);
	/* What a good one left running serves the program; there is none now. */
	if (has_failed(node))
		(void) cgroup_kill(&node->root->cgroup);
	return r;
}

static int run_cleanup(struct node *node, struct resoluto_err *err)
{
	char failure[PROGRAM_DETAIL];
	int r;

	if (node->job->cleanup_argv.count == 0 || !node->is_ready)
		return 0;
	r = run_hook(node, "cleanup", &node->job->cleanup_argv, failure, err);
	if (r == 0 && failure[0])
		r = report_line(&node->report, &node->span, "%s", failure);
	(void) cgroup_kill(&node->root->cgroup);
	return r;
}

static int start_failed(struct node *node, const struct program *program,
                        const struct program_failure *failure)
{
	char detail[PROGRAM_DETAIL];
	int exit_code;
	enum reason reason = program_explain(program, failure, &exit_code, detail);

	verdict_set(&node->verdict, reason, "%s", detail);
	node->verdict.has_exit_code = true;
	node->verdict.exit_code = exit_code;
	return 0;
}

/* While it starts, on another processor, what it needs first is read, and what came of the canary is told. */
static int start_program(struct node *node, struct program_child *ret_child,
                         struct program_failure *ret_failure, struct resoluto_err *err)
{
	struct root *root = node->root;
	int r;

	if (!root_starts_ahead(node->job)) {
		r = program_start(&root->program, ret_child, ret_failure, err);
		(void) tell_canary(node);
		return r;
	}
	program_gate_open(&root->gate);
	prefetch_read(&node->prefetch);
	(void) tell_canary(node);
	return root_await_program(root, ret_child, ret_failure, err);
}

/* One that cannot be started has no span, and the host knows by it. */
static int run_program(struct node *node, struct resoluto_err *err)
{
	struct program_child child = PROGRAM_CHILD_NONE;
	/* Of a setup hook; where the program starts ahead nobody was there. */
	uint64_t oom_kills = root_starts_ahead(node->job) ? 0
	                                                  : cgroup_oom_kills(&node->root->cgroup);
	struct program_failure failure;
	struct program_end end;
	struct report_span span;
	int r;

	r = start_program(node, &child, &failure, err);
	/* What a setup hook left running. */
	if (r < 0)
		(void) cgroup_kill(&node->root->cgroup);
	if (r == -ECHILD)
		return start_failed(node, &node->root->program, &failure);
	if (r < 0)
		return refuse(node, REASON_NOT_EXECUTABLE, err);
	r = report_open(&node->report, "workload", &node->span, &span);
	draft_result(node);
	root_let_go(node->root);
	if (r == 0)
		r = follow(node, &span, &child, false, &end, err);
	if (r < 0)
		return r;
	(void) cgroup_kill(&node->root->cgroup);
	verdict_exit(&node->verdict, end.wait_status);
	oom_kills = cgroup_oom_kills(&node->root->cgroup) - oom_kills;
	verdict_blame(&node->verdict, end.was_stalled, oom_kills,
	              node->verdict.exit_code != 0 && mount_is_full());
	node->verdict.is_complete = end.is_complete;
	return report_close(&node->report, &span, verdict_is_success(&node->verdict));
}

static int run_workload(struct node *node, struct resoluto_err *err)
{
	int r = channel_send_started(node->channel, node->boot_id, err);

	return r < 0 ? r : run_program(node, err);
}

/* --- the end --- */

static void packing_goes_on(void *ctx, uint64_t done)
{
	staging_goes_on(ctx);
}

static int collect(struct node *node, struct resoluto_err *err)
{
	struct pack_report packed;
	int r;

	if (node->job->output_paths.count == 0 || !node->is_ready)
		return 0;
	r = report_flush(&node->report);
	if (r < 0)
		return r;
	r = outputs_ship(node->root->workspace, &node->job->output_paths, node->ship,
	                 packing_goes_on, node, &packed, err);
	if (r == -EPIPE || r == -EPROTO)
		return r;
	node->has_output = r == OUTPUT_ARCHIVE_IS_THERE;
	if (r < 0) {
		verdict_set(&node->verdict, REASON_OUTPUTS_FAILED, "%s", err->text);
		return report_line(&node->report, &node->span, "outputs: %s", err->text);
	}
	return report_line(&node->report, &node->span,
	                   "outputs: %llu entries, %llu bytes; left out: %llu special, %llu links "
	                   "that point out",
	                   (unsigned long long) packed.entries, (unsigned long long) packed.bytes,
	                   (unsigned long long) packed.special,
	                   (unsigned long long) packed.links_out);
}

/* Behind the packing: what cannot be written out is read as it should be until it is forgotten. */
static void check_scratch(struct node *node)
{
	if (node->is_ready && node->root->has_scratch && mount_has_lost())
		verdict_set(&node->verdict, REASON_GUEST_DISK_FULL,
		            "the host could not keep all that was written to the scratch disk: "
		            "its own disk is full, or fails");
}

/* The last three objects on their way; the host stores no manifest of what it could not store. */
static int send_last(struct node *node, const struct buf *result, struct buf *manifest,
                     uint32_t *ret_result, uint32_t *ret_manifest, struct resoluto_err *err)
{
	int r = ship_send(node->ship, KEY_RESULT, result->data, result->len, ret_result, err);

	if (r == 0)
		r = report_send(&node->report);
	if (r == 0)
		r = manifest_write(manifest, chunk_writer_count(node->report.writer));
	return r < 0 ? r
	             : ship_send(node->ship, KEY_MANIFEST, manifest->data, manifest->len,
	                         ret_manifest, err);
}

/* result.json, the last chunk and the manifest: one exchange with the host.  With the manifest stored it ends the machine. */
static int finish(struct node *node, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf result = BUF_INIT(RESULT_JSON_MAX);
	CLEANUP(buf_done) struct buf manifest = BUF_INIT(MANIFEST_JSON_MAX);
	uint32_t result_put = 0, manifest_put = 0;
	int r = report_close(&node->report, &node->span, verdict_is_success(&node->verdict));

	if (r == 0)
		r = write_result(node, &result);
	if (r == 0)
		r = send_last(node, &result, &manifest, &result_put, &manifest_put, err);
	if (r == 0)
		r = ship_settle(node->ship, KEY_RESULT, result.data, result.len, result_put, err);
	if (r == 0)
		r = report_flush(&node->report);
	return r < 0 ? r
	             : ship_settle(node->ship, KEY_MANIFEST, manifest.data, manifest.len,
	                           manifest_put, err);
}

/* Everything before the program.  Stops at the first refusal. */
static int prepare(struct node *node, struct resoluto_err *err)
{
	int r = check_version(node);

	if (r == 0 && !has_failed(node))
		r = start_egress(node);
	if (r == 0 && !has_failed(node))
		r = run_canary(node, err);
	end_step(node, "canary");
	if (r == 0 && !has_failed(node))
		r = prove_own_kernel(node);
	if (r == 0 && !has_failed(node))
		r = stage(node);
	end_step(node, "stage");
	if (r == 0 && !has_failed(node))
		r = run_setup(node, err);
	end_step(node, "setup");
	return r;
}

static int run_all(struct node *node, struct resoluto_err *err)
{
	int r = report_open(&node->report, "node", NULL, &node->span);

	if (r == 0 && !has_failed(node))
		r = prepare(node, err);
	if (r == 0 && !has_failed(node))
		r = run_workload(node, err);
	program_gate_drop(&node->root->gate);
	if (r == 0)
		r = tell_canary(node);
	end_step(node, "run");
	if (r == 0)
		r = collect(node, err);
	check_scratch(node);
	if (r == 0)
		r = run_cleanup(node, err);
	if (r == 0)
		r = egress_take_rows(&node->egress);
	end_step(node, "collect");
	return r < 0 ? r : finish(node, err);
}

static int node_init(struct node *node, struct channel *channel, struct root *root, struct job *job,
                     struct resoluto_err *err)
{
	uint64_t first_span;
	int r;

	*node = (struct node){
		.channel = channel,
		.job = job,
		.ship = &channel->ship,
		.root = root,
		.clock = { .channel = channel, .report = &node->report, .span = &node->span },
		.egress = { .rows_fd = -1, .report = &node->report, .span = &node->span },
		.verdict = VERDICT_INIT,
		.timings = json_object(),
		.step_began_ms = clock_mono_ms()
	};
	/* Names of spans need not be secret, so nothing waits for the kernel's entropy. */
	if (getrandom(&first_span, sizeof(first_span), GRND_INSECURE) != sizeof(first_span))
		return resoluto_fail(err, -errno, "get random bytes");
	r = redactor_new((const char *const *) job->redact.items, job->redacts_patterns,
	                 &node->redactor);
	if (r < 0)
		return resoluto_fail(err, r, "prepare the redaction");
	r = report_init(&node->report, node->ship, job, first_span, err);
	node->report.redactor = node->redactor;
	(void) json_object_set_new(node->timings, "boot",
	                           json_integer((json_int_t) node->step_began_ms));
	return r;
}

int node_run(struct channel *channel, struct root *root, struct job *job,
             const struct resoluto_err *job_failure, struct resoluto_err *err)
{
	CLEANUP(node_done) struct node node;
	int r = node_init(&node, channel, root, job, err);

	if (r == 0)
		r = clock_sync_start(&node.clock, err);
	if (r < 0)
		return r;
	if (job_failure->code)
		verdict_set(&node.verdict, REASON_PROTOCOL, "%s", job_failure->text);
	r = run_all(&node, err);
	if (r < 0 && node.report.failure.code)
		*err = node.report.failure;
	return r;
}
