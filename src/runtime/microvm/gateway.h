/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * gateway.h - the process that decides about a run's connections, started before its QEMU
 * (docs/design/egress.md).  It ends with the socket whose other end QEMU gets; nobody has to stop it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/proc.h"
#include "resoluto/err.h"
#include "resoluto/runtime.h"

#define GATEWAY_PROGRAM "resoluto-gateway"
#define GATEWAY_ROWS "egress.jsonl" /* in the run directory */

enum {
	GATEWAY_START_MS = 30 * 1000, /* to read what it needs and lock itself down */
	GATEWAY_CONFIG_BYTES = 2 * 1024 * 1024,
	GATEWAY_ROWS_BYTES = 64 * 1024 * 1024, /* of the file, that are read */
	GATEWAY_END_MS = 5 * 1000,             /* from the end of QEMU to that of the gateway */
};

struct gateway {
	const char *program; /* its path */
	const struct resoluto_launch_spec *spec;
	const char *proxy; /* NULL: none */
	uint32_t uid;      /* to become; 0: stay who we are */
	int rundir_fd;
};

/* Whether a run needs one.  An empty list is none. */
bool gateway_is_needed(const struct resoluto_launch_spec *spec);
/* Its configuration.  Pure. */
int gateway_config_write(const struct gateway *gateway, struct buf *out);
/*
 * Returns when it has locked itself down: *ret_port_fd is for QEMU.  A gateway that does not come so far is a
 * failure, with its own words.
 */
int gateway_start(const struct gateway *gateway, struct proc *ret_proc, int *ret_port_fd,
                  struct resoluto_err *err);
/*
 * The rows of a run whose machine is off, when its gateway has written the last one: lines of JSON.  -ENOENT: it
 * had no gateway; -ETIMEDOUT: that one has not ended by limit_ms.
 */
int gateway_read_rows(int rundir_fd, uint64_t limit_ms, struct buf *ret_text,
                      struct resoluto_err *err);
