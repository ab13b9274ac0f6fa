/* SPDX-License-Identifier: Apache-2.0 */
/* alloc.c - every allocation of egress fails in turn. */
#include "alloc_fail.h"
#include "check.h"

#include "base/cleanup.h"
#include "egress/dns.h"
#include "egress/mux.h"
#include "egress/policy.h"
#include "egress/row.h"
#include "wire/frame.h"

static int fill_policy(void)
{
	CLEANUP(egress_policy_done) struct egress_policy policy = EGRESS_POLICY_NONE;
	char text[] = "a:1\n";

	for (int i = 0; i < 20; i++) {
		int r;

		text[0] = (char) ('a' + i);
		r = egress_policy_add_file(&policy, "x", (struct span){ text, sizeof(text) - 1 },
		                           NULL, NULL, NULL);
		if (r < 0) {
			CHECK(policy.count == (size_t) i);
			return r;
		}
	}
	return 0;
}

/* Lists of 8, 16 and 32. */
static void policies_survive(void)
{
	CHECK(alloc_fail_each(fill_policy, -ENOMEM) == 3);
}

static void ignore(void *ctx, uint32_t stream, enum egress_reason reason)
{
	(void) ctx;
	(void) stream;
	(void) reason;
}

static int use_mux(void)
{
	static const struct mux_calls calls = { .reset = ignore };
	static const char hello_and_half[] = "\x0c\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\x0c\0";
	struct mux *mux = NULL;
	uint32_t stream;
	int r = mux_new(MUX_GUEST, &calls, NULL, &mux);

	if (r == 0)
		r = mux_open(mux, 443, "a.org", 5, &stream);
	if (r == 0)
		r = mux_feed(mux, hello_and_half, sizeof(hello_and_half) - 1, NULL);
	if (r == 0)
		r = mux_send(mux, stream, "0123456789abcdef", 16);
	for (int i = 0; r == 0 && i < 20; i++) {
		size_t count = mux_stream_count(mux), len = mux_out(mux)->len;

		r = mux_open(mux, 443, "another.example.org", 19, &stream);
		if (r < 0)
			CHECK(mux_stream_count(mux) == count && mux_out(mux)->len == len);
	}
	if (r == 0) {
		size_t count = mux_stream_count(mux);

		r = mux_reset(mux, stream, EGRESS_IDLE);
		CHECK(mux_stream_count(mux) == count - (r == 0 ? 1 : 0));
	}
	mux_free(mux);
	return r;
}

/* The mux and its streams, what is half there, what is to be sent (thrice as it grows), a reset. */
static void streams_survive(void)
{
	CHECK(alloc_fail_each(use_mux, -ENOMEM) >= 25);
}

static int write_and_read_row(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(65536);
	struct egress_line line = { .kind = EGRESS_LINE_ROW, .row.name = "a.org" }, again;
	int r = egress_line_write(&line, &out);

	CHECK(r == 0 || out.len == 0);
	if (r == 0)
		r = egress_line_parse(out.data, out.len - 1, &again, NULL);
	return r;
}

/* The row the line, a text. */
static void rows_survive(void)
{
	CHECK(alloc_fail_each(write_and_read_row, -ENOMEM) >= 3);
}

static int answer_question(void)
{
	static const char question[] = "\1\2\1\0\0\1\0\0\0\0\0\0\1a\3org\0\0\1\0\1";
	static const struct dns_address addresses[DNS_RECORDS_MAX] = { { .type = DNS_A } };
	CLEANUP(buf_done) struct buf out = BUF_INIT(65536);
	struct dns_query query;
	int r;

	CHECK(dns_parse(question, sizeof(question) - 1, &query) == DNS_NOERROR);
	r = dns_answer(&query, DNS_NOERROR, addresses, 1, 1, true, &out);
	CHECK(r == 0 || out.len == 0);
	return r;
}

static void answers_survive(void)
{
	CHECK(alloc_fail_each(answer_question, -ENOMEM) == 1);
}

int main(void)
{
	RUN(policies_survive);
	RUN(streams_survive);
	RUN(rows_survive);
	RUN(answers_survive);
	return check_done();
}
