/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* identity.h - has this sandbox a kernel of its own?  Its boot id against those of the hosts. */

#include <stddef.h>

#include "wire/reason.h"

enum { BOOT_ID_SIZE = 37 }; /* a UUID as text, the 0 included */

/*
 * REASON_NONE: proven.  REASON_SHARED_KERNEL: ours is in the list.  REASON_OWN_KERNEL_UNPROVEN: either is
 * missing, or one of them is no boot id.  host_boot_ids: parted by commas; NULL: missing.  Pure.
 */
enum reason identity_judge(const char *guest_boot_id, const char *host_boot_ids);

/* This kernel's boot id; "" if it has none or it cannot be read. */
void identity_read(char ret_boot_id[BOOT_ID_SIZE]);
