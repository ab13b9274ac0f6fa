/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* host.h - what this host is: its memory and its boot. */

#include <stddef.h>
#include <stdint.h>

#include "resoluto/err.h"
#include "runtime/microvm/state.h"

struct host_memory {
	uint64_t total, available; /* bytes */
};

int host_memory(struct host_memory *ret_memory, struct resoluto_err *err);
/* Pure: the text of /proc/meminfo. */
int host_memory_parse(const char *text, struct host_memory *ret_memory);
int host_boot_id(char ret_id[BOOT_ID_SIZE], struct resoluto_err *err);
