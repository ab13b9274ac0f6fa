/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_http_head.c - the bytes of a client, all at once and in segments (their length comes from the last byte): the
 * same comes of both.  Where a head was passed, the host is in it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "egress/http_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct egress_name name = { "a.org" };

static void require(int truth)
{
	if (!truth)
		abort();
}

static enum egress_reason feed(const uint8_t *data, size_t size, size_t segment,
                               struct http_head *head, size_t *passed)
{
	enum egress_reason reason = EGRESS_NONE;
	size_t end = 0;

	http_head_init(head, &name, 80);
	*passed = 0;
	while (reason == EGRESS_NONE && end < size) {
		size_t pass;

		end = size - end < segment ? size : end + segment;
		reason = http_head_look(head, data + *passed, end - *passed, &pass);
		require(pass <= end - *passed);
		*passed += pass;
	}
	return reason;
}

/* How often it is there, in whatever case. */
static size_t count_hosts(const uint8_t *data, size_t size)
{
	size_t count = 0;

	for (size_t i = 0; i + 5 <= size; i++)
		count += strncasecmp((const char *) data + i, "a.org", 5) == 0;
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_head at_once, in_parts;
	size_t passed_at_once, passed_in_parts;
	enum egress_reason reason;

	if (size == 0)
		return 0;
	reason = feed(data, size, size, &at_once, &passed_at_once);
	require(reason == feed(data, size, data[size - 1] % 64 + 1, &in_parts, &passed_in_parts));
	require(passed_at_once == passed_in_parts && at_once.requests == in_parts.requests);
	if (reason == EGRESS_NONE)
		require(http_head_is_between(&at_once) == http_head_is_between(&in_parts));
	require(count_hosts(data, passed_at_once) >= at_once.requests);
	return 0;
}
