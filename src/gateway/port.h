/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* port.h - the gateway's end of port `net`: clients are the streams of egress/mux.h. */

#include "egress/mux.h"
#include "gateway/gateway.h"
#include "resoluto/err.h"

enum {
	PORT_READ_MAX = 16 * 1024, /* bytes at once: each frame may cost an answer */
	PORT_OUT_FULL = MUX_OUT_SOFT + 256 * 1024, /* bytes that wait; above, nothing is read */
};

struct port {
	struct gateway *gateway;
	struct mux *mux;
	struct loop_watch watch; /* .fd is borrowed */
	struct loop_timer flush; /* due at once when there is something to write */
	bool was_full;           /* connections wait for room in what is to be written */
};

/* Nothing is written before port_begin(). */
int port_init(struct port *port, struct gateway *gateway, int fd, struct resoluto_err *err);
int port_begin(struct port *port);
/* What can be written, once. */
void port_flush(struct port *port);
void port_done(struct port *port);
