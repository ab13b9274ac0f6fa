/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "check.h"
#include "gateway/config.h"

#define LIMITS "\"connect_ms\": 10000, \"idle_ms\": 300000, \"handshake_ms\": 10000"
#define WHOLE(uid, patterns, more) \
	"{\"schema\": 1, \"uid\": " uid ", \"patterns\": " patterns ", \"learn\": false," \
	" \"wide\": false, \"proxy\": null, " more "}"

static int parse(const char *json, struct gateway_config *config, struct resoluto_err *err)
{
	return gateway_config_parse(json, strlen(json), config, err);
}

static void takes_all_members(void)
{
	struct gateway_config config;
	struct resoluto_err err = { 0 };

	CHECK(parse("{\"schema\": 1, \"uid\": 70001, \"patterns\": [\"pypi.org\", "
	            "\"http://a.example.org\"],"
	            " \"learn\": true, \"wide\": true, \"proxy\": \"http://p:8080\", "
	            "\"connect_ms\": 10,"
	            " \"idle_ms\": 20, \"handshake_ms\": 30, \"later\": 1}",
	            &config, &err) == 0);
	CHECK(config.uid == 70001 && config.policy.count == 2);
	CHECK(config.policy.is_learning && config.policy.is_wide);
	CHECK(config.proxy.port == 8080);
	CHECK(config.connect_ms == 10 && config.idle_ms == 20 && config.handshake_ms == 30);
	gateway_config_done(&config);
}

#define BRIDGE(interface, v4, v6, port) \
	"\"redirect\": {\"run\": \"r1\", \"interface\": " interface ", \"v4\": " v4 \
	", \"v6\": " v6 "," \
	" \"port\": " port ", \"names_port\": 3130}, " LIMITS

static void a_bridge_may_have_one_family(void)
{
	struct gateway_config config;

	CHECK(parse(WHOLE("0", "[]", BRIDGE("\"br0\"", "null", "\"fd00::1\"", "3129")), &config,
	            NULL) == 0);
	CHECK_STR(config.bridge.run, "r1");
	CHECK_STR(config.bridge.interface, "br0");
	CHECK(!config.bridge.has_v4 && config.bridge.has_v6);
	CHECK(config.bridge.port == 3129 && config.bridge.names_port == 3130);
	gateway_config_done(&config);
}

static void an_empty_list_allows_nothing(void)
{
	struct gateway_config config;

	CHECK(parse(WHOLE("0", "[]", LIMITS), &config, NULL) == 0);
	CHECK(config.policy.count == 0 && !config.policy.is_wide && !config.policy.is_learning);
	CHECK(config.proxy.port == 0 && config.bridge.run[0] == '\0');
	gateway_config_done(&config);
}

static void what_is_missing_or_wrong_is_refused(void)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"null",
		"{\"schema\": 1}",
		WHOLE("0", "[]", LIMITS) "x",
		WHOLE("0", "[1]", LIMITS),
		WHOLE("0", "null", LIMITS),
		WHOLE("0", "{}", LIMITS),
		WHOLE("0", "[\"*\"]", LIMITS),
		WHOLE("0", "[\"10.0.0.1\"]", LIMITS),
		WHOLE("-1", "[]", LIMITS),
		WHOLE("4294967295", "[]", LIMITS),
		WHOLE("\"0\"", "[]", LIMITS),
		WHOLE("0", "[]", "\"connect_ms\": 9, \"idle_ms\": 300, \"handshake_ms\": 100"),
		WHOLE("0", "[]",
		      "\"connect_ms\": 100, \"idle_ms\": 99999999999, \"handshake_ms\": 100"),
		WHOLE("0", "[]", "\"connect_ms\": 100, \"idle_ms\": 100"),
		WHOLE("0", "[]", "\"uid\": 0, " LIMITS),
		WHOLE("0", "[]", "\"redirect\": null, " LIMITS),
		WHOLE("0", "[]", "\"redirect\": {}, " LIMITS),
		WHOLE("0", "[]", BRIDGE("7", "null", "\"fd00::1\"", "3129")),
		WHOLE("0", "[]", BRIDGE("\"br0\"", "null", "null", "3129")),
		WHOLE("0", "[]", BRIDGE("\"br0\"", "5", "\"fd00::1\"", "3129")),
		WHOLE("0", "[]", BRIDGE("\"br0\"", "null", "\"fd00::1\"", "65536")),
		WHOLE("0", "[]", BRIDGE("\"br0\"", "null", "\"fd00::1\"", "3130")),
		WHOLE("0", "[]", BRIDGE("\"br\\\" drop\"", "null", "\"fd00::1\"", "3129")),
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct gateway_config config = GATEWAY_CONFIG_NONE;
		struct resoluto_err err = { 0 };

		printf("# %s\n", bad[i]);
		CHECK(parse(bad[i], &config, &err) == -EINVAL);
		CHECK(strstr(err.text, "configuration: "));
		CHECK(!config.policy.patterns);
	}
}

int main(void)
{
	RUN(takes_all_members);
	RUN(a_bridge_may_have_one_family);
	RUN(an_empty_list_allows_nothing);
	RUN(what_is_missing_or_wrong_is_refused);
	return check_done();
}
