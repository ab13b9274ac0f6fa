/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ports.h - virtio-serial ports by their names. */

#include "resoluto/err.h"

enum {
	PORT_WAIT_MS = 60 * 1000
}; /* the host tells of its ports only after the driver was loaded */

/* Open the port called name for reading and writing, not blocking.  Waits until it is there.
 * Returns the descriptor or a negative errno value. */
int port_open(const char *name, struct resoluto_err *err);
