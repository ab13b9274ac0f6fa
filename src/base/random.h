/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

enum { RANDOM_ID_SIZE = 17 }; /* 16 hex digits and the 0 */

/* Fill with random bytes from the kernel; 0 or a negative errno value. */
int random_bytes(void *bytes, size_t len);
/* 16 lower-case hex digits. */
int random_id(char ret_id[RANDOM_ID_SIZE]);
