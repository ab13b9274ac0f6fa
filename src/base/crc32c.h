/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli, RFC 3720 appendix B.4) of more bytes; start with 0.  Our own, since no C
 * library that also links statically into the runner offers it. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t len);
