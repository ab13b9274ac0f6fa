/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * state.h - state.json: what the shim knows of its run (docs/design/channel.md).
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
	STATE_SPARE_SIZE = 8 * 1024, /* bytes, twice what a shim has to say */
	STATE_DETAIL_MAX = RESOLUTO_DETAIL_MAX,
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

/*
 * A file of STATE_SPARE_SIZE bytes that is made with the run.  Where the disk is full at the end, the last state is
 * written over it and takes the place of state.json: else a full disk would look like a shim that was killed.
 */
#define STATE_SPARE "state.spare"
/* Anew; uid (0: the caller's) is who will write it. */
int run_state_reserve(int dirfd, uid_t uid, struct resoluto_err *err);
int run_state_use_reserve(int dirfd, const char *json, size_t len);

bool run_state_is_final(const struct run_state *state);
/* As a status of the runtime. */
void run_state_tell(const struct run_state *state, struct resoluto_status *ret_status);
/* Add "landlock-7" to the list; a full list or a long word is cut. */
void run_state_add_confinement(struct run_state *state, const char *word);
/* Whether a clock may say so: seconds since the epoch, up to the year 9999; 0 too. */
bool is_time(double seconds);
bool is_boot_id(const char *text); /* 8-4-4-4-12 lower-case hex digits */
