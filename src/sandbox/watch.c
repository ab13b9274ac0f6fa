/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/buf.h"
#include "sandbox/watch.h"
#include "wire/reason.h"

/* Why a substrate that never starts a sandbox says it is still waiting (contract section 2). */
static const char *const fatal_reasons[] = {
	"ImagePullBackOff",
	"ErrImagePull",
	"ErrImageNeverPull",
	"InvalidImageName",
	"CreateContainerConfigError",
	"CreateContainerError",
	"RunContainerError",
	"CrashLoopBackOff",
	NULL,
};

void watch_init(struct watch *watch, uint64_t dead_after_ms)
{
	*watch = (struct watch){ .dead_after_ms = dead_after_ms };
	watch->last.phase = RESOLUTO_PHASE_PENDING;
	watch->last.exit_code = -1;
}

void watch_chunk(struct watch *watch, uint64_t now_ms)
{
	watch->quiet_since_ms = now_ms;
}

static bool is_own_reason(const char *reason)
{
	return reason[0] && reason_from_name(reason) != REASON_COUNT;
}

/* Failed for a reason that is not ours: a relay may still be carrying the last objects. */
static bool is_gone(const struct resoluto_status *status)
{
	return status->phase == RESOLUTO_PHASE_UNKNOWN ||
	       (status->phase == RESOLUTO_PHASE_FAILED && !is_own_reason(status->reason));
}

void watch_status(struct watch *watch, const struct resoluto_status *status, bool is_poll,
                  uint64_t now_ms)
{
	bool is_fatal = status->phase == RESOLUTO_PHASE_PENDING &&
	                strv_has(fatal_reasons, status->reason);

	watch->last = *status;
	if (status->phase == RESOLUTO_PHASE_RUNNING && !watch->is_armed) {
		watch->is_armed = true;
		watch->quiet_since_ms = now_ms;
	}
	if (!is_fatal)
		watch->fatal_polls = 0;
	else if (is_poll)
		watch->fatal_polls++;
	if (!is_gone(status))
		watch->gone_polls = 0;
	else if (is_poll)
		watch->gone_polls++;
}

uint64_t watch_left_ms(const struct watch *watch, uint64_t now_ms)
{
	uint64_t quiet = now_ms - watch->quiet_since_ms;

	if (!watch->is_armed)
		return UINT64_MAX;
	return quiet < watch->dead_after_ms ? watch->dead_after_ms - quiet : 0;
}

static bool is_definite_end(const struct resoluto_status *status)
{
	return status->phase == RESOLUTO_PHASE_SUCCEEDED ||
	       (status->phase == RESOLUTO_PHASE_FAILED && is_own_reason(status->reason));
}

enum watch_verdict watch_judge(const struct watch *watch, uint64_t now_ms)
{
	bool window_passed = watch_left_ms(watch, now_ms) == 0;

	if (is_definite_end(&watch->last))
		return WATCH_ENDED;
	if (watch->fatal_polls >= RESOLUTO_FATAL_POLLS)
		return WATCH_UNSTARTABLE;
	if (is_gone(&watch->last)) {
		if (watch->gone_polls < RESOLUTO_FATAL_POLLS)
			return WATCH_GO_ON;
		/* A failure does not come back to life; what is merely out of sight may. */
		if (watch->last.phase == RESOLUTO_PHASE_FAILED || !watch->is_armed || window_passed)
			return WATCH_GONE;
		return WATCH_GO_ON;
	}
	return window_passed ? WATCH_SILENT : WATCH_GO_ON;
}

enum resoluto_disposition watch_disposition(const char *reason)
{
	switch (reason_from_name(reason)) {
	case REASON_DEADLINE:
	case REASON_SIGNAL:
	case REASON_CANCELLED:
	case REASON_CALLER_DIED:
	case REASON_QUOTA:
		return RESOLUTO_STOPPED;
	case REASON_SILENT:
		return RESOLUTO_SILENT;
	case REASON_UNSTARTABLE:
		return RESOLUTO_UNSTARTABLE;
	case REASON_OWN_KERNEL_UNPROVEN:
	case REASON_SHARED_KERNEL:
	case REASON_REFUSED:
		return RESOLUTO_REFUSED;
	default:
		return RESOLUTO_EXTERNAL;
	}
}
