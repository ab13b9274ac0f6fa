/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_client_hello.c - the bytes of a client, all at once and in segments (their length comes from the last
 * byte): the same comes of both, and what is passed is never more than what came.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "egress/client_hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

static enum egress_reason feed(const uint8_t *data, size_t size, size_t segment,
                               struct client_hello *hello, size_t *passed)
{
	enum egress_reason reason = EGRESS_NONE;
	size_t end = 0;

	client_hello_init(hello, 1);
	*passed = 0;
	while (reason == EGRESS_NONE && end < size) {
		size_t pass;

		end = size - end < segment ? size : end + segment;
		reason = client_hello_look(hello, data + *passed, end - *passed, 0, &pass);
		require(pass <= end - *passed && (pass == 0 || hello->is_whole));
		*passed += pass;
	}
	return reason;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct client_hello at_once, in_parts;
	size_t passed_at_once, passed_in_parts;
	enum egress_reason reason;

	if (size == 0)
		return 0;
	reason = feed(data, size, size, &at_once, &passed_at_once);
	require(reason == feed(data, size, data[size - 1] % 64 + 1, &in_parts, &passed_in_parts));
	require(at_once.is_whole == in_parts.is_whole);
	if (reason == EGRESS_NONE)
		require(passed_at_once == passed_in_parts);
	if (!at_once.is_whole)
		return 0;
	require(strcmp(at_once.name.text, in_parts.name.text) == 0);
	require(egress_name_parse(at_once.name.text, strlen(at_once.name.text), &in_parts.name) ==
	        EGRESS_NONE);
	return 0;
}
