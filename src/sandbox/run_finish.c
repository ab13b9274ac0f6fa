/* SPDX-License-Identifier: Apache-2.0 */
/* run_finish.c - the result of a run: its isolation checked once more, its times, its verdict. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "runtime/microvm/microvm.h"
#include "sandbox/egress.h"
#include "sandbox/run.h"
#include "wire/quota.h"

enum {
	WARNINGS_MAX = 8,        /* of a run */
	WARNING_BYTES_MAX = 512, /* of one */
};

/* Of a run that was not claimed: of the one it would have had. */
static const char *runtime_name(const struct run *run)
{
	if (run->place.runtime)
		return run->place.runtime->ops->name;
	return run->options.backend ? run->options.backend->runtime->ops->name : "microvm";
}

static int check_evidence(struct run *run)
{
	const struct evidence evidence = {
		.runtime_json = run->outcome.isolation_json,
		.runtime_name = runtime_name(run),
		.node = run->node.root ? &run->node.result : NULL,
		.host_boot_id = run->host_boot_id,
		/* Without a verdict there is nothing to refuse, and the reason for that says more. */
		.ran = run->verdict.ran && run->node.root,
		.may_share = strcmp(runtime_name(run), "microvm") != 0,
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
	result->ok = verdict->exit_code == 0 && !run->outcome.has_left;
	result->signal = verdict->signal;
	result->output_is_complete = verdict->output_is_complete && !run->observer.has_gap &&
	                             run->outcome.bad_lines == 0;
	result->disposition = verdict->disposition;
	result->quotas = run->options.quotas;
	if (verdict->reason == REASON_QUOTA && quota_told(verdict->detail) != QUOTA_NONE)
		result->quota = quota_name(quota_told(verdict->detail));
	result->reason = strdup(reason_name(verdict->reason));
	result->detail = strdup(verdict->detail);
	return result->reason && result->detail ? 0 : -ENOMEM;
}

/* Why the output may not be all there is.  The reason of a run without a verdict says enough. */
static const char *output_warning(const struct run *run)
{
	if (!run->node.root || !run->verdict.ran)
		return NULL;
	if (!run->node.result.output_is_complete)
		return RESOLUTO_WARNING_OUTPUT
			": a process that the program left behind held its output open beyond "
			"--drain-timeout; it was killed, and what it had yet to write is not here";
	return run->observer.has_gap ? RESOLUTO_WARNING_OUTPUT
	               ": the sandbox left out pieces of the output"
	                             : NULL;
}

/* No runner does that: whatever wrote them did not know better, or wanted to be believed to be another. */
static int add_foreign_warning(const struct run *run, struct strv *warnings)
{
	const unsigned long long count = run->outcome.foreign_events;

	return count == 0
	               ? 0
	               : strv_addf(warnings,
	                           "foreign-events: %llu events of the sandbox say that they are "
	                           "of another run and were passed over",
	                           count);
}

/* Any of them may have been output: what it was nobody can tell. */
static int add_bad_lines_warning(const struct run *run, struct strv *warnings)
{
	const unsigned long long count = run->outcome.bad_lines;

	return count == 0
	               ? 0
	               : strv_addf(warnings,
	                           "bad-events: %llu lines of the sandbox are no events and were "
	                           "passed over; output may be missing",
	                           count);
}

static int add_odd_result_warning(const struct run *run, struct strv *warnings)
{
	return run->has_odd_result
	               ? strv_add(warnings,
	                          "result-not-json: the result.json that came back is not "
	                          "JSON, or too large, so there is no result of it")
	               : 0;
}

static bool wanted_egress(const struct run *run)
{
	return run->was_launched && (run->egress.count > 0 || run->options.egress_learn);
}

/* What the gateway wrote; -ENOENT: there was none. */
static int read_egress(struct run *run, struct egress_outcome *ret_outcome, struct strv *warnings)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(0);
	struct resoluto_runtime *runtime = run->place.runtime;
	int r = -ENOENT;

	if (runtime && strcmp(runtime->ops->name, "microvm") == 0)
		r = microvm_egress(runtime, run->id, &text, NULL);
	if (r == -ENOMEM)
		return r;
	if (r < 0 && (r != -ENOENT || wanted_egress(run)))
		return strv_add(warnings, RESOLUTO_WARNING_EGRESS
		                "unknown: what was decided about connections cannot be read");
	return r < 0 ? 0 : egress_outcome_read(text.data ? text.data : "", text.len, ret_outcome);
}

static int take_egress(struct run *run, struct strv *warnings)
{
	struct egress_outcome outcome = { .json = NULL };
	int r = run->outcome.has_left ? 0 : read_egress(run, &outcome, warnings);

	run->result->egress_json = outcome.json ? outcome.json : strdup("[]");
	if (r == 0 && !run->result->egress_json)
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < run->egress_notes.count; i++)
		r = strv_add(warnings, run->egress_notes.items[i]);
	if (r == 0 && outcome.is_lost)
		r = strv_add(
			warnings, RESOLUTO_WARNING_EGRESS
			"lost: the gateway died, and what it had not written down is not known");
	if (r == 0 && outcome.dropped > 0)
		r = strv_addf(warnings,
		              RESOLUTO_WARNING_EGRESS
		              "dropped: %llu decisions about connections are "
		              "left out",
		              (unsigned long long) outcome.dropped);
	return r;
}

/* Sentences of the guest's, and it may be hostile: so many, so long, the others not at all. */
static int take_warnings(struct run *run)
{
	CLEANUP(strv_done) struct strv warnings = { 0 };
	const json_t *told = run->node.root ? run->node.result.warnings : NULL;
	const char *output = output_warning(run);
	int r = output ? strv_add(&warnings, output) : 0;

	if (r == 0)
		r = add_foreign_warning(run, &warnings);
	if (r == 0)
		r = add_bad_lines_warning(run, &warnings);
	if (r == 0)
		r = add_odd_result_warning(run, &warnings);
	if (r == 0)
		r = take_egress(run, &warnings);
	for (size_t i = 0; r == 0 && i < json_array_size(told); i++) {
		const char *text = json_string_value(json_array_get(told, i));

		if (text && text[0] && strlen(text) <= WARNING_BYTES_MAX &&
		    warnings.count < WARNINGS_MAX)
			r = strv_add(&warnings, text);
	}
	run->result->warnings = mem_take(&warnings.items);
	warnings.count = 0;
	return r;
}

/* No pointer of a result is NULL but those that say so. */
static int fill_empty(struct resoluto_result *result)
{
	if (!result->warnings)
		result->warnings = calloc(1, sizeof(*result->warnings));
	if (!result->artifacts)
		result->artifacts = calloc(1, sizeof(*result->artifacts));
	if (!result->substrate_logs)
		result->substrate_logs = strdup("");
	if (!result->staging.why)
		result->staging.why = strdup("");
	return result->warnings && result->artifacts && result->substrate_logs &&
	                       result->staging.why
	               ? 0
	               : -ENOMEM;
}

int run_finish(struct run *run, struct resoluto_result **ret_result)
{
	struct resoluto_result *result = run->result;
	int r = check_evidence(run);

	if (r == 0)
		r = take_verdict(run);
	if (r == 0)
		r = take_warnings(run);
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
