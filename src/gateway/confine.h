/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * confine.h - what the gateway may still do once it is set up: read and write the descriptors it has, and
 * open IPv4 and IPv6 sockets.  All of it is required; a kernel without it refuses.  What must fail is tried
 * by tests/egress/test_confinement.py.
 */

#include <stdint.h>
#include <sys/types.h>

#include "egress/policy.h"
#include "gateway/config.h"
#include "resoluto/err.h"

enum {
	CONFINE_FILES = 2304,                      /* descriptors: streams, twice, and the rest */
	CONFINE_DATA = 192 * 1024 * 1024,          /* bytes of memory */
	CONFINE_ADDRESSES = 1024u * 1024u * 1024u, /* bytes of address space */
	CONFINE_FILE_SIZE = 64 * 1024 * 1024,      /* bytes that a file, the rows, may have */
};

/*
 * In this order: limits, user (config->uid), no capability, not dumpable, landlock, seccomp.  After it no
 * file can be opened, no program run, no process made or signalled, no port listened on, and TCP is
 * connected only to ports that the policy, the proxy or a name server need.
 */
int gateway_confine(const struct gateway_config *config, struct resoluto_err *err);
