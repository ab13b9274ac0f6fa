/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ports.h - virtio-serial ports by their names. */

#include <stdbool.h>
#include <stdint.h>

#include "resoluto/err.h"

enum {
	PORT_WAIT_MS = 60 * 1000
}; /* the host tells of its ports only after the driver was loaded */

/* Is there any by now? */
bool ports_are_there(void);
/* Open the port called name for reading and writing, not blocking.  Waits until it is there and the host holds its other
 * end.  Returns the descriptor or a negative errno value. */
int port_open(const char *name, struct resoluto_err *err);
/* The kernel shows a port's name before it has heard that the host holds the other end, and until then a port
 * looks hung up.  -ENOTCONN: it still does at give_up_ms of clock_mono_ms(). */
int port_await_host(int fd, uint64_t give_up_ms);
