/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result_tool.c - many synthetic results as JSON, one a line: every disposition with every reason,
 * text and bytes, with and without what may be absent.  For test_run_result_schema.py.
 *
 *	result_tool reasons     instead: the closed list of reasons, one "name<TAB>sentence" a line
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resoluto/sandbox.h"
#include "wire/reason.h"

enum { VARIANTS = 16 };

static const char isolation[] =
	"{\"runtime\":\"microvm\",\"accel\":\"tcg\",\"kernel\":\"6.1.0\",\"own_kernel\":true,"
	"\"guest_boot_id\":\"22222222-2222-2222-2222-222222222222\",\"verdict\":\"protected\","
	"\"confinement\":[\"landlock\",\"seccomp\"]}";

static struct resoluto_result bare(enum resoluto_disposition disposition, enum reason reason)
{
	return (struct resoluto_result){
		.run_id = "run-0123456789abcdef",
		.reason = (char *) reason_name(reason),
		.detail = (char *) reason_sentence(reason),
		.disposition = disposition,
		.exit_code = 1,
	};
}

/* The bits of variant choose what is there. */
static void decorate(struct resoluto_result *result, unsigned variant, char **artifacts)
{
	if (variant & 1) {
		result->output = result->out = variant & 2 ? "\xff\xfe" : "\xc3\xa4\n";
		result->output_len = result->out_len = variant & 2 ? 2 : 3;
		result->output_dropped_bytes = 1u << 31;
		result->output_head_len = result->out_head_len = 1;
		result->output_is_complete = variant & 4;
	}
	if (variant & 2) {
		result->ran = true;
		result->exit_code = 137;
		result->signal = 9;
		result->isolation_json = (char *) isolation;
		result->canary_json = "[{\"probe\":\"store\",\"ok\":true,\"detail\":\"\"}]";
	}
	if (variant & 4) {
		result->artifacts = artifacts;
		result->warnings = artifacts + 1;
		result->result_json = variant & 1 ? "[1,\"\\u00E4\"]" : "{\"passed\":true}";
	}
	if (variant & 8) {
		result->image_ref = "resoluto-sandbox-base:0.1.0";
		result->image_digest = "sha256:00";
		result->substrate_logs = "Kernel panic\x80 \x1b[0m\n";
		result->redactions = 12;
		result->timings_ms = (struct resoluto_timings){ 1, 2, 3, 4, 5, 6, 7, 28 };
	}
}

static int print(const struct resoluto_result *result)
{
	char *json = resoluto_result_to_json(result);

	if (!json)
		return 1;
	puts(json);
	free(json);
	return 0;
}

static int print_results(void)
{
	char *artifacts[] = { "a/b.xml", "result.json", "\xff name", NULL };

	for (int disposition = RESOLUTO_COMPLETED; disposition <= RESOLUTO_REFUSED; disposition++) {
		for (int reason = REASON_NONE; reason < REASON_COUNT; reason++) {
			for (unsigned variant = 0; variant < VARIANTS; variant++) {
				struct resoluto_result result = bare(disposition, reason);

				decorate(&result, variant, artifacts);
				if (reason == REASON_NONE) {
					result.exit_code = result.signal = 0;
					result.ok = true;
				}
				if (print(&result) != 0)
					return 1;
			}
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 1)
		return print_results();
	for (int reason = REASON_NONE; reason < REASON_COUNT; reason++)
		printf("%s\t%s\n", reason_name(reason), reason_sentence(reason));
	return 0;
}
