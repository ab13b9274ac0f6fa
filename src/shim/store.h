/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * store.h - the guest's objects on their way into the run's directory of the conduit.
 *
 * One writer per place of the demux.  A failure says how to answer the guest; what is told
 * stored keeps the durability of docs/design/channel.md.
 */

#include <stdbool.h>
#include <stdint.h>

#include "conduit/local.h"
#include "shim/demux.h"
#include "wire/reason.h"

#define STORE_BYTES_MAX (64ull << 30) /* of all objects of a run */

enum { STORE_RESERVE = 64 * 1024 * 1024 }; /* bytes of the file system that a run leaves free */

struct store {
	int prefix_fd; /* borrowed */
	uint64_t bytes_left;
	bool has_unflushed; /* objects that would not outlive a power cut */
	struct local_writer writers[DEMUX_PUTS_MAX];
	enum reason trouble; /* of the last object; REASON_NONE: it was stored */
};

int store_init(struct store *store, int prefix_fd, struct resoluto_err *err);
void store_done(struct store *store); /* what is not whole is removed */

/* 0, or the enum frame_nak to answer with (positive), the words in err. */
int store_begin(struct store *store, unsigned slot, const char *key, struct resoluto_err *err);
int store_write(struct store *store, unsigned slot, const void *bytes, size_t len,
                struct resoluto_err *err);
int store_commit(struct store *store, unsigned slot, enum key_kind kind, struct resoluto_err *err);
void store_abort(struct store *store, unsigned slot);
