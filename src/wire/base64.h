/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* base64.h - RFC 4648, the standard alphabet with padding.  Pure. */

#include <stddef.h>

#include "base/buf.h"

static inline size_t base64_size(size_t len)
{
	return (len + 2) / 3 * 4;
}

/* Append base64_size(len) characters. */
int base64_add(struct buf *out, const void *bytes, size_t len);
/* Append what the text stands for.  -EBADMSG: not base64, or padding that is wrong or holds bits. */
int base64_add_decoded(struct buf *out, const char *text, size_t len);
