/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * tail.h - read a run's event chunks as they come (seed 000).
 *
 * Chunks are asked for by their number, so that a new one costs one get, however many there are.
 */

#include "resoluto/conduit.h"
#include "wire/chunk_reader.h"

enum { TAIL_CHUNK_MAX = 4 * 1024 * 1024 }; /* bytes of a chunk a reader takes; over it: -EFBIG */

struct tail {
	struct resoluto_conduit *conduit; /* borrowed */
	const char *prefix;               /* borrowed */
	struct chunk_reader *reader;      /* owned */
	uint32_t next;                    /* number of the chunk that is read next */
	bool has_manifest;
	uint32_t total;      /* once has_manifest */
	bool knows_workload; /* reading began in the middle of a program's output (seek.h) */
};

/* The key of an object of the run; -EINVAL: too long. */
int tail_key(const struct tail *tail, const char *name, char ret_key[RESOLUTO_KEY_MAX + 1],
             struct resoluto_err *err);
int tail_init(struct tail *tail, struct resoluto_conduit *conduit, const char *prefix);
void tail_done(struct tail *tail);
/* Read up to max_chunks new chunks.  Returns how many were read (0: nothing new), or what fn
 * returned, or a failure of the conduit. */
int tail_poll(struct tail *tail, unsigned max_chunks, chunk_event_fn *fn, void *ctx,
              struct resoluto_err *err);
/* Look for the manifest, if not yet seen.  1: all chunks it promises have been read. */
int tail_is_complete(struct tail *tail, struct resoluto_err *err);
