/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* json.h - the few words between jansson and the rest of this folder. */

#include <jansson.h>

#include "base/buf.h"

static inline void json_done(json_t **json) /* a cleanup function */
{
	json_decref(*json);
	*json = NULL;
}

/* A JSON string of text whose bytes may be anything: what is not UTF-8 becomes '?' byte by byte. */
json_t *json_text(const char *text);
/* Copy a text that was read; -EBADMSG if it does not fit into size bytes. */
int json_copy_text(char *to, size_t size, const char *text);
/* Append compact, ASCII-only JSON. */
int json_write(struct buf *out, const json_t *json);
