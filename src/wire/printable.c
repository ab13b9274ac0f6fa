/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "wire/printable.h"

enum {
	BYTE_MAX = 4, /* what one byte of a name may become: \xNN */
	TAIL = 16,    /* bytes of the end of a long name that are shown: its suffix says most */
};

static size_t add_byte(char *text, size_t at, unsigned char byte)
{
	if (byte >= 0x20 && byte < 0x7f && byte != '\\') {
		text[at] = (char) byte;
		return at + 1;
	}
	return at + (size_t) snprintf(text + at, BYTE_MAX + 1, "\\x%02x", byte);
}

const char *printable(const char *name, char text[PRINTABLE_SIZE])
{
	size_t head = PRINTABLE_SIZE - (TAIL * BYTE_MAX) - sizeof("...");
	size_t len = strlen(name), at = 0, i;

	for (i = 0; i < len && at + BYTE_MAX <= head; i++)
		at = add_byte(text, at, (unsigned char) name[i]);
	if (len - i > TAIL) {
		memcpy(text + at, "...", 3);
		at += 3;
		i = len - TAIL;
	}
	for (; i < len; i++)
		at = add_byte(text, at, (unsigned char) name[i]);
	text[at] = '\0';
	return text;
}
