/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "guest/attribute.h"

enum { ATTRIBUTE_MAX = 64 }; /* bytes of a value that are looked at */

bool attribute_is(int dirfd, const char *device, const char *attribute, const char *value)
{
	CLEANUP(fd_close) int fd = -1;
	char path[PATH_MAX], text[ATTRIBUTE_MAX];
	ssize_t n;

	n = snprintf(path, sizeof(path), "%s/%s", device, attribute);
	if (n < 0 || (size_t) n >= sizeof(path))
		return false;
	fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read_up_to(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return strcmp(text, value) == 0;
}
