/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.c - exit code, reason and disposition for every way a run can end. */
#include "check.h"
#include "sandbox/verdict.h"

struct expected {
	enum resoluto_disposition disposition;
	const char *outcome_reason;
	bool has_node;
	struct node_result node;
	bool has_started;
	int stop_signo;
	/* want */
	bool ran;
	int exit_code, signal;
	enum reason reason;
};

static const struct expected table[] = {
	/* the program's own code */
	{ RESOLUTO_COMPLETED,
	  "",
	  true,
	  { .success = true, .has_exit_code = true, .ran = true, .output_is_complete = true },
	  true,
	  0,
	  true,
	  0,
	  0,
	  REASON_NONE },
	{ RESOLUTO_COMPLETED,
	  "",
	  true,
	  { .has_exit_code = true, .exit_code = 7, .ran = true },
	  true,
	  0,
	  true,
	  7,
	  0,
	  REASON_NONE },
	{ RESOLUTO_COMPLETED,
	  "",
	  true,
	  { .has_exit_code = true, .exit_code = 137, .signal = 9, .ran = true },
	  true,
	  0,
	  true,
	  137,
	  9,
	  REASON_NONE },
	{ RESOLUTO_COMPLETED,
	  "out-of-memory",
	  true,
	  { .has_exit_code = true,
	    .exit_code = 137,
	    .signal = 9,
	    .ran = true,
	    .reason = "out-of-memory" },
	  true,
	  0,
	  true,
	  137,
	  9,
	  REASON_OUT_OF_MEMORY },
	{ RESOLUTO_COMPLETED,
	  "",
	  true,
	  { .has_exit_code = true, .exit_code = 7, .ran = true, .reason = "guest-disk-full" },
	  true,
	  0,
	  true,
	  7,
	  0,
	  REASON_GUEST_DISK_FULL },
	{ RESOLUTO_COMPLETED,
	  "",
	  true,
	  { .reason = "guest-disk-full" },
	  false,
	  0,
	  false,
	  1,
	  0,
	  REASON_GUEST_DISK_FULL },
	/* a signal was forwarded and the program ended by itself: its verdict */
	{ RESOLUTO_COMPLETED,
	  "",
	  true,
	  { .has_exit_code = true, .exit_code = 130, .signal = 2, .ran = true },
	  true,
	  2,
	  true,
	  130,
	  2,
	  REASON_NONE },
	/* never ran */
	{ RESOLUTO_COMPLETED,
	  "canary-failed",
	  true,
	  { .reason = "canary-failed" },
	  false,
	  0,
	  false,
	  1,
	  0,
	  REASON_CANARY_FAILED },
	{ RESOLUTO_COMPLETED,
	  "not-found",
	  true,
	  { .has_exit_code = true, .exit_code = 127, .reason = "not-found" },
	  false,
	  0,
	  false,
	  1,
	  0,
	  REASON_NOT_FOUND },
	{ RESOLUTO_COMPLETED, "", true, { .success = true }, false, 0, false, 0, 0, REASON_NONE },
	{ RESOLUTO_COMPLETED,
	  "",
	  true,
	  { .success = false },
	  false,
	  0,
	  false,
	  1,
	  0,
	  REASON_NO_RESULT },
	/* free words of a foreign runner */
	{ RESOLUTO_COMPLETED,
	  "x",
	  true,
	  { .has_exit_code = true, .exit_code = 3, .ran = true, .reason = "went wrong" },
	  true,
	  0,
	  true,
	  3,
	  0,
	  REASON_NONE },
	/* it broke off, with and without words for it */
	{ RESOLUTO_COMPLETED, "", true, { .ran = false }, true, 0, true, 125, 0, REASON_NO_RESULT },
	{ RESOLUTO_COMPLETED,
	  "x",
	  true,
	  { .reason = "went wrong" },
	  true,
	  0,
	  true,
	  125,
	  0,
	  REASON_NO_RESULT },
	/* the program was content, its run was not */
	{ RESOLUTO_COMPLETED,
	  "outputs-failed",
	  true,
	  { .has_exit_code = true, .ran = true, .reason = "outputs-failed" },
	  true,
	  0,
	  true,
	  125,
	  0,
	  REASON_OUTPUTS_FAILED },
	{ RESOLUTO_COMPLETED,
	  "",
	  true,
	  { .has_exit_code = true, .ran = true, .success = false },
	  true,
	  0,
	  true,
	  125,
	  0,
	  REASON_NONE },
	/* no verdict of the guest */
	{ RESOLUTO_COMPLETED, "no-result", false, { 0 }, false, 0, false, 1, 0, REASON_NO_RESULT },
	{ RESOLUTO_COMPLETED,
	  "bad-result",
	  false,
	  { 0 },
	  true,
	  0,
	  true,
	  125,
	  0,
	  REASON_BAD_RESULT },
	{ RESOLUTO_EXTERNAL,
	  "guest-panic",
	  false,
	  { 0 },
	  true,
	  0,
	  true,
	  125,
	  0,
	  REASON_GUEST_PANIC },
	{ RESOLUTO_EXTERNAL,
	  "boot-failed",
	  false,
	  { 0 },
	  false,
	  0,
	  false,
	  1,
	  0,
	  REASON_BOOT_FAILED },
	{ RESOLUTO_EXTERNAL, "Evicted", false, { 0 }, true, 0, true, 125, 0, REASON_EXTERNAL },
	{ RESOLUTO_SILENT, "silent", false, { 0 }, true, 0, true, 125, 0, REASON_SILENT },
	{ RESOLUTO_UNSTARTABLE,
	  "unstartable",
	  false,
	  { 0 },
	  false,
	  0,
	  false,
	  1,
	  0,
	  REASON_UNSTARTABLE },
	{ RESOLUTO_REFUSED,
	  "shared-kernel",
	  false,
	  { 0 },
	  false,
	  0,
	  false,
	  1,
	  0,
	  REASON_SHARED_KERNEL },
	/* stopped */
	{ RESOLUTO_STOPPED, "signal", false, { 0 }, true, 15, true, 143, 0, REASON_SIGNAL },
	{ RESOLUTO_STOPPED, "signal", false, { 0 }, false, 2, false, 130, 0, REASON_SIGNAL },
	{ RESOLUTO_STOPPED, "deadline", false, { 0 }, true, 0, true, 124, 0, REASON_DEADLINE },
	{ RESOLUTO_STOPPED,
	  "deadline",
	  true,
	  { .has_exit_code = true, .success = true, .ran = true },
	  true,
	  0,
	  true,
	  124,
	  0,
	  REASON_DEADLINE },
	{ RESOLUTO_STOPPED,
	  "deadline",
	  true,
	  { .has_exit_code = true, .exit_code = 143, .signal = 15, .ran = true },
	  true,
	  0,
	  true,
	  124,
	  15,
	  REASON_DEADLINE },
	{ RESOLUTO_STOPPED,
	  "caller-died",
	  false,
	  { 0 },
	  true,
	  0,
	  true,
	  125,
	  0,
	  REASON_CALLER_DIED },
	{ RESOLUTO_STOPPED, "quota", false, { 0 }, true, 0, true, 125, 0, REASON_QUOTA },
};

