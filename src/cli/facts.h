/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* facts.h - what is installed here: for `doctor` and `version`. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config.h"
#include "resoluto/err.h"
#include "runtime/microvm/kernel.h"

enum {
	FACT_MAX = 160, /* bytes of a version or banner */
};

/* Find a program in PATH, then where administrators' programs are.  *ret_path: free(). */
int fact_find_program(const char *name, char **ret_path);
/* The QEMU that runs would use.  *ret_path: free(); -ENOENT. */
int fact_qemu(const struct config *config, char **ret_path);
/* "7.2.22": the first word with a digit in what `program --version` says. */
int fact_program_version(const char *program, char ret_version[FACT_MAX]);
/* The "Linux version ..." of a kernel image, cut to its version; -ENODATA if it has none to see. */
int fact_kernel_version(const char *path, char ret_version[FACT_MAX]);

/* What runs with this configuration call their kernel (the result's isolation.kernel), "" if none is configured. */
void fact_kernel_name(const struct config *config, char ret_name[KERNEL_NAME_MAX]);
/* 0: the file has the SHA-256 that SHA256SUMS beside it says, -EBADMSG: another one, -ENOENT: nothing is said of it. */
int fact_kernel_sum(const char *path);

/* Pure: does a file that begins with these bytes look like a kernel, or like an initramfs? */
const char *fact_kernel_format(const void *bytes, size_t len); /* "ELF"; NULL: none */
const char *fact_initrd_format(const void *bytes, size_t len); /* "gzip"; NULL: none */
/* Pure: the version in the output of a program; ret_version is "" if there is none. */
void fact_version_in(const char *text, char ret_version[FACT_MAX]);
/* Pure: a QEMU of this version may go on executing code that another processor has replaced (before 8.1;
 * docs/design/machine.md, "Threads of the emulator"). */
bool fact_qemu_keeps_old_code(const char *version);
/* A line "MemAvailable:  123 kB" of /proc/meminfo, in bytes; 0 if it is not there.  Pure. */
uint64_t fact_meminfo(const char *text, const char *name);
