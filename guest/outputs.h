/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* outputs.h - what matches in the workspace, as one archive in the outbox. */

#include "base/buf.h"
#include "guest/ship.h"
#include "wire/pack.h"

enum {
	OUTPUTS_HELD =
		64 *
		1024, /* bytes of the archive held back until it is sure that there will be one */
	OUTPUTS_TRIES = 3, /* how often the whole is packed again when the store failed */
};

/*
 * Pack what matches the globs to KEY_OUTBOX_OUTPUT.  Returns 1 when it is stored, 0 when nothing matched and
 * nothing was stored.  -EPIPE and -EPROTO: the way out is broken for good; the rest concerns only the outputs.
 * progress: as in struct pack_options.
 */
int outputs_ship(int workspace_fd, const struct strv *globs, struct ship *ship,
                 void (*progress)(void *ctx, uint64_t done), void *ctx,
                 struct pack_report *ret_report, struct resoluto_err *err);
