/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * json_read.h - JSON of somebody else, as a tree: text that is wrong is told apart from memory that is
 * short, since only one of them is a verdict.
 */

#include <jansson.h>
#include <stddef.h>

/*
 * flags as of json_loadb().  -EBADMSG: not JSON, or not tame (json_text.h), or not what the flags ask for.
 * -ENOMEM: nothing is known of the text.  *ret_root is the caller's.
 */
int json_read(const char *json, size_t len, size_t flags, json_t **ret_root);
