/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "egress/dns.h"
#include "guest/egress_answer.h"
#include "guest/egress_probe.h"

enum { TTL_S = 60 }; /* an address stays for good, so nobody is wrong who keeps it */

/*
 * Names that can be remembered are told at once and once: so few have room in any port, however full of DATA.  One
 * that cannot would be told as often as it is asked for (the gateway writes it down once), so it has to wait for room.
 */
static bool ask(struct egress_service *service, const char *name, bool is_remembered)
{
	return (is_remembered || mux_wants_more(service->mux)) &&
	       mux_ask(service->mux, name, strlen(name)) == 0;
}

static void tell_malformed(struct egress_service *service, const char *name)
{
	const size_t count = service->malformed_count;
	const bool is_remembered = count < EGRESS_MALFORMED_MAX;

	for (size_t i = 0; i < count; i++) {
		if (strcmp(service->malformed[i], name) == 0)
			return;
	}
	if (ask(service, name, is_remembered) && is_remembered)
		snprintf(service->malformed[service->malformed_count++], EGRESS_MALFORMED_SIZE,
		         "%s", name);
}

/* What is refused, or only learned, is written down by the gateway; each name once. */
static void tell(struct egress_service *service, const struct dns_query *query)
{
	struct egress_host *host;

	if (service->is_lost)
		return;
	if (query->name_reason != EGRESS_NONE) {
		tell_malformed(service, query->text);
		return;
	}
	if (egress_is_probe(&query->host) || egress_names_find(&service->told, &query->host))
		return;
	if (ask(service, query->host.text, service->told.count < EGRESS_NAMES_MAX))
		(void) egress_names_add(&service->told, &query->host, &host);
}

static bool is_allowed(const struct egress_service *service, const struct dns_query *query)
{
	return query->name_reason == EGRESS_NONE &&
	       (query->type == DNS_A || query->type == DNS_AAAA) &&
	       egress_policy_has_name(service->policy, &query->host);
}

static void fill_address(const struct egress_host *host, uint16_t type, struct dns_address *ret)
{
	const struct in_addr four = egress_address4(host->number);
	const struct in6_addr six = egress_address6(host->number);

	ret->type = (enum dns_type) type;
	if (type == DNS_A)
		memcpy(ret->bytes, &four, sizeof(four));
	else
		memcpy(ret->bytes, &six, sizeof(six));
}

/* An address is answered only when somebody listens there. */
static enum dns_rcode answer_allowed(struct egress_service *service, const struct dns_query *query,
                                     struct dns_address *ret_address, size_t *ret_count)
{
	struct egress_host *host;

	if (egress_names_add(&service->names, &query->host, &host) < 0)
		return DNS_SERVFAIL;
	if (query->type == DNS_AAAA && !service->has_six)
		return DNS_NOERROR;
	if (egress_listen(service, host, query->type == DNS_A ? AF_INET : AF_INET6) < 0)
		return DNS_SERVFAIL;
	fill_address(host, query->type, ret_address);
	*ret_count = 1;
	return DNS_NOERROR;
}

static enum dns_rcode decide(struct egress_service *service, const struct dns_query *query,
                             struct dns_address *ret_address, size_t *ret_count)
{
	if (service->is_lost)
		return DNS_SERVFAIL;
	if (is_allowed(service, query)) {
		if (service->policy->is_learning)
			tell(service, query);
		return answer_allowed(service, query, ret_address, ret_count);
	}
	if (query->name_reason != EGRESS_NONE ||
	    !egress_policy_has_name(service->policy, &query->host))
		tell(service, query);
	return DNS_NXDOMAIN;
}

size_t egress_dns_answer(struct egress_service *service, const uint8_t *query_bytes, size_t len,
                         bool is_tcp, uint8_t ret_answer[EGRESS_ANSWER_MAX])
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(EGRESS_ANSWER_MAX);
	struct dns_address address;
	struct dns_query query;
	size_t count = 0;
	int rcode = dns_parse(query_bytes, len, &query);

	if (rcode < 0)
		return 0;
	if (rcode == DNS_NOERROR)
		rcode = (int) decide(service, &query, &address, &count);
	if (dns_answer(&query, (enum dns_rcode) rcode, &address, count, TTL_S, !is_tcp, &out) < 0)
		return 0;
	memcpy(ret_answer, out.data, out.len);
	return out.len;
}
