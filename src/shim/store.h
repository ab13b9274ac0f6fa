/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * store.h - the guest's objects on their way into the run's directory of the conduit.
 *
 * One writer per place of the demux.  A failure says how to answer the guest; what is told
 * stored keeps the durability of docs/design/channel.md.
 *
 * Everything is charged before it is done, and nothing is given back: what a guest begins and spoils costs it as
 * much as what it stores.
 */

#include <stdbool.h>
#include <stdint.h>

#include "conduit/local.h"
#include "shim/demux.h"
#include "wire/quota.h"
#include "wire/reason.h"

enum {
	STORE_RESERVE = 64 * 1024 * 1024, /* bytes of the file system that a run leaves free */
	STORE_KEPT_MAX = 10,              /* objects that are flushed one by one */
};

struct store {
	int prefix_fd; /* borrowed */
	uint64_t room; /* bytes of the file system that may still be taken */
	struct resoluto_quotas limits;
	uint64_t bytes, objects;          /* charged so far */
	uint64_t written[DEMUX_PUTS_MAX]; /* bytes of the object of each place */
	enum key_kind kind[DEMUX_PUTS_MAX];
	/* Objects that would not outlive a power cut.  Few of them stay open to be flushed one by one: to flush
	 * the whole file system waits for whatever other programs wrote to it, a second on a busy machine. */
	unsigned unflushed;
	int kept[STORE_KEPT_MAX]; /* owned, as many; none if they are more */
	struct local_writer writers[DEMUX_PUTS_MAX];
	enum reason trouble; /* of the last object; REASON_NONE: it was stored */
	/* A flush of what had been acknowledged failed.  The kernel tells that once and drops the bytes: trying again
	 * would succeed and mean nothing. */
	bool has_lost;
	/* The manifest waits for store_flush(): the run is to be dropped at its end, or let go before that. */
	bool is_lazy;
};

int store_init(struct store *store, int prefix_fd, const struct resoluto_quotas *quotas,
               struct resoluto_err *err);
void store_done(struct store *store); /* what is not whole is removed */

/* 0; the enum frame_nak to answer with (positive), the words in err; or -EDQUOT over a quota, which ends the run:
 * err says which. */
int store_begin(struct store *store, unsigned slot, const struct demux_put *put,
                struct resoluto_err *err);
int store_write(struct store *store, unsigned slot, const void *bytes, size_t len,
                struct resoluto_err *err);
int store_commit(struct store *store, unsigned slot, enum key_kind kind, struct resoluto_err *err);
void store_abort(struct store *store, unsigned slot);
/* Everything that was stored is on disk then; or a negative errno value, and trouble and has_lost say so. */
int store_flush(struct store *store, struct resoluto_err *err);
