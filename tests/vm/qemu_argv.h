/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* qemu_argv.h - what stands in QEMU's place finds its descriptors in QEMU's own arguments. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the socket with this id; where there is none, the stand-in ends with 90. */
static inline int qemu_argv_fd(char **argv, const char *id)
{
	char pattern[64];

	snprintf(pattern, sizeof(pattern), "socket,id=%s,fd=", id);
	for (; *argv; argv++) {
		if (strncmp(*argv, pattern, strlen(pattern)) == 0)
			return atoi(*argv + strlen(pattern));
	}
	exit(90);
}
