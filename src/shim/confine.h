/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * confine.h - what QEMU and the shim may still do: landlock for files, seccomp for system calls.
 *
 * Both are required.  A kernel without them refuses the run; nothing weaker is tried.
 * docs/design/confinement.md lists the rules and why; tests/vm/test_launcher.py tries what must fail.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "resoluto/err.h"

enum confine_right {
	CONFINE_READ = 1,  /* read files, list directories */
	CONFINE_EXEC = 2,  /* execute, which mapping a library also is */
	CONFINE_WRITE = 4, /* write files that are there */
	CONFINE_TREE =
		8, /* READ and WRITE, and make, rename and remove plain files and directories */
};

/* Everything beneath a directory, or one file. */
struct confine_place {
	const char *path; /* NULL: fd.  One that does not exist is left out */
	int fd;
	unsigned rights;
};

/* Whether this kernel has both; *ret_landlock is the version of landlock. */
int confine_check(unsigned *ret_landlock, struct resoluto_err *err);

/*
 * A landlock ruleset that leaves only the places, no TCP and no abstract sockets; with cage_signals
 * none to processes outside either (from landlock 6 on).  *ret_ruleset: a descriptor.
 */
int confine_ruleset(const struct confine_place *places, size_t count, bool cage_signals,
                    int *ret_ruleset, struct resoluto_err *err);
/* Enter it, for good: no_new_privs, then landlock.  No memory is allocated. */
int confine_enter(int ruleset);

/* For the process that becomes QEMU: all but what QEMU never does.  It may execute exec_fd once. */
int confine_qemu_calls(int exec_fd);
/* For the shim: nothing but what it does from now on; signals only through qemu_pidfd. */
int confine_shim_calls(int qemu_pidfd);
