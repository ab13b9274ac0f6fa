/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * evidence.h - what was proved about the isolation of a run, checked once more on the host.
 *
 * The runner refuses before the program when its boot id is missing or a host's; the shim
 * compares it; here the result is refused if both were wrong.
 *
 * An injected runtime may say that its sandboxes have no kernel of their own.  It is believed in that, since nobody
 * gains by it: nothing is to be proven then, and the result says so, whatever the guest claims.
 */

#include <stdbool.h>

#include "resoluto/err.h"
#include "wire/reason.h"
#include "wire/result.h"

enum { EVIDENCE_BOOT_ID_SIZE = 64 }; /* bytes, the 0 included */

/* The boot id of this machine. */
int evidence_host_boot_id(char ret_id[EVIDENCE_BOOT_ID_SIZE], struct resoluto_err *err);

struct evidence {
	const char *runtime_json; /* what the runtime says; may be NULL */
	const char *runtime_name;
	const struct node_result *node; /* what the guest says; may be NULL */
	const char *host_boot_id;
	bool ran;
	bool may_share; /* "own_kernel": false of the runtime is its word; never of the microVM, which proves it */
};

/*
 * The `isolation` object of the result into *ret_json (free()), and the reason to refuse the result: REASON_NONE
 * if there is none.  Pure.  -ENOMEM.
 */
int evidence_judge(const struct evidence *evidence, char **ret_json, enum reason *ret_reason);

/* The runtime knows the boot id of a guest: its program was about to start. */
bool evidence_has_guest(const char *runtime_json);
/* The `canary` array of the result, of what a guest says; NULL when out of memory. */
char *evidence_canary(const json_t *canary);
