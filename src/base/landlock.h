/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * landlock.h - the kernel's way for a process to give up files, TCP and signals.  Rights that later
 * versions bring are asked for where the kernel knows them; older headers do not name all.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	LANDLOCK_FS_RIGHTS_1 = (1 << 13) - 1,
	LANDLOCK_FS_REFER = 1 << 13,     /* version 2 */
	LANDLOCK_FS_TRUNCATE = 1 << 14,  /* version 3 */
	LANDLOCK_FS_IOCTL_DEV = 1 << 15, /* version 5 */
	LANDLOCK_TCP = 3,                /* version 4: bind and connect */
	LANDLOCK_SCOPE_SOCKETS = 1,      /* version 6: abstract ones */
	LANDLOCK_SCOPE_SIGNALS = 2,      /* version 6 */
};

/* What is taken away, but for what rules give back. */
struct landlock_taken {
	uint64_t files, tcp, scopes;
};

/* At least 1, or a negative errno value: this kernel has none. */
int landlock_version(void);
/* All of it that this version knows. */
struct landlock_taken landlock_all(int version);
/* A ruleset, as a descriptor. */
int landlock_new(const struct landlock_taken *taken);
/* Rights beneath fd, a file or a directory; each must be one that was taken. */
int landlock_give_files(int ruleset, int fd, uint64_t rights);
int landlock_give_tcp_connect(int ruleset, uint16_t port);
/* For good: no_new_privs, then the rules.  No memory is allocated. */
int landlock_enter(int ruleset);
