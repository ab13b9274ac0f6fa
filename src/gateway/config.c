/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "gateway/config.h"

static void json_put(json_t **json)
{
	json_decref(*json);
}

static int add_patterns(struct egress_policy *policy, json_t *patterns, struct resoluto_err *err)
{
	size_t index;
	json_t *item;

	json_array_foreach(patterns, index, item)
	{
		struct egress_pattern pattern;
		int r;

		if (!json_is_string(item))
			return resoluto_fail(err, -EINVAL, "pattern %zu is no text", index);
		r = egress_pattern_parse(json_string_value(item), policy->is_wide, &pattern, NULL,
		                         err);
		if (r == 0)
			r = egress_policy_add(policy, &pattern, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_policy(json_t *root, struct egress_policy *policy, struct resoluto_err *err)
{
	json_t *patterns = NULL;
	int is_learning = 0, is_wide = 0;

	if (json_unpack(root, "{s:o, s:b, s:b}", "patterns", &patterns, "learn", &is_learning,
	                "wide", &is_wide) < 0 ||
	    !json_is_array(patterns))
		return resoluto_fail(
			err, -EINVAL,
			"patterns (a list), learn and wide (true or false) are needed");
	policy->is_wide = is_wide;
	policy->is_learning = is_learning;
	return add_patterns(policy, patterns, err);
}

static int read_proxy(json_t *root, struct proxy_address *ret_proxy, struct resoluto_err *err)
{
	json_t *proxy = json_object_get(root, "proxy");

	if (!proxy || json_is_null(proxy))
		return 0;
	if (!json_is_string(proxy))
		return resoluto_fail(err, -EINVAL, "proxy is neither text nor null");
	return proxy_parse(json_string_value(proxy), ret_proxy, err);
}

/* Text, or NULL for null. */
static bool read_address(json_t *member, const char *name, const char **ret_text)
{
	json_t *item = json_object_get(member, name);

	*ret_text = json_string_value(item);
	return json_is_string(item) || json_is_null(item);
}

/* "redirect": {"run": "r1", "interface": "br0", "v4": "10.0.0.1", "v6": null, "port": 3129, "names_port": 3130} */
static int read_bridge(json_t *root, struct bridge *ret_bridge, struct resoluto_err *err)
{
	json_t *member = json_object_get(root, "redirect");
	const char *run, *interface, *v4, *v6;
	int port, names_port;

	if (!member)
		return 0;
	if (json_unpack(member, "{s:s, s:s, s:i, s:i}", "run", &run, "interface", &interface,
	                "port", &port, "names_port", &names_port) < 0 ||
	    !read_address(member, "v4", &v4) || !read_address(member, "v6", &v6))
		return resoluto_fail(err, -EINVAL,
		                     "redirect needs run, interface, v4, v6, port, names_port");
	if (port < 0 || port > UINT16_MAX || names_port < 0 || names_port > UINT16_MAX)
		return resoluto_fail(err, -EINVAL, "redirect has a port that is none");
	return bridge_make(run, interface, v4, v6, (uint16_t) port, (uint16_t) names_port,
	                   ret_bridge, err);
}

static int read_limit(json_t *root, const char *name, uint32_t *ret_ms, struct resoluto_err *err)
{
	json_t *item = json_object_get(root, name);
	json_int_t value = json_integer_value(item);

	if (!json_is_integer(item) || value < GATEWAY_LIMIT_MIN_MS || value > GATEWAY_LIMIT_MAX_MS)
		return resoluto_fail(err, -EINVAL, "%s must be a number from %d to %d", name,
		                     GATEWAY_LIMIT_MIN_MS, GATEWAY_LIMIT_MAX_MS);
	*ret_ms = (uint32_t) value;
	return 0;
}

static int read_uid(json_t *root, uid_t *ret_uid, struct resoluto_err *err)
{
	json_t *item = json_object_get(root, "uid");
	json_int_t value = json_integer_value(item);

	if (!json_is_integer(item) || value < 0 || value >= UINT32_MAX)
		return resoluto_fail(err, -EINVAL, "uid must be a number");
	*ret_uid = (uid_t) value;
	return 0;
}

static int read_members(json_t *root, struct gateway_config *config, struct resoluto_err *err)
{
	int r;

	if (json_integer_value(json_object_get(root, "schema")) != GATEWAY_CONFIG_SCHEMA)
		return resoluto_fail(err, -EINVAL, "schema is not %d", GATEWAY_CONFIG_SCHEMA);
	r = read_uid(root, &config->uid, err);
	if (r == 0)
		r = read_policy(root, &config->policy, err);
	if (r == 0)
		r = read_proxy(root, &config->proxy, err);
	if (r == 0)
		r = read_bridge(root, &config->bridge, err);
	if (r == 0)
		r = read_limit(root, "connect_ms", &config->connect_ms, err);
	if (r == 0)
		r = read_limit(root, "idle_ms", &config->idle_ms, err);
	if (r == 0)
		r = read_limit(root, "handshake_ms", &config->handshake_ms, err);
	return r;
}

int gateway_config_parse(const char *json, size_t len, struct gateway_config *ret_config,
                         struct resoluto_err *err)
{
	struct gateway_config config = GATEWAY_CONFIG_NONE;
	CLEANUP(json_put) json_t *root = json_loadb(json, len, JSON_REJECT_DUPLICATES, NULL);
	int r = json_is_object(root) ? read_members(root, &config, err)
	                             : resoluto_fail(err, -EINVAL, "it is no JSON object");

	if (r < 0) {
		gateway_config_done(&config);
		return resoluto_fail_in(err, r, "the gateway's configuration");
	}
	*ret_config = config;
	return 0;
}

int gateway_config_read(int fd, struct gateway_config *ret_config, struct resoluto_err *err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(GATEWAY_CONFIG_MAX);
	int r = read_rest(fd, &json);

	if (r < 0 || !json.data)
		return resoluto_fail(err, r < 0 ? r : -EINVAL, "read the gateway's configuration");
	return gateway_config_parse(json.data, json.len, ret_config, err);
}

void gateway_config_done(struct gateway_config *config)
{
	egress_policy_done(&config->policy);
	proxy_done(&config->proxy);
}
