/* SPDX-License-Identifier: Apache-2.0 */
/* run_finish.c - the result of a run: its isolation checked once more, its times, its verdict. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "sandbox/run.h"

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

int run_finish(struct run *run, struct resoluto_result **ret_result)
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
