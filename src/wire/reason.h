/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * reason.h - the closed list of reasons a run can end for, and what each says to a person.
 *
 * docs/result.md and spec/run-result.schema.json list the same names; a test compares them.
 */

enum reason {
	REASON_NONE, /* "" */
	/* told by the runner in result.json */
	REASON_VERSION_MISMATCH,    /* version-mismatch */
	REASON_CANARY_FAILED,       /* canary-failed */
	REASON_OWN_KERNEL_UNPROVEN, /* own-kernel-unproven: an id is missing */
	REASON_SHARED_KERNEL,       /* shared-kernel: the guest's boot id is a host's */
	REASON_INPUTS_FAILED,       /* inputs-failed */
	REASON_SECRETS_FAILED,      /* secrets-failed */
	REASON_SETUP_FAILED,        /* setup-failed */
	REASON_NOT_FOUND,           /* not-found: exit code 127 */
	REASON_NOT_EXECUTABLE,      /* not-executable: exit code 126 */
	REASON_ARGUMENTS_TOO_LARGE, /* arguments-too-large: exit code 126 */
	REASON_OUT_OF_MEMORY,       /* out-of-memory: the guest's kernel killed it */
	REASON_OUTPUTS_FAILED,      /* outputs-failed */
	REASON_GUEST_DISK_FULL,     /* guest-disk-full */
	/* told by the shim */
	REASON_GUEST_PANIC,         /* guest-panic */
	REASON_GUEST_OUT_OF_MEMORY, /* guest-out-of-memory: the panic of a kernel without memory */
	REASON_GUEST_TRIPLE_FAULT,  /* guest-triple-fault: a reset without a word */
	REASON_GUEST_RESET,         /* guest-reset: told to restart, on a machine with a switch */
	REASON_GUEST_POWER_OFF,     /* guest-power-off: without a manifest */
	REASON_BOOT_FAILED,         /* boot-failed: the runner never said hello */
	REASON_EMULATOR_KILLED,     /* emulator-killed: by a signal that others send */
	REASON_EMULATOR_CRASHED,    /* emulator-crashed: by a signal of its own making */
	REASON_EMULATOR_FAILED,     /* emulator-failed: ended or stopped by itself */
	REASON_PROTOCOL,            /* protocol: the guest sent what no runner sends */
	REASON_STORE_FULL,          /* store-full */
	REASON_STORE_FAILED,        /* store-failed */
	REASON_CALLER_DIED,         /* caller-died */
	REASON_DEADLINE,            /* deadline: exit code 124 */
	REASON_QUOTA,               /* quota */
	/* told by the host */
	REASON_SHIM_KILLED, /* shim-killed */
	REASON_SIGNAL,      /* signal: the caller was asked to stop */
	REASON_CANCELLED,   /* cancelled: the program that started the run stopped it */
	REASON_SILENT,      /* silent */
	REASON_UNSTARTABLE, /* unstartable */
	REASON_EXTERNAL,    /* external: gone, nobody knows why */
	REASON_NO_RESULT,   /* no-result: a manifest but no result.json */
	REASON_BAD_RESULT,  /* bad-result: result.json does not parse */
	REASON_BAD_OUTPUT,  /* bad-output: the archive that came back was refused */
	REASON_REFUSED,     /* refused: before the start; the detail says why */
	REASON_COUNT,
};

const char *reason_name(enum reason reason);     /* "guest-panic"; "" for REASON_NONE */
const char *reason_sentence(enum reason reason); /* for people: what happened and what to do */
enum reason reason_from_name(const char *name);  /* REASON_COUNT if it is none of the list */
