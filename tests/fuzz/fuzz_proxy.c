/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_proxy.c - what a proxy answers to a CONNECT.  However it is cut, the answer is the same, and a head that was read is
 * one: it begins as HTTP/1 and ends with an empty line.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/proxy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

/* A shorter beginning says the same, or that it is not enough. */
static void check_beginnings(const uint8_t *data, size_t size, int whole, size_t used)
{
	unsigned status;
	size_t taken;

	for (size_t len = 0; len < size && len < 300; len++) {
		int r = proxy_answer(data, len, &status, &taken);

		require(r == -EAGAIN || r == whole);
		require(r != 0 || (taken == used && len >= used));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned status = 0;
	size_t used = 0;
	int r = proxy_answer(data, size, &status, &used);

	require(r == 0 || r == -EAGAIN || r == -EBADMSG || r == -E2BIG);
	require(r != -EAGAIN || size <= PROXY_ANSWER_MAX);
	if (r == 0) {
		require(used >= 16 && used <= size && used <= PROXY_ANSWER_MAX);
		require(memcmp(data, "HTTP/1.", 7) == 0 &&
		        memcmp(data + used - 4, "\r\n\r\n", 4) == 0);
		require(status <= 999);
	}
	check_beginnings(data, size, r, used);
	return 0;
}
