/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * keeper.h - the process that sets the rules of a bridge and takes them away.  It keeps the right to, and reads nothing of
 * anybody; the gateway proper is its child.
 */

#include <sys/types.h>

#include "gateway/config.h"
#include "resoluto/err.h"

enum {
	KEEPER_NFT_MS = 30 * 1000, /* for one transaction */
	KEEPER_END_MS = 5 * 1000,  /* for the child to write its last row */
};

/* Makes the child: *ret_pid is 0 in it.  *ret_control: its end of a socket to say "ready" by one byte and to end when it
 * ends; the keeper's end of it. */
int keeper_fork(pid_t *ret_pid, int *ret_control, struct resoluto_err *err);
/*
 * In the keeper, to the end.  life_fd: a socket; one byte is sent on it when the rules are in force, and its end ends
 * all.  Takes control.
 */
int keeper_keep(const struct gateway_config *config, int life_fd, pid_t pid, int control,
                struct resoluto_err *err);
/* Take away rules that a keeper left which was killed. */
int keeper_sweep(const struct bridge *bridge, struct resoluto_err *err);
