/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "resoluto/err.h"

/* Names come from strangers: nothing of them may end the line or speak to a terminal. */
static void keep_printable(char *text)
{
	for (; *text; text++) {
		if ((unsigned char) *text < 0x20 || *text == 0x7f)
			*text = '?';
	}
}

int resoluto_fail(struct resoluto_err *err, int code, const char *fmt, ...)
{
	va_list ap;

	assert(code < 0);
	if (!err)
		return code;

	err->code = code;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	keep_printable(err->text);
	return code;
}

int resoluto_fail_in(struct resoluto_err *err, int code, const char *fmt, ...)
{
	char inner[RESOLUTO_ERR_TEXT];
	va_list ap;
	size_t used;

	assert(code < 0);
	if (!err)
		return code;

	memcpy(inner, err->text, sizeof(inner));
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);

	used = strlen(err->text);
	snprintf(err->text + used, sizeof(err->text) - used, ": %s", inner);
	keep_printable(err->text);
	err->code = code;
	return code;
}
