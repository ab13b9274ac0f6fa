/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * launcher.h - start QEMU so that a guest which takes it over has gained nothing: with the
 * descriptors it was given, its libraries and data to read, and no way to reach anything else.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/proc.h"
#include "resoluto/err.h"

struct launcher {
	const char *program; /* absolute path of QEMU: an ELF file */
	const char *const *argv;
	const struct proc_fd *fds; /* all it gets besides stderr_fd */
	size_t fd_count;
	int kernel_fd, initrd_fd; /* files it opens again through /proc/self/fd */
	int stderr_fd;
	bool needs_kvm;
	uint64_t file_size_max; /* bytes: no file may be made larger */
};

int launcher_start(const struct launcher *launcher, struct proc *ret_proc,
                   struct resoluto_err *err);
