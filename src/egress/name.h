/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * name.h - host names, strictly: what policy, responder, SNI parser and resolver all compare.  Pure.
 *
 * Letters, digits, hyphens (not first or last of a label) and dots; labels of 1 to 63 bytes, 253 in
 * all; case folded, one trailing dot dropped; an underscore is refused.  A name whose last label is a
 * number (decimal, octal or 0x) is an address to some reader of it, and refused as one.
 */

#include <stddef.h>

#include "egress/reason.h"

enum { EGRESS_NAME_MAX = 253 };

struct egress_name {
	char text[EGRESS_NAME_MAX + 1]; /* lower case, no trailing dot, NUL-terminated */
};

/* EGRESS_NONE, EGRESS_NAME_MALFORMED or EGRESS_NAME_ADDRESS; *ret_name is set only with the first. */
enum egress_reason egress_name_parse(const void *bytes, size_t len, struct egress_name *ret_name);
