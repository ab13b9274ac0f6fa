/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "wire/reason.h"

struct entry {
	const char *name, *sentence;
};

static const struct entry entries[REASON_COUNT] = {
	[REASON_NONE] = { "", "" },
	[REASON_VERSION_MISMATCH] = { "version-mismatch",
	                              "the image carries a runner of another version: rebuild the "
	                              "image or use the runner that is injected" },
	[REASON_CANARY_FAILED] = { "canary-failed", "the isolation could not be verified before "
	                                            "the program started, so it was not started" },
	[REASON_OWN_KERNEL_UNPROVEN] = { "own-kernel-unproven",
	                                 "the sandbox could not prove that it has a kernel of its "
	                                 "own, so the program was not started" },
	[REASON_SHARED_KERNEL] = { "shared-kernel", "the sandbox runs on the kernel of the host, "
	                                            "so the program was not started" },
	[REASON_INPUTS_FAILED] = { "inputs-failed",
	                           "the workspace could not be unpacked in the sandbox" },
	[REASON_SECRETS_FAILED] = { "secrets-failed",
	                            "a secret could not be resolved in the sandbox" },
	[REASON_SETUP_FAILED] = { "setup-failed",
	                          "the setup hook failed, so the program was not started" },
	[REASON_NOT_FOUND] = { "not-found",
	                       "the program was not found in the image or the workspace" },
	[REASON_NOT_EXECUTABLE] = { "not-executable",
	                            "the program was found but could not be executed" },
	[REASON_ARGUMENTS_TOO_LARGE] = { "arguments-too-large",
	                                 "arguments and environment are larger than a Linux kernel "
	                                 "takes" },
	[REASON_OUT_OF_MEMORY] = { "out-of-memory", "the program needed more memory than the "
	                                            "sandbox has: raise --memory" },
	[REASON_OUTPUTS_FAILED] = { "outputs-failed",
	                            "the outputs could not be collected in the sandbox" },
	[REASON_GUEST_DISK_FULL] = { "guest-disk-full", "the file system of the sandbox is full: "
	                                                "raise --memory, or give it a --disk" },
	[REASON_GUEST_PANIC] = { "guest-panic", "the kernel of the sandbox panicked; its last "
	                                        "words are in the substrate logs" },
	[REASON_GUEST_OUT_OF_MEMORY] = { "guest-out-of-memory",
	                                 "the kernel of the sandbox ran out of memory and found "
	                                 "nothing left to end: raise --memory" },
	[REASON_GUEST_TRIPLE_FAULT] = { "guest-triple-fault",
	                                "the kernel of the sandbox faulted so badly that the "
	                                "machine reset itself without a word" },
	[REASON_GUEST_RESET] = { "guest-reset", "the sandbox was restarted from inside before it "
	                                        "could report" },
	[REASON_GUEST_POWER_OFF] = { "guest-power-off", "the sandbox was switched off from inside "
	                                                "before it could report" },
	[REASON_BOOT_FAILED] = { "boot-failed", "the kernel of the sandbox did not start the "
	                                        "runner; the substrate logs tell how far it came" },
	[REASON_EMULATOR_KILLED] = { "emulator-killed",
	                             "QEMU was killed from outside: by somebody, or by this host "
	                             "for want of memory" },
	[REASON_EMULATOR_CRASHED] = { "emulator-crashed",
	                              "QEMU faulted or did what it may not; where the program is "
	                              "hostile, take it for an attack" },
	[REASON_EMULATOR_FAILED] = { "emulator-failed", "QEMU ended or stopped by itself; the "
	                                                "substrate logs hold what it said" },
	[REASON_PROTOCOL] = { "protocol", "the sandbox sent what no runner sends and was stopped" },
	[REASON_STORE_FULL] = { "store-full", "the disk that holds the run is full" },
	[REASON_STORE_FAILED] = { "store-failed", "the store of the run could not be written" },
	[REASON_CALLER_DIED] = { "caller-died",
	                         "the process that had started the run ended before it" },
	[REASON_DEADLINE] = { "deadline", "the deadline was reached" },
	[REASON_QUOTA] = { "quota", "a quota was exceeded; what was within it is there" },
	[REASON_SHIM_KILLED] = { "shim-killed",
	                         "the supervisor of the sandbox (resoluto-shim) was killed" },
	[REASON_SIGNAL] = { "signal", "stopped by a signal" },
	[REASON_CANCELLED] = { "cancelled", "stopped by the program that had started the run" },
	[REASON_SILENT] = { "silent", "the sandbox said nothing for longer than --dead-after" },
	[REASON_UNSTARTABLE] = { "unstartable", "the sandbox cannot be started" },
	[REASON_EXTERNAL] = { "external", "the sandbox went away and nobody can tell why" },
	[REASON_NO_RESULT] = { "no-result", "the sandbox ended without a result" },
	[REASON_BAD_RESULT] = { "bad-result", "the result of the sandbox is not valid" },
	[REASON_BAD_OUTPUT] = { "bad-output", "the archive of outputs was refused" },
	[REASON_REFUSED] = { "refused", "refused before the start" },
};

const char *reason_name(enum reason reason)
{
	return reason < REASON_COUNT ? entries[reason].name : "";
}

const char *reason_sentence(enum reason reason)
{
	return reason < REASON_COUNT ? entries[reason].sentence : "";
}

enum reason reason_from_name(const char *name)
{
	for (int i = 0; i < REASON_COUNT; i++) {
		if (strcmp(entries[i].name, name) == 0)
			return (enum reason) i;
	}
	return REASON_COUNT;
}
