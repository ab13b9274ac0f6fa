/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_samples.c - what real HTTP clients said (tests/fuzz/record_requests.py), in other segments than theirs: all of
 * it passes, in order, and to another host none.
 *
 * usage: unit-egress-http_samples FOLDER
 */
#include "egress/http_head.h"
#include "samples.h"

enum { CLIENTS_MIN = 10 };

static uint64_t requests_of_all;

/* How many requests passed of those for `host`; segments of `segment` bytes, 0: of random length. */
static uint64_t feed(const char *host, size_t segment, enum egress_reason *ret_reason,
                     size_t *ret_passed)
{
	struct egress_name name = { "" };
	struct http_head head;

	CHECK(egress_name_parse(host, strlen(host), &name) == EGRESS_NONE);
	http_head_init(&head, &name, 80);
	*ret_reason = EGRESS_NONE;
	*ret_passed = 0;
	for (size_t end = 0; *ret_reason == EGRESS_NONE && end < sample.len;) {
		size_t pass;

		end += sample_segment(segment, sample.len - end);
		*ret_reason = http_head_look(&head, sample.data + *ret_passed, end - *ret_passed,
		                             &pass);
		*ret_passed += pass;
	}
	CHECK(*ret_reason != EGRESS_NONE || http_head_is_between(&head));
	return head.requests;
}

static uint64_t feed_all(size_t segment)
{
	enum egress_reason reason;
	size_t passed;
	uint64_t requests = feed("a.org", segment, &reason, &passed);

	if (reason != EGRESS_NONE)
		printf("# %s: %s after %zu bytes\n", sample_name, egress_reason_name(reason),
		       passed);
	CHECK(reason == EGRESS_NONE && passed == sample.len && requests > 0);
	return requests;
}

static void check_sample(void)
{
	uint64_t requests = feed_all(1 << 20);
	enum egress_reason reason;
	size_t passed;

	CHECK(feed_all(1) == requests);
	for (int i = 0; i < ROUNDS; i++)
		CHECK(feed_all(0) == requests);
	CHECK(feed("b.org", 1 << 20, &reason, &passed) == 0);
	CHECK(reason == EGRESS_HTTP_HOST_OTHER && passed == 0);
	requests_of_all += requests;
}

static bool is_client(const char *name)
{
	return strncmp(name, "client-", 7) == 0;
}

static void every_client(void)
{
	CHECK(samples_each(is_client, check_sample) >= CLIENTS_MIN);
	CHECK(requests_of_all >= 2 * CLIENTS_MIN);
}

int main(int argc, char *argv[])
{
	samples_take_folder(argc, argv);
	RUN(every_client);
	buf_done(&sample);
	return check_done();
}
