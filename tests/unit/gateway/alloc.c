/* SPDX-License-Identifier: Apache-2.0 */
/* alloc.c - every allocation of the gateway's pure parts, and of a connection, fails in turn. */
#include "alloc_fail.h"
#include "check.h"

#include <string.h>

#include "base/cleanup.h"
#include "gateway/bridge.h"
#include "gateway/config.h"
#include "gateway/conn.h"
#include "gateway/hosts.h"
#include "gateway/names.h"

static int parse_config(void)
{
	static const char json[] =
		"{\"schema\": 1, \"uid\": 0, \"patterns\": [\"a.org\", \"b.org\"], \"learn\": "
		"false,"
		" \"wide\": false, \"proxy\": \"http://u:p@proxy:3128\", \"connect_ms\": 10,"
		" \"idle_ms\": 10, \"handshake_ms\": 10}";
	struct gateway_config config = GATEWAY_CONFIG_NONE;
	int r = gateway_config_parse(json, sizeof(json) - 1, &config, NULL);

	CHECK(r == 0 || !config.policy.patterns);
	gateway_config_done(&config);
	return r;
}

/* The list of patterns; the login as bytes, as text, and its larger buffer. */
static void configurations_survive(void)
{
	CHECK(alloc_fail_each(parse_config, -ENOMEM) >= 3);
}

static int parse_hosts(void)
{
	static const char text[] = "10.0.0.1 a b\n10.0.0.2 c\n";
	struct hosts hosts = { 0 };
	int r = hosts_parse(text, sizeof(text) - 1, &hosts);

	CHECK(r < 0 ? hosts.count == 0 : hosts.count == 3);
	hosts_done(&hosts);
	return r;
}

static void tables_of_hosts_survive(void)
{
	CHECK(alloc_fail_each(parse_hosts, -ENOMEM) >= 4);
}

static int number_names(void)
{
	struct names names = { 0 };
	struct egress_name name;
	int r = 0;

	for (int i = 0; i < 3 && r >= 0; i++) {
		char text[] = "a.org";

		text[0] = (char) ('a' + i);
		CHECK(egress_name_parse(text, 5, &name) == EGRESS_NONE);
		r = names_number(&names, &name);
		CHECK(names.count == (size_t) (r < 0 ? i : i + 1));
	}
	names_done(&names);
	return r < 0 ? r : 0;
}

static void names_survive(void)
{
	CHECK(alloc_fail_each(number_names, -ENOMEM) >= 3);
}

static int write_rules(void)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(BRIDGE_RULES_MAX);
	const struct egress_policy learning = { .is_learning = true };
	struct bridge bridge;

	CHECK(bridge_make("r1", "br0", "10.0.0.1", "fd00::1", 1, 2, &bridge, NULL) == 0);
	return bridge_rules(&bridge, &learning, &out);
}

static void rules_survive(void)
{
	CHECK(alloc_fail_each(write_rules, -ENOMEM) >= 4);
}

static struct {
	int ended;
	enum egress_reason reason;
} client_state;

static size_t no_room(void *ctx, uint32_t number)
{
	return 0;
}

static void on_ended(void *ctx, uint32_t number, enum egress_reason reason)
{
	client_state.ended++;
	client_state.reason = reason;
}

/* One that waits for the rest of its hello; the rows have no place to go. */
static int begin_connection(void)
{
	static const struct client_ops ops = { .room = no_room, .ended = on_ended };
	static const char json[] =
		"{\"schema\": 1, \"uid\": 0, \"patterns\": [\"a.org\"], \"learn\": false,"
		" \"wide\": false, \"proxy\": null, \"connect_ms\": 10, \"idle_ms\": 10,"
		" \"handshake_ms\": 10}";
	static struct gateway gateway;
	const struct client client = { &ops, NULL, 1 };
	struct conn *conn;
	int r;

	memset(&gateway, 0, sizeof(gateway));
	gateway.audit.fd = -1;
	client_state.ended = 0;
	r = gateway_config_parse(json, sizeof(json) - 1, &gateway.config, NULL);
	if (r == 0)
		r = loop_new(&gateway.loop);
	if (r == 0) {
		conn = conn_new(&gateway, &client, "a.org", 5, 443);
		if (conn)
			conn_data(conn, "\x16\x03\x01\x02\x00\x01", 6);
		/* It is there, or its end was told. */
		CHECK(client_state.ended == (gateway.conn_count == 0));
		r = client_state.ended ? -ENOMEM : 0;
		CHECK(r == 0 || client_state.reason == EGRESS_TOO_MANY);
		conn_end_all(&gateway);
		CHECK(gateway.waiting == 0 && gateway.conn_count == 0);
	}
	loop_free(&gateway.loop);
	gateway_config_done(&gateway.config);
	return r;
}

static void connections_survive(void)
{
	CHECK(alloc_fail_each(begin_connection, -ENOMEM) >= 4);
}

int main(void)
{
	RUN(configurations_survive);
	RUN(tables_of_hosts_survive);
	RUN(names_survive);
	RUN(rules_survive);
	RUN(connections_survive);
	return check_done();
}
