/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "gateway/bridge.h"

/* What a policy is worth has been asked for while learning. */
static const uint16_t learning_ports[] = { 80, 443 };

/* Nothing that nft would read as more than a word. */
static bool is_word(const char *text, size_t max)
{
	static const char good[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	const size_t len = strlen(text);

	return len > 0 && len <= max && strspn(text, good) == len && text[0] != '-';
}

int bridge_make(const char *run, const char *interface, const char *v4, const char *v6,
                uint16_t port, uint16_t names_port, struct bridge *ret_bridge,
                struct resoluto_err *err)
{
	struct bridge bridge = { .has_v4 = v4,
		                 .has_v6 = v6,
		                 .port = port,
		                 .names_port = names_port };

	if (!is_word(run, BRIDGE_RUN_MAX))
		return resoluto_fail(err, -EINVAL, "the run of a bridge must be a short word");
	if (!is_word(interface, BRIDGE_INTERFACE_MAX))
		return resoluto_fail(err, -EINVAL, "interface is no name of one");
	if ((v4 && inet_pton(AF_INET, v4, &bridge.v4) != 1) ||
	    (v6 && inet_pton(AF_INET6, v6, &bridge.v6) != 1))
		return resoluto_fail(err, -EINVAL, "v4 or v6 of the bridge is no address");
	if (!v4 && !v6)
		return resoluto_fail(err, -EINVAL, "a bridge needs an address, v4 or v6");
	if (!port || !names_port || port == names_port)
		return resoluto_fail(err, -EINVAL, "a bridge needs two ports");
	memcpy(bridge.run, run, strlen(run));
	memcpy(bridge.interface, interface, strlen(interface));
	*ret_bridge = bridge;
	return 0;
}

static int compare_ports(const void *a, const void *b)
{
	return (int) *(const uint16_t *) a - (int) *(const uint16_t *) b;
}

/* Every port of the policy once, in order. */
static int add_ports(const struct egress_policy *policy, struct buf *out)
{
	const size_t extra = policy->is_learning ? 2 : 0;
	CLEANUP(mem_free) uint16_t *ports = calloc(policy->count + extra + 1, sizeof(*ports));
	int r = 0;
	size_t count = 0;

	if (!ports)
		return -ENOMEM;
	for (size_t i = 0; i < policy->count; i++)
		ports[count++] = policy->patterns[i].port;
	for (size_t i = 0; i < extra; i++)
		ports[count++] = learning_ports[i];
	qsort(ports, count, sizeof(*ports), compare_ports);
	for (size_t i = 0; i < count && r == 0; i++) {
		if (i == 0 || ports[i] != ports[i - 1])
			r = buf_addf(out, "%s%u", i == 0 ? "" : ", ", ports[i]);
	}
	return r;
}

/* Of one family: questions of DNS and connections come to us, whatever address they were meant for. */
static int add_family(const struct bridge *bridge, const char *ports, bool is_v6, struct buf *out)
{
	char text[INET6_ADDRSTRLEN], address[INET6_ADDRSTRLEN + 2];
	const char *family = is_v6 ? "ip6" : "ip";
	int r;

	inet_ntop(is_v6 ? AF_INET6 : AF_INET, is_v6 ? (const void *) &bridge->v6 : &bridge->v4,
	          text, sizeof(text));
	snprintf(address, sizeof(address), is_v6 ? "[%s]" : "%s", text);
	r = buf_addf(out,
	             "\t\tiifname \"%s\" meta nfproto %s meta l4proto { tcp, udp } th dport 53 "
	             "dnat %s to %s:%u\n",
	             bridge->interface, is_v6 ? "ipv6" : "ipv4", family, address,
	             bridge->names_port);
	if (r == 0 && ports[0])
		r = buf_addf(
			out,
			"\t\tiifname \"%s\" meta nfproto %s tcp dport { %s } dnat %s to %s:%u\n",
			bridge->interface, is_v6 ? "ipv6" : "ipv4", ports, family, address,
			bridge->port);
	return r;
}

static int add_redirection(const struct bridge *bridge, const char *ports, struct buf *out)
{
	int r = buf_add_str(out,
	                    "\tchain to-us {\n"
	                    "\t\ttype nat hook prerouting priority dstnat - 1; policy accept;\n");

	if (r == 0 && bridge->has_v4)
		r = add_family(bridge, ports, false, out);
	if (r == 0 && bridge->has_v6)
		r = add_family(bridge, ports, true, out);
	return r < 0 ? r : buf_add_str(out, "\t}\n");
}

/* To the host only what was redirected, and what IPv6 needs to find its neighbours; further nothing. */
static int add_refusals(const struct bridge *bridge, struct buf *out)
{
	return buf_addf(out,
	                "\tchain to-the-host {\n"
	                "\t\ttype filter hook input priority filter - 1; policy accept;\n"
	                "\t\tiifname != \"%s\" accept\n"
	                "\t\tct status dnat tcp dport { %u, %u } accept\n"
	                "\t\tct status dnat udp dport %u accept\n"
	                "\t\tct state established accept\n"
	                "\t\ticmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept\n"
	                "\t\tmeta l4proto tcp reject with tcp reset\n"
	                "\t\treject\n"
	                "\t}\n"
	                "\tchain further {\n"
	                "\t\ttype filter hook forward priority filter - 1; policy accept;\n"
	                "\t\tiifname \"%s\" meta l4proto tcp reject with tcp reset\n"
	                "\t\tiifname \"%s\" reject\n"
	                "\t\toifname \"%s\" drop\n"
	                "\t}\n",
	                bridge->interface, bridge->port, bridge->names_port, bridge->names_port,
	                bridge->interface, bridge->interface, bridge->interface);
}

/* A table must be there to be deleted. */
int bridge_no_rules(const struct bridge *bridge, struct buf *out)
{
	return buf_addf(out, "table inet resoluto_%s\ndelete table inet resoluto_%s\n", bridge->run,
	                bridge->run);
}

int bridge_rules(const struct bridge *bridge, const struct egress_policy *policy, struct buf *out)
{
	CLEANUP(buf_done) struct buf ports = BUF_INIT(BRIDGE_RULES_MAX);
	int r = add_ports(policy, &ports);

	if (r == 0)
		r = bridge_no_rules(bridge, out);
	if (r == 0)
		r = buf_addf(out, "table inet resoluto_%s {\n", bridge->run);
	if (r == 0)
		r = add_redirection(bridge, ports.data ? ports.data : "", out);
	if (r == 0)
		r = add_refusals(bridge, out);
	return r < 0 ? r : buf_add_str(out, "}\n");
}
