/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * config.h - what the launcher tells the gateway (fd 5), once.  docs/design/egress.md has an example.
 * Believed, but checked: a launcher with a fault in it must not open more than was meant.
 */

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "egress/policy.h"
#include "gateway/bridge.h"
#include "gateway/proxy.h"
#include "resoluto/err.h"

enum {
	GATEWAY_CONFIG_MAX = 2 * 1024 * 1024, /* bytes of JSON */
	GATEWAY_CONFIG_SCHEMA = 1,
	GATEWAY_LIMIT_MIN_MS = 10,
	GATEWAY_LIMIT_MAX_MS = 24 * 3600 * 1000,
};

struct gateway_config {
	uid_t uid; /* to become; 0: stay who we are */
	struct egress_policy policy;
	struct proxy_address proxy; /* .port 0: none */
	struct bridge bridge;       /* .run "": none */
	uint32_t connect_ms;        /* for the answer of the resolver, and again to connect */
	uint32_t idle_ms;           /* without a byte in either direction */
	uint32_t handshake_ms;      /* from OPEN to a whole ClientHello or request head */
};

#define GATEWAY_CONFIG_NONE ((struct gateway_config){ 0 })

/* -EINVAL: what is wrong with it. */
int gateway_config_parse(const char *json, size_t len, struct gateway_config *ret_config,
                         struct resoluto_err *err);
/* Read it from fd, to its end. */
int gateway_config_read(int fd, struct gateway_config *ret_config, struct resoluto_err *err);
void gateway_config_done(struct gateway_config *config);
