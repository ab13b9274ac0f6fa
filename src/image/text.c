/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "image/text.h"

struct clean_text text_clean(const char *bytes)
{
	struct clean_text clean;
	size_t n = 0;

	for (; bytes[n] && n < TEXT_CLEAN_MAX; n++)
		clean.text[n] = bytes[n] >= ' ' && bytes[n] <= '~' ? bytes[n] : '?';
	memcpy(clean.text + n, bytes[n] ? "..." : "", bytes[n] ? 4 : 1);
	return clean;
}
