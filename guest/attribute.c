/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "guest/attribute.h"

void attribute_read(int dirfd, const char *device, const char *attribute,
                    char ret_value[ATTRIBUTE_SIZE])
{
	CLEANUP(fd_close) int fd = -1;
	char path[PATH_MAX];
	ssize_t n;

	ret_value[0] = '\0';
	n = snprintf(path, sizeof(path), "%s/%s", device, attribute);
	if (n < 0 || (size_t) n >= sizeof(path))
		return;
	fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read_up_to(fd, ret_value, ATTRIBUTE_SIZE - 1);
	ret_value[n > 0 ? n : 0] = '\0';
	ret_value[strcspn(ret_value, "\n")] = '\0';
}
