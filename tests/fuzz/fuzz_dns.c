/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_dns.c - a question: every answer to it is within its bound and repeats id and question. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "egress/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

static void check_answer(const struct dns_query *query, int code, const uint8_t *data, size_t count,
                         bool is_udp)
{
	struct dns_address addresses[DNS_RECORDS_MAX];
	struct buf out = BUF_INIT(DNS_MESSAGE_MAX);
	size_t bound = is_udp ? DNS_UDP_MAX : DNS_MESSAGE_MAX;
	const uint8_t *at;

	for (size_t i = 0; i < count; i++)
		addresses[i] = (struct dns_address){ .type = i % 3 ? DNS_A : DNS_AAAA };
	require(dns_answer(query, (enum dns_rcode) code, addresses, count, 60, is_udp, &out) == 0);
	at = (const uint8_t *) out.data;
	require(out.len >= 12 && out.len <= bound && memcmp(at, data, 2) == 0);
	require(at[2] & 0x80 && (at[3] & 15) == (code & 15));
	require(memcmp(at + 12, query->question, query->question_len) == 0);
	require(!is_udp || query->has_edns || out.len <= DNS_UDP_MIN);
	require(code == 0 || (at[6] == 0 && at[7] == 0));
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dns_query query;
	int code = dns_parse(data, size, &query);

	if (code < 0) {
		require(code == -EBADMSG);
		return 0;
	}
	require(strlen(query.text) <= DNS_WIRE_NAME_MAX && query.udp_size >= DNS_UDP_MIN);
	require(query.question_len <= sizeof(query.question));
	require(query.question_len <= size - 12 &&
	        memcmp(query.question, data + 12, query.question_len) == 0);
	if (code == DNS_NOERROR && query.name_reason == EGRESS_NONE)
		require(strcasecmp(query.text, query.host.text) == 0);
	check_answer(&query, code, data, size % (DNS_RECORDS_MAX + 1), false);
	check_answer(&query, code, data, size % (DNS_RECORDS_MAX + 1), true);
	return 0;
}
