/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * quantity.h - "4Gi", "500M", "1024": amounts of bytes as Kubernetes writes them, and durations.
 */

#include <stddef.h>
#include <stdint.h>

#include "resoluto/err.h"

/* Digits, an optional decimal fraction, then Ki Mi Gi Ti Pi (powers of 1024), K k M G T P (powers of
 * 1000) or nothing.  -EINVAL for anything else, -ERANGE over 2^63-1. A fraction is rounded up. */
int quantity_parse_bytes(const char *text, uint64_t *ret_bytes, struct resoluto_err *err);
/* "2", "0.5", "500m": thousandths of a CPU. */
int quantity_parse_cpus(const char *text, uint32_t *ret_milli, struct resoluto_err *err);
/* "90", "90s", "1.5h", "250ms", "2m", "1d": milliseconds; a bare number is seconds. */
int quantity_parse_duration(const char *text, uint64_t *ret_ms, struct resoluto_err *err);
/* "4.0 GiB" for people. */
void quantity_format_bytes(uint64_t bytes, char *ret_text, size_t cap);
