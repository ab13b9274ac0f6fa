/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bridge.c - the rules of a bridge against tests/golden/nft/.
 *
 * RENEW_GOLDEN=1 (ninja golden-nft) writes the files instead; look at the difference before committing it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "check.h"
#include "gateway/bridge.h"

#ifndef GOLDEN_DIR
#error "GOLDEN_DIR is the folder of the golden files"
#endif

static void check_golden(const char *file, const struct buf *got)
{
	CLEANUP(fd_close) int dir = open(GOLDEN_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(buf_done) struct buf want = BUF_INIT(0);

	CHECK(dir >= 0);
	if (getenv("RENEW_GOLDEN"))
		CHECK(replace_file_at(dir, file, got->data, got->len, 0644, NULL) == 0);
	if (read_file_at(dir, file, BRIDGE_RULES_MAX, &want, NULL) < 0)
		printf("# %s is missing: ninja golden-nft\n", file);
	CHECK_STR(got->data, want.data);
}

static void add(struct egress_policy *policy, const char *text)
{
	struct egress_pattern pattern;

	CHECK(egress_pattern_parse(text, false, &pattern, NULL, NULL) == 0);
	CHECK(egress_policy_add(policy, &pattern, NULL) == 0);
}

static void both_families(void)
{
	struct egress_policy policy = EGRESS_POLICY_NONE;
	struct buf out = BUF_INIT(BRIDGE_RULES_MAX);
	struct bridge bridge;

	add(&policy, "pypi.org");
	add(&policy, "*.example.org:8443");
	add(&policy, "http://deb.debian.org");
	add(&policy, "files.pypi.org");
	CHECK(bridge_make("run-0123456789abcdef", "resoluto0", "10.222.0.1", "fd00:222::1", 3129,
	                  3130, &bridge, NULL) == 0);
	CHECK(bridge_rules(&bridge, &policy, &out) == 0);
	check_golden("both.nft", &out);
	buf_done(&out);
	egress_policy_done(&policy);
}

/* No pattern: questions are still answered (by no), and nothing gets anywhere. */
static void nothing_allowed(void)
{
	const struct egress_policy policy = EGRESS_POLICY_NONE;
	struct buf out = BUF_INIT(BRIDGE_RULES_MAX);
	struct bridge bridge;

	CHECK(bridge_make("r1", "br0", "10.0.0.1", NULL, 3129, 3130, &bridge, NULL) == 0);
	CHECK(bridge_rules(&bridge, &policy, &out) == 0);
	check_golden("nothing.nft", &out);
	buf_done(&out);
}

static void learning(void)
{
	const struct egress_policy policy = { .is_learning = true };
	struct buf out = BUF_INIT(BRIDGE_RULES_MAX);
	struct bridge bridge;

	CHECK(bridge_make("r1", "br0", NULL, "fd00::1", 3129, 3130, &bridge, NULL) == 0);
	CHECK(bridge_rules(&bridge, &policy, &out) == 0);
	check_golden("learning.nft", &out);
	buf_clear(&out);
	CHECK(bridge_no_rules(&bridge, &out) == 0);
	check_golden("gone.nft", &out);
	buf_done(&out);
}

static int make(const char *run, const char *interface, const char *v4, const char *v6, int port,
                int names_port)
{
	struct bridge bridge = { 0 };
	struct resoluto_err err = { 0 };
	int r = bridge_make(run, interface, v4, v6, (uint16_t) port, (uint16_t) names_port, &bridge,
	                    &err);

	CHECK((r < 0) == (bridge.run[0] == '\0') && (r < 0) == (err.text[0] != '\0'));
	return r;
}

static void what_would_be_more_than_a_word_is_refused(void)
{
	static const char *const bad[] = {
		"",         "-x",
		"a b",      "a;b",
		"a{",       "a\"",
		"a\nb",     "a/b",
		"\xc3\xa4", "0123456789012345678901234567890123456789012345678"
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK(make(bad[i], "br0", "10.0.0.1", NULL, 1, 2) == -EINVAL);
		CHECK(make("r1", bad[i], "10.0.0.1", NULL, 1, 2) == -EINVAL);
	}
	CHECK(make("r1", "0123456789012345", "10.0.0.1", NULL, 1, 2) == -EINVAL);
	CHECK(make("r1", "012345678901234", "10.0.0.1", NULL, 1, 2) == 0);
	CHECK(make("r1", "br0", NULL, NULL, 1, 2) == -EINVAL);
	CHECK(make("r1", "br0", "10.0.0", NULL, 1, 2) == -EINVAL);
	CHECK(make("r1", "br0", "fd00::1", NULL, 1, 2) == -EINVAL);
	CHECK(make("r1", "br0", NULL, "10.0.0.1", 1, 2) == -EINVAL);
	CHECK(make("r1", "br0", "10.0.0.1", NULL, 0, 2) == -EINVAL);
	CHECK(make("r1", "br0", "10.0.0.1", NULL, 1, 0) == -EINVAL);
	CHECK(make("r1", "br0", "10.0.0.1", NULL, 7, 7) == -EINVAL);
}

int main(void)
{
	RUN(both_families);
	RUN(nothing_allowed);
	RUN(learning);
	RUN(what_would_be_more_than_a_word_is_refused);
	return check_done();
}