static void every_end(void)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct expected *want = &table[i];
		struct resoluto_outcome outcome = { .disposition = want->disposition };
		struct verdict_inputs inputs = {
			.outcome = &outcome,
			.node = want->has_node ? &want->node : NULL,
			.has_started = want->has_started,
			.stop_signo = want->stop_signo,
		};
		struct verdict got;

		snprintf(outcome.reason, sizeof(outcome.reason), "%s", want->outcome_reason);
		got = verdict_judge(&inputs);
		if (got.ran != want->ran || got.exit_code != want->exit_code ||
		    got.signal != want->signal || got.reason != want->reason ||
		    got.disposition != want->disposition)
			printf("# row %zu: ran %d, code %d, signal %d, reason %s\n", i, got.ran,
			       got.exit_code, got.signal, reason_name(got.reason));
		CHECK(got.ran == want->ran && got.exit_code == want->exit_code &&
		      got.signal == want->signal);
		CHECK(got.reason == want->reason && got.disposition == want->disposition);
		/* whatever is not plainly the program's own end is explained */
		CHECK(got.reason == REASON_NONE || got.detail[0]);
	}
}

/* The original's runner writes the hook's exit code where the program's belongs. */
static void a_setup_hook_is_not_the_program(void)
{
	struct resoluto_outcome outcome = { .disposition = RESOLUTO_COMPLETED };
	struct node_result node = { .has_exit_code = true, .exit_code = 9, .ran = true };
	struct verdict_inputs inputs = { .outcome = &outcome,
		                         .node = &node,
		                         .has_only_setup = true };
	struct verdict got = verdict_judge(&inputs);

	CHECK(!got.ran && got.exit_code == 1 && got.reason == REASON_SETUP_FAILED);
	inputs.has_only_setup = false;
	got = verdict_judge(&inputs);
	CHECK(got.ran && got.exit_code == 9 && got.reason == REASON_NONE);
}

static void details(void)
{
	struct resoluto_outcome outcome = { .disposition = RESOLUTO_COMPLETED };
	struct node_result node = { .success = true,
		                    .has_exit_code = true,
		                    .ran = true,
		                    .output_is_complete = true };
	struct verdict_inputs inputs = { .outcome = &outcome, .node = &node };

	CHECK_STR(verdict_judge(&inputs).detail, "");
	CHECK(verdict_judge(&inputs).output_is_complete);
	node.output_is_complete = false;
	CHECK_STR(verdict_judge(&inputs).detail, "");
	CHECK(!verdict_judge(&inputs).output_is_complete);
	node.detail = "said by the runner";
	CHECK_STR(verdict_judge(&inputs).detail, "said by the runner");
	node.detail = "";
	node.reason = "free words";
	CHECK_STR(verdict_judge(&inputs).detail, "free words");
	inputs.node = NULL;
	CHECK(!verdict_judge(&inputs).output_is_complete);
	outcome.disposition = RESOLUTO_EXTERNAL;
	snprintf(outcome.reason, sizeof(outcome.reason), "Evicted");
	CHECK_STR(verdict_judge(&inputs).detail, "Evicted");
}

static void spoiled_is_never_ok(void)
{
	struct verdict verdict = { .ran = true, .detail = "" };

	verdict_spoil(&verdict, REASON_BAD_OUTPUT, "");
	CHECK(verdict.exit_code == RESOLUTO_EXIT_SANDBOX && verdict.reason == REASON_BAD_OUTPUT);
	CHECK_STR(verdict.detail, reason_sentence(REASON_BAD_OUTPUT));
	verdict = (struct verdict){ .ran = true, .exit_code = 3 };
	verdict_spoil(&verdict, REASON_BAD_OUTPUT, "why");
	CHECK(verdict.exit_code == 3);
	CHECK_STR(verdict.detail, "why");
}

int main(void)
{
	RUN(every_end);
	RUN(a_setup_hook_is_not_the_program);
	RUN(details);
	RUN(spoiled_is_never_ok);
	return check_done();
}
