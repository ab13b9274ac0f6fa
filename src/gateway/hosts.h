/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * hosts.h - the host's own table of names, as hosts(5) has it.  Pure.  Lines that are wrong are passed over,
 * as the C library does; whatever it says, its addresses are judged like those of a name server.
 */

#include <netinet/in.h>
#include <stddef.h>

#include "egress/name.h"

enum {
	HOSTS_FILE_MAX = 256 * 1024, /* bytes; a larger file is not read */
	HOSTS_ENTRIES_MAX = 4096,
};

struct hosts_entry {
	struct in6_addr address; /* of IPv4: the first four bytes */
	sa_family_t family;
	char *name; /* lower case; owned */
};

struct hosts {
	struct hosts_entry *entries;
	size_t count;
};

/* -ENOMEM; entries over the bound are left out. */
int hosts_parse(const char *text, size_t len, struct hosts *ret_hosts);
void hosts_done(struct hosts *hosts);
