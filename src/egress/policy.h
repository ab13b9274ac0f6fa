/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * policy.h - which names, on which ports.  Pure; the same in CLI, runner and gateway.
 *
 *	example.org            TLS to that name, port 443
 *	example.org:8443       another port
 *	*.example.org          one label or more before it, never example.org itself
 *	https://example.org/x  the same as example.org; what is behind the name is ignored, and said
 *	http://example.org     plain HTTP, port 80
 *
 * `*` and wildcards of one label (`*.com`) only with is_wide.  Addresses and CIDRs are refused: who
 * owns an address today is not who was meant.  A policy without patterns allows nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"
#include "egress/name.h"
#include "egress/reason.h"
#include "resoluto/err.h"

enum {
	EGRESS_PATTERNS_MAX = 4096,
	EGRESS_FILE_MAX = 1024 * 1024, /* bytes of a file of patterns */
};

struct egress_pattern {
	struct egress_name name; /* without the "*."; "" with is_wildcard: every name */
	uint16_t port;
	bool is_wildcard;
	bool is_plain; /* HTTP instead of TLS */
};

struct egress_policy {
	struct egress_pattern *patterns;
	size_t count;
	bool is_wide, is_learning;
};

#define EGRESS_POLICY_NONE ((struct egress_policy){ 0 })

/*
 * Parse one pattern.  -EINVAL: what is wrong and what to write instead.  *ret_ignored (may be NULL)
 * points into text where something was ignored (a path), else it is NULL.
 */
int egress_pattern_parse(const char *text, bool is_wide, struct egress_pattern *ret_pattern,
                         const char **ret_ignored, struct resoluto_err *err);
/* Its canonical text, with the port: "*.example.org:443", "http://example.org:80". */
int egress_pattern_write(const struct egress_pattern *pattern, struct buf *out);

/* Add a pattern (one that is there already is not added again).  -E2BIG over EGRESS_PATTERNS_MAX. */
int egress_policy_add(struct egress_policy *policy, const struct egress_pattern *pattern,
                      struct resoluto_err *err);
/* Told of a pattern of which something was ignored: text, at most kept bytes of which count (a C string of its own). */
typedef int egress_ignored_fn(void *ctx, size_t line, const char *text, size_t kept);
/*
 * Add those of a file's text: one a line, `#` begins a comment; errors name source and line.  fn (may be NULL)
 * hears of what was ignored; what it returns, if negative, ends it.
 */
int egress_policy_add_file(struct egress_policy *policy, const char *source, struct span text,
                           egress_ignored_fn *fn, void *ctx, struct resoluto_err *err);
void egress_policy_done(struct egress_policy *policy);

/* Does any pattern have this name, whatever the port?  What the responder asks.  While learning: yes. */
bool egress_policy_has_name(const struct egress_policy *policy, const struct egress_name *name);
/*
 * The ports that listeners are needed for: fills ret_ports up to max, without repeats, and returns how
 * many there are.  While learning: 443 and 80 as well.
 */
size_t egress_policy_ports(const struct egress_policy *policy, const struct egress_name *name,
                           uint16_t *ret_ports, size_t max);
/*
 * Name and port together.  EGRESS_NONE: allowed, and *ret_is_plain says what must be spoken (TLS where
 * patterns of both kinds have them: then the plain one never counts).  EGRESS_LEARNING while learning.
 */
enum egress_reason egress_policy_check(const struct egress_policy *policy,
                                       const struct egress_name *name, uint16_t port,
                                       bool *ret_is_plain);
