/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * state.h - state.json: what the shim knows of its run (docs/design/channel.md).  Pure.
 *
 * The shim writes it whole at each phase; everybody else reads it as the words of a program that has
 * read hostile bytes: bounded and checked.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "resoluto/err.h"
#include "resoluto/runtime.h"

enum {
	STATE_JSON_MAX = 16 * 1024,
	STATE_DETAIL_MAX = 512,
	STATE_CONFINEMENT_MAX = 16, /* entries */
	STATE_WORD_MAX = 48,        /* bytes of an entry, the 0 included */
	BOOT_ID_SIZE = 37,          /* of 8-4-4-4-12 hex digits and the 0 */
};

struct run_state {
	enum resoluto_phase phase; /* never UNKNOWN */
	char reason[RESOLUTO_REASON_MAX];
	char detail[STATE_DETAIL_MAX];
	pid_t shim_pid, qemu_pid; /* for people only; 0: not known */
	char guest_boot_id[BOOT_ID_SIZE];
	bool own_kernel;             /* the guest's boot id is known and not the host's */
	double started_at, ended_at; /* seconds since the epoch, 0: not yet */
	char confinement[STATE_CONFINEMENT_MAX]
			[STATE_WORD_MAX]; /* what was applied; "" ends the list */
};

int run_state_write(struct buf *out, const struct run_state *state);
/* -EBADMSG: not what a shim writes. */
int run_state_parse(const char *json, size_t len, struct run_state *ret_state,
                    struct resoluto_err *err);
bool run_state_is_final(const struct run_state *state);
/* Add "landlock-7" to the list; a full list or a long word is cut. */
void run_state_add_confinement(struct run_state *state, const char *word);
bool is_boot_id(const char *text); /* 8-4-4-4-12 lower-case hex digits */
