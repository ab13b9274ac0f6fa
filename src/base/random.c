/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>

#include "base/random.h"

int random_bytes(void *bytes, size_t len)
{
	char *at = bytes;

	while (len > 0) {
		ssize_t n = getrandom(at, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t) n;
	}
	return 0;
}

int random_id(char ret_id[RANDOM_ID_SIZE])
{
	uint64_t bits;
	int r = random_bytes(&bits, sizeof(bits));

	if (r < 0)
		return r;
	snprintf(ret_id, RANDOM_ID_SIZE, "%016llx", (unsigned long long) bits);
	return 0;
}
