/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "guest/verdict.h"

void verdict_set(struct verdict *verdict, enum reason reason, const char *fmt, ...)
{
	va_list ap;

	if (verdict->reason != REASON_NONE)
		return;
	verdict->reason = reason;
	va_start(ap, fmt);
	vsnprintf(verdict->detail, sizeof(verdict->detail), fmt, ap);
	va_end(ap);
}

void verdict_exit(struct verdict *verdict, int wait_status)
{
	verdict->ran = true;
	verdict->has_exit_code = true;
	if (WIFSIGNALED(wait_status)) {
		const char *name = sigdescr_np(WTERMSIG(wait_status));

		verdict->signal = WTERMSIG(wait_status);
		verdict->exit_code = 128 + verdict->signal;
		if (verdict->reason == REASON_NONE)
			snprintf(verdict->detail, sizeof(verdict->detail),
			         "killed by signal %d (%s)", verdict->signal,
			         name ? name : "real-time signal");
		return;
	}
	verdict->exit_code = WEXITSTATUS(wait_status);
}

void verdict_blame(struct verdict *verdict, bool was_stalled, uint64_t oom_kills, bool is_full)
{
	if (!verdict->ran || verdict->exit_code == 0)
		return;
	if (was_stalled)
		verdict_set(verdict, REASON_OUT_OF_MEMORY,
		            "it stood still for lack of memory and was killed");
	else if (oom_kills > 0)
		verdict_set(verdict, REASON_OUT_OF_MEMORY,
		            "the guest's kernel killed %llu of its processes for lack of memory",
		            (unsigned long long) oom_kills);
	else if (is_full)
		verdict_set(verdict, REASON_GUEST_DISK_FULL,
		            "no space was left when the program ended");
}

bool verdict_is_success(const struct verdict *verdict)
{
	return verdict->reason == REASON_NONE && verdict->has_exit_code && verdict->exit_code == 0;
}

static json_t *probe_json(const char *name, bool is_ok, const char *detail)
{
	return json_pack("{s:s, s:b, s:s}", "probe", name, "ok", is_ok, "detail", detail);
}

json_t *verdict_canary_json(const struct canary *canary)
{
	const struct canary_probe *probes[] = { &canary->external,       &canary->metadata,
		                                &canary->egress.refused, &canary->egress.allowed,
		                                &canary->egress.address, &canary->egress.address6 };
	const size_t all = sizeof(probes) / sizeof(probes[0]);
	json_t *array = json_array();

	for (size_t i = 0; i < (canary->has_egress ? all : 2); i++)
		(void) json_array_append_new(array, probe_json(probes[i]->name,
		                                               probes[i]->outcome == CANARY_BLOCKED,
		                                               probes[i]->detail));
	(void) json_array_append_new(array,
	                             probe_json("store", canary->store_ok, canary->store_detail));
	return array;
}
