/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>

#include "wire/json_read.h"
#include "wire/json_scan.h"

/* Whether it was refused for something that a look at the text alone does not show. */
static bool is_refused_for_more(const json_error_t *error)
{
	switch (json_error_code(error)) {
	case json_error_duplicate_key:
	case json_error_numeric_overflow:
	case json_error_null_character:
	case json_error_null_byte_in_key:
	case json_error_stack_overflow:
		return true;
	default:
		return false;
	}
}

/* Our own reader, which needs no memory, asked for its opinion: jansson calls both "invalid". */
static bool is_json(const char *json, size_t len, size_t flags)
{
	struct json_scan scan = { .at = json, .end = json + len };
	const int first = json_scan_peek(&scan);

	if (!(flags & JSON_DECODE_ANY) && first != '{' && first != '[')
		return false;
	return json_scan_skip(&scan) == 0 && json_scan_end(&scan) == 0;
}

int json_read(const char *json, size_t len, size_t flags, json_t **ret_root)
{
	json_error_t error = { 0 }; /* jansson leaves the code alone when memory was short */

	*ret_root = NULL;
	if (!json || !json_is_tame(json, len))
		return -EBADMSG;
	*ret_root = json_loadb(json, len, flags, &error);
	if (*ret_root)
		return 0;
	return is_refused_for_more(&error) || !is_json(json, len, flags) ? -EBADMSG : -ENOMEM;
}
