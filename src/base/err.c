/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "resoluto/err.h"

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
	err->code = code;
	return code;
}
