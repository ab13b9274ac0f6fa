/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/wait.h>

#include "shim/verdict.h"

/* Nobody stopped it and no manifest came. */
static enum reason own_end(const struct ending *ending)
{
	if (ending->qemu_end == QEMU_END_RESET && ending->console_panics)
		return REASON_GUEST_PANIC;
	if (WIFSIGNALED(ending->wait_status))
		return REASON_EMULATOR_KILLED;
	if (ending->qemu_end == QEMU_END_UNKNOWN)
		return REASON_EMULATOR_FAILED;
	if (!ending->has_hello)
		return REASON_BOOT_FAILED;
	/* The runner gave up, and this is what it could not do. */
	if (ending->store != REASON_NONE)
		return ending->store;
	return ending->qemu_end == QEMU_END_RESET ? REASON_GUEST_RESET : REASON_GUEST_POWER_OFF;
}

struct verdict verdict_of(const struct ending *ending)
{
	/* A deadline that has passed is told even if the runner still managed to finish. */
	if (ending->stop == REASON_DEADLINE)
		return (struct verdict){ RESOLUTO_PHASE_FAILED, REASON_DEADLINE };
	if (ending->has_manifest)
		return (struct verdict){ RESOLUTO_PHASE_SUCCEEDED, REASON_NONE };
	if (ending->stop != REASON_NONE)
		return (struct verdict){ RESOLUTO_PHASE_FAILED, ending->stop };
	return (struct verdict){ RESOLUTO_PHASE_FAILED, own_end(ending) };
}
