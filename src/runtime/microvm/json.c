/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/microvm/json.h"

json_t *json_text(const char *text)
{
	CLEANUP(mem_free) char *clean = NULL;
	json_t *json = json_string(text);

	if (json)
		return json;
	clean = strdup(text);
	if (!clean)
		return NULL;
	for (char *at = clean; *at; at++) {
		if ((unsigned char) *at >= 0x80)
			*at = '?';
	}
	return json_string(clean);
}

int json_copy_text(char *to, size_t size, const char *text)
{
	size_t len = strlen(text);

	if (len >= size)
		return -EBADMSG;
	memcpy(to, text, len + 1);
	return 0;
}

static int add_bytes(const char *bytes, size_t len, void *out)
{
	return buf_add(out, bytes, len) < 0 ? -1 : 0;
}

int json_write(struct buf *out, const json_t *json)
{
	if (json_dump_callback(json, add_bytes, out, JSON_COMPACT | JSON_ENSURE_ASCII) < 0)
		return -E2BIG;
	return 0;
}
