/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_policy.c - a file of patterns; and each of its lines as a pattern: what parses writes to the same. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "egress/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 8192 };

static void require(int truth)
{
	if (!truth)
		abort();
}

/* The pattern as text gives the pattern again, and allows what it says. */
static void check_pattern(const struct egress_pattern *pattern, bool is_wide)
{
	struct egress_policy policy = EGRESS_POLICY_NONE;
	struct buf text = BUF_INIT(512);
	struct egress_pattern again;
	struct egress_name name;
	bool is_plain;

	require(egress_pattern_write(pattern, &text) == 0);
	require(egress_pattern_parse(text.data, is_wide, &again, NULL, NULL) == 0);
	require(egress_policy_add(&policy, pattern, NULL) == 0);
	require(egress_policy_add(&policy, &again, NULL) == 0 && policy.count == 1);
	require(pattern->port > 0 && (pattern->name.text[0] || pattern->is_wildcard));
	if (!pattern->is_wildcard) {
		require(egress_policy_check(&policy, &pattern->name, pattern->port, &is_plain) ==
		        EGRESS_NONE);
		require(is_plain == pattern->is_plain);
	} else {
		require(is_wide || strchr(pattern->name.text, '.'));
		require(!pattern->name.text[0] || !egress_policy_has_name(&policy, &pattern->name));
	}
	require(egress_name_parse("other.example", 13, &name) == EGRESS_NONE);
	(void) egress_policy_check(&policy, &name, 443, &is_plain);
	egress_policy_done(&policy);
	buf_done(&text);
}

static void check_line(const char *line)
{
	for (int is_wide = 0; is_wide < 2; is_wide++) {
		struct resoluto_err err = { 0 };
		struct egress_pattern pattern;
		const char *ignored;
		int r = egress_pattern_parse(line, is_wide, &pattern, &ignored, &err);

		require(r == 0 || (r == -EINVAL && err.text[0] && !strchr(err.text, '\n')));
		if (r < 0)
			continue;
		require(!ignored || (ignored > line && ignored < line + strlen(line)));
		check_pattern(&pattern, is_wide);
	}
}

static int on_ignored(void *ctx, size_t line, const char *text, size_t kept)
{
	require(line > 0 && kept > 0 && kept < strlen(text) && strchr("/?#\\", text[kept]));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct egress_policy policy = EGRESS_POLICY_NONE;
	struct resoluto_err err = { 0 };
	char *text, *rest;
	int r;

	if (size > INPUT_MAX)
		return 0;
	r = egress_policy_add_file(&policy, "file", (struct span){ (const char *) data, size },
	                           on_ignored, NULL, &err);
	require(r == 0 || ((r == -EINVAL || r == -E2BIG) && err.text[0]));
	egress_policy_done(&policy);
	text = strndup((const char *) data, size);
	require(text != NULL);
	rest = text;
	for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n"))
		check_line(line);
	free(text);
	return 0;
}
