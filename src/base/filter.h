/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * filter.h - the parts that all lists of system calls are made of (libseccomp).  A library of its own: the
 * runner in the guest has none of it.
 */

#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>

void filter_done(scmp_filter_ctx *filter); /* a cleanup function */
/* Memory, time, signals of its own and its end: what every process of ours that reads hostile bytes may call. */
extern const char *const filter_plain_calls[];

/* Names this kernel's architecture or libseccomp does not know cannot be called either, and are passed
 * over: the default of the filter decides then.  names ends with NULL. */
int filter_add_names(scmp_filter_ctx filter, uint32_t action, const char *const *names);
/* One rule that counts only where argument `arg` compares so. */
int filter_add_if(scmp_filter_ctx filter, uint32_t action, int number, unsigned arg,
                  enum scmp_compare op, scmp_datum_t a, scmp_datum_t b);
/* One rule for each value of argument `arg`, told by its lower half: of an unsigned int the kernel looks at
 * no more. */
int filter_add_values(scmp_filter_ctx filter, uint32_t action, int number, unsigned arg,
                      const uint32_t *values, size_t count);
/* From now on, for good.  Other architectures of the same CPU (32 bit, x32) end the process. */
int filter_load(scmp_filter_ctx filter);
