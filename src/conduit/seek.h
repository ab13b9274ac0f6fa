/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * seek.h - let a tail begin in the middle of a run.
 *
 * The numbers of output (seq) rise from chunk to chunk, and so the chunk that holds one is found by
 * bisection: for a run of N chunks some 4 log2(N) gets, most of them of a chunk's first bytes.  Which span
 * is open there, and whether it is a program's, is found the same way.
 *
 * A guest that numbers nonsense costs at most SEEK_GETS_MAX gets; then, as in any doubt, the tail begins
 * earlier than it might: what is told from there on is never less than asked for.
 */

#include "conduit/tail.h"
#include "resoluto/driver.h"

enum {
	SEEK_GETS_MAX = 64 * 1024,
	SEEK_BEGINNING =
		64, /* chunks in which the start of the program is looked for; a setup hook may fill more */
};

/* All before a call of tail_poll(). */

/* So that the piece of output number from_seq will be told, and few before it. */
int tail_seek(struct tail *tail, uint64_t from_seq, struct resoluto_err *err);
/* Behind all chunks there are; knows_workload tells whether the start of a program was seen on the way, where no manifest
 * says that the guest can tell it. */
int tail_seek_end(struct tail *tail, struct resoluto_err *err);
/* So that the last `lines` lines of these streams will be told.  *ret_from_seq is their first piece. */
int tail_seek_lines(struct tail *tail, uint64_t lines, enum resoluto_streams streams,
                    uint64_t *ret_from_seq, struct resoluto_err *err);
