/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>

#include "shim/verdict.h"

/* QEMU went and had nothing to say of its guest. */
static enum reason emulator_end(int wait_status)
{
	static const int own_faults[] = {
		SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS
	};

	if (!WIFSIGNALED(wait_status))
		return REASON_EMULATOR_FAILED;
	for (size_t i = 0; i < sizeof(own_faults) / sizeof(own_faults[0]); i++) {
		if (WTERMSIG(wait_status) == own_faults[i])
			return REASON_EMULATOR_CRASHED;
	}
	return REASON_EMULATOR_KILLED;
}

/* The machine was told to stop or to restart. */
static enum reason orderly_end(const struct ending *ending)
{
	if (!ending->has_hello)
		return REASON_BOOT_FAILED;
	/* The runner gave up, and this is what it could not do. */
	if (ending->store != REASON_NONE)
		return ending->store;
	if (ending->qemu_end == QEMU_END_RESET && !ending->leaves_by_reset)
		return REASON_GUEST_RESET;
	return REASON_GUEST_POWER_OFF;
}

/* One event of QEMU for three ends: the console tells them apart. */
static enum reason reset_end(const struct ending *ending)
{
	switch (ending->last_word) {
	case LAST_WORD_PANIC:
		return REASON_GUEST_PANIC;
	case LAST_WORD_NO_MEMORY:
		return REASON_GUEST_OUT_OF_MEMORY;
	case LAST_WORD_RESTART:
		return orderly_end(ending);
	case LAST_WORD_NONE:
		break;
	}
	return REASON_GUEST_TRIPLE_FAULT;
}

/* Nobody stopped it and no manifest came. */
static enum reason own_end(const struct ending *ending)
{
	switch (ending->qemu_end) {
	case QEMU_END_UNKNOWN:
		return emulator_end(ending->wait_status);
	case QEMU_END_RESET:
		return reset_end(ending);
	case QEMU_END_SHUTDOWN:
		return orderly_end(ending);
	case QEMU_END_SIGNAL:
		break;
	}
	return REASON_EMULATOR_KILLED;
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
