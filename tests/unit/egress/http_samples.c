/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_samples.c - what real HTTP clients said (tests/fuzz/record_requests.py), in other segments than theirs: all of
 * it passes, in order, and to another host none.
 *
 * usage: unit-egress-http_samples FOLDER
 */
#include <dirent.h>
#include <fcntl.h>

#include "check.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "egress/http_head.h"

enum {
	SAMPLE_MAX = 65536, /* bytes */
	ROUNDS = 20,        /* of random segments */
	CLIENTS_MIN = 10,
};

static const char *folder;
static struct buf sample;
static const char *sample_name;
static uint32_t dice;

/* The next of a row of numbers that is the same in every run (xorshift). */
static uint32_t roll(uint32_t sides)
{
	dice ^= dice << 13;
	dice ^= dice >> 17;
	dice ^= dice << 5;
	return dice % sides;
}

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
		size_t len = segment ? segment : 1 + roll(roll(2) ? 2000 : 50), pass;

		end = len < sample.len - end ? end + len : sample.len;
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

static uint64_t check_sample(void)
{
	uint64_t requests = feed_all(1 << 20);
	enum egress_reason reason;
	size_t passed;

	CHECK(feed_all(1) == requests);
	for (int i = 0; i < ROUNDS; i++)
		CHECK(feed_all(0) == requests);
	CHECK(feed("b.org", 1 << 20, &reason, &passed) == 0);
	CHECK(reason == EGRESS_HTTP_HOST_OTHER && passed == 0);
	return requests;
}

static void every_client(void)
{
	CLEANUP(dir_close) DIR *dir = opendir(folder);
	const struct dirent *entry;
	uint64_t requests = 0;
	int count = 0;

	CHECK(dir);
	while ((entry = readdir(dir))) {
		if (strncmp(entry->d_name, "client-", 7) != 0)
			continue;
		buf_done(&sample);
		sample_name = entry->d_name;
		CHECK(read_file_at(dirfd(dir), entry->d_name, SAMPLE_MAX, &sample, NULL) == 0);
		dice = 2463534242;
		requests += check_sample();
		count++;
	}
	CHECK(count >= CLIENTS_MIN && requests >= 2 * CLIENTS_MIN);
}

int main(int argc, char *argv[])
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	folder = argv[1];
	RUN(every_client);
	buf_done(&sample);
	return check_done();
}
